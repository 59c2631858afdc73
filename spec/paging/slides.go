// Slides: pages identified by number or offset, whose rows move when other rows are added or deleted.

package paging

import (
	"math"
	"strconv"

	"understudy"
)

// IsSliding reports whether pages are identified only by a number or an offset. Each added or deleted row then
// moves the rows after it to other pages.
func (r *Rules) IsSliding() bool { return r.Page != "" && len(r.Tokens) == 0 && !r.IsOnePage() }

// HasFixedRows reports whether the number of a page determines which rows the page contains. It returns false if the upstream's page
// size is not known. It also returns false if the list follows links and pages may be numbered from 0 or 1.
func (r *Rules) HasFixedRows(q understudy.Query) bool {
	_, size, err := r.readPosition(&Answer{Query: q})
	return r.IsSliding() && err == nil && size > 0 && (r.Style == "number" || r.Style == "offset" || r.First != 0)
}

// ListQuery returns a query without the page number: what the queries of all pages of the list have in common.
func (r *Rules) ListQuery(q understudy.Query) understudy.Query {
	return q.Remove(func(p understudy.Param) bool { return p.Name == r.Page })
}

// OverlappingQuery returns the query of a page that begins with the last row of an answer, or slightly before
// it, and ends after it. A walk with such pages notices moved rows. Pages by number overlap only with another
// page size, which is at most that of first, the walk's first query. ok is false if the answer has fewer than
// two rows or the upstream's page size is not known.
func (r *Rules) OverlappingQuery(first, q understudy.Query, count int) (next understudy.Query, ok bool) {
	at, size, err := r.readPosition(&Answer{Query: q})
	if err != nil || !r.IsSliding() || count < 2 {
		return nil, false
	}
	if r.Style == "offset" {
		return r.queryAt(q, at+int64(count)-1), true
	}
	if r.Size == "" || at > math.MaxInt32 {
		return nil, false
	}
	end := (at-int64(r.First))*size + int64(count)
	best, reach := int64(0), end
	if _, most, err := r.readPosition(&Answer{Query: first}); err == nil {
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
	q = q.Remove(func(p understudy.Param) bool { return p.Name == r.Size })
	q = append(q, understudy.Param{Name: r.Size, Value: strconv.FormatInt(best, 10)})
	return r.queryAt(q, (end-1)/best+int64(r.First)), true
}

// IsGuessing reports whether pages are requested although no answer announces them.
func (r *Rules) IsGuessing() bool { return r.IsSliding() && r.Next == "" && !r.HasNextInHeader() }

// QueryBeyond returns the query of the page after that of q, which has count rows. ok is false if that page is
// not known.
func (r *Rules) QueryBeyond(q understudy.Query, count int) (beyond understudy.Query, ok bool) {
	at, _, err := r.readPosition(&Answer{Query: q})
	if r.Style == "offset" {
		return r.queryAt(q, at+int64(count)), err == nil && count > 0
	}
	return r.queryAt(q, at+1), err == nil && r.IsSliding()
}

// PreviousQuery returns the query of the page before that of q. ok is false for the first page, or if that page
// is not known.
func (r *Rules) PreviousQuery(q understudy.Query) (earlier understudy.Query, ok bool) {
	at, size, err := r.readPosition(&Answer{Query: q})
	if err != nil || !r.IsSliding() || at <= int64(r.First) {
		return nil, false
	}
	if r.Style != "offset" {
		return r.queryAt(q, at-1), true
	}
	if text, _ := q.Get(r.Size); size == 0 {
		asked, err := strconv.ParseInt(text, 10, 32)
		if size = asked; err != nil || asked < 1 {
			size = 1
		}
	}
	return r.queryAt(q, max(at-size, int64(r.First))), true
}

// queryAt returns the query with another page number or offset.
func (r *Rules) queryAt(q understudy.Query, at int64) understudy.Query {
	return append(r.ListQuery(q), understudy.Param{Name: r.Page, Value: strconv.FormatInt(at, 10)})
}
