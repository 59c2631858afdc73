// Offset: the next page is asked for with the number of rows before it.

package paging

import (
	"strconv"
	"strings"

	"understudy"
)

// offset is the paging style offset: the parameter Rules.Page takes how many rows stand
// before the page, or with Rules.First 1 the number of its first row.
type offset struct{}

func (offset) check(r *Rules) error { return r.checkCount() }

func (offset) checkTemplate(r *Rules, followed, last any) error {
	return r.checkCounted(followed, last)
}

func (offset) next(r *Rules, a *Answer) (Step, error) {
	at, size, err := r.stands(a)
	if err != nil {
		return Step{}, err
	}
	switch on, end := r.goes(a, at-int64(r.First), size); {
	case !on:
		return end, nil
	case a.Count == 0: // its rows were left out after paging, so that nobody knows how many
		return r.to(max(at+1, r.nextOffset(a))), nil
	}
	return r.to(at + int64(a.Count)), nil
}

// nextOffset is the offset of the next page as an answer says it, alone or in a link; 0: it does
// not.
func (r *Rules) nextOffset(a *Answer) int64 {
	text, _ := r.atNext(a)
	if _, raw, link := strings.Cut(text, "?"); link {
		query, _ := understudy.ParseQuery(raw) // without the parameter nothing is known
		text, _ = query.Get(r.Page)
	}
	n, _ := strconv.ParseInt(text, 10, 32) // else 0
	return n
}

func (offset) tokenParam(*Rules) string { return "" }
