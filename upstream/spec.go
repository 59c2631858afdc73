// This file reads the built-in specs and spec files. It refuses unknown keys.

package upstream

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"understudy"
	"understudy/kit/suggest"
	"understudy/spec"
)

//go:embed specs/*.yaml
var builtIn embed.FS

// MaxSpec is the maximum size of a spec file in bytes. maxNodes is the maximum number of YAML nodes in it after aliases
// are expanded.
const (
	MaxSpec  = 1 << 20
	maxNodes = 100_000
)

// Names lists the built-in specs, sorted.
func Names() []string {
	entries, _ := builtIn.ReadDir("specs")
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".yaml"))
	}
	slices.Sort(names)
	return names
}

// ReadBuiltIn reads and compiles the built-in spec of that name. Each call returns a new spec.
func ReadBuiltIn(name string) (*spec.Spec, error) {
	if !slices.Contains(Names(), name) {
		return nil, fmt.Errorf("upstream: no built-in spec %q%s (built in: %s; or give a path to a .yaml file)",
			name, suggest.Hint(understudy.Clip(name), Names()), strings.Join(Names(), ", "))
	}
	file := path.Join("specs", name+".yaml")
	data, err := builtIn.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("upstream: built-in spec: %w", err)
	}
	return ReadSpec(file, data)
}

// ReadSpec reads and compiles a spec file. file is its name in errors. An unknown or repeated key is an error
// with the file, the line and the most similar key. A name that refers to nothing is an error with file and
// line. docs/reference/specs.md explains every key.
func ReadSpec(file string, data []byte) (*spec.Spec, error) {
	if len(data) > MaxSpec {
		return nil, fmt.Errorf("upstream: spec %s: longer than %d bytes", file, MaxSpec)
	}
	var doc yaml.Node
	err := yaml.Load(data, &doc)
	isNull := err == nil && len(doc.Content) == 1 && doc.Content[0].Kind == yaml.ScalarNode && doc.Content[0].ShortTag() == "!!null"
	if isNull || err != nil && strings.Contains(err.Error(), "no documents in stream") {
		return nil, fmt.Errorf("upstream: spec %s: the file is empty; docs/reference/specs.md describes what a spec contains", file)
	}
	if err != nil {
		return nil, fmt.Errorf("upstream: spec %s: %w", file, ExplainYAML(data, err))
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		return nil, fmt.Errorf("upstream: spec %s: the file is not a single YAML document", file)
	}
	r := specReader{left: maxNodes}
	sp := &spec.Spec{}
	if err := r.readValue(doc.Content[0], reflect.ValueOf(sp).Elem(), ""); err != nil {
		return nil, fmt.Errorf("upstream: spec %s:%w", file, err)
	}
	if err := sp.Compile(); err != nil {
		return nil, fmt.Errorf("upstream: spec %s:%d: %s", file, lineOf(&doc, err), strings.TrimPrefix(err.Error(), "spec "+sp.Name+": "))
	}
	return sp, nil
}

// specReader puts YAML nodes into the structs of package spec. The strict mode of the YAML library reports neither the
// most similar key nor the line of a repeated key.
type specReader struct{ left int }

// readValue reads n into v. where is the dotted path of v, for errors. Each error begins with the line.
func (r *specReader) readValue(n *yaml.Node, v reflect.Value, where string) error {
	if r.left--; r.left < 0 {
		return failAt(n, "this file is too large after its aliases are expanded")
	}
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" {
		return failAt(n, "%s is empty: leave the key out, or give it a value", where)
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return r.readValue(n, v.Elem(), where)
	case reflect.Struct:
		return r.readFields(n, v, where)
	case reflect.Map:
		return r.readEntries(n, v, where)
	case reflect.Slice:
		return r.readItems(n, v, where)
	}
	return r.readScalar(n, v, where)
}

// readFields reads a mapping into a struct.
func (r *specReader) readFields(n *yaml.Node, v reflect.Value, where string) error {
	if n.Kind != yaml.MappingNode {
		return failAt(n, "%s: write keys with values", cmp.Or(where, "the spec"))
	}
	known := keysOf(v.Type())
	return r.visitPairs(n, where, func(key, value *yaml.Node) error {
		i := slices.IndexFunc(known, func(k specKey) bool { return k.name == key.Value })
		if i < 0 {
			names := make([]string, len(known))
			for i, k := range known {
				names[i] = k.name
			}
			name := understudy.Clip(key.Value)
			return failAt(key, "unknown key %q in %s%s", name, cmp.Or(where, "the spec"), suggest.Hint(name, names))
		}
		return r.readValue(value, v.FieldByIndex(known[i].index), join(where, key.Value))
	})
}

// readEntries reads a mapping into a map.
func (r *specReader) readEntries(n *yaml.Node, v reflect.Value, where string) error {
	if n.Kind != yaml.MappingNode {
		return failAt(n, "%s: write keys with values", where)
	}
	v.Set(reflect.MakeMap(v.Type()))
	return r.visitPairs(n, where, func(key, value *yaml.Node) error {
		entry := reflect.New(v.Type().Elem()).Elem()
		if err := r.readValue(value, entry, join(where, key.Value)); err != nil {
			return err
		}
		v.SetMapIndex(reflect.ValueOf(key.Value), entry)
		return nil
	})
}

// visitPairs calls do with the pairs of a mapping, and returns an error for a repeated key.
func (r *specReader) visitPairs(n *yaml.Node, where string, do func(key, value *yaml.Node) error) error {
	seen := make(map[string]int, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Kind != yaml.ScalarNode {
			return failAt(key, "%s: write a word as key", cmp.Or(where, "the spec"))
		}
		if line, twice := seen[key.Value]; twice {
			return failAt(key, "key %q in %s appears twice, first in line %d", understudy.Clip(key.Value), cmp.Or(where, "the spec"), line)
		}
		seen[key.Value] = key.Line
		if err := do(key, n.Content[i+1]); err != nil {
			return err
		}
	}
	return nil
}

// readItems reads a sequence into a slice.
func (r *specReader) readItems(n *yaml.Node, v reflect.Value, where string) error {
	if n.Kind != yaml.SequenceNode {
		return failAt(n, "%s: write a list", where)
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
	for i, item := range n.Content {
		if err := r.readValue(item, v.Index(i), fmt.Sprintf("%s[%d]", where, i)); err != nil {
			return err
		}
	}
	return nil
}

// readScalar reads a text, number or bool.
func (r *specReader) readScalar(n *yaml.Node, v reflect.Value, where string) error {
	if n.Kind != yaml.ScalarNode {
		return failAt(n, "%s: write one value", cmp.Or(where, "the spec"))
	}
	if v.Kind() == reflect.String {
		v.SetString(n.Value)
		return nil
	}
	if v.Kind() == reflect.Bool {
		if n.Value != "true" && n.Value != "false" {
			return failAt(n, "%s: write true or false, not %q", where, understudy.Clip(n.Value))
		}
		v.SetBool(n.Value == "true")
		return nil
	}
	number, err := strconv.ParseInt(n.Value, 10, 32)
	if err != nil {
		return failAt(n, "%s: write a whole number, not %q", where, understudy.Clip(n.Value))
	}
	v.SetInt(number)
	return nil
}

// specKey is a key that a spec file may have. It is a yaml tag of a struct of package spec.
type specKey struct {
	name  string
	index []int // the index path of the struct's field, for reflect.Value.FieldByIndex
}

// keysOf returns the keys that a spec file may have for a struct type.
func keysOf(t reflect.Type) []specKey {
	var keys []specKey
	for _, f := range reflect.VisibleFields(t) {
		if name := f.Tag.Get("yaml"); name != "" && name != ",inline" {
			keys = append(keys, specKey{name, f.Index})
		}
	}
	return keys
}

// failAt returns an error that begins with the line of a node. The caller puts the file name before it.
func failAt(n *yaml.Node, format string, args ...any) error {
	return errors.New(strconv.Itoa(n.Line) + ": " + fmt.Sprintf(format, args...))
}

func join(where, key string) string {
	if where == "" {
		return key
	}
	return where + "." + key
}
