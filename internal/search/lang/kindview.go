// KindView: what one caller sees of one kind, as far as searching goes.

package lang

import (
	"bytes"
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
	CanSee(c understudy.Caller, source, kind string) bool
	// Fully reports whether a caller sees a field of a kind unmasked. Only the role all
	// sees fields that the spec does not name. No caller sees a secret.
	CanSeeField(c understudy.Caller, source, kind, field string) bool
	// View is a record's body as a caller sees it.
	MakeView(c understudy.Caller, r *understudy.Record) ([]byte, error)
	// Rule says which records of a kind a caller may find; nil: all.
	Rule(c understudy.Caller, source, kind string) *query.RowRule
}

// KindView is what a caller sees of a kind. What is not fully seen is not there.
type KindView struct {
	Source  string
	spec    *spec.Spec
	Kind    *spec.Kind
	All     bool              // what the spec does not name is seen, too
	Fields  map[string]string // the fields fully seen, each with its class
	Whole   bool              // every field is
	Rule    *query.RowRule
	texts   TextRule
	Counted []string // the fields whose values are counted: choices, codes, what is true or false, the root
	visible []string // the fields of text that are fully seen
	phones  []string // the fields of class phone that are fully seen, but for what is derived from one
	masked  []string // the others, likewise
	used    *use     // of numbers of our own; nil: the kind has none that are looked for
	// Equal is the condition that a field has the value of a hash, or the last four digits of a
	// number, when the caller may ask for it (access.Gate); nil: nothing of this may be asked for.
	Equal func(field, hash string) (e query.Equality, ok bool)
	// Annotations are what people wrote on its records; nil: the caller does not see it.
	Annotations *Annotations
}

// use says which numbers of our own are in use.
type use struct {
	why   string // what the caller does not see of the records that name them; "": nothing
	since func(number string, since int64) bool
}

// Uses says how it is told that a number of our own was in use since a time. why is what the
// caller does not see of the records that tell it, "" when it sees all.
func (s *KindView) Uses(why string, since func(number string, since int64) bool) {
	s.used = &use{why, since}
}

// Numbers reports whether every phone number of the kind is fully seen, and its date.
func (s *KindView) Numbers() bool {
	for _, f := range query.TimeFields(s.Kind) {
		if _, ok := s.Fields[f.Name]; !ok {
			return false
		}
	}
	return len(s.masked) == 0 && len(s.phones) > 0
}

// numbers are the fields of class phone that are not derived from another.
func (s *KindView) numbers() []string { return slices.Concat(s.phones, s.masked) }

// NewKindView returns a view of the fields that a caller sees of a kind, without a rule or lookups.
func NewKindView(g Gate, c understudy.Caller, src *spec.Source, k *spec.Kind, texts TextRule) *KindView {
	source := src.Name
	s := &KindView{Source: source, spec: src.Spec, texts: texts, Kind: k, All: c.Role() == understudy.RoleAll,
		Fields: make(map[string]string, len(k.Fields)), Whole: true}
	for _, f := range k.Fields {
		if source := k.Field(f.DerivedFrom); f.Class == spec.ClassPhone && (source == nil || source.Class != f.Class) {
			if g.CanSeeField(c, src.Name, k.Name, f.Name) {
				s.phones = append(s.phones, f.Name)
			} else {
				s.masked = append(s.masked, f.Name)
			}
		}
		switch {
		case f.Type == spec.TypeMedia:
		case g.CanSeeField(c, source, k.Name, f.Name):
			s.Fields[f.Name] = f.Class
			if texts[f.Name] != noText {
				s.visible = append(s.visible, f.Name)
			}
			switch f.Type {
			case spec.TypeSelect, spec.TypeBool, spec.TypeCode:
				s.Counted = append(s.Counted, f.Name)
			default:
				if len(src.Roots) > 0 && f.Name == src.Spec.RootField(k) {
					s.Counted = append(s.Counted, f.Name)
				}
			}
		case f.Class != spec.ClassSecret:
			s.Whole = false
		}
	}
	return s
}

// hasManyFields reports whether the kind has more fields than the index of words tells apart.
func (s *KindView) hasManyFields() bool { return len(s.Kind.Fields) > query.MaxTextFields }

// sees says whether a field is fully seen.
func (s *KindView) sees(name []byte) bool {
	if _, ok := s.Fields[string(name)]; ok || !s.All {
		return ok
	}
	for outer := name; ; {
		if f := s.Kind.Field(string(outer)); f != nil {
			return f.Class != spec.ClassSecret
		}
		i := bytes.LastIndexByte(outer, '.')
		if i < 0 {
			return true
		}
		outer = outer[:i]
	}
}

// Field is the kind's field of a name: the whole dotted one, or, when one field
// alone ends so, its last part. Several is ambiguous.
func (s *KindView) Field(name string) (f *spec.Field, ambiguous []string) {
	if f = s.Kind.Field(name); f != nil {
		return f, nil
	}
	for _, other := range s.Kind.Fields {
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

// has reports whether the kind has a field of a name, or several.
func (s *KindView) has(name string) bool {
	f, ambiguous := s.Field(name)
	return f != nil || len(ambiguous) > 0
}

// Candidate is a record that may be one of those looked for.
type Candidate struct {
	Record *understudy.Record
	View   *KindView
	Place  query.OrderKey
	doc    jsonspan.Value
	Read   bool
	Held   []tokenizer.Field // its texts, once they were asked for
}

// See makes a candidate of a record; false when its body is no document or a row rule keeps it from the caller.
func (s *KindView) See(c *Candidate, r *understudy.Record) bool {
	doc, err := jsonspan.Parse(r.Body)
	if err != nil || doc.Kind != jsonspan.Object || s.Rule != nil && !s.Rule.CanFind(r) {
		return false
	}
	*c = Candidate{Record: r, View: s, doc: doc, Held: c.Held[:0]}
	return true
}

// find is the value of a field as the record has it.
func (c *Candidate) find(name string) query.Value {
	of := query.Field{Name: name}
	if f := c.View.Kind.Field(name); f != nil {
		of = query.FieldOf(f)
	}
	return query.Find(c.Record.Body, c.doc, of)
}

// value is the value of a field that is fully seen; false when it is absent, null or empty.
func (c *Candidate) value(name string) (query.Value, bool) {
	v := c.find(name)
	if !v.IsNested() {
		return v, query.Present{}.Match(v)
	}
	if !c.View.All { // what lies in it the spec does not name, and the gate hides
		return query.Value{}, false
	}
	text := v.Text()
	return v, strings.Trim(text[1:len(text)-1], " \t\r\n") != ""
}

// TextOf is value as text.
func (c *Candidate) TextOf(name string) (string, bool) {
	v, ok := c.value(name)
	if !ok {
		return "", false
	}
	return v.Text(), true
}
