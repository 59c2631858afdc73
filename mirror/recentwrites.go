// Recent writes: what writes may have changed of a kind since its newest page
// came.

package mirror

import (
	"context"
	"errors"
	"sync"
	"time"

	"understudy"
	"understudy/request"
)

// recentWrites is what writes may have changed of a kind since the newest page came.
type recentWrites struct {
	mu   sync.Mutex
	at   time.Time       // the last
	ids  map[string]bool // records they touched, not seen since
	many bool            // more than are remembered
}

// maxRecentWrites bounds the records remembered.
const maxRecentWrites = 64

// last is when the last write was; zero: there was none.
func (w *recentWrites) last() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.at
}

func (w *recentWrites) note(now time.Time, id string) {
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

// recallWrites finds out, once for a kind, whether something was written before the
// start that no newest page has shown: then it is as if it were written now.
func (co *composer) recallWrites(ctx context.Context, k *kind) error {
	if k.written == 0 || k.recalled.Load() {
		return nil
	}
	shown := false
	for key, p := range k.source.polls() {
		if p.kind != k || !p.whole {
			continue
		}
		page, err := co.store.Page(ctx, key)
		if err != nil && !errors.Is(err, understudy.ErrNotFound) {
			return err
		}
		shown = shown || err == nil && page.Generation >= k.written
	}
	if !shown {
		k.recentWrites.note(co.now(), "")
	}
	k.recalled.Store(true)
	return nil
}

// wroteSince reports whether a write touched a kind and what it changed has not
// been seen yet: the newest page is older, or a record it named.
func (co *composer) wroteSince(ctx context.Context, k *kind, c *request.Coverage) bool {
	w := &k.recentWrites
	if co.recallWrites(ctx, k) != nil {
		return true // nobody knows
	}
	w.mu.Lock()
	at, many := w.at, w.many
	ids := make([]string, 0, len(w.ids))
	for id := range w.ids {
		ids = append(ids, id)
	}
	w.mu.Unlock()
	seen := c.Newest
	if seen.IsZero() || many {
		seen = c.At
	}
	if at.IsZero() {
		return false
	}
	if !seen.After(at) {
		return true
	}
	for _, id := range ids {
		rec, err := co.lookUp(ctx, k.source, k.source.Spec.Kind(k.name), id)
		if err != nil || rec != nil && (rec.Invalid || k.unflushed(id)) {
			return true // or nobody knows: who asked is gone, or it cannot be read
		}
		w.mu.Lock()
		if w.at.Equal(at) { // not touched again meanwhile
			delete(w.ids, id)
		}
		w.mu.Unlock()
	}
	return false
}
