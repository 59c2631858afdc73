// This file finds the line of a spec file that an error is about.

package upstream

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"understudy/spec"
)

// Parts of an error's text that name a place in a spec: keys joined by dots at its beginning, and a value in quotes.
var (
	keysOfText = regexp.MustCompile(`^(?:spec [\w-]*: )?((?:[a-z_]+(?:\[\d+\]|\.[\w-]+)*)?)`)
	quotedText = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
)

// ExplainYAML returns an error for a text that is not valid YAML. The error begins with the line.
func ExplainYAML(data []byte, err error) error {
	var bad *yaml.LoadError
	switch {
	case !errors.As(err, &bad):
		return err
	case bad.Stage == "reader":
		line := 1 + bytes.Count(data[:min(bad.Mark.Index, len(data))], []byte("\n"))
		return fmt.Errorf("line %d: a byte in this line is not valid text, as in a damaged file; correct it and save the file as UTF-8", line)
	case bad.Mark.Line > 0:
		return fmt.Errorf("line %d: %s", bad.Mark.Line, bad.Message)
	}
	return err
}

// lineOf returns the line of a file that an error of its spec is about, as exactly as the error says: by its
// path, then the keys at the beginning of its text, then the value that it quotes.
func lineOf(doc *yaml.Node, err error) int {
	n := doc.Content[0]
	var fault *spec.Fault
	for cause := err; errors.As(cause, &fault); cause = fault.Unwrap() {
		if cause == err {
			for _, step := range fault.Path {
				n = child(n, step)
			}
		}
		err = fault.Unwrap()
	}
	text := err.Error()
	dots := func(r rune) bool { return strings.ContainsRune(".[]", r) }
	for _, key := range strings.FieldsFunc(keysOfText.FindStringSubmatch(text)[1], dots) {
		if i, err := strconv.Atoi(key); err == nil {
			n = child(n, i)
		} else {
			n = child(n, key)
		}
	}
	if value, err := strconv.Unquote(quotedText.FindString(text)); err == nil && value != "" {
		if found := findScalar(n, value, 0); found != nil {
			return found.Line
		}
	}
	return n.Line
}

// child returns the node under a key or at an index of a node, or the node itself if there is no such child.
func child(n *yaml.Node, step any) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch step := step.(type) {
	case int:
		if n.Kind == yaml.SequenceNode && step < len(n.Content) {
			return n.Content[step]
		}
	case string:
		for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == step {
				return n.Content[i+1]
			}
		}
	}
	return n
}

// maxNested is the maximum number of levels below a node at which a value is searched.
const maxNested = 20

// findScalar returns the first key or value with the given text, at a node or below it, or nil.
func findScalar(n *yaml.Node, text string, depth int) *yaml.Node {
	if n.Kind == yaml.ScalarNode && n.Value == text {
		return n
	}
	for _, one := range n.Content {
		if depth == maxNested {
			return nil
		}
		if found := findScalar(one, text, depth+1); found != nil {
			return found
		}
	}
	return nil
}
