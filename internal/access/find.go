// Find: whether a role may find a record.

package access

import (
	"slices"
	"strings"
	"time"

	"understudy"
	"understudy/internal/query"
	"understudy/kit/jsonspan"
	"understudy/spec"
)

// deepest is the maximum number of parent levels that are checked for whether
// the caller may find the parents of a record.
const deepest = 4

// Only returns a filter for the records of a kind that a caller may find; nil
// means all records it may see. The filter reads the body it gets, and the
// newest held body of each parent record. Ages count from the call of Only. The
// filter is safe for concurrent use. A caller that sees nothing of the kind
// finds nothing.
func (g *Gate) Only(c understudy.Caller, source, kind string) func(*understudy.Record) bool {
	f, err := g.rowFilter(c, source, kind)
	switch {
	case err != nil:
		return func(*understudy.Record) bool { return false }
	case f == nil:
		return nil
	}
	now := g.now()
	return func(r *understudy.Record) bool { return r != nil && f.matches(r.Body, now, 0) }
}

// Finds reports whether a caller may find a record by its newest held version.
// A caller with a row rule never finds a record that is not held or is gone.
func (g *Gate) Finds(c understudy.Caller, source, kind, id string) bool {
	f, err := g.rowFilter(c, source, kind)
	return err == nil && (f == nil || f.held(id, g.now(), 0))
}

// Counts reports whether a caller may know the number of records of a kind. It
// may if it sees the kind and finds every record of it.
func (g *Gate) Counts(c understudy.Caller, source, kind string) bool {
	f, err := g.rowFilter(c, source, kind)
	return err == nil && f == nil && g.CanSee(c, source, kind)
}

// Ruled reports whether row rules bind a caller anywhere in a source.
func (g *Gate) Ruled(c understudy.Caller, source string) bool {
	return g.ruled(c, source) != nil
}

// ruled returns the grants of a caller that row rules bind, else nil.
func (g *Gate) ruled(c understudy.Caller, source string) *grants {
	if c.Grant == nil || c.Grant.Role == understudy.RoleAll {
		return nil
	}
	if r := g.roles[c.Grant.Role][source]; r != nil && r.rows != nil {
		return r
	}
	return nil
}

// rowFilter returns a caller's row rule for a kind, nil if it has no rule. An error
// means that the caller sees nothing of the kind.
func (g *Gate) rowFilter(c understudy.Caller, source, kind string) (*rowFilter, error) {
	_, all, err := g.plan(c, source, kind)
	if err != nil || all {
		return nil, err
	}
	return g.roles[c.Grant.Role][source].rows[kind], nil
}

// held applies the rule to a record's newest held version.
func (f *rowFilter) held(id string, now time.Time, depth int) bool {
	if f.never || f.gate.held.newest == nil || id == "" {
		return false
	}
	rec := f.gate.held.newest(f.source, f.kind.Name, id)
	return rec != nil && f.matches(rec.Body, now, depth) && rec.ID == id // it may be another's, and takes as long
}

// matches applies the rule to one body of a record.
func (f *rowFilter) matches(body []byte, now time.Time, depth int) bool {
	if f.never {
		return false
	}
	doc, err := jsonspan.Parse(body)
	if err != nil || doc.Kind != jsonspan.Object {
		return false
	}
	var room [16]query.Value
	values := f.fields.Read(room[:0], body, doc)
	if f.age > 0 && !f.young(values, now) {
		return false
	}
	for _, c := range f.where {
		if !c.test.Match(values[c.field]) {
			return false
		}
	}
	return f.numbered(values) && f.under(values, now, depth)
}

// young reports whether the record's clock, or the field used in its place, is
// younger than the rule's maximum age.
func (f *rowFilter) young(values []query.Value, now time.Time) bool {
	for _, i := range f.clocks {
		if v := values[i]; !v.IsNull() { // a clock that cannot be read finds nothing
			at := v.Unix()
			return at != 0 && now.Sub(time.Unix(at, 0)) < f.age
		}
	}
	return false
}

// numbered reports whether a phone field holds a number the rule wants.
func (f *rowFilter) numbered(values []query.Value) bool {
	if len(f.phones) == 0 {
		return true
	}
	for _, i := range f.phones {
		value := values[i].Text()
		if value == "" {
			continue
		}
		n := number(value)
		if f.nums[n] || f.own && f.gate.held.own != nil && f.gate.held.own(f.source, n) {
			return true
		}
	}
	return false
}

// under reports whether every record that this one lies under may be found,
// and whether there is one when there must be.
func (f *rowFilter) under(values []query.Value, now time.Time, depth int) bool {
	found := false
	for _, a := range f.above {
		id := values[a.at].Text()
		if id == "" {
			continue
		}
		k := a.kind
		if k == nil {
			k = f.kindOf(id)
		}
		if k == nil {
			continue // it names nothing there are records of
		}
		if up := f.rows[k.Name]; up != nil && !up.over(a, values[a.at], now, depth) {
			return false
		}
		found = true
	}
	return found || !f.need
}

// over reports whether the record that a value names, as an ancestor's field has it, may be
// found. A root is found by its name where the rule asks for nothing else; a record that no
// field names may be found when its rule asks for nothing but the root.
func (f *rowFilter) over(a ancestor, value query.Value, now time.Time, depth int) bool {
	id := value.Text()
	if a.root {
		if f.tells(a) || a.only {
			return f.tells(a) && f.holds(value)
		}
		id = spec.ParseRoot(id)
	}
	return depth < deepest && f.held(id, now, depth+1)
}

// tells reports whether the name of the root alone tells that what lies under a record may
// be found: the rule of that record asks for nothing else.
func (f *rowFilter) tells(a ancestor) bool { return f.named || a.only && f.byRoot() }

// holds reports whether a root of that name may be found, where the name alone tells.
func (f *rowFilter) holds(name query.Value) bool {
	return !f.never && !slices.ContainsFunc(f.where, func(c condition) bool { return !c.test.Match(name) })
}

// kindOf is the kind an id is of by its prefix; of several the one with a rule.
func (f *rowFilter) kindOf(id string) (found *spec.Kind) {
	for _, k := range f.gate.specs[f.source].Kinds {
		if len(k.ID) == 1 && k.HasIDPrefix(id) && (found == nil || f.rows[k.Name] != nil) {
			found = k
		}
	}
	return found
}

// number returns the digits of a phone number, without separators and without a
// channel ("whatsapp:"). A text that is not a number is returned unchanged.
func number(text string) string {
	rest := text
	if i := strings.IndexByte(text, ':'); i > 0 && !strings.ContainsAny(text[:i], "0123456789+") {
		rest = text[i+1:]
	}
	var buf [24]byte
	digits := buf[:0]
	for i := range len(rest) {
		switch c := rest[i]; {
		case '0' <= c && c <= '9':
			digits = append(digits, c)
		case c == '+' && i == 0, c == ' ', c == '-', c == '.', c == '(', c == ')', c == '/':
		default:
			return text
		}
	}
	if len(digits) == 0 {
		return text
	}
	return string(digits)
}

// Number returns the form of a phone number that Options.Own gets: its digits.
// A text that is not a number is returned unchanged.
func Number(text string) string { return number(text) }
