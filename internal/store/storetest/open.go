// Open: a store for a test, over a file of the test's own.

package storetest

import (
	"testing"
	"time"

	"understudy/internal/store"
)

// Open opens a store over a new, empty database, and closes it when the test
// ends. Of the options Path is set, and SaveTime when it is zero. In a
// testing/synctest bubble it takes the bubble's T, so that the store is closed
// before the bubble ends.
func Open(t testing.TB, o store.Options) *store.DB {
	t.Helper()
	o.Path = File(t)
	if o.SaveTime == 0 {
		o.SaveTime = time.Minute
	}
	db, err := store.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}
