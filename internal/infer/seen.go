// This file describes the responses of a live API as parts of an OpenAPI document.

package infer

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"understudy/internal/openapi"
)

// readOperation returns a response as an operation of a document.
func (l *liveList) readOperation(s *parsedAnswer) (*openapi.Operation, error) {
	doc, err := openapi.New(newObject().Set("openapi", openapi.Text("3.1.0")).
		Set("paths", newObject().Set(l.path(l.listURL), l.describePath(s, l.params))))
	if err != nil {
		return nil, err
	}
	return doc.Reads[0], nil
}

// describePath returns the OpenAPI path item for a GET with these parameters and this response.
func (l *liveList) describePath(s *parsedAnswer, params []liveParam) *openapi.Value {
	all := newArray()
	for _, p := range params {
		schema := inferSchema(p.value, 0)
		if isOneOf(p.name, sizeNames...) && p.value.Kind == openapi.Number {
			schema.Set("default", p.value)
		} else if p.firstPage != "" {
			schema.Set("default", &openapi.Value{Kind: openapi.Number, Text: p.firstPage})
		}
		all.Items = append(all.Items, newObject().Set("name", openapi.Text(p.name)).Set("in", openapi.Text(p.in)).Set("schema", schema))
	}
	responses := newObject().Set("200", s.describeResponse(l.memberNotes))
	if l.missingAnswer != nil {
		responses.Set(strconv.Itoa(l.missingAnswer.status), l.missingAnswer.describeResponse(nil))
	}
	return newObject().Set("get", newObject().Set("parameters", all).Set("responses", responses))
}

// describeResponse returns the OpenAPI description of a response. notes are descriptions of members, by their dotted names.
func (s *parsedAnswer) describeResponse(notes map[string]string) *openapi.Value {
	headers := newObject()
	for _, name := range slices.Sorted(maps.Keys(s.header)) {
		isPaging := isLinkHeader(name) || hasWord(name, "next", "continuation", "more")
		if isPaging || name == "Etag" || isLimitHeader(name) || isUsefulUndocumented(name) {
			headers.Set(name, newObject().Set("example", openapi.Text(s.header.Get(name))))
		}
	}
	media, _, _ := strings.Cut(s.header.Get("Content-Type"), ";")
	if !strings.Contains(strings.ToLower(media), "json") {
		media = "application/json"
	}
	schema := inferSchema(s.body, 0)
	for name, text := range notes {
		member := schema
		for part := range strings.SplitSeq(name, ".") {
			member = member.Get("properties").Get(part)
		}
		if member != nil {
			member.Set("description", openapi.Text(text))
		}
	}
	return newObject().Set("headers", headers).Set("content", newObject().Set(media, newObject().Set("schema", schema).Set("example", s.body)))
}

// Limits for inferring the schema of a value: the number of rows of an array, and the number of levels.
const (
	maxSchemaRows  = 50
	maxSchemaDepth = 12
)

// inferSchema returns a schema that describes a value. The item schema of an array has the members of its first rows.
func inferSchema(v *openapi.Value, depth int) *openapi.Value {
	s := newObject()
	if v == nil || depth > maxSchemaDepth {
		return s
	}
	switch v.Kind {
	case openapi.Object:
		members := newObject()
		v.WalkPairs(func(name string, value *openapi.Value) { members.Set(name, inferSchema(value, depth+1)) })
		return s.Set("type", openapi.Text("object")).Set("properties", members)
	case openapi.Array:
		var items *openapi.Value
		for _, item := range v.Items[:min(maxSchemaRows, len(v.Items))] {
			items = mergeSchemas(items, inferSchema(item, depth+1))
		}
		s.Set("type", openapi.Text("array"))
		if items != nil {
			s.Set("items", items)
		}
		return s
	case openapi.Number:
		typ := "integer"
		if strings.ContainsAny(v.Text, ".eE") {
			typ = "number"
		}
		return s.Set("type", openapi.Text(typ)).Set("example", v)
	case openapi.Bool:
		return s.Set("type", openapi.Text("boolean"))
	case openapi.String:
		return s.Set("type", openapi.Text("string")).Set("example", v)
	}
	return s // for null, the schema allows any value
}

// mergeSchemas returns a schema for values that match a or b.
func mergeSchemas(a, b *openapi.Value) *openapi.Value {
	switch {
	case a == nil || a.TextOf("type") == "":
		return b
	case b == nil || b.TextOf("type") == "" || a.TextOf("type") != b.TextOf("type"):
		if b != nil && a.TextOf("type") == "integer" && b.TextOf("type") == "number" {
			return b
		}
		return a
	}
	switch a.TextOf("type") {
	case "object":
		x, y := a.Get("properties"), b.Get("properties")
		members := newObject()
		x.WalkPairs(func(name string, schema *openapi.Value) {
			if other := y.Get(name); other != nil {
				schema = mergeSchemas(schema, other)
			}
			members.Set(name, schema)
		})
		y.WalkPairs(func(name string, schema *openapi.Value) {
			if x.Get(name) == nil {
				members.Set(name, schema)
			}
		})
		return newObject().Set("type", openapi.Text("object")).Set("properties", members)
	case "array":
		out := newObject().Set("type", openapi.Text("array"))
		if items := mergeSchemas(a.Get("items"), b.Get("items")); items != nil {
			out.Set("items", items)
		}
		return out
	}
	return a
}
