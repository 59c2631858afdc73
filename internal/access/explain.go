// This file explains what a role sees of a kind or a record, and which line of the settings decides this.

package access

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"understudy"
	"understudy/internal/query"
	"understudy/kit/jsonspan"
	"understudy/kit/suggest"
	"understudy/spec"
)

// FieldLevel is how much a role sees of a field, and why.
type FieldLevel struct {
	Field string
	Class string // the spec's class of the field; "" if it has none
	Level Level
	Line  string // the line of the role that decides, or why no line does
	Media bool   // whether the field is an audio file or an image, which is played or displayed
}

// String returns the level in the words of the settings.
func (s FieldLevel) String() string {
	if s.Media && s.Level == See {
		return playLevel
	}
	return s.Level.String()
}

// Roles returns the names of all roles. The built-in role is first.
func (g *Gate) Roles() []string {
	return append([]string{understudy.RoleAll}, slices.Sorted(maps.Keys(g.roles))...)
}

// Explain returns how much a role sees of each field of a kind, in the spec's order. An unknown role, source or
// kind is an error that names the most similar known word.
func (g *Gate) Explain(role, source, kind string) ([]FieldLevel, error) {
	sp := g.specs[source]
	if sp == nil {
		return nil, fmt.Errorf("access: no source %q", understudy.Clip(source))
	}
	k := sp.Kind(kind)
	if k == nil {
		return nil, fmt.Errorf("access: %s has no kind %q%s", source, understudy.Clip(kind),
			suggest.Hint(understudy.Clip(kind), sp.KindNames()))
	}
	if err := g.CheckRole(role); err != nil {
		return nil, err
	}
	of := func(f *spec.Field) decision {
		if f.Class == spec.ClassSecret {
			return decision{Hide, "nobody can see secrets"}
		}
		return decision{See, "the role all sees everything"}
	}
	if role != understudy.RoleAll {
		r, err := readRules("roles."+role+"."+source, sp, g.options.Roles[role][source])
		if err != nil {
			return nil, err
		}
		of = func(f *spec.Field) decision { return r.fieldDecision(k, f.Name) }
	}
	var all []FieldLevel
	for _, f := range k.Fields {
		v := of(f)
		s := FieldLevel{Field: f.Name, Class: f.Class, Level: v.level, Line: v.line, Media: f.Type == spec.TypeMedia}
		if s.Media && strings.HasPrefix(s.Line, strconv.Quote(k.Name+"."+f.Name)) {
			s.Line = strings.Replace(s.Line, ": "+See.String(), ": "+playLevel, 1)
		}
		all = append(all, s)
	}
	return all, nil
}

// Reason is a condition of a role's row rule, and whether a record fulfils it.
type Reason struct {
	Words string `json:"words"`
	Holds bool   `json:"holds"`
}

// RecordExplanation says whether a role finds a record and what it sees of it.
type RecordExplanation struct {
	Found   bool               `json:"found"`   // whether the role may find the record
	Reasons []Reason           `json:"reasons"` // conditions that the record must all fulfil; empty if the role finds every record
	Fields  []FieldExplanation `json:"fields"`
}

// FieldExplanation is a field of a record as a role sees it, and why.
type FieldExplanation struct {
	Field string `json:"field"`
	Class string `json:"class,omitempty"`
	Level string `json:"level"`
	Line  string `json:"line"`
	Value string `json:"value,omitempty"` // the value of the field as JSON; "" if the record has no such field
}

// ExplainRecord returns whether a role finds a stored record and why, and what it sees of each field. Its
// errors are those of Explain, as ErrInvalid, and ErrNotFound if the record is not stored.
func (g *Gate) ExplainRecord(role, source, kind, id string) (*RecordExplanation, error) {
	fields, err := g.Explain(role, source, kind)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", understudy.ErrInvalid, err)
	}
	var rec *understudy.Record
	if g.records.newest != nil {
		rec = g.records.newest(source, kind, id)
	}
	if rec == nil || rec.ID != id {
		return nil, fmt.Errorf("access: %w: no %s %s is stored here", understudy.ErrNotFound, kind, understudy.Clip(id))
	}
	c := understudy.Caller{Name: "explain", Grant: &understudy.Grant{Role: role}}
	e := &RecordExplanation{Found: g.CanFind(c, source, kind, id)}
	var shown []byte
	if g.CanSee(c, source, kind) {
		view, err := g.MakeView(c, &understudy.Page{Key: understudy.Key{Source: source}, Kind: kind, ID: id, Shape: rec.Shape, Status: 200,
			Body: rec.Body})
		if err != nil {
			return nil, err
		}
		shown = view.Body
	} else {
		e.Found, e.Reasons = false, []Reason{{Words: "the role can see " + kind}}
	}
	doc, err := jsonspan.Parse(shown)
	for _, f := range fields {
		one := FieldExplanation{Field: f.Field, Class: f.Class, Level: f.String(), Line: f.Line}
		if err == nil && !f.Media {
			if v, ok := jsonspan.Find(shown, doc, f.Field); ok {
				one.Value = string(v.Bytes(shown))
			}
			if of := g.specs[source].Kind(kind).Field(f.Field); of.RootPath() != "" && f.Level == See {
				one.Value = string(query.Find(shown, doc, query.FieldOf(of)).RawBytes())
			}
		}
		e.Fields = append(e.Fields, one)
	}
	if f, err := g.findRowFilter(c, source, kind); err == nil && f != nil {
		e.Reasons = append(e.Reasons, f.reasons(rec.Body, g.now())...)
	}
	return e, nil
}

// reasons returns the conditions of the rule and whether a body fulfils each. The role finds the record if it fulfils all.
func (f *rowFilter) reasons(body []byte, now time.Time) (all []Reason) {
	add := func(words string, holds bool) { all = append(all, Reason{words, holds}) }
	if f.findsNone {
		add("the role can see records of "+f.kind.Name, false)
		return all
	}
	doc, err := jsonspan.Parse(body)
	if err != nil || doc.Kind != jsonspan.Object {
		add("the record can be read", false)
		return all
	}
	values := f.fields.Read(nil, body, doc)
	if f.age > 0 {
		add("younger than "+span(f.age), f.isYoung(values, now))
	}
	if len(f.phones) > 0 {
		add(f.phoneWords(), f.hasNumber(values))
	}
	for _, c := range f.where {
		add(f.conditionWords(c), c.test.Match(values[c.field]))
	}
	return append(all, f.parentReasons(values, now)...)
}

// parentReasons returns the conditions about the records above a record.
func (f *rowFilter) parentReasons(values []query.Value, now time.Time) (all []Reason) {
	under := false
	for _, a := range f.parents {
		id := values[a.at].Text()
		k := a.kind
		if k == nil && id != "" {
			k = f.kindOf(id)
		}
		if id == "" || k == nil {
			continue
		}
		under = true
		words := "the role can see " + singular(k) + " " + understudy.Clip(id) + ", which it belongs to"
		if a.byPathOnly {
			words = "the role can see every " + singular(k) + " of " + understudy.Clip(id) + ", as nothing says which one it belongs to"
		}
		if up := f.rows[k.Name]; up != nil {
			all = append(all, Reason{words, up.canFindAncestor(a, values[a.at], now, 0)})
		}
	}
	if f.needsParent && !under {
		all = append(all, Reason{"it belongs to a " + f.parentWords(), false})
	}
	return slices.Clip(all)
}
