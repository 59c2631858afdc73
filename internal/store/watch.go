// This file calls registered functions for every save, while a search reads the whole store in several transactions.

package store

import (
	"context"

	"understudy/internal/store/db"
	"understudy/kit/lockwatch"
)

// watchers are functions to call for each save. The goroutine with the writing connection calls them.
type watchers struct {
	pool *db.Pool
	lockwatch.Mutex
	next      int
	callbacks map[int]func(*saving)
}

// add calls f for every save that is not committed yet, until the caller calls end. add waits for the writing
// connection. So everything committed before can be read when add returns.
func (w *watchers) add(ctx context.Context, f func(*saving)) (end func(), err error) {
	var number int
	err = w.pool.Write(ctx, func(db.Conn) (bool, error) {
		w.Lock()
		defer w.Unlock()
		if w.callbacks == nil {
			w.callbacks = map[int]func(*saving){}
		}
		w.next++
		number = w.next
		w.callbacks[number] = f
		return false, nil
	})
	return func() {
		w.Lock()
		defer w.Unlock()
		delete(w.callbacks, number)
	}, err
}

// notify calls all callbacks with a save. The caller has the writing connection.
func (w *watchers) notify(s *saving) {
	w.Lock()
	defer w.Unlock()
	for _, f := range w.callbacks {
		f(s)
	}
}
