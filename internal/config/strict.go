// This file reads a settings file strictly and reports errors with their lines.

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

// maxConfig is the maximum size of a settings file in bytes.
const maxConfig = 1 << 20

// repeatedLine matches the line numbers of an error that the YAML reader prefixes with a second line number.
var repeatedLine = regexp.MustCompile(`line \d+: (line \d+: )`)

// otherType matches the error of the YAML reader for a value of a wrong type.
var otherType = regexp.MustCompile("cannot construct !!([a-z]+)(?: `([^`]*)`)? into ([\\w.*\\[\\]]+)")

// wantedType returns in plain words the error text that otherType matches.
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
	return "write " + want + ", not " + is
}

// ReadFile reads the text of a settings file. Its errors name the file.
func ReadFile(path string) ([]byte, error) {
	data, err := smallfile.Read(path, maxConfig)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is not there; write one (docs/reference/settings.md shows it) or try understudy demo", path)
	}
	return data, err
}

// Read reads a settings file. Every error names the file, and the line if there is one.
func Read(path string, lookup func(string) (string, bool)) (*Settings, error) {
	data, err := ReadFile(path)
	if err != nil {
		return nil, err
	}
	c, err := Parse(data, lookup)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	c.File = path
	return c, nil
}

// Parse parses settings. An unknown name is an error with the line and the most similar known name. ${NAME} is
// replaced by the result of lookup.
func Parse(data []byte, lookup func(string) (string, bool)) (*Settings, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, upstream.ExplainYAML(data, err)
	}
	c := &Settings{}
	if len(doc.Content) > 0 {
		root := doc.Content[0]
		var err error
		if c.Renamed, err = replaceOldNames(root); err != nil {
			return nil, err
		}
		if err := checkNode(root, reflect.TypeFor[Settings]()); err != nil {
			return nil, err
		}
		if err := expand(root, "", lookup); err != nil {
			return nil, err
		}
		if err := root.Decode(c); err != nil {
			text := strings.TrimPrefix(strings.TrimPrefix(err.Error(), "yaml: "), "construct errors: ")
			return nil, errors.New(otherType.ReplaceAllStringFunc(repeatedLine.ReplaceAllString(text, "$1"), wantedType))
		}
	}
	c.setDefaults()
	return c, c.check()
}

// replaceOldNames replaces old names of settings in the document. It returns a warning for each old name.
func replaceOldNames(root *yaml.Node) (warnings []string, err error) {
	for _, s := range table() {
		if s.oldName == "" {
			continue
		}
		path := strings.Split(s.name, ".")
		now := path[len(path)-1]
		err := visitBlocks(root, path[:len(path)-1], "", func(at string, block *yaml.Node) error {
			old, other := findKey(block, s.oldName), findKey(block, now)
			switch {
			case old == nil:
				return nil
			case other != nil:
				return fmt.Errorf("line %d: setting %s%s is now called %s%s, which is in line %d; remove one of the two", old.Line, at, s.oldName, at,
					now, other.Line)
			}
			old.Value = now
			warnings = append(warnings, fmt.Sprintf("setting %s%s is now called %s%s; the old name still works", at, s.oldName, at, now))
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return warnings, nil
}

// visitBlocks calls visit for each block of the document to which a path of the table leads. NAME in the path
// stands for every name. at is the path of the block in the document, with a dot at its end.
func visitBlocks(n *yaml.Node, path []string, at string, visit func(at string, block *yaml.Node) error) error {
	if n.Kind != yaml.MappingNode {
		return nil
	}
	if len(path) == 0 {
		return visit(at, n)
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if k := n.Content[i].Value; path[0] == "NAME" || path[0] == k {
			if err := visitBlocks(n.Content[i+1], path[1:], at+understudy.Clip(k)+".", visit); err != nil {
				return err
			}
		}
	}
	return nil
}

// findKey returns the node of a key in a block, or nil if the block does not have the key.
func findKey(block *yaml.Node, name string) *yaml.Node {
	for i := 0; i+1 < len(block.Content); i += 2 {
		if block.Content[i].Value == name {
			return block.Content[i]
		}
	}
	return nil
}

// checkNode checks a part of the document against the Go type that it will fill.
func checkNode(n *yaml.Node, t reflect.Type) error {
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
	case isUnmarshaler(t):
		return nil // the type checks the node itself, just as strictly
	case t.Kind() == reflect.Struct:
		if n.Kind != yaml.MappingNode {
			return fmt.Errorf("line %d: write a block of settings", n.Line)
		}
		return checkStruct(n, t)
	case t.Kind() == reflect.Map:
		if n.Kind != yaml.MappingNode {
			return fmt.Errorf("line %d: write a block of names", n.Line)
		}
		return visitPairs(n, func(_, v *yaml.Node) error { return checkNode(v, t.Elem()) })
	case t.Kind() == reflect.Slice:
		if n.Kind != yaml.SequenceNode {
			return fmt.Errorf("line %d: write a list", n.Line)
		}
		for _, item := range n.Content {
			if err := checkNode(item, t.Elem()); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkStruct checks a block of settings against the fields of a struct.
func checkStruct(n *yaml.Node, t reflect.Type) error {
	fields := map[string]reflect.Type{}
	var known []string
	for f := range t.Fields() {
		if name, _, _ := strings.Cut(f.Tag.Get("yaml"), ","); name != "" && name != "-" {
			fields[name] = f.Type
			known = append(known, name)
		}
	}
	return visitPairs(n, func(k, v *yaml.Node) error {
		ft, ok := fields[k.Value]
		if !ok {
			return fmt.Errorf("line %d: unknown setting %q%s", k.Line, understudy.Clip(k.Value), suggest.Hint(understudy.Clip(k.Value), known))
		}
		return checkNode(v, ft)
	})
}

// visitPairs calls visit for each pair of a mapping. A repeated name is an error.
func visitPairs(n *yaml.Node, visit func(k, v *yaml.Node) error) error {
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		if first, twice := seen[k.Value]; twice {
			return fmt.Errorf("line %d: %q appears twice, first in line %d", k.Line, understudy.Clip(k.Value), first)
		}
		seen[k.Value] = k.Line
		if err := visit(k, n.Content[i+1]); err != nil {
			return err
		}
	}
	return nil
}

func isUnmarshaler(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[yaml.Unmarshaler]())
}
