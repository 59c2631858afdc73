// Token: the request for the next page contains a token from the upstream.

package paging

import (
	"errors"
	"fmt"
	"strings"

	"understudy"
	"understudy/kit/jsonspan"
)

// token is the paging style token: the parameter Rules.Cursor takes the value at Rules.Next. The list ends
// where Rules.More says so. Without Rules.More it ends where the token is missing.
type token struct{}

func (token) check(r *Rules) error {
	switch {
	case r.Next == "":
		return fmt.Errorf("next is missing; style token needs the place of the token")
	case r.Cursor == "":
		return fmt.Errorf("cursor is missing; style token needs the parameter that takes the token")
	}
	r.addTokens(r.Cursor)
	return nil
}

func (token) checkTemplate(r *Rules, followed, last any) error {
	if followed != "/token" || last != nil {
		return fmt.Errorf("answer: write {next_token} at %s", r.Next)
	}
	return r.checkWord(r.More, "more", false)
}

// findNext returns a step with the token at Rules.Next.
func (token) findNext(r *Rules, a *Answer) (Step, error) {
	value, there := r.nextValue(a)
	more, told := "", false
	if r.More != "" {
		more, told = a.valueAt(r.More)
	}
	full, known := r.isFull(a)
	contradicts := isToken(value) && full && known // the upstream says that no more pages exist, but the page is full and has a token
	switch {
	case !told && there && !isToken(value) && r.canEcho(a):
		return open(understudy.OpenUnseen, "the first page is full, and %s may be what was asked for", r.Next), nil
	case told && !isYes(more) && !contradicts, !told && there && !isToken(value), !told && !there && a.Count == 0:
		return Step{}, nil
	case !told && !there:
		return openUnseen(r.Next), nil
	case !isToken(value):
		return Step{}, errors.New("the answer says that more pages exist, but it has no token for the next page")
	}
	if v, _ := jsonspan.Find(a.Body, a.Doc, r.Next); v.Kind == jsonspan.Object || v.Kind == jsonspan.Array {
		return Step{}, fmt.Errorf("the answer says that more pages exist, but the token at %s is not a text", r.Next)
	}
	return Step{Param: understudy.Param{Name: r.Cursor, Value: value}}, nil
}

// canEcho reports whether an answer without a token may just repeat the request's parameters: the place of the
// token has the parameter's name, and the first page is full.
func (r *Rules) canEcho(a *Answer) bool {
	full, known := r.isFull(a)
	_, isLater := a.Query.Get(r.Cursor)
	return full && known && !isLater && normalizeName(r.Next[strings.LastIndexByte(r.Next, '.')+1:]) == normalizeName(r.Cursor)
}

func (token) tokenParam(r *Rules) string { return r.Cursor }
