// Seen: what an API answered, as a part of a document.

package infer

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"understudy/internal/openapi"
)

// read is an answer as an operation of a document.
func (l *liveList) read(s *seen) (*openapi.Operation, error) {
	doc, err := openapi.New(object().Set("openapi", openapi.Text("3.1.0")).
		Set("paths", object().Set(l.path(l.at), l.operation(s, l.params))))
	if err != nil {
		return nil, err
	}
	return doc.Reads[0], nil
}

// operation is an answer as a path of a document.
func (l *liveList) operation(s *seen, params []liveParam) *openapi.Value {
	all := array()
	for _, p := range params {
		schema := schemaOf(p.value, 0)
		if is(p.name, sizeNames...) && p.value.Kind == openapi.Number {
			schema.Set("default", p.value)
		} else if p.first != "" {
			schema.Set("default", &openapi.Value{Kind: openapi.Number, Text: p.first})
		}
		all.Items = append(all.Items, object().Set("name", openapi.Text(p.name)).Set("in", openapi.Text(p.in)).Set("schema", schema))
	}
	responses := object().Set("200", s.response(l.told))
	if l.none != nil {
		responses.Set(strconv.Itoa(l.none.status), l.none.response(nil))
	}
	return object().Set("get", object().Set("parameters", all).Set("responses", responses))
}

// response is an answer as a document describes it, with what other pages show of its members.
func (s *seen) response(told map[string]string) *openapi.Value {
	headers := object()
	for _, name := range slices.Sorted(maps.Keys(s.header)) {
		if told := isLink(name) || name == "Etag" || isLimit(name) || missedIfSeen(name) || has(name, "next", "continuation", "more"); told {
			headers.Set(name, object().Set("example", openapi.Text(s.header.Get(name))))
		}
	}
	media, _, _ := strings.Cut(s.header.Get("Content-Type"), ";")
	if !strings.Contains(strings.ToLower(media), "json") {
		media = "application/json"
	}
	schema := schemaOf(s.body, 0)
	for name, text := range told {
		member := schema
		for part := range strings.SplitSeq(name, ".") {
			member = member.Get("properties").Get(part)
		}
		if member != nil {
			member.Set("description", openapi.Text(text))
		}
	}
	return object().Set("headers", headers).Set("content", object().Set(media, object().Set("schema", schema).Set("example", s.body)))
}

// Bounds of what a schema is made of.
const (
	maxRows    = 50
	maxLooking = 12
)

// schemaOf is a schema of a value: that of an array has the members of all its first rows.
func schemaOf(v *openapi.Value, depth int) *openapi.Value {
	s := object()
	if v == nil || depth > maxLooking {
		return s
	}
	switch v.Kind {
	case openapi.Object:
		members := object()
		v.Each(func(name string, one *openapi.Value) { members.Set(name, schemaOf(one, depth+1)) })
		return s.Set("type", openapi.Text("object")).Set("properties", members)
	case openapi.Array:
		var items *openapi.Value
		for _, one := range v.Items[:min(maxRows, len(v.Items))] {
			items = merge(items, schemaOf(one, depth+1))
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
	return s // null: anything
}

// merge is the schema of values that either schema describes.
func merge(a, b *openapi.Value) *openapi.Value {
	switch {
	case a == nil || a.Of("type") == "":
		return b
	case b == nil || b.Of("type") == "" || a.Of("type") != b.Of("type"):
		if b != nil && a.Of("type") == "integer" && b.Of("type") == "number" {
			return b
		}
		return a
	}
	switch a.Of("type") {
	case "object":
		x, y := a.Get("properties"), b.Get("properties")
		members := object()
		x.Each(func(name string, one *openapi.Value) {
			if other := y.Get(name); other != nil {
				one = merge(one, other)
			}
			members.Set(name, one)
		})
		y.Each(func(name string, one *openapi.Value) {
			if x.Get(name) == nil {
				members.Set(name, one)
			}
		})
		return object().Set("type", openapi.Text("object")).Set("properties", members)
	case "array":
		out := object().Set("type", openapi.Text("array"))
		if items := merge(a.Get("items"), b.Get("items")); items != nil {
			out.Set("items", items)
		}
		return out
	}
	return a
}
