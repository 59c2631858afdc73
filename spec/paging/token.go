// Token: the next page is asked for with a token that upstream makes.

package paging

import (
	"errors"
	"fmt"
	"strings"

	"understudy"
	"understudy/kit/jsonspan"
)

// token is the paging style token: the parameter Rules.Cursor takes what stands at
// Rules.Next. The list ends where Rules.More says so; without that, where there is no
// token.
type token struct{}

func (token) check(r *Rules) error {
	switch {
	case r.Next == "":
		return fmt.Errorf("next: style token needs it")
	case r.Cursor == "":
		return fmt.Errorf("cursor: style token needs it")
	}
	r.moves(r.Cursor)
	return nil
}

func (token) checkTemplate(r *Rules, followed, last any) error {
	if followed != "/token" || last != nil {
		return fmt.Errorf("answer: want {next_token} at %s", r.Next)
	}
	return r.wants(r.More, "more", false)
}

func (token) next(r *Rules, a *Answer) (Step, error) {
	value, there := r.atNext(a)
	more, told := "", false
	if r.More != "" {
		more, told = a.said(r.More)
	}
	full, known := r.isFull(a)
	contradicts := isToken(value) && full && known // a full page that says no, and leads on
	switch {
	case !told && there && !isToken(value) && r.mayEcho(a):
		return open(understudy.OpenUnseen, "the first page is full, and %s may be what was asked for", r.Next), nil
	case told && !isYes(more) && !contradicts, !told && there && !isToken(value), !told && !there && a.Count == 0:
		return Step{}, nil
	case !told && !there:
		return unseen(r.Next), nil
	case !isToken(value):
		return Step{}, errors.New("there is more, but no token to go on with")
	}
	if v, _ := jsonspan.Find(a.Body, a.Doc, r.Next); v.Kind == jsonspan.Object || v.Kind == jsonspan.Array {
		return Step{}, fmt.Errorf("there is more, but %s holds no text to go on with", r.Next)
	}
	return Step{Param: understudy.Param{Name: r.Cursor, Value: value}}, nil
}

// mayEcho reports whether an answer without a token may repeat what was asked for: the place of the
// token has the parameter's name, and the first page is full.
func (r *Rules) mayEcho(a *Answer) bool {
	full, known := r.isFull(a)
	_, isLater := a.Query.Get(r.Cursor)
	return full && known && !isLater && plain(r.Next[strings.LastIndexByte(r.Next, '.')+1:]) == plain(r.Cursor)
}

func (token) tokenParam(r *Rules) string { return r.Cursor }
