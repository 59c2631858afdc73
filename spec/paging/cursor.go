// Cursor: the next page is asked for with the id of the last record.

package paging

import (
	"fmt"
	"slices"

	"understudy"
)

// cursor is the paging style cursor: the boolean at Rules.Next says that there
// is more, and the parameter Rules.Cursor takes the last id.
type cursor struct{}

func (cursor) check(r *Rules) error {
	switch {
	case r.Next == "":
		return fmt.Errorf("next: style cursor needs it")
	case r.Cursor == "":
		return fmt.Errorf("cursor: style cursor needs it")
	}
	if r.Token == "" {
		r.Token = "{id}"
	}
	if !slices.Contains(r.Tokens, r.Cursor) {
		r.Tokens = append(r.Tokens, r.Cursor)
	}
	return nil
}

func (cursor) checkTemplate(r *Rules, followed, last any) error {
	if followed != true || last != false {
		return fmt.Errorf("answer: want {more} at %s", r.Next)
	}
	return nil
}

func (cursor) next(r *Rules, a *Answer) (Step, error) {
	switch {
	case string(a.Next.Of(a.Body)) != "true":
		return Step{}, nil
	case len(a.Rows) == 0:
		return Step{}, fmt.Errorf("there is more, but no record to go on from")
	}
	return Step{Param: understudy.Param{Name: r.Cursor, Value: a.Rows[len(a.Rows)-1].ID}}, nil
}

func (cursor) tokenParam(r *Rules) string { return r.Cursor }
