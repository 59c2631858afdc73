// This file contains KindView: what one caller sees of one kind.

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

// Gate decides what a caller may see. Package app adapts access.Gate to it.
type Gate interface {
	// CanSee reports whether a caller sees anything of a kind.
	CanSee(c understudy.Caller, source, kind string) bool
	// CanSeeField reports whether a caller sees a field unmasked. Only the role all sees fields that the spec does not
	// name. No caller sees a secret.
	CanSeeField(c understudy.Caller, source, kind, field string) bool
	// MakeView returns a record's body as a caller sees it.
	MakeView(c understudy.Caller, r *understudy.Record) ([]byte, error)
	// Rule returns the rule that decides which records of a kind a caller may find; nil means all.
	Rule(c understudy.Caller, source, kind string) *query.RowRule
}

// KindView is what a caller sees of a kind. Its lists of fields contain only fully visible fields, except masked.
type KindView struct {
	Source    string
	spec      *spec.Spec
	Kind      *spec.Kind
	Unnamed   bool              // whether fields that the spec does not name are visible too
	Fields    map[string]string // the fully visible fields, with their classes
	AllFields bool              // whether every field is fully visible
	Rule      *query.RowRule
	texts     TextRule
	Counted   []string    // the fields whose values are counted as facets: choices, codes, booleans, the root
	visible   []string    // the fully visible text fields
	phones    []string    // the fully visible phone number fields that are not derived from another number
	masked    []string    // the masked phone number fields that are not derived from another number
	uses      *numberUses // whether our own numbers are in use; nil if the kind has no own numbers with records
	// Equal returns the condition that a field has the value behind a hash, or a number that ends in four given
	// digits (see access.Gate). If Equal is nil, the caller may use no such condition.
	Equal func(field, hash string) (e query.Equality, ok bool)
	// Annotations are what people wrote on the records. They are nil if the caller does not see annotations.
	Annotations *Annotations
}

// numberUses tells which of our own numbers are in use.
type numberUses struct {
	hidden      string // the name of records that use numbers but are hidden from the caller; "" if there are none
	isUsedSince func(number string, since int64) bool
}

// SetUses sets the function that reports whether a number was used since a Unix time. why names the records that
// the caller would have to see, or is "" if it sees them all.
func (s *KindView) SetUses(why string, since func(number string, since int64) bool) {
	s.uses = &numberUses{why, since}
}

// CanSeeNumbers reports whether the caller fully sees every phone number of the kind and its date.
func (s *KindView) CanSeeNumbers() bool {
	return !s.HasHiddenTime() && len(s.masked) == 0 && len(s.phones) > 0
}

// CanSee reports whether the caller fully sees a field that the spec names.
func (s *KindView) CanSee(field string) bool {
	_, ok := s.Fields[field]
	return ok
}

// numberFields returns all phone number fields that are not derived from another number.
func (s *KindView) numberFields() []string { return slices.Concat(s.phones, s.masked) }

// NewKindView returns a view of the fields that a caller sees of a kind. Its row rule and Equal are not set.
func NewKindView(g Gate, c understudy.Caller, src *spec.Source, k *spec.Kind, texts TextRule) *KindView {
	source := src.Name
	s := &KindView{Source: source, spec: src.Spec, texts: texts, Kind: k, Unnamed: c.Role() == understudy.RoleAll,
		Fields: make(map[string]string, len(k.Fields)), AllFields: true}
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
			s.AllFields = false
		}
	}
	return s
}

// hasManyFields reports whether the kind has too many fields for the index of words to tell apart.
func (s *KindView) hasManyFields() bool { return len(s.Kind.Fields) > query.MaxTextFields }

func (s *KindView) canSeeField(name []byte) bool {
	if _, ok := s.Fields[string(name)]; ok || !s.Unnamed {
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

// Field returns the kind's field with a complete dotted name, or with a name whose last part is name. If several
// fields match, f is nil and ambiguous lists them.
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

func (s *KindView) hasField(name string) bool {
	f, ambiguous := s.Field(name)
	return f != nil || len(ambiguous) > 0
}

// Candidate is a record that may match.
type Candidate struct {
	Record     *understudy.Record
	View       *KindView
	doc        jsonspan.Value
	TextsRead  bool              // whether TextFields is set
	TextFields []tokenizer.Field // the texts that the caller fully sees
}

// Read sets c to a record. It returns false if the body is no JSON object or a row rule hides the record.
func (s *KindView) Read(c *Candidate, r *understudy.Record) bool {
	doc, err := jsonspan.Parse(r.Body)
	if err != nil || doc.Kind != jsonspan.Object || s.Rule != nil && !s.Rule.CanFind(r) {
		return false
	}
	*c = Candidate{Record: r, View: s, doc: doc, TextFields: c.TextFields[:0]}
	return true
}

// fieldValue returns the value of a field as the record has it.
func (c *Candidate) fieldValue(name string) query.Value {
	of := query.Field{Name: name}
	if f := c.View.Kind.Field(name); f != nil {
		of = query.FieldOf(f)
	}
	return query.Find(c.Record.Body, c.doc, of)
}

// visibleValue returns the value of a field that the caller fully sees. ok is false if it is absent, null or empty.
func (c *Candidate) visibleValue(name string) (query.Value, bool) {
	v := c.fieldValue(name)
	if !v.IsNested() {
		return v, query.Present{}.Match(v)
	}
	if !c.View.Unnamed { // the spec does not name the nested fields, so the gate hides them
		return query.Value{}, false
	}
	text := v.Text()
	return v, strings.Trim(text[1:len(text)-1], " \t\r\n") != ""
}

// TextOf returns the value of a fully visible field as text.
func (c *Candidate) TextOf(name string) (string, bool) {
	v, ok := c.visibleValue(name)
	if !ok {
		return "", false
	}
	return v.Text(), true
}
