// Settings: reads a settings file strictly and says where it is wrong.

package config

import (
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"understudy"
	"understudy/internal/smallfile"
	"understudy/kit/suggest"
	"understudy/upstream"
)

// maxConfig bounds a settings file, in bytes.
const maxConfig = 1 << 20

// lineTwice is how the reader of YAML words an error that names its line itself.
var lineTwice = regexp.MustCompile(`line \d+: (line \d+: )`)

// otherType is how the reader of YAML words a value whose type is not that of the setting.
var otherType = regexp.MustCompile("cannot construct !!([a-z]+)(?: `([^`]*)`)? into ([\\w.*\\[\\]]+)")

// wantedType returns what otherType matched in words of our own.
func wantedType(text string) string {
	parts := otherType.FindStringSubmatch(text)
	is := strconv.Quote(understudy.Clip(parts[2]))
	switch parts[1] {
	case "seq":
		is = "a list"
	case "map":
		is = "a block"
	}
	want := "another value"
	switch into := parts[3]; {
	case strings.HasPrefix(into, "int"):
		want = "a whole number"
	case strings.HasPrefix(into, "float"):
		want = "a number"
	case into == "bool":
		want = "true or false"
	case into == "string":
		want = "a text"
	case strings.HasPrefix(into, "["):
		want = "a list"
	}
	return "want " + want + ", not " + is
}

// Read reads a settings file. Every error names the file, and the line
// where there is one.
func Read(path string, lookup func(string) (string, bool)) (*Settings, error) {
	data, err := smallfile.Read(path, maxConfig)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is not there; write one (docs/reference/settings.md shows it) or try --demo", path)
	}
	if err != nil {
		return nil, err
	}
	c, err := Parse(data, lookup)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// Parse reads settings: unknown names are errors with the line and the
// nearest known name, ${NAME} comes from lookup.
func Parse(data []byte, lookup func(string) (string, bool)) (*Settings, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, upstream.ExplainYAML(data, err)
	}
	c := &Settings{}
	if len(doc.Content) > 0 {
		root := doc.Content[0]
		if err := strict(root, reflect.TypeFor[Settings]()); err != nil {
			return nil, err
		}
		if err := expand(root, "", lookup); err != nil {
			return nil, err
		}
		if err := root.Decode(c); err != nil {
			text := strings.TrimPrefix(strings.TrimPrefix(err.Error(), "yaml: "), "construct errors: ")
			return nil, errors.New(otherType.ReplaceAllStringFunc(lineTwice.ReplaceAllString(text, "$1"), wantedType))
		}
	}
	c.defaults()
	return c, c.check()
}

// strict walks a document beside the type it will fill.
func strict(n *yaml.Node, t reflect.Type) error {
	if n.Kind == yaml.AliasNode {
		// A few lines of nested aliases can stand for gigabytes.
		return fmt.Errorf("line %d: aliases (*%s) are not read here; write the value out", n.Line, understudy.Clip(n.Value))
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case n.Kind == yaml.ScalarNode && n.Tag == "!!null":
		return nil
	case implementsUnmarshal(t):
		return nil // it reads its node itself, as strictly
	case t.Kind() == reflect.Struct:
		if n.Kind != yaml.MappingNode {
			return fmt.Errorf("line %d: want a block of settings", n.Line)
		}
		return strictStruct(n, t)
	case t.Kind() == reflect.Map:
		if n.Kind != yaml.MappingNode {
			return fmt.Errorf("line %d: want a block of names", n.Line)
		}
		return eachPair(n, func(_, v *yaml.Node) error { return strict(v, t.Elem()) })
	case t.Kind() == reflect.Slice:
		if n.Kind != yaml.SequenceNode {
			return fmt.Errorf("line %d: want a list", n.Line)
		}
		for _, item := range n.Content {
			if err := strict(item, t.Elem()); err != nil {
				return err
			}
		}
	}
	return nil
}

func strictStruct(n *yaml.Node, t reflect.Type) error {
	fields := map[string]reflect.Type{}
	var known []string
	for f := range t.Fields() {
		if name, _, _ := strings.Cut(f.Tag.Get("yaml"), ","); name != "" {
			fields[name] = f.Type
			known = append(known, name)
		}
	}
	return eachPair(n, func(k, v *yaml.Node) error {
		ft, ok := fields[k.Value]
		if !ok {
			return fmt.Errorf("line %d: unknown setting %q%s", k.Line, understudy.Clip(k.Value), suggest.Hint(understudy.Clip(k.Value), known))
		}
		return strict(v, ft)
	})
}

// eachPair visits a mapping and refuses a name that is there twice.
func eachPair(n *yaml.Node, visit func(k, v *yaml.Node) error) error {
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		if first, twice := seen[k.Value]; twice {
			return fmt.Errorf("line %d: %q is there twice, first in line %d", k.Line, understudy.Clip(k.Value), first)
		}
		seen[k.Value] = k.Line
		if err := visit(k, n.Content[i+1]); err != nil {
			return err
		}
	}
	return nil
}

func implementsUnmarshal(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[yaml.Unmarshaler]())
}
