// Recent writes: what a newest page may not show yet.

package writes

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// Recent is what writes may have changed of a kind since the newest page came.
type Recent struct {
	mu   sync.Mutex
	at   time.Time       // the last
	ids  map[string]bool // records they touched, not seen since
	many bool            // more than are remembered
}

// maxRecentWrites bounds the records remembered.
const maxRecentWrites = 64

// Last is when the last write was; zero: there was none.
func (w *Recent) Last() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.at
}

// Note notes a write to a record; "": it is not known which.
func (w *Recent) Note(now time.Time, id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at = now
	if id == "" {
		return
	}
	if w.ids == nil {
		w.ids = map[string]bool{}
	}
	if len(w.ids) < maxRecentWrites || w.ids[id] {
		w.ids[id] = true
	} else {
		w.many = true
	}
}

// All are the last write and the records that writes touched and that were not seen
// since; many: there are more than these.
func (w *Recent) All() (at time.Time, ids []string, many bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.at, slices.Collect(maps.Keys(w.ids)), w.many
}

// Seen forgets a record that was seen, unless it was written again after a time.
func (w *Recent) Seen(at time.Time, id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.at.Equal(at) {
		delete(w.ids, id)
	}
}
