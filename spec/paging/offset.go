// Offset: the request for the next page contains the number of rows before it.

package paging

import (
	"strconv"
	"strings"

	"understudy"
)

// offset is the paging style offset: the parameter Rules.Page is the number of rows before the page. If
// Rules.First is 1, it is the number of the page's first row.
type offset struct{}

func (offset) check(r *Rules) error { return r.checkCounting() }

func (offset) checkTemplate(r *Rules, followed, last any) error {
	return r.checkEnd(followed, last)
}

func (offset) findNext(r *Rules, a *Answer) (Step, error) {
	at, size, err := r.readPosition(a)
	if err != nil {
		return Step{}, err
	}
	switch on, end := r.hasNext(a, at-int64(r.First), size); {
	case !on:
		return end, nil
	case a.Count == 0: // the upstream has left out rows after paging, so their number is not known
		return r.stepTo(max(at+1, r.nextOffset(a))), nil
	}
	return r.stepTo(at + int64(a.Count)), nil
}

// nextOffset returns the offset of the next page that an answer states, either alone or in a link. It returns 0
// if there is none.
func (r *Rules) nextOffset(a *Answer) int64 {
	text, _ := r.nextValue(a)
	if _, raw, link := strings.Cut(text, "?"); link {
		query, _ := understudy.ParseQuery(raw) // an invalid query counts as a query without such a parameter
		text, _ = query.Get(r.Page)
	}
	n, _ := strconv.ParseInt(text, 10, 32) // a text that is not a number counts as 0
	return n
}

func (offset) tokenParam(*Rules) string { return "" }
