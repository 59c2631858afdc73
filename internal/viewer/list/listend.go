// The end of a list: whether an export that has read all pages has every row.

package list

import (
	"fmt"

	"understudy"
	"understudy/internal/crawl/overlap"
	"understudy/spec"
)

// listEnd collects what the pages of a list say about the end of the list.
type listEnd struct {
	rows, total      int64  // the number of rows read, and the smallest total that a page announced; total is 0 if none did
	pagesRead, pages int64  // the number of pages read, and the smallest number of pages that a page announced; pages is 0 if none did
	hasNext          bool   // whether a page had a link to the next page
	problem          string // a text without hidden data that says why rows are missing, or why it is not known; empty if there is no problem
	seen             overlap.Sights
}

// addPage adds what one page of a list says about the list's end.
func (e *listEnd) addPage(l *spec.List, p *understudy.Page) {
	if n, ok := l.CountRows(p); n > len(p.Rows) || !ok && p.NotStored != "" {
		e.problem = "records without an id, or that cannot be read, are left out; check the id field in the spec"
	} else if e.problem == "" && p.ConflictingID() != "" {
		e.problem = "several records on one page have the same id; check the id field in the spec"
	} else if len(e.seen.Add(p)) > 0 && e.problem == "" {
		e.problem = "one id appeared twice with different contents: the record changed, or several records share the id; export again"
	} else if e.problem == "" {
		e.problem = p.OpenEnd().Partial
	}
	e.rows += int64(len(p.Rows))
	e.pagesRead++
	e.hasNext = e.hasNext || !p.Next.IsZero()
	if total := p.TotalRows(); total > 0 && (e.total == 0 || total < e.total) {
		e.total = total
	}
	if pages := p.TotalPages(); pages > 0 && (e.pages == 0 || pages < e.pages) {
		e.pages = pages
	}
}

// unprovenEndReason returns why there may be rows after the last page that was read. It returns "" if it is certain that
// there are none.
func (e *listEnd) unprovenEndReason(t *spec.Target, last *understudy.Page) string {
	end := last.OpenEnd()
	ends := end.Kind == "" || end.Kind == understudy.OpenUnseen
	switch {
	case ends && e.total > e.rows:
		return fmt.Sprintf("upstream announced %d rows and returned %d", e.total, e.rows)
	case ends && e.pages > e.pagesRead:
		return fmt.Sprintf("upstream announced %d pages and returned %d", e.pages, e.pagesRead)
	case end.Kind == understudy.OpenUnseen && e.hasNext:
		return ""
	case end.Kind == "" && len(last.Rows) == 0 && e.rows != e.total && t.IsEndUnstated(last):
		return "the last page is empty, and upstream does not say that the list ends there"
	}
	return end.Why
}
