// Answers: what lists are answered from first, in the settings and in figures.

package main

import (
	"fmt"
	"maps"
	"slices"

	"go.yaml.in/yaml/v4"

	"understudy"
	"understudy/internal/diagnostics"
	"understudy/internal/viewer"
	"understudy/kit/nearest"
	"understudy/mirror"
)

// answersConfig is one word for all lists of a source, or one for each kind
// ("*": those that are not named). Its keys are kinds; "" is all others.
type answersConfig map[string]mirror.Answers

// UnmarshalYAML reads auto, or {calls: records, "*": auto}.
func (a *answersConfig) UnmarshalYAML(n *yaml.Node) error {
	out := answersConfig{}
	word := func(kind string, v *yaml.Node) error {
		if v.Kind != yaml.ScalarNode {
			return fmt.Errorf("line %d: want auto, upstream or records", v.Line)
		}
		out[kind] = mirror.Answers(v.Value)
		if err := out[kind].Check(); err != nil || v.Value == "" {
			return fmt.Errorf("line %d: %q is none of auto, upstream and records%s", v.Line, clip(v.Value), nearest.Hint(clip(v.Value), []string{"auto", "upstream", "records"}))
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
func (a answersConfig) check(src *understudy.Source) error {
	for _, kind := range slices.Sorted(maps.Keys(a)) {
		if kind != "" && src.Spec.Kind(kind) == nil {
			return fmt.Errorf("spec %s has no kind %q%s", src.Spec.Name, clip(kind), nearest.Hint(clip(kind), kindNames(src.Spec)))
		}
	}
	return nil
}

// walked is the walker, which is made after the mirror.
type walked struct{ h *house }

// Covered says what is held of a list.
func (w walked) Covered(source, kind, parent string, from, to int64) (understudy.Coverage, bool) {
	return w.h.walker.Covered(source, kind, parent, from, to)
}

// Doubt has a stretch walked again.
func (w walked) Doubt(source, kind string, from, to int64) {
	w.h.walker.Doubt(source, kind, from, to)
}

// listFigures are the lists of a kind of which something is known, or that are
// not answered as usual.
func listFigures(all []mirror.Fidelity, kind string) (out []diagnostics.List) {
	for _, f := range all {
		if f.Kind != kind || f.All == 0 && f.First == mirror.AnswersUpstream && f.Set == mirror.AnswersAuto {
			continue
		}
		out = append(out, diagnostics.List{
			Path: f.Path, Answers: string(f.Set), First: string(f.First), Equal: f.Equal, Enough: mirror.Enough,
			Samples: f.All, Differing: f.Differing, Field: f.Field, Where: f.Where, DifferedAt: known(f.At),
		})
	}
	return out
}

// viewerLists are the same as people see them.
func viewerLists(all []mirror.Fidelity, kind string) (out []viewer.HeldList) {
	for _, f := range all {
		if f.Kind == kind && (f.All > 0 || f.First != mirror.AnswersUpstream || f.Set != mirror.AnswersAuto) {
			out = append(out, viewer.HeldList{
				Path: f.Path, Title: f.Title, Records: f.First == mirror.AnswersRecords, Pinned: f.Set != mirror.AnswersAuto,
				Equal: f.Equal, Enough: mirror.Enough, Samples: f.All, Differing: f.Differing, Field: f.Field, Where: f.Where, Differed: f.At,
			})
		}
	}
	return out
}
