// Cursor: the next page is asked for with the id of the last record, the page before
// with that of the first.

package paging

import (
	"cmp"
	"fmt"

	"understudy"
)

// cursor is the paging style cursor: the boolean at Rules.Next says that there is more,
// and the parameter Rules.Cursor takes the last id. Where a page does not have the boolean, only
// a page without rows ends the list. A page asked for with Rules.Back leads on that way: there is
// more before it, and the next request has its first id.
type cursor struct{}

func (cursor) check(r *Rules) error {
	if r.Cursor == "" {
		return fmt.Errorf("cursor: style cursor needs it")
	}
	r.Token = cmp.Or(r.Token, "{id}")
	if r.Back != "" && r.Token != "{id}" {
		return fmt.Errorf("token: with back it is {id}")
	}
	r.moves(r.Cursor, r.Back)
	return nil
}

func (cursor) checkTemplate(r *Rules, followed, last any) error {
	if r.Next != "" && (followed != true || last != false) {
		return fmt.Errorf("answer: want {more} at %s", r.Next)
	}
	return nil
}

func (cursor) next(r *Rules, a *Answer) (Step, error) {
	text, there := r.atNext(a)
	asksBehind := !there && a.Count > 0
	if !asksBehind && !isYes(text) {
		return Step{}, nil
	}
	if len(a.Rows) == 0 {
		return Step{}, errNoRow
	}
	if after, _ := a.Query.Get(r.Cursor); asksBehind && after == a.Rows[len(a.Rows)-1].ID {
		return open(understudy.OpenRefuted, "the page after a record ends with that record; another parameter than %s may lead on", r.Cursor), nil
	}
	if before, _ := a.Query.Get(r.Back); r.Back != "" && before != "" {
		return Step{Param: understudy.Param{Name: r.Back, Value: a.Rows[0].ID}}, nil
	}
	return Step{Param: understudy.Param{Name: r.Cursor, Value: a.Rows[len(a.Rows)-1].ID}}, nil
}

func (cursor) tokenParam(r *Rules) string { return r.Cursor }
