// List end: whether an export that was read page by page has every row of its list.

package list

import (
	"fmt"

	"understudy"
	"understudy/internal/crawl/overlap"
	"understudy/spec"
)

// listEnd is what the pages of a list have said of its end.
type listEnd struct {
	rows, total  int64  // total: the fewest rows that a page said all have, 0: none did
	shown, pages int64  // pages: the fewest pages that a page said there are, 0: none did
	led          bool   // a page led on to another
	lost         string // why rows are not told apart, or not at all; it tells nobody of hidden ones
	seen         overlap.Sights
}

// saw takes in what a page of a list says.
func (e *listEnd) saw(l *spec.List, p *understudy.Page) {
	if n, ok := l.CountRows(p); n > len(p.Rows) || !ok && p.NotStored != "" {
		e.lost = "a page has records that have no id by the spec, or cannot be read, and they are left out"
	} else if e.lost == "" && p.Repeated() != "" {
		e.lost = "several records of a page have the same id; check which field is the id in the spec"
	} else if len(e.seen.Add(p)) > 0 && e.lost == "" {
		e.lost = "a record came twice with different contents: it has changed meanwhile, or its id is that of several records"
	} else if e.lost == "" {
		e.lost = p.OpenEnd().Partial
	}
	e.rows += int64(len(p.Rows))
	e.shown++
	e.led = e.led || !p.Next.Zero()
	if total := p.Total(); total > 0 && (e.total == 0 || total < e.total) {
		e.total = total
	}
	if pages := p.Pages(); pages > 0 && (e.pages == 0 || pages < e.pages) {
		e.pages = pages
	}
}

// open returns why the list may go on behind its last page, "" where its end is proven.
func (e *listEnd) open(t *spec.Target, last *understudy.Page) string {
	end := last.OpenEnd()
	ends := end.Kind == "" || end.Kind == understudy.OpenUnseen
	switch {
	case ends && e.total > e.rows:
		return fmt.Sprintf("upstream says that there are %d rows, and %d were shown", e.total, e.rows)
	case ends && e.pages > e.shown:
		return fmt.Sprintf("upstream says that there are %d pages, and %d were shown", e.pages, e.shown)
	case end.Kind == understudy.OpenUnseen && e.led:
		return ""
	case end.Kind == "" && len(last.Rows) == 0 && e.rows != e.total && t.EndUnsaid(last):
		return "only the page after one without rows shows that the list ends"
	}
	return end.Why
}
