// Totals: how many rows all pages of a list have.

package compose

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"understudy"
	"understudy/internal/query"
	"understudy/spec/paging"
)

// rowCount is how many of the list's records were read.
type rowCount struct {
	rows int64
	last query.OrderKey // place of the last record read
	all  bool           // Count has read all records
}

func (c *rowCount) add(at query.OrderKey) { c.rows, c.last = c.rows+1, at }

// HasTotalInBody reports whether the body contains the number of rows of all pages.
func (l *List) HasTotalInBody() bool { return strings.Contains(l.req.paging.Template, "{total}") }

// hasLastLink reports whether a Link header leads to the last page by its number.
func (l *listRequest) hasLastLink() bool {
	return l.paging.Style == "header" && l.paging.HasFixedRows(l.target.Query)
}

// Count counts the rows of all pages if the answer contains the total and Fill has not read them all. Local
// queries are not counted, because the time would reveal records that a row rule hides. The total stays
// unknown after an error, or if w cannot pass every record.
func (l *List) Count(ctx context.Context, w *Bounded) error {
	if _, known := l.totalRows(); known || l.req.options.Local != nil ||
		!l.HasTotalInBody() && !l.req.hasLastLink() && !l.req.hasTotalHeader() {
		return nil
	}
	count, q := l.seen, l.seek
	q.Below, q.Limit, q.ExpectedRows = count.last, 0, 0
	if l.place.start != "" { // the rows before the token's record count, too
		count.rows, q.Below, q.OldestFirst = 0, 0, false
	}
	rest := *w
	err := rest.Seek(ctx, q, func(f query.Hit) bool {
		if l.matchRecord(f) {
			count.add(f.Order)
		}
		return true
	})
	if err != nil || rest.ReachedUncovered || rest.FoundUnseen {
		return err
	}
	count.all = true
	l.seen, w.Invalid = count, rest.Invalid
	return nil
}

// totalRows returns how many rows all pages have. known is false if that is unknown.
func (l *List) totalRows() (rows int64, known bool) {
	return l.seen.rows, l.seen.all || !l.hasMore && l.place.start == ""
}

// hasTotalHeader reports whether the response has a header with the number of rows of all pages.
func (l *listRequest) hasTotalHeader() bool {
	return slices.Contains(l.target.Spec.Headers.Back, l.paging.TotalHeader())
}

// header returns the response fields about other pages: the total number of rows, and links to other pages by
// number (Page.Header).
func (l *List) header() (q understudy.Query) {
	total, known := l.totalRows()
	if known && l.req.hasTotalHeader() {
		q = append(q, understudy.Param{Name: l.req.paging.TotalHeader(), Value: strconv.FormatInt(total, 10)})
	}
	if !l.req.hasLastLink() {
		return q
	}
	base, last := l.base(), max(0, (total-1)/l.place.size)
	add := func(relation string, page int64) {
		q = append(q, understudy.Param{Name: paging.RelationField(relation), Value: l.req.link(base, page, "", "")})
	}
	if l.place.page > 0 {
		before := l.place.page - 1
		if known {
			before = min(before, last)
		}
		add("prev", before)
		add("first", 0)
	}
	if known && l.place.page < last {
		add("last", last)
	}
	return q
}
