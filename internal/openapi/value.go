// This file reads a JSON or YAML document as a tree that keeps the order of its keys.

package openapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Limits for the size of a document.
const (
	MaxSize    = 48 << 20  // the maximum size of one file, and of all referenced files together, in bytes
	maxDepth   = 150       // the maximum depth of nesting
	maxValues  = 6_000_000 // the maximum number of values in one file
	maxAliased = 300_000   // the maximum number of values that come from expanding YAML aliases
)

// Kind is the JSON type of a Value.
type Kind byte

// The JSON types of values.
const (
	Null Kind = iota
	Bool
	Number
	String
	Array
	Object
)

// Value is a JSON value of a document. It does not change after reading and is safe for concurrent use.
// A nil *Value behaves like null.
type Value struct {
	Kind  Kind
	Text  string   // the text of a scalar: true, 12, or the content of a string
	Keys  []string // the keys of an object, in the order of the document
	Items []*Value // the elements of an array, or the values of an object in the order of Keys

	index map[string]int // the position of each key in Keys, for a large object; otherwise nil
}

// Text returns a string value.
func Text(s string) *Value { return &Value{Kind: String, Text: s} }

// Set appends a key and its value to an object, and returns the object.
func (v *Value) Set(key string, to *Value) *Value {
	v.Keys, v.Items = append(v.Keys, key), append(v.Items, to)
	if v.index != nil {
		v.index[key] = len(v.Items) - 1
	}
	return v
}

// largeObject is the minimum number of keys for which an object gets an index.
const largeObject = 12

// Get returns the value under a key of an object, or nil if there is none.
func (v *Value) Get(key string) *Value {
	if v == nil || v.Kind != Object {
		return nil
	}
	if v.index != nil {
		if i, ok := v.index[key]; ok {
			return v.Items[i]
		}
		return nil
	}
	for i, k := range v.Keys {
		if k == key {
			return v.Items[i]
		}
	}
	return nil
}

// TextOf returns the text of the scalar under a key, or "" if there is none.
func (v *Value) TextOf(key string) string {
	if got := v.Get(key); got != nil && got.Kind != Array && got.Kind != Object {
		return got.Text
	}
	return ""
}

// IsText reports whether the value is the string text.
func (v *Value) IsText(text string) bool { return v != nil && v.Kind == String && v.Text == text }

// WalkPairs calls do with each key and value of an object, in order.
func (v *Value) WalkPairs(do func(key string, value *Value)) {
	if v == nil || v.Kind != Object {
		return
	}
	for i, key := range v.Keys {
		do(key, v.Items[i])
	}
}

// buildIndex creates the index of a large object.
func (v *Value) buildIndex() {
	if len(v.Keys) < largeObject {
		return
	}
	v.index = make(map[string]int, len(v.Keys))
	for i := len(v.Keys) - 1; i >= 0; i-- {
		v.index[v.Keys[i]] = i // if a key is repeated, its first value counts
	}
}

// Parse reads a JSON or YAML text. Its error contains the position of the mistake.
func Parse(data []byte) (*Value, error) {
	if len(data) > MaxSize {
		return nil, fmt.Errorf("larger than %d MiB", MaxSize>>20)
	}
	trimmed := bytes.TrimLeft(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), " \t\r\n")
	if len(trimmed) > 0 && (trimmed[0] == '{' || trimmed[0] == '[') {
		r := jsonReader{json.NewDecoder(bytes.NewReader(trimmed)), maxValues}
		r.UseNumber()
		v, err := r.readValue(0)
		if err != nil {
			return nil, fmt.Errorf("not JSON at byte %d: %w", r.InputOffset()+int64(len(data)-len(trimmed)), err)
		}
		if _, err := r.Token(); err != io.EOF {
			return nil, fmt.Errorf("not JSON at byte %d: there is more behind the value", r.InputOffset())
		}
		return v, nil
	}
	var doc yaml.Node
	if err := yaml.Load(data, &doc); err != nil {
		if bad, ok := errors.AsType[*yaml.LoadError](err); ok && bad.Mark.Line > 0 {
			err = fmt.Errorf("line %d: %s", bad.Mark.Line, bad.Message)
		}
		return nil, fmt.Errorf("neither JSON nor YAML: %w", err)
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		return nil, fmt.Errorf("it is not a single YAML document")
	}
	r := yamlReader{left: maxValues, aliasedLeft: maxAliased}
	return r.readValue(doc.Content[0], 0)
}

type jsonReader struct {
	*json.Decoder
	left int // the number of values that may still be read
}

// readValue reads the next value. depth is its level of nesting.
func (r *jsonReader) readValue(depth int) (*Value, error) {
	if r.left--; r.left < 0 || depth > maxDepth {
		return nil, fmt.Errorf("deeper than %d levels, or more than %d values", maxDepth, maxValues)
	}
	token, err := r.Token()
	if err != nil {
		return nil, err
	}
	switch token := token.(type) {
	case json.Delim:
		return r.readNested(token, depth)
	case string:
		return Text(token), nil
	case json.Number:
		return &Value{Kind: Number, Text: token.String()}, nil
	case bool:
		return &Value{Kind: Bool, Text: fmt.Sprint(token)}, nil
	}
	return &Value{}, nil
}

// readNested reads the rest of an array or object after its opening delimiter.
func (r *jsonReader) readNested(open json.Delim, depth int) (*Value, error) {
	v := &Value{Kind: Array}
	if open == '{' {
		v.Kind = Object
	}
	for r.More() {
		if v.Kind == Object {
			key, err := r.Token()
			if err != nil {
				return nil, err
			}
			v.Keys = append(v.Keys, key.(string))
		}
		item, err := r.readValue(depth + 1)
		if err != nil {
			return nil, err
		}
		v.Items = append(v.Items, item)
	}
	v.buildIndex()
	_, err := r.Token()
	return v, err
}

type yamlReader struct {
	left, aliasedLeft int // the numbers of values that may still be read, and that may still be copied for aliases
	openAliases       int // the number of nested aliases that are being expanded
}

// readValue converts a node and its children. It copies the target of an alias.
func (r *yamlReader) readValue(n *yaml.Node, depth int) (*Value, error) {
	if r.left--; r.left < 0 || depth > maxDepth {
		return nil, fmt.Errorf("line %d: deeper than %d levels, or more than %d values", n.Line, maxDepth, maxValues)
	}
	if r.openAliases > 0 {
		if r.aliasedLeft--; r.aliasedLeft < 0 {
			return nil, fmt.Errorf("line %d: its aliases write out more than %d values", n.Line, maxAliased)
		}
	}
	switch n.Kind {
	case yaml.AliasNode:
		r.openAliases++
		v, err := r.readValue(n.Alias, depth+1)
		r.openAliases--
		return v, err
	case yaml.MappingNode:
		v := &Value{Kind: Object}
		for i := 0; i+1 < len(n.Content); i += 2 {
			item, err := r.readValue(n.Content[i+1], depth+1)
			if err != nil {
				return nil, err
			}
			v.Keys, v.Items = append(v.Keys, n.Content[i].Value), append(v.Items, item)
		}
		v.buildIndex()
		return v, nil
	case yaml.SequenceNode:
		v := &Value{Kind: Array}
		for _, one := range n.Content {
			item, err := r.readValue(one, depth+1)
			if err != nil {
				return nil, err
			}
			v.Items = append(v.Items, item)
		}
		return v, nil
	}
	switch n.ShortTag() {
	case "!!null":
		return &Value{}, nil
	case "!!bool":
		return &Value{Kind: Bool, Text: strings.ToLower(n.Value)}, nil
	case "!!int", "!!float":
		return &Value{Kind: Number, Text: n.Value}, nil
	}
	return Text(n.Value), nil
}
