// KindView: what one caller sees of one kind, as far as searching goes.

package search

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"understudy"
	"understudy/internal/query"
	"understudy/kit/jsonspan"
	"understudy/kit/tokenizer"
	"understudy/spec"
)

// Gate decides what a caller may see. cmd adapts access.Gate to it.
type Gate interface {
	// Sees reports whether a caller sees anything of a kind.
	Sees(c understudy.Caller, source, kind string) bool
	// Fully reports whether a caller sees a field of a kind unmasked. Only the role all
	// sees fields that the spec does not name. No caller sees a secret.
	Fully(c understudy.Caller, source, kind, field string) bool
	// View is a record's body as a caller sees it.
	View(c understudy.Caller, r *understudy.Record) ([]byte, error)
	// Rule says which records of a kind a caller may find; nil: all.
	Rule(c understudy.Caller, source, kind string) *query.RowRule
}

// kindView is what a caller sees of a kind. What is not fully seen is not there.
type kindView struct {
	source  string
	spec    *spec.Spec
	kind    *spec.Kind
	all     bool              // what the spec does not name is seen, too
	fields  map[string]string // the fields fully seen, each with its class
	whole   bool              // every field is
	classes []string          // those of texts of which every field is; sorted
	hidden  []string          // those of which none is; sorted
	part    bool              // there are others
	phones  []string          // the fields of class phone that are fully seen, but for what is derived from one
	unseen  bool              // there are others
	rule    *query.RowRule
	texts   textRule
	counted []string // the fields whose values are counted: choices, codes, what is true or false
}

func newKindView(g Gate, c understudy.Caller, src *spec.Source, k *spec.Kind, texts textRule) *kindView {
	source := src.Name
	s := &kindView{source: source, spec: src.Spec, texts: texts, kind: k, all: c.Role() == understudy.RoleAll, fields: make(map[string]string, len(k.Fields)), whole: true, rule: g.Rule(c, source, k.Name)}
	for _, f := range k.Fields {
		if source := k.Field(f.From); f.Class == spec.ClassPhone && (source == nil || source.Class != f.Class) {
			if g.Fully(c, src.Name, k.Name, f.Name) {
				s.phones = append(s.phones, f.Name)
			} else {
				s.unseen = true
			}
		}
		switch {
		case f.Type == spec.TypeMedia:
		case g.Fully(c, source, k.Name, f.Name):
			s.fields[f.Name] = f.Class
			switch f.Type {
			case spec.TypeSelect, spec.TypeBool, spec.TypeCode:
				s.counted = append(s.counted, f.Name)
			}
		case f.Class != spec.ClassSecret:
			s.whole = false
		}
	}
	s.divide()
	return s
}

// divide puts each class of texts among those of which every field is seen, those
// of which none is, and others.
func (s *kindView) divide() {
	fields, seen := map[string]int{}, map[string]int{}
	for _, f := range s.kind.Fields {
		if s.texts[f.Name] == noText {
			continue
		}
		fields[f.Class]++
		if _, ok := s.fields[f.Name]; ok {
			seen[f.Class]++
		}
	}
	for _, class := range slices.Sorted(maps.Keys(fields)) {
		switch seen[class] {
		case fields[class]:
			s.classes = append(s.classes, class)
		case 0:
			s.hidden = append(s.hidden, class)
		default:
			s.part = true
		}
	}
}

// sees says whether a field is fully seen.
func (s *kindView) sees(name []byte) bool {
	if _, ok := s.fields[string(name)]; ok || !s.all {
		return ok
	}
	for outer := name; ; {
		if f := s.kind.Field(string(outer)); f != nil {
			return f.Class != spec.ClassSecret
		}
		i := bytes.LastIndexByte(outer, '.')
		if i < 0 {
			return true
		}
		outer = outer[:i]
	}
}

// field is the kind's field of a name: the whole dotted one, or, when one field
// alone ends so, its last part. Several is ambiguous.
func (s *kindView) field(name string) (f *spec.Field, ambiguous []string) {
	if f = s.kind.Field(name); f != nil {
		return f, nil
	}
	for _, other := range s.kind.Fields {
		if strings.HasSuffix(other.Name, "."+name) {
			f = other
			ambiguous = append(ambiguous, other.Name)
		}
	}
	if len(ambiguous) > 1 {
		return nil, ambiguous
	}
	return f, nil
}

// candidate is a record that may be one of those looked for.
type candidate struct {
	*understudy.Record
	view  *kindView
	place query.OrderKey
	doc   jsonspan.Value
	read  bool
	held  []tokenizer.Field // its texts, once they were asked for
}

// see makes a candidate of a record; false when its body is no document or a
// row rule keeps it from the caller.
func (s *kindView) see(c *candidate, r *understudy.Record) bool {
	doc, err := jsonspan.Document(r.Body)
	if err != nil || doc.Kind != jsonspan.Object || s.rule != nil && !s.rule.Finds(r) {
		return false
	}
	*c = candidate{Record: r, view: s, doc: doc, held: c.held[:0]}
	return true
}

// value is the value of a field that is fully seen; false when it is absent, null
// or empty.
func (c *candidate) value(name string) (query.Value, bool) {
	typ := ""
	if f := c.view.kind.Field(name); f != nil {
		typ = f.Type
	}
	v := query.Find(c.Body, c.doc, query.Field{Name: name, Type: typ})
	if !v.Nested() {
		return v, query.Present{}.Holds(v)
	}
	if !c.view.all { // what lies in it the spec does not name, and the gate hides
		return query.Value{}, false
	}
	text := v.Text()
	return v, strings.Trim(text[1:len(text)-1], " \t\r\n") != ""
}

// textOf is value as text.
func (c *candidate) textOf(name string) (string, bool) {
	v, ok := c.value(name)
	if !ok {
		return "", false
	}
	return v.Text(), true
}
