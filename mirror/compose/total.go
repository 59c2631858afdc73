// Totals: the number of rows on all pages of a list together.

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

// rowCount is the number of the list's records that have been read.
type rowCount struct {
	rows int64
	last query.OrderKey // the place of the record that was read last
	all  bool           // whether Count has read all records of the list
}

func (c *rowCount) add(at query.OrderKey) { c.rows, c.last = c.rows+1, at }

// HasTotalInBody reports whether upstream writes the number of rows of all pages into the body.
func (l *List) HasTotalInBody() bool { return strings.Contains(l.req.paging.Template, "{total}") }

// hasLastLink reports whether upstream sends a Link header that contains the number of the last page.
func (l *listRequest) hasLastLink() bool {
	return l.paging.Style == "header" && l.paging.HasFixedRows(l.target.Query)
}

// Count counts the rows of all pages if upstream's answer contains the total and Fill has not read all rows. It does
// not count queries that have a LocalQuery, because the time would reveal records that a row rule hides. The total
// stays unknown after an error, or if w cannot read every record.
func (l *List) Count(ctx context.Context, w *Bounded) error {
	if _, known := l.totalRows(); known || l.req.options.Local != nil ||
		!l.HasTotalInBody() && !l.req.hasLastLink() && !l.req.hasTotalHeader() {
		return nil
	}
	count, q := l.seen, l.seek
	q.Below, q.Limit, q.ExpectedRows = count.last, 0, 0
	if l.place.start != "" { // rows before the record that the page token names also belong to the total
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

// totalRows returns the number of rows of all pages. known is false if it has not been counted.
func (l *List) totalRows() (rows int64, known bool) {
	return l.seen.rows, l.seen.all || !l.hasMore && l.place.start == ""
}

// hasTotalHeader reports whether upstream sends the number of rows of all pages in a header.
func (l *listRequest) hasTotalHeader() bool {
	return slices.Contains(l.target.Spec.Headers.Back, l.paging.TotalHeader())
}

// header returns the header fields about other pages (Page.Header): the total number of rows, and links that contain
// page numbers.
func (l *List) header() (q understudy.Query) {
	total, known := l.totalRows()
	if known && l.req.hasTotalHeader() {
		q = append(q, understudy.Param{Name: l.req.paging.TotalHeader(), Value: strconv.FormatInt(total, 10)})
	}
	if !l.req.hasLastLink() {
		return q
	}
	base, last := l.baseURI(), max(0, (total-1)/l.place.size)
	add := func(relation string, page int64) {
		q = append(q, understudy.Param{Name: paging.RelationField(relation), Value: l.req.pageURI(base, page, "", "")})
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
