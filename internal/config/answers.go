// Answers: what lists are answered from first.

package config

import (
	"fmt"
	"maps"
	"slices"

	"go.yaml.in/yaml/v4"

	"understudy"
	"understudy/kit/suggest"
	"understudy/mirror/shadow"
	"understudy/spec"
)

// answersConfig is one word for all lists of a source, or one for each kind
// ("*": those that are not named). Its keys are kinds; "" is all others.
type answersConfig map[string]shadow.Answers

// UnmarshalYAML reads auto, or {calls: records, "*": auto}.
func (a *answersConfig) UnmarshalYAML(n *yaml.Node) error {
	out := answersConfig{}
	word := func(kind string, v *yaml.Node) error {
		if v.Kind != yaml.ScalarNode {
			return fmt.Errorf("line %d: want auto, upstream or records", v.Line)
		}
		out[kind] = shadow.Answers(v.Value)
		if err := out[kind].Check(); err != nil || v.Value == "" {
			text := understudy.Clip(v.Value)
			hint := suggest.Hint(text, []string{"auto", "upstream", "records"})
			return fmt.Errorf("line %d: %q is none of auto, upstream and records%s", v.Line, text, hint)
		}
		return nil
	}
	err := error(nil)
	switch n.Kind {
	case yaml.ScalarNode:
		err = word("", n)
	case yaml.MappingNode:
		err = eachPair(n, func(k, v *yaml.Node) error {
			if k.Value == "*" {
				return word("", v)
			}
			return word(k.Value, v)
		})
	default:
		err = fmt.Errorf("line %d: want auto, upstream or records, or one of them for each kind", n.Line)
	}
	*a = out
	return err
}

// check refuses kinds the spec does not have.
func (a answersConfig) check(src *spec.Source) error {
	for _, kind := range slices.Sorted(maps.Keys(a)) {
		if kind != "" && src.Spec.Kind(kind) == nil {
			text := understudy.Clip(kind)
			return fmt.Errorf("spec %s has no kind %q%s", src.Spec.Name, text, suggest.Hint(text, kindNames(src.Spec)))
		}
	}
	return nil
}
