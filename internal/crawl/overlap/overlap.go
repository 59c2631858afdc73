// Overlap: pages that share a row with the page before them.

// Package overlap notices on a walk by page number or offset that rows have moved. Each
// page is asked for so that it begins with the last row of the page before it. When it
// has none of the rows that were seen, rows before it have gone and others moved into
// pages that were read already: the walk goes back and looks a second time. Rows that
// came show rows again that were seen.
package overlap

import (
	"fmt"
	"slices"

	"understudy"
)

// most bounds the rows that are remembered, half of it.
const most = 20_000

// MostBack is how often a walk goes back.
const MostBack = 200

// Trail are the rows a walk has seen last. The zero Trail has seen none.
type Trail struct {
	young, old map[string]bool
	pages      int
	last       []string // the page seen last
	back       int
}

// Saw notes the rows of a page.
func (t *Trail) Saw(ids []string) {
	t.last = ids
	t.pages++
	if t.young == nil || len(t.young)+len(ids) > most/2 && len(t.young) > 0 {
		t.young, t.old = map[string]bool{}, t.young
	}
	for _, id := range ids {
		t.young[id] = true
	}
}

// Same reports whether a page has the rows that the page seen last had.
func (t *Trail) Same(ids []string) bool { return slices.Equal(t.last, ids) }

// Resumed reports whether nothing was seen but what a run before this one has told.
func (t *Trail) Resumed() bool { return t.pages < 2 }

// has reports whether a row was seen.
func (t *Trail) has(id string) bool { return t.young[id] || t.old[id] }

// Joins reports whether a page has a row that was seen.
func (t *Trail) Joins(rows []understudy.Row) bool {
	for _, r := range rows {
		if t.has(r.ID) {
			return true
		}
	}
	return false
}

// New is a page with the rows alone that were not seen.
func (t *Trail) New(p *understudy.Page) *understudy.Page {
	only := *p
	only.Rows = nil
	for _, r := range p.Rows {
		if !t.has(r.ID) {
			only.Rows = append(only.Rows, r)
		}
	}
	return &only
}

// Back counts a step back. An error ends a walk over a list that moves faster than it
// is read.
func (t *Trail) Back(key understudy.Key) error {
	if t.back++; t.back > MostBack {
		return fmt.Errorf("walk: %s: %d times a page had nothing of the one before it: rows go away faster than the list is read, "+
			"or pages do not begin at the number asked for", key, MostBack)
	}
	return nil
}
