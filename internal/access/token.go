// Token: page tokens are made of ids; one must not tell of a record that is
// hidden.

package access

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"understudy"
)

// tokenGrace is for how long a token still names a place that a rule for age
// has passed by, so that a walk through pages does not end in the middle.
const tokenGrace = time.Hour

// token refuses a page token that names a record the caller may not find, like
// one that names none.
func (f *finder) token(t *understudy.Target, now time.Time) error {
	lately := *f
	if f.age > 0 {
		lately.age += tokenGrace
	}
	paging := t.Spec.PagingOf(t.List)
	for _, p := range t.Query {
		id, ok := tokenID(paging, p)
		if !ok {
			continue
		}
		if f.gate.last != nil {
			if rec := f.gate.last(f.source, f.kind.Name, id); rec != nil && lately.finds(rec.Body, now, 0) {
				continue
			}
		}
		return fmt.Errorf("access: %w: the page token is not one of this list", understudy.ErrInvalid)
	}
	return nil
}

// tokenID is the id in a page token of the spec's form: of the page after a
// record, or with its first A as a B of the one before.
func tokenID(paging *understudy.Paging, p understudy.Param) (id string, ok bool) {
	if !slices.Contains(paging.Tokens, p.Name) || paging.Token == "" || p.Value == "" {
		return "", false
	}
	head, tail, _ := strings.Cut(paging.Token, "{id}")
	for _, h := range []string{head, strings.Replace(head, "A", "B", 1)} {
		if rest, is := strings.CutPrefix(p.Value, h); is {
			if id, ok = strings.CutSuffix(rest, tail); ok {
				return id, true
			}
		}
	}
	return "", false
}
