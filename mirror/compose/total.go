// Total: how many rows all pages of a list have, and what answers say of it.

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

// rowCount is how many of the list's records were looked at.
type rowCount struct {
	rows int64
	last query.OrderKey // of the record looked at last
	all  bool           // Count looked at all of them
}

func (c *rowCount) add(at query.OrderKey) { c.rows, c.last = c.rows+1, at }

// WritesTotal reports whether the body says how many rows all pages have.
func (l *List) WritesTotal() bool { return strings.Contains(l.req.paging.Template, "{total}") }

// linksLast reports whether a Link header leads to the last page by its number.
func (l *listRequest) linksLast() bool {
	return l.paging.Style == "header" && l.paging.Counts(l.target.Query)
}

// Count counts the rows of all pages where the answer tells of them and Fill has not seen all.
// What is asked beyond upstream's parameters is not counted: the time that takes would tell
// of records that a row rule hides. After an error, and where w cannot hand out every record,
// the number stays unknown.
func (l *List) Count(ctx context.Context, w *Bounded) error {
	if _, known := l.total(); known || l.req.o.Local != nil || !l.WritesTotal() && !l.req.linksLast() && !l.req.passesTotal() {
		return nil
	}
	count, q := l.seen, l.seek
	q.Below, q.Limit, q.Want = count.last, 0, 0
	if l.place.start != "" { // the rows before the token's record count, too
		count.rows, q.Below, q.Up = 0, 0, false
	}
	rest := *w
	err := rest.Seek(ctx, q, func(f query.Hit) bool {
		if l.passes(f) {
			count.add(f.Order)
		}
		return true
	})
	if err != nil || rest.Short || rest.Strange {
		return err
	}
	count.all = true
	l.seen, w.Invalid = count, rest.Invalid
	return nil
}

// total returns how many rows all pages have, as far as that is known.
func (l *List) total() (rows int64, known bool) {
	return l.seen.rows, l.seen.all || !l.more && l.place.start == ""
}

// passesTotal reports whether a header that callers get says how many rows all pages have.
func (l *listRequest) passesTotal() bool {
	return slices.Contains(l.target.Spec.Headers.Back, l.paging.TotalHeader())
}

// header returns what the answer's header says beside the next page: how many rows all pages have,
// and where the other pages stand, each by its number (Page.Header).
func (l *List) header() (q understudy.Query) {
	total, known := l.total()
	if known && l.req.passesTotal() {
		q = append(q, understudy.Param{Name: l.req.paging.TotalHeader(), Value: strconv.FormatInt(total, 10)})
	}
	if !l.req.linksLast() {
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
