// Cursor: the request for the next page names the id of the last record, and the request for the page before it
// the id of the first.

package paging

import (
	"cmp"
	"fmt"

	"understudy"
)

// cursor is the paging style cursor: the boolean at Rules.Next says that more pages exist, and the parameter
// Rules.Cursor takes the last id. Without the boolean, only a page without rows ends the list. If a page was
// requested with Rules.Back, its next page is the one before it, requested with its first id.
type cursor struct{}

func (cursor) check(r *Rules) error {
	if r.Cursor == "" {
		return fmt.Errorf("cursor is missing; style cursor needs the parameter that takes the last id")
	}
	r.Token = cmp.Or(r.Token, "{id}")
	if r.Back != "" && r.Token != "{id}" {
		return fmt.Errorf("token: if back is set, write {id} or remove token")
	}
	r.addTokens(r.Cursor, r.Back)
	return nil
}

func (cursor) checkTemplate(r *Rules, followed, last any) error {
	if r.Next != "" && (followed != true || last != false) {
		return fmt.Errorf("answer: write {more} at %s", r.Next)
	}
	return nil
}

// findNext returns a step with the id of the last record, or of the first one if the walk goes back.
func (cursor) findNext(r *Rules, a *Answer) (Step, error) {
	text, there := r.nextValue(a)
	asksBehind := !there && a.Count > 0
	if !asksBehind && !isYes(text) {
		return Step{}, nil
	}
	if len(a.Rows) == 0 {
		return Step{}, errNoRow
	}
	if after, _ := a.Query.Get(r.Cursor); asksBehind && after == a.Rows[len(a.Rows)-1].ID {
		return open(understudy.OpenRefuted, "the page after a record ends with that record, so the parameter %s does not lead to the next page",
			r.Cursor), nil
	}
	if before, _ := a.Query.Get(r.Back); r.Back != "" && before != "" {
		return Step{Param: understudy.Param{Name: r.Back, Value: a.Rows[0].ID}}, nil
	}
	return Step{Param: understudy.Param{Name: r.Cursor, Value: a.Rows[len(a.Rows)-1].ID}}, nil
}

func (cursor) tokenParam(r *Rules) string { return r.Cursor }
