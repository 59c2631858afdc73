// This file reads roles in the notation of the settings: which fields and records a role may see, and which actions
// it may perform.

package config

import (
	"fmt"
	"reflect"
	"time"

	"go.yaml.in/yaml/v4"

	"understudy"
	"understudy/internal/access"
)

// The names of a role's row rules and of its actions, which stand beside its subjects.
const (
	rowsKey = "rows"
	doKey   = "do"
)

// roleConfig is a role under one source: the level of each subject, the row rules, and the actions.
type roleConfig struct {
	levels  map[string]string
	rows    map[string]rowConfig
	actions words
}

// UnmarshalYAML reads subjects and levels, the row rules under rows, and the list of actions under do.
func (r *roleConfig) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind != yaml.MappingNode {
		return fmt.Errorf("line %d: write a block of subjects and levels", n.Line)
	}
	r.levels = map[string]string{}
	return visitPairs(n, func(k, v *yaml.Node) error {
		if k.Value == rowsKey && v.Kind != yaml.ScalarNode {
			if err := checkNode(v, reflect.TypeFor[map[string]rowConfig]()); err != nil {
				return err
			}
			return v.Decode(&r.rows)
		}
		if k.Value == doKey && v.Kind == yaml.SequenceNode {
			return r.actions.UnmarshalYAML(v)
		}
		if v.Kind != yaml.ScalarNode {
			return fmt.Errorf("line %d: %s: write see, last4, country, hash or hide", v.Line, understudy.Clip(k.Value))
		}
		r.levels[k.Value] = v.Value
		return nil
	})
}

// rowConfig says which records of a kind a role may find: either by one word, or by conditions that a record must
// all fulfil.
type rowConfig struct {
	word       string
	conditions rowConditions
}

type rowConditions struct {
	Age age `yaml:"age"` // the maximum age of a record
	// phone numbers, one of which a phone field of the record must contain; "own" means the account's own numbers
	Number words                  `yaml:"number"`
	Where  map[string]matchConfig `yaml:"where"` // the values that a field of the record must have, by field
}

// UnmarshalYAML reads a rule: one word, or a block of conditions.
func (r *rowConfig) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		r.word = n.Value
		return nil
	}
	if err := checkNode(n, reflect.TypeFor[rowConditions]()); err != nil {
		return err
	}
	return n.Decode(&r.conditions)
}

// matchConfig is a condition on a field: a value, a list of values, or a block with is, in or prefix.
type matchConfig struct {
	Is     words  `yaml:"is"`
	In     words  `yaml:"in"`
	Prefix string `yaml:"prefix"`
}

// UnmarshalYAML reads a condition in the short or the long notation.
func (m *matchConfig) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind != yaml.MappingNode {
		return m.In.UnmarshalYAML(n)
	}
	type block matchConfig // a type without UnmarshalYAML, which would call itself
	if err := checkNode(n, reflect.TypeFor[block]()); err != nil {
		return err
	}
	return n.Decode((*block)(m))
}

// words is a setting with one text or several texts.
type words []string

// UnmarshalYAML reads a scalar or a list of scalars.
func (w *words) UnmarshalYAML(n *yaml.Node) error {
	items := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		items = n.Content
	}
	for _, item := range items {
		if item.Kind != yaml.ScalarNode || item.Tag == "!!null" {
			return fmt.Errorf("line %d: write a value or a list of values", item.Line)
		}
		*w = append(*w, item.Value)
	}
	return nil
}

// age is a duration above zero: 30d, 12h.
type age time.Duration

// UnmarshalYAML reads a duration above zero.
func (a *age) UnmarshalYAML(n *yaml.Node) error {
	v, err := understudy.ParseDuration(n.Value)
	if err != nil || v <= 0 {
		return fmt.Errorf("line %d: %q is not an age; write 30d or 12h", n.Line, understudy.Clip(n.Value))
	}
	*a = age(v)
	return nil
}

// Policy returns access options with the fields Roles, Rows and Do set.
func (c *Settings) Policy() access.Options {
	roles, rows, does := access.Roles{}, map[string]map[string]access.RowRules{}, access.Permissions{}
	for role, sources := range c.Roles {
		roles[role] = map[string]map[string]string{}
		for source, r := range sources {
			roles[role][source] = r.levels
			if len(r.actions) > 0 {
				if does[role] == nil {
					does[role] = map[string][]string{}
				}
				does[role][source] = r.actions
			}
			for subject, rule := range r.rows {
				if rows[role] == nil {
					rows[role] = map[string]access.RowRules{}
				}
				if rows[role][source] == nil {
					rows[role][source] = access.RowRules{}
				}
				rows[role][source][subject] = rule.rule()
			}
		}
	}
	return access.Options{Roles: roles, Rows: rows, Do: does}
}

func (r *rowConfig) rule() access.RowRule {
	out := access.RowRule{Word: r.word, Age: time.Duration(r.conditions.Age), Numbers: r.conditions.Number}
	for field, m := range r.conditions.Where {
		if out.Where == nil {
			out.Where = map[string]access.Match{}
		}
		out.Where[field] = access.Match{In: append(m.Is, m.In...), Prefix: m.Prefix}
	}
	return out
}
