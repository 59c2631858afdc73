// This file finds records that a walk sees again with another content.

package overlap

import (
	"slices"

	"understudy"
	"understudy/kit/lockwatch"
)

// maxSights is twice the minimum number of rows that a Sights remembers.
const maxSights = 1 << 16

// Repeat is a record that a walk saw again with another content. Either the record has changed meanwhile, or
// several records share its id and hide each other.
type Repeat struct {
	ID              string
	Link            string // the URI of the page that showed the record before
	version         int64  // the stored version of the record's content on the earlier page
	clock, newClock int64  // the record's clock on the earlier page, and its clock on the page that showed it again
}

// Sights remembers the rows that a walk has seen recently, by record. The zero Sights is empty.
type Sights struct {
	mu            lockwatch.Mutex
	recent, older map[int64]Repeat
	pages         int
	checks        int
}

// Add remembers the rows of a page. It returns the records that were seen before with another content.
func (s *Sights) Add(page *understudy.Page) (repeats []Repeat) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pages++
	if s.recent == nil || len(s.recent) > maxSights/2 {
		s.recent, s.older = map[int64]Repeat{}, s.recent
	}
	for _, r := range page.Rows {
		if r.Version == 0 {
			continue // the record is not stored, so its content has no version to compare
		}
		before, seen := s.recent[r.Record]
		if !seen {
			before, seen = s.older[r.Record]
		}
		if before.newClock = r.Clock; seen && before.version != r.Version {
			repeats = append(repeats, before)
		}
		s.recent[r.Record] = Repeat{ID: r.ID, Link: page.Key.URI, version: r.Version, clock: r.Clock}
	}
	return repeats
}

// Forget forgets all rows, for a walk that starts again.
func (s *Sights) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recent, s.older = nil, nil
}

// CanCheck reports whether another page may be fetched again. If contents change with each answer, this costs
// at most an eighth of the walk.
func (s *Sights) CanCheck() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.checks++
	return s.checks <= 8+s.pages/8
}

// IsUnchanged reports whether the page at Link, fetched again, still shows the record unchanged. Then another
// record has the same id.
func (r *Repeat) IsUnchanged(page *understudy.Page) bool {
	return slices.ContainsFunc(page.Rows, func(row understudy.Row) bool {
		return row.ID == r.ID && row.Version != 0 && (row.Version == r.version || row.Clock != 0 && row.Clock == r.clock && r.clock != r.newClock)
	})
}

// HasMoved reports whether the page at Link, fetched again, no longer shows the record, and nothing else proves
// that the walk saw the same record twice.
func (r *Repeat) HasMoved(page *understudy.Page) bool {
	return !slices.ContainsFunc(page.Rows, func(row understudy.Row) bool { return row.ID == r.ID }) && (r.clock == 0 || r.clock != r.newClock)
}
