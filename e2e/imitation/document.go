// Package imitation answers as a published API does, made of its OpenAPI document alone: rows for
// every list, records, paging, authentication and errors. It reads documents by itself and
// imports nothing of the product, so that it may judge what the product makes of the same document.
package imitation

import (
	"cmp"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

type object = map[string]any

// operation is one GET of the document.
type operation struct {
	path     string
	segments []string
	params   map[string]param // by place and name: "query limit"
	media    string           // of the answer
	status   int
	headers  object // of the answer, by their names
	schema   object // of the answer; nil when it has no body
	rows     string // the member with the rows; "" when the body is the array
	item     object // the schema of a row; nil when it is no list
	idField  string // of a row
	above    *operation
}

type param struct {
	required bool
	schema   object
	example  any
}

// document is an OpenAPI document as it was written.
type document struct{ root object }

func readDocument(path string) (document, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return document{}, err
	}
	var root object
	if err := yaml.Unmarshal(text, &root); err != nil {
		return document{}, fmt.Errorf("imitation: %s: %w", path, err)
	}
	return document{named(root).(object)}, nil
}

// named returns the value with texts for the names of all members: YAML reads 200 as a number.
func named(of any) any {
	switch of := of.(type) {
	case map[any]any:
		out := object{}
		for name, value := range of {
			out[fmt.Sprint(name)] = named(value)
		}
		return out
	case object:
		for name, value := range of {
			of[name] = named(value)
		}
	case []any:
		for i, value := range of {
			of[i] = named(value)
		}
	}
	return of
}

// resolve follows references by JSON pointer (RFC 6901) and returns the object they lead to.
func (d document) resolve(of any) object {
	for range 32 {
		m, _ := of.(object)
		ref, isRef := m["$ref"].(string)
		if !isRef {
			return m
		}
		var at any = d.root
		for _, part := range strings.Split(strings.TrimPrefix(ref, "#/"), "/") {
			if name, err := url.PathUnescape(part); err == nil {
				part = name
			}
			part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
			switch inside := at.(type) {
			case object:
				at = inside[part]
			case []any:
				i, err := strconv.Atoi(part)
				if err != nil || i >= len(inside) {
					panic("imitation: a reference leads nowhere: " + ref)
				}
				at = inside[i]
			}
		}
		if at == nil {
			panic("imitation: a reference leads nowhere: " + ref)
		}
		of = at
	}
	panic("imitation: references in a circle")
}

// merged returns a schema with its members of allOf in one, and the first of anyOf and oneOf.
func (d document) merged(of any, depth int) object {
	schema := d.resolve(of)
	if schema == nil || depth > 8 {
		return schema
	}
	parts, _ := schema["allOf"].([]any)
	for _, either := range []string{"oneOf", "anyOf"} {
		if choices, _ := schema[either].([]any); len(choices) > 0 {
			parts = append(slices.Clone(parts), choices[0])
		}
	}
	if len(parts) == 0 {
		return schema
	}
	out, properties := object{}, object{}
	for _, part := range append(slices.Clone(parts), any(without(schema, "allOf", "oneOf", "anyOf"))) {
		part := d.merged(part, depth+1)
		for name, value := range part {
			out[name] = value
		}
		inside, _ := part["properties"].(object)
		for name, value := range inside {
			properties[name] = value
		}
	}
	if len(properties) > 0 {
		out["properties"] = properties
	}
	return out
}

func without(of object, names ...string) object {
	out := object{}
	for name, value := range of {
		if !slices.Contains(names, name) {
			out[name] = value
		}
	}
	return out
}

// typeOf returns the type of a merged schema, also where only its members tell it.
func typeOf(schema object) string {
	switch kind := schema["type"].(type) {
	case string:
		return kind
	case []any:
		for _, one := range kind {
			if one != "null" {
				return fmt.Sprint(one)
			}
		}
	}
	if schema["properties"] != nil || schema["additionalProperties"] != nil {
		return "object"
	}
	if schema["items"] != nil {
		return "array"
	}
	return "string"
}

// operations returns every GET, the lists with their rows.
func (d document) operations(prefix string) []*operation {
	var all []*operation
	byPath := map[string]*operation{}
	paths, _ := d.root["paths"].(object)
	for path, item := range paths {
		item := d.resolve(item)
		get, _ := item["get"].(object)
		if get == nil {
			continue
		}
		op := &operation{path: prefix + path, params: map[string]param{}}
		op.segments = strings.Split(strings.Trim(op.path, "/"), "/")
		own, _ := get["parameters"].([]any)
		shared, _ := item["parameters"].([]any)
		for _, one := range append(slices.Clone(shared), own...) {
			p := d.resolve(one)
			required, _ := p["required"].(bool)
			schema := d.merged(p["schema"], 0)
			example := p["example"]
			for _, name := range []string{"example", "default"} {
				if example == nil {
					example = schema[name]
				}
			}
			op.params[fmt.Sprint(p["in"], " ", p["name"])] = param{required, schema, example}
		}
		d.answer(op, get)
		all = append(all, op)
		byPath[op.path] = op
	}
	for _, op := range all {
		last := len(op.segments) - 1
		if list := byPath["/"+strings.Join(op.segments[:last], "/")]; list != nil && list.item != nil && isVariable(op.segments[last]) {
			op.above = list
			list.idField = d.idOf(list, op.segments[last])
			op.item = nil
		}
	}
	for _, op := range all {
		if op.item != nil && op.idField == "" {
			op.idField = d.idOf(op, "{id}")
		}
	}
	slices.SortFunc(all, func(a, b *operation) int { return cmp.Compare(a.path, b.path) })
	return all
}

func isVariable(segment string) bool { return strings.HasPrefix(segment, "{") }

// answer reads the good answer of an operation.
func (d document) answer(op *operation, get object) {
	responses, _ := get["responses"].(object)
	for _, status := range []string{"200", "201", "204"} {
		response := d.resolve(responses[status])
		if response == nil {
			continue
		}
		op.status, _ = strconv.Atoi(status)
		op.headers, _ = response["headers"].(object)
		content, _ := response["content"].(object)
		for media, of := range content {
			op.media = media
			op.schema = d.merged(of.(object)["schema"], 0)
		}
		break
	}
	if op.media != "application/json" || isVariable(op.segments[len(op.segments)-1]) {
		return
	}
	if typeOf(op.schema) == "array" {
		op.item = d.rowSchema(op.schema)
		return
	}
	var members []string
	properties, _ := op.schema["properties"].(object)
	for name, of := range properties {
		if d.rowSchema(d.merged(of, 0)) != nil && !slices.Contains([]string{"links", "errors", "warnings"}, name) {
			members = append(members, name)
		}
	}
	last := op.segments[len(op.segments)-1]
	if slices.Contains(members, last) {
		members = []string{last}
	}
	if len(members) == 1 {
		op.rows, op.item = members[0], d.rowSchema(d.merged(properties[members[0]], 0))
	}
}

// rowSchema returns the schema of an array's elements when they are objects with members.
func (d document) rowSchema(of object) object {
	if typeOf(of) != "array" {
		return nil
	}
	item := d.merged(of["items"], 0)
	if typeOf(item) != "object" || item["properties"] == nil {
		return nil
	}
	return item
}

// idOf returns the field of a list's rows that a variable below the list names.
func (d document) idOf(list *operation, variable string) string {
	properties, _ := list.item["properties"].(object)
	name := strings.Trim(variable, "{}")
	tail := name[strings.LastIndex(name, "_")+1:]
	for _, field := range []string{name, tail, "id", "uuid", "gid", "slug", "name", "key"} {
		if field = strings.TrimSuffix(field, "entifier"); properties[field] == nil {
			continue
		}
		switch typeOf(d.merged(properties[field], 0)) {
		case "string", "integer":
			return field
		}
	}
	return ""
}
