// The stores the tests run on.

package search

import (
	"path/filepath"
	"testing"

	"understudy/internal/store"
)

func openers(t *testing.T) map[string]func(o store.Options) full {
	return map[string]func(o store.Options) full{
		"memory": memory,
		"file": func(o store.Options) full {
			o.Path = filepath.Join(t.TempDir(), "understudy.db")
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
