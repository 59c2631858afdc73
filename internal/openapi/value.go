// Value: a JSON or YAML document as a tree that keeps the order of its keys.

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

// Bounds of a document: its size in bytes, how deep it is, how many values it has, and how many
// of them aliases of YAML write out.
const (
	MaxSize    = 48 << 20
	maxDepth   = 150
	maxValues  = 6_000_000
	maxAliased = 300_000
)

// Kind says what a Value is.
type Kind byte

// The kinds of values.
const (
	Null Kind = iota
	Bool
	Number
	String
	Array
	Object
)

// Value is one value of a document. It is never changed after it was read and is safe for
// concurrent use. A nil Value is a null.
type Value struct {
	Kind  Kind
	Text  string   // of a scalar: true, 12, a string's characters
	Keys  []string // of an object, in the document's order
	Items []*Value // of an array, or of an object by Keys

	index map[string]int // of a large object
}

// Text makes the value of a string.
func Text(s string) *Value { return &Value{Kind: String, Text: s} }

// Set puts a value under a key, behind the others.
func (v *Value) Set(key string, to *Value) *Value {
	v.Keys, v.Items = append(v.Keys, key), append(v.Items, to)
	if v.index != nil {
		v.index[key] = len(v.Items) - 1
	}
	return v
}

// largeObject is from how many keys an object has an index.
const largeObject = 12

// Get is what an object has under a key; nil: nothing.
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

// Of is the text of the scalar under a key; "" when there is none.
func (v *Value) Of(key string) string {
	if got := v.Get(key); got != nil && got.Kind != Array && got.Kind != Object {
		return got.Text
	}
	return ""
}

// IsText reports whether a value is that string.
func (v *Value) IsText(text string) bool { return v != nil && v.Kind == String && v.Text == text }

// Each calls do with the pairs of an object.
func (v *Value) Each(do func(key string, value *Value)) {
	if v == nil || v.Kind != Object {
		return
	}
	for i, key := range v.Keys {
		do(key, v.Items[i])
	}
}

// finish makes the index of an object.
func (v *Value) finish() {
	if len(v.Keys) < largeObject {
		return
	}
	v.index = make(map[string]int, len(v.Keys))
	for i := len(v.Keys) - 1; i >= 0; i-- {
		v.index[v.Keys[i]] = i // of equal keys the first counts
	}
}

// Parse reads JSON or YAML. Its error says where the text is wrong.
func Parse(data []byte) (*Value, error) {
	if len(data) > MaxSize {
		return nil, fmt.Errorf("larger than %d MiB", MaxSize>>20)
	}
	trimmed := bytes.TrimLeft(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), " \t\r\n")
	if len(trimmed) > 0 && (trimmed[0] == '{' || trimmed[0] == '[') {
		r := jsonReader{json.NewDecoder(bytes.NewReader(trimmed)), maxValues}
		r.UseNumber()
		v, err := r.value(0)
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
		var bad *yaml.LoadError
		if errors.As(err, &bad) && bad.Mark.Line > 0 {
			err = fmt.Errorf("line %d: %s", bad.Mark.Line, bad.Message)
		}
		return nil, fmt.Errorf("neither JSON nor YAML: %w", err)
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		return nil, fmt.Errorf("want one document")
	}
	r := yamlReader{left: maxValues, aliased: maxAliased}
	return r.value(doc.Content[0], 0)
}

type jsonReader struct {
	*json.Decoder
	left int
}

func (r *jsonReader) value(depth int) (*Value, error) {
	if r.left--; r.left < 0 || depth > maxDepth {
		return nil, fmt.Errorf("deeper than %d levels, or more than %d values", maxDepth, maxValues)
	}
	token, err := r.Token()
	if err != nil {
		return nil, err
	}
	switch token := token.(type) {
	case json.Delim:
		return r.nested(token, depth)
	case string:
		return Text(token), nil
	case json.Number:
		return &Value{Kind: Number, Text: token.String()}, nil
	case bool:
		return &Value{Kind: Bool, Text: fmt.Sprint(token)}, nil
	}
	return &Value{}, nil
}

func (r *jsonReader) nested(open json.Delim, depth int) (*Value, error) {
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
		item, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		v.Items = append(v.Items, item)
	}
	v.finish()
	_, err := r.Token()
	return v, err
}

type yamlReader struct {
	left, aliased int
	within        int // aliases that are being written out
}

func (r *yamlReader) value(n *yaml.Node, depth int) (*Value, error) {
	if r.left--; r.left < 0 || depth > maxDepth {
		return nil, fmt.Errorf("line %d: deeper than %d levels, or more than %d values", n.Line, maxDepth, maxValues)
	}
	if r.within > 0 {
		if r.aliased--; r.aliased < 0 {
			return nil, fmt.Errorf("line %d: its aliases write out more than %d values", n.Line, maxAliased)
		}
	}
	switch n.Kind {
	case yaml.AliasNode:
		r.within++
		v, err := r.value(n.Alias, depth+1)
		r.within--
		return v, err
	case yaml.MappingNode:
		v := &Value{Kind: Object}
		for i := 0; i+1 < len(n.Content); i += 2 {
			item, err := r.value(n.Content[i+1], depth+1)
			if err != nil {
				return nil, err
			}
			v.Keys, v.Items = append(v.Keys, n.Content[i].Value), append(v.Items, item)
		}
		v.finish()
		return v, nil
	case yaml.SequenceNode:
		v := &Value{Kind: Array}
		for _, one := range n.Content {
			item, err := r.value(one, depth+1)
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
