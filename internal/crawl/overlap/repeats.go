// Repeats: records that a walk sees again with another content.

package overlap

import (
	"slices"
	"sync"

	"understudy"
)

// maxSights bounds the rows that are remembered, half of it.
const maxSights = 1 << 16

// Repeat is a record that came again with another content. It has changed meanwhile, or its id is
// that of several records, of which one hides the others.
type Repeat struct {
	ID         string
	Link       string // of the page that showed it before
	version    int64  // of the content it had there, in the store
	clock, now int64  // there, and where it came again
}

// Sights are the rows that a walk has seen lately, by their records. The zero Sights has seen none.
type Sights struct {
	mu         sync.Mutex
	young, old map[int64]Repeat
	pages      int
	checks     int
}

// Add notes the rows of a page. It returns the records that were seen before with another content.
func (s *Sights) Add(page *understudy.Page) (repeats []Repeat) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pages++
	if s.young == nil || len(s.young) > maxSights/2 {
		s.young, s.old = map[int64]Repeat{}, s.young
	}
	for _, r := range page.Rows {
		if r.Version == 0 {
			continue // it is not stored, and its content has no number
		}
		before, seen := s.young[r.Record]
		if !seen {
			before, seen = s.old[r.Record]
		}
		if before.now = r.Clock; seen && before.version != r.Version {
			repeats = append(repeats, before)
		}
		s.young[r.Record] = Repeat{ID: r.ID, Link: page.Key.URI, version: r.Version, clock: r.Clock}
	}
	return repeats
}

// Forget forgets all rows, for a walk that begins again.
func (s *Sights) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.young, s.old = nil, nil
}

// MayCheck reports whether one more page may be asked for again. Where contents change with each
// answer this costs an eighth of the walk.
func (s *Sights) MayCheck() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.checks++
	return s.checks <= 8+s.pages/8
}

// Stays reports whether the page at Link, asked for again, still has the record as it was: then
// another record has its id.
func (r *Repeat) Stays(page *understudy.Page) bool {
	return slices.ContainsFunc(page.Rows, func(row understudy.Row) bool {
		return row.ID == r.ID && row.Version != 0 && (row.Version == r.version || row.Clock != 0 && row.Clock == r.clock && r.clock != r.now)
	})
}

// Moved reports whether the page at Link, asked for again, has the record no more, and nothing else
// shows that it is the record that came again.
func (r *Repeat) Moved(page *understudy.Page) bool {
	return !slices.ContainsFunc(page.Rows, func(row understudy.Row) bool { return row.ID == r.ID }) && (r.clock == 0 || r.clock != r.now)
}
