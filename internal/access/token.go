// Token: page tokens contain record ids, and must not reveal a hidden record.
//
// A token is accepted in three cases: the caller may find the record it names,
// the caller could find that record when it was removed, or the caller received
// this token recently. Every other token is refused with the same message.
// A caller that guesses tokens does not learn which of them name a record.

package access

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"understudy"
	"understudy/spec"
)

const (
	// tokenGrace is how long a token stays valid for the caller that received it,
	// even if its record changes. Without it, paging would end in the middle when
	// the record of the token becomes, for example, too old for the row rule.
	tokenGrace = time.Hour
	// maxGiven bounds how many tokens are remembered.
	maxGiven = 20_000
)

// givenKey is a record at the start or the end of a page. The links of the page
// name it.
type givenKey struct{ caller, role, source, kind, id string }

func (f *rowFilter) givenTo(c understudy.Caller, id string) givenKey {
	return givenKey{c.Name, c.Role(), f.source, f.kind.Name, id}
}

// token refuses a page token whose record the caller may not find. A token that
// names no record gets the same refusal.
func (f *rowFilter) token(c understudy.Caller, t *spec.Target, now time.Time) error {
	paging := t.Spec.PagingOf(t.List)
	form := paging.TokenForm(f.kind)
	for _, p := range t.Query {
		if !slices.Contains(paging.Tokens, p.Name) {
			continue
		}
		// A value that does not have the form of a token names no record.
		if id, _, ok := form.ID(p.Value); ok && !f.passes(c, id, now) {
			return fmt.Errorf("access: %w: the page token is not one of this list", understudy.ErrInvalid)
		}
	}
	return nil
}

// passes reports whether a caller may continue paging at a record.
func (f *rowFilter) passes(c understudy.Caller, id string, now time.Time) bool {
	if f.gate.held.last != nil {
		if rec := f.gate.held.last(f.source, f.kind.Name, id); rec != nil && f.matches(rec.Body, now, 0) && rec.ID == id {
			return true
		}
	}
	at, ok := f.gate.given.Get(f.givenTo(c, id))
	return ok && now.Sub(at).Abs() < tokenGrace
}

// gives remembers the records that the links of a page name.
func (f *rowFilter) gives(c understudy.Caller, p *understudy.Page, now time.Time) {
	if n := len(p.Rows); n > 0 && p.Status == http.StatusOK {
		for _, row := range []understudy.Row{p.Rows[0], p.Rows[n-1]} {
			f.gate.given.Put(f.givenTo(c, strings.Clone(row.ID)), now, 1) // the id may lie in the page
		}
	}
}
