// The stores the tests run on.

package search

import (
	"testing"
	"time"

	"understudy/internal/store"
	"understudy/internal/store/storetest"
)

func openers(t *testing.T) map[string]func(o store.Options) full {
	return map[string]func(o store.Options) full{
		"memory": memory,
		"file": func(o store.Options) full {
			o.Path, o.SaveTime = storetest.File(t), time.Minute
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
		},
	}
}
