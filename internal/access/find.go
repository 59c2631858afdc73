// This file decides whether a role may find a record.

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

// maxDepth is the number of parent levels that are checked. A role finds no record with more parent levels.
const maxDepth = 4

// RecordFilter returns a filter for the records of a kind that a caller may find. It returns nil if the caller finds every
// record it may see. The filter checks the body it gets, and the newest stored body of each parent record. Ages count from
// the call of RecordFilter. The filter is safe for concurrent use. A caller that sees nothing of the kind finds nothing.
func (g *Gate) RecordFilter(c understudy.Caller, source, kind string) func(*understudy.Record) bool {
	f, err := g.findRowFilter(c, source, kind)
	switch {
	case err != nil:
		return func(*understudy.Record) bool { return false }
	case f == nil:
		return nil
	}
	now := g.now()
	return func(r *understudy.Record) bool { return r != nil && f.canFindBody(r.Body, now, 0) }
}

// CanFind reports whether a caller may find a record by its newest stored version. A caller with a row rule
// never finds a record that is not stored or is deleted.
func (g *Gate) CanFind(c understudy.Caller, source, kind, id string) bool {
	f, err := g.findRowFilter(c, source, kind)
	return err == nil && (f == nil || f.canFindID(id, g.now(), 0))
}

// CanCount reports whether a caller may know the number of records of a kind. It may if it sees the kind and
// finds every record of it.
func (g *Gate) CanCount(c understudy.Caller, source, kind string) bool {
	f, err := g.findRowFilter(c, source, kind)
	return err == nil && f == nil && g.CanSee(c, source, kind)
}

// HasRowRules reports whether row rules limit a caller anywhere in a source.
func (g *Gate) HasRowRules(c understudy.Caller, source string) bool {
	return g.limitedGrants(c, source) != nil
}

// limitedGrants returns the grants of a caller that row rules limit in a source, else nil.
func (g *Gate) limitedGrants(c understudy.Caller, source string) *grants {
	if c.Grant == nil || c.Grant.Role == understudy.RoleAll {
		return nil
	}
	if r := g.roles[c.Grant.Role][source]; r != nil && r.rows != nil {
		return r
	}
	return nil
}

// findRowFilter returns a caller's row rule for a kind, or nil if it has no rule. An error means that the
// caller sees nothing of the kind.
func (g *Gate) findRowFilter(c understudy.Caller, source, kind string) (*rowFilter, error) {
	_, all, err := g.plan(c, source, kind)
	if err != nil || all {
		return nil, err
	}
	return g.roles[c.Grant.Role][source].rows[kind], nil
}

// canFindID applies the rule to the newest stored version of a record.
func (f *rowFilter) canFindID(id string, now time.Time, depth int) bool {
	if f.findsNone || f.gate.records.newest == nil || id == "" {
		return false
	}
	rec := f.gate.records.newest(f.source, f.kind.Name, id)
	// NewestVersion may return another record for a hidden one, so that both take equally long.
	return rec != nil && f.canFindBody(rec.Body, now, depth) && rec.ID == id
}

// canFindBody applies the rule to a body of a record. depth is the number of parent levels between this record and
// the record that the caller requested.
func (f *rowFilter) canFindBody(body []byte, now time.Time, depth int) bool {
	if f.findsNone {
		return false
	}
	doc, err := jsonspan.Parse(body)
	if err != nil || doc.Kind != jsonspan.Object {
		return false
	}
	var room [16]query.Value
	values := f.fields.Read(room[:0], body, doc)
	if f.age > 0 && !f.isYoung(values, now) {
		return false
	}
	for _, c := range f.where {
		if !c.test.Match(values[c.field]) {
			return false
		}
	}
	return f.hasNumber(values) && f.canFindParents(values, now, depth)
}

// isYoung reports whether a record is younger than the rule's maximum age. The record's clock field decides, or its
// order field if the clock is null.
func (f *rowFilter) isYoung(values []query.Value, now time.Time) bool {
	for _, i := range f.clocks {
		if v := values[i]; !v.IsNull() { // a clock that cannot be parsed hides the record
			at := v.Unix()
			return at != 0 && now.Sub(time.Unix(at, 0)) < f.age
		}
	}
	return false
}

// hasNumber reports whether a phone field contains a number that the rule requires.
func (f *rowFilter) hasNumber(values []query.Value) bool {
	if len(f.phones) == 0 {
		return true
	}
	for _, i := range f.phones {
		value := values[i].Text()
		if value == "" {
			continue
		}
		n := Number(value)
		if f.wanted[n] || f.ownNumbers && f.gate.records.own != nil && f.gate.records.own(f.source, n) {
			return true
		}
	}
	return false
}

// canFindParents reports whether the caller may find every parent of a record. If the rule requires a parent, the
// record must have one.
func (f *rowFilter) canFindParents(values []query.Value, now time.Time, depth int) bool {
	found := false
	for _, a := range f.parents {
		id := values[a.at].Text()
		if id == "" {
			continue
		}
		k := a.kind
		if k == nil {
			k = f.kindOf(id)
		}
		if k == nil {
			continue // the value is not an id of a record that Understudy could store
		}
		if up := f.rows[k.Name]; up != nil && !up.canFindAncestor(a, values[a.at], now, depth) {
			return false
		}
		found = true
	}
	return found || !f.needsParent
}

// canFindAncestor reports whether the caller may find the parent record that the value of a field names. If the
// parent's rule requires nothing but a root, the name of the root decides. A parent that only a list's path names
// is found only under such a rule.
func (f *rowFilter) canFindAncestor(a ancestor, value query.Value, now time.Time, depth int) bool {
	id := value.Text()
	if a.root {
		if f.isDecidedByRoot(a) || a.byPathOnly {
			return f.isDecidedByRoot(a) && f.canFindRoot(value)
		}
		id = spec.ParseRoot(id)
	}
	return depth < maxDepth && f.canFindID(id, now, depth+1)
}

// isDecidedByRoot reports whether the root's name alone decides if a parent record is found, because the parent's
// rule requires nothing else.
func (f *rowFilter) isDecidedByRoot(a ancestor) bool {
	return f.decidedByName || a.byPathOnly && f.isRootOnly()
}

// canFindRoot reports whether the caller may find a root of that name. Call it only if the name alone decides.
func (f *rowFilter) canFindRoot(name query.Value) bool {
	return !f.findsNone && !slices.ContainsFunc(f.where, func(c condition) bool { return !c.test.Match(name) })
}

// kindOf returns the kind to which an id belongs by its prefix. If several kinds have the prefix, it prefers a kind
// with a row rule.
func (f *rowFilter) kindOf(id string) (found *spec.Kind) {
	for _, k := range f.gate.specs[f.source].Kinds {
		if len(k.ID) == 1 && k.HasIDPrefix(id) && (found == nil || f.rows[k.Name] != nil) {
			found = k
		}
	}
	return found
}

// Number returns a phone number in the form that Options.IsOwnNumber gets: its digits, without separators and without a
// channel ("whatsapp:"). A text that is not a number is returned unchanged.
func Number(text string) string {
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
