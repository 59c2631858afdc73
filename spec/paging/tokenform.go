// Token: the record that a page token names, by the spec's rule.

package paging

import "strings"

// Tokens of our own form, where the spec gives no rule.
const (
	ownAfter  = "after~"
	ownBefore = "before~"
)

// TokenForm is how the page tokens of a list name a record. After stands before its id
// in the token of the page after it, Before in that of the page before it. Tail stands
// behind the id in both.
type TokenForm struct {
	After, Before, Tail string
	Own                 bool // the spec gives no rule; upstream does not know this form
}

// TokenForm is the form of page tokens. It is the spec's form where ids have one part.
// In the token of the page before a record its first A is a B, as upstreams of that
// form write it.
func (r *Rules) TokenForm(onePart bool) TokenForm {
	if r.Token == "" || !onePart {
		return TokenForm{After: ownAfter, Before: ownBefore, Own: true}
	}
	head, tail, _ := strings.Cut(r.Token, "{id}")
	return TokenForm{After: head, Before: strings.Replace(head, "A", "B", 1), Tail: tail}
}

// ID is the id in a token, and whether the page ends before that record; not ok
// when the token is not of this form.
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
