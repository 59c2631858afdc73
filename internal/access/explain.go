// Explain: what a role sees of a kind, or of one record, and by which line of the settings.

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

// Shown is how much a role sees of a field, and why.
type Shown struct {
	Field string
	Class string // of the spec; "": none
	Level Level
	Line  string // the line of the role that decided, or why none did
	Media bool   // an audio or an image: what is seen is played
}

// String is the level as the settings write it.
func (s Shown) String() string {
	if s.Media && s.Level == See {
		return play
	}
	return s.Level.String()
}

// Roles are the names of the roles there are, the built-in one first.
func (g *Gate) Roles() []string {
	return append([]string{understudy.RoleAll}, slices.Sorted(maps.Keys(g.roles))...)
}

// Explain says what a role sees of each field of a kind, in the spec's order. The error
// names the nearest role, source or kind that there is.
func (g *Gate) Explain(role, source, kind string) ([]Shown, error) {
	sp := g.specs[source]
	if sp == nil {
		return nil, fmt.Errorf("access: no source %q", understudy.Clip(source))
	}
	k := sp.Kind(kind)
	if k == nil {
		var known []string
		for _, k := range sp.Kinds {
			known = append(known, k.Name)
		}
		return nil, fmt.Errorf("access: %s has no kind %q%s", source, understudy.Clip(kind), suggest.Hint(understudy.Clip(kind), known))
	}
	if err := g.Known(role); err != nil {
		return nil, err
	}
	of := func(f *spec.Field) decision {
		if f.Class == spec.ClassSecret {
			return decision{Hide, "secrets are shown to nobody"}
		}
		return decision{See, "the role all sees everything"}
	}
	if role != understudy.RoleAll {
		r, err := readRules("roles."+role+"."+source, sp, g.stated.Roles[role][source])
		if err != nil {
			return nil, err
		}
		of = func(f *spec.Field) decision { return r.field(k, f.Name) }
	}
	var all []Shown
	for _, f := range k.Fields {
		v := of(f)
		s := Shown{Field: f.Name, Class: f.Class, Level: v.level, Line: v.line, Media: f.Type == spec.TypeMedia}
		if s.Media && strings.HasPrefix(s.Line, strconv.Quote(k.Name+"."+f.Name)) {
			s.Line = strings.Replace(s.Line, ": "+See.String(), ": "+play, 1)
		}
		all = append(all, s)
	}
	return all, nil
}

// Reason is what a role's row rule asks of a record, and whether it holds.
type Reason struct {
	Words string `json:"words"`
	Holds bool   `json:"holds"`
}

// Explained is what a role sees of a record.
type Explained struct {
	Found   bool          `json:"found"`   // the role may find the record
	Reasons []Reason      `json:"reasons"` // all of which must hold; none: every record is found
	Fields  []Explanation `json:"fields"`
}

// Explanation is a field of a record as a role is shown it, and why.
type Explanation struct {
	Field string `json:"field"`
	Class string `json:"class,omitempty"`
	Level string `json:"level"`
	Line  string `json:"line"`
	Value string `json:"value"` // JSON; "": the record has no such field
}

// ExplainRecord says what a role sees of each field of a record, as it is held now, and
// whether it may find it and why. Errors: those of Explain, as ErrInvalid; ErrNotFound: no
// such record is held.
func (g *Gate) ExplainRecord(role, source, kind, id string) (*Explained, error) {
	fields, err := g.Explain(role, source, kind)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", understudy.ErrInvalid, err)
	}
	var rec *understudy.Record
	if g.held.newest != nil {
		rec = g.held.newest(source, kind, id)
	}
	if rec == nil || rec.ID != id {
		return nil, fmt.Errorf("access: %w: no %s %s is held", understudy.ErrNotFound, kind, understudy.Clip(id))
	}
	c := understudy.Caller{Name: "explain", Grant: &understudy.Grant{Role: role}}
	e := &Explained{Found: g.Finds(c, source, kind, id)}
	var shown []byte
	if g.CanSee(c, source, kind) {
		view, err := g.View(c, &understudy.Page{Key: understudy.Key{Source: source}, Kind: kind, ID: id, Shape: rec.Shape, Status: 200,
			Body: rec.Body})
		if err != nil {
			return nil, err
		}
		shown = view.Body
	} else {
		e.Found, e.Reasons = false, []Reason{{Words: "the role sees something of " + kind}}
	}
	doc, err := jsonspan.Parse(shown)
	for _, f := range fields {
		one := Explanation{Field: f.Field, Class: f.Class, Level: f.String(), Line: f.Line}
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
	if f, err := g.rowFilter(c, source, kind); err == nil && f != nil {
		e.Reasons = append(e.Reasons, f.reasons(rec.Body, g.now())...)
	}
	return e, nil
}

// reasons are what the rule asks of a body, one by one: it finds the record when all hold.
func (f *rowFilter) reasons(body []byte, now time.Time) (all []Reason) {
	add := func(words string, holds bool) { all = append(all, Reason{words, holds}) }
	if f.never {
		add("no record of "+f.kind.Name+" is found", false)
		return all
	}
	doc, err := jsonspan.Parse(body)
	if err != nil || doc.Kind != jsonspan.Object {
		add("it can be read", false)
		return all
	}
	values := f.fields.Read(nil, body, doc)
	if f.age > 0 {
		add("younger than "+span(f.age), f.young(values, now))
	}
	if len(f.phones) > 0 {
		add(f.phoneWords(), f.numbered(values))
	}
	for _, c := range f.where {
		add(f.whereWords(c), c.test.Match(values[c.field]))
	}
	return append(all, f.reasonsAbove(values, now)...)
}

// reasonsAbove are those of the records that a record lies under.
func (f *rowFilter) reasonsAbove(values []query.Value, now time.Time) (all []Reason) {
	under := false
	for _, a := range f.above {
		id := values[a.at].Text()
		k := a.kind
		if k == nil && id != "" {
			k = f.kindOf(id)
		}
		if id == "" || k == nil {
			continue
		}
		under = true
		words := "the role may find " + oneOf(k) + " " + understudy.Clip(id) + ", which it lies under"
		if a.only {
			words = "the role may find every " + oneOf(k) + " of " + understudy.Clip(id) + ", as nothing tells which one it lies under"
		}
		if up := f.rows[k.Name]; up != nil {
			all = append(all, Reason{words, up.over(a, values[a.at], now, 0)})
		}
	}
	if f.need && !under {
		all = append(all, Reason{"it lies under " + f.overWords(), false})
	}
	return slices.Clip(all)
}
