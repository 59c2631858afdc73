// This file checks page tokens. They contain record ids, and must not reveal a hidden record.
//
// A token is accepted in three cases: the caller may find the record it names, the caller could find that record
// when it was removed, or the caller received this token recently. Every other token is refused with the same
// message. So a caller that guesses tokens does not learn which of them name a record.

package access

import (
	"fmt"
	"slices"
	"time"

	"understudy"
	"understudy/spec"
)

const (
	// tokenGrace is how long a token stays valid for the caller that received it, even if its record changes. Without
	// it, paging would end in the middle when the record of the token becomes, for example, too old for the row rule.
	tokenGrace = time.Hour
	// maxSentTokens is the maximum number of sent page tokens that are remembered.
	maxSentTokens = 20_000
)

// sentTokenKey is a record that a caller received as the first or last record of a page. The links of the page contain its id.
type sentTokenKey struct{ caller, role, source, kind, id string }

// keyFor returns the key for a caller and a record id.
func (f *rowFilter) keyFor(c understudy.Caller, id string) sentTokenKey {
	return sentTokenKey{c.Name, c.Role(), f.source, f.kind.Name, id}
}

// checkToken returns nil if the caller may use the page tokens of a request. A token of a record that the
// caller may not find and a token that names no record get the same error.
func (f *rowFilter) checkToken(c understudy.Caller, t *spec.Target, now time.Time) error {
	paging := t.Spec.PagingOf(t.List)
	form := paging.TokenForm(f.kind)
	for _, p := range t.Query {
		if !slices.Contains(paging.Tokens, p.Name) {
			continue
		}
		// A value that does not have the form of a page token names no record.
		if id, _, ok := form.ID(p.Value); ok && !f.canContinueAt(c, id, now) {
			return fmt.Errorf("access: %w: the page token is not one of this list", understudy.ErrInvalid)
		}
	}
	return nil
}

// canContinueAt reports whether a caller may continue paging at a record.
func (f *rowFilter) canContinueAt(c understudy.Caller, id string, now time.Time) bool {
	if f.gate.records.last != nil {
		if rec := f.gate.records.last(f.source, f.kind.Name, id); rec != nil && f.canFindBody(rec.Body, now, 0) && rec.ID == id {
			return true
		}
	}
	at, ok := f.gate.sentTokens.Get(f.keyFor(c, id))
	return ok && now.Sub(at).Abs() < tokenGrace
}
