// Package overlap detects that rows of a list have moved while a walk reads its pages by number or offset. Each
// page is requested so that it begins with the last row of the page before. If the page has none of the rows seen
// before, earlier rows were deleted, and other rows moved into pages that were already read. Then the walk goes
// back and reads these pages again. If rows were added, seen rows appear again.
package overlap

import (
	"fmt"
	"slices"

	"understudy"
)

// maxRows is twice the minimum number of rows that a Trail remembers.
const maxRows = 20_000

// MaxBack is the maximum number of times that a walk goes back.
const MaxBack = 200

// Trail remembers the rows that a walk has seen last. The zero Trail is empty.
type Trail struct {
	recent, older map[string]bool
	pages         int
	last          []string // the rows of the page seen last
	backSteps     int
}

// AddPage remembers the rows of a page.
func (t *Trail) AddPage(ids []string) {
	t.last = ids
	t.pages++
	if t.recent == nil || len(t.recent)+len(ids) > maxRows/2 && len(t.recent) > 0 {
		t.recent, t.older = map[string]bool{}, t.recent
	}
	for _, id := range ids {
		t.recent[id] = true
	}
}

// IsLastPage reports whether a page has the same rows as the page seen last.
func (t *Trail) IsLastPage(ids []string) bool { return slices.Equal(t.last, ids) }

// HasNoPages reports whether the trail has only rows from an earlier run.
func (t *Trail) HasNoPages() bool { return t.pages < 2 }

// has reports whether a row was seen.
func (t *Trail) has(id string) bool { return t.recent[id] || t.older[id] }

// HasRowOf reports whether a page has a row that was seen.
func (t *Trail) HasRowOf(rows []understudy.Row) bool {
	return slices.ContainsFunc(rows, func(r understudy.Row) bool { return t.has(r.ID) })
}

// NewRows returns a copy of a page that has only the rows not seen before.
func (t *Trail) NewRows(p *understudy.Page) *understudy.Page {
	only := *p
	only.Rows = nil
	for _, r := range p.Rows {
		if !t.has(r.ID) {
			only.Rows = append(only.Rows, r)
		}
	}
	return &only
}

// CountBack counts a step back. It returns an error if the list changes faster than the walk reads it.
func (t *Trail) CountBack(key understudy.Key) error {
	if t.backSteps++; t.backSteps > MaxBack {
		return fmt.Errorf("walk: %s: %d times a page had no row of the previous page: rows disappear faster than the list is read, "+
			"or pages do not begin at the requested position", key, MaxBack)
	}
	return nil
}
