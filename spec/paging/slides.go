// Slides: pages named by number or offset, whose rows move when others come or go.

package paging

import (
	"math"
	"strconv"

	"understudy"
)

// Slides reports whether pages are named by a number alone, or by an offset: every row
// that comes or goes moves those behind it into other pages.
func (r *Rules) Slides() bool { return r.Page != "" && len(r.Tokens) == 0 && !r.OnePage() }

// Counts reports whether the number of a page says which rows it has. It does not where links
// lead on and the number of the first page may be anything, and where nobody knows how many rows
// upstream gives.
func (r *Rules) Counts(q understudy.Query) bool {
	_, size, err := r.stands(&Answer{Query: q})
	return r.Slides() && err == nil && size > 0 && (r.Style == "number" || r.Style == "offset" || r.First != 0)
}

// Whole is a request without the number of its page: what all pages of the list have in
// common.
func (r *Rules) Whole(q understudy.Query) understudy.Query {
	return q.Without(func(p understudy.Param) bool { return p.Name == r.Page })
}

// Overlapping is the request for a page that begins with the last row of an answer, or
// a little before it, and goes beyond it: who walks a list by such pages notices rows
// that have moved. Pages by number overlap where they have another size, at most that of
// first, the request that the walk began with. It is not ok where the answer has fewer
// than two rows, and where it is not known how many upstream gives.
func (r *Rules) Overlapping(first, q understudy.Query, count int) (next understudy.Query, ok bool) {
	at, size, err := r.stands(&Answer{Query: q})
	if err != nil || !r.Slides() || count < 2 {
		return nil, false
	}
	if r.Style == "offset" {
		return r.at(q, at+int64(count)-1), true
	}
	if r.Size == "" || at > math.MaxInt32 {
		return nil, false
	}
	end := (at-int64(r.First))*size + int64(count)
	best, reach := int64(0), end
	if _, most, err := r.stands(&Answer{Query: first}); err == nil {
		size = max(size, most)
	}
	for n := size; n > size/2 && n > 1; n-- {
		if to := ((end-1)/n + 1) * n; to > reach {
			best, reach = n, to
		}
	}
	if best == 0 {
		return nil, false
	}
	q = q.Without(func(p understudy.Param) bool { return p.Name == r.Size })
	q = append(q, understudy.Param{Name: r.Size, Value: strconv.FormatInt(best, 10)})
	return r.at(q, (end-1)/best+int64(r.First)), true
}

// Guesses reports whether pages are asked for of which no answer says that they are there.
func (r *Rules) Guesses() bool { return r.Slides() && r.Next == "" && !r.InHeader() }

// Beyond is the request for the page behind the one that a request is for, which has so many
// rows; not ok where that is not known.
func (r *Rules) Beyond(q understudy.Query, count int) (beyond understudy.Query, ok bool) {
	at, _, err := r.stands(&Answer{Query: q})
	if r.Style == "offset" {
		return r.at(q, at+int64(count)), err == nil && count > 0
	}
	return r.at(q, at+1), err == nil && r.Slides()
}

// Earlier is the request for the page before the one that a request is for; not ok for
// the first page, and where that is not known.
func (r *Rules) Earlier(q understudy.Query) (earlier understudy.Query, ok bool) {
	at, size, err := r.stands(&Answer{Query: q})
	if err != nil || !r.Slides() || at <= int64(r.First) {
		return nil, false
	}
	if r.Style != "offset" {
		return r.at(q, at-1), true
	}
	if text, _ := q.Get(r.Size); size == 0 {
		asked, err := strconv.ParseInt(text, 10, 32)
		if size = asked; err != nil || asked < 1 {
			size = 1
		}
	}
	return r.at(q, max(at-size, int64(r.First))), true
}

// at is a request with another number.
func (r *Rules) at(q understudy.Query, at int64) understudy.Query {
	return append(r.Whole(q), understudy.Param{Name: r.Page, Value: strconv.FormatInt(at, 10)})
}
