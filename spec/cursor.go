// Cursor: the next page is asked for with the id of the last record.

package spec

import (
	"fmt"
	"slices"

	"understudy"
)

// cursor is the paging style cursor: the boolean at Paging.Next says that there
// is more, and the parameter Paging.Cursor takes the last id.
type cursor struct{}

func (cursor) check(p *Paging) error {
	switch {
	case p.Next == "":
		return fmt.Errorf("next: style cursor needs it")
	case p.Cursor == "":
		return fmt.Errorf("cursor: style cursor needs it")
	}
	if p.Token == "" {
		p.Token = "{id}"
	}
	if !slices.Contains(p.Tokens, p.Cursor) {
		p.Tokens = append(p.Tokens, p.Cursor)
	}
	return nil
}

func (cursor) checkTemplate(p *Paging, followed, last any) error {
	if followed != true || last != false {
		return fmt.Errorf("answer: want {more} at %s", p.Next)
	}
	return nil
}

func (cursor) next(p *Paging, a *ListAnswer) (understudy.Key, error) {
	switch {
	case string(a.Next.Of(a.Body)) != "true":
		return understudy.Key{}, nil
	case len(a.Rows) == 0:
		return understudy.Key{}, fmt.Errorf("there is more, but no record to go on from")
	}
	return a.nextQuery(p, understudy.Param{Name: p.Cursor, Value: a.Rows[len(a.Rows)-1].ID})
}

func (cursor) tokenParam(p *Paging) string { return p.Cursor }
