// Watchers: calls that are told of every save while they look through the store.

package store

import (
	"context"
	"sync"

	"understudy/internal/store/sqlite"
)

// watchers are told of each save, by the goroutine that has the writing connection.
type watchers struct {
	pool *sqlite.Pool
	sync.Mutex
	next int
	by   map[int]func(*saving)
}

// add makes f hear of every save that is not committed yet, until end is
// called. It waits for the writing connection, so that whatever was committed
// before is there to be read when it returns.
func (w *watchers) add(ctx context.Context, f func(*saving)) (end func(), err error) {
	var number int
	err = w.pool.Write(ctx, func(*sqlite.Conn) (bool, error) {
		w.Lock()
		defer w.Unlock()
		if w.by == nil {
			w.by = map[int]func(*saving){}
		}
		w.next++
		number = w.next
		w.by[number] = f
		return false, nil
	})
	return func() {
		w.Lock()
		defer w.Unlock()
		delete(w.by, number)
	}, err
}

// tell tells all of a save, with the writing connection held.
func (w *watchers) tell(s *saving) {
	w.Lock()
	defer w.Unlock()
	for _, f := range w.by {
		f(s)
	}
}
