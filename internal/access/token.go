// Token: page tokens are made of ids; one must not tell of a record that is
// hidden.
//
// A token goes on when the caller may find the record it names, or could when
// that one went, or was itself given it lately. Every other one is refused, in
// the same words: nobody learns by guessing which of them name a record.

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
	// tokenGrace is for how long a token that a caller was given is good whatever
	// becomes of its record, so that a walk through pages does not end in the
	// middle because the record it stands at became too old, or something else.
	tokenGrace = time.Hour
	// maxGiven bounds how many tokens are remembered.
	maxGiven = 20_000
)

// givenKey is a record that stood at an end of a page: a link to the page
// around it names it.
type givenKey struct{ caller, role, source, kind, id string }

func (f *finder) givenTo(c understudy.Caller, id string) givenKey {
	return givenKey{c.Name, c.Role(), f.source, f.kind.Name, id}
}

// token refuses a page token that names a record the caller may not find, like
// one that names none.
func (f *finder) token(c understudy.Caller, t *spec.Target, now time.Time) error {
	paging := t.Spec.PagingOf(t.List)
	form := paging.TokenForm(f.kind)
	for _, p := range t.Query {
		if !slices.Contains(paging.Tokens, p.Name) {
			continue
		}
		// What is not of the form names no record to whoever makes the list.
		if id, _, ok := form.ID(p.Value); ok && !f.passes(c, id, now) {
			return fmt.Errorf("access: %w: the page token is not one of this list", understudy.ErrInvalid)
		}
	}
	return nil
}

// passes reports whether a caller may go on at a record.
func (f *finder) passes(c understudy.Caller, id string, now time.Time) bool {
	if f.gate.last != nil {
		if rec := f.gate.last(f.source, f.kind.Name, id); rec != nil && f.finds(rec.Body, now, 0) {
			return true
		}
	}
	at, ok := f.gate.given.Get(f.givenTo(c, id))
	return ok && now.Sub(at).Abs() < tokenGrace
}

// gives notes what the links of a page name.
func (f *finder) gives(c understudy.Caller, p *understudy.Page, now time.Time) {
	if n := len(p.Rows); n > 0 && p.Status == http.StatusOK {
		for _, row := range []understudy.Row{p.Rows[0], p.Rows[n-1]} {
			f.gate.given.Put(f.givenTo(c, strings.Clone(row.ID)), now, 1) // the id may lie in the page
		}
	}
}
