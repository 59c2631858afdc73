// Token form: how a page token names a record.

package paging

import "strings"

// Beginnings of Understudy's own tokens, used if the spec gives no form.
const (
	ownAfter  = "after~"
	ownBefore = "before~"
)

// TokenForm is how page tokens of a list name a record. After precedes the record's id in the token for the page after
// the record, Before in the token for the page before it. Tail follows the id in both tokens.
type TokenForm struct {
	After, Before, Tail string
	OwnForm             bool // the spec gives no form, so the tokens have Understudy's own form, which the upstream does not know
}

// TokenForm returns the form of page tokens. The spec's form is used if ids have one part. In the token of the
// page before a record, the first A becomes a B, as upstreams with that form do.
func (r *Rules) TokenForm(onePart bool) TokenForm {
	if r.Token == "" || !onePart {
		return TokenForm{After: ownAfter, Before: ownBefore, OwnForm: true}
	}
	head, tail, _ := strings.Cut(r.Token, "{id}")
	return TokenForm{After: head, Before: strings.Replace(head, "A", "B", 1), Tail: tail}
}

// ID returns the id in a token. back reports whether the page ends before that record. ok is false if the token
// has another form.
func (f TokenForm) ID(token string) (id string, back, ok bool) {
	id, ok = strings.CutPrefix(token, f.After)
	if !ok {
		id, ok = strings.CutPrefix(token, f.Before)
		back = ok
	}
	if ok {
		id, ok = strings.CutSuffix(id, f.Tail)
	}
	return id, back, ok && id != ""
}
