// What is promised is on the disk before it is acknowledged, also through a crash of
// the machine; a page need not be.

package store_test

import (
	"path/filepath"
	"testing"

	"understudy"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
	"understudy/request"
)

func TestPromisesAreDurable(t *testing.T) {
	const normal, full = 1, 2
	w := storetest.NewWorld(5, 10)
	page := func() *understudy.Page { p, _ := w.List(10, 0, 0, storetest.Epoch); return p }
	for _, one := range []struct {
		name, table string
		want        int64
		do          func(db *store.DB) error
	}{
		{"a page", "page", normal, func(db *store.DB) error { _, err := db.Save(t.Context(), page()); return err }},
		{"the answer to a write", "block", full, func(db *store.DB) error {
			p := page()
			p.Key.URI = ""
			_, err := db.Save(t.Context(), p)
			return err
		}},
		{"an invalidation", "kind", full, func(db *store.DB) error {
			_, err := db.Touch(t.Context(), request.Invalidation{Source: storetest.Source, Kind: "calls"})
			return err
		}},
		{"a job", "job", full, func(db *store.DB) error {
			_, err := db.AddJobs(t.Context(), storetest.Epoch, understudy.Job{Kind: "a", Attempts: 1})
			return err
		}},
	} {
		t.Run(one.name, func(t *testing.T) {
			db := openDB(t, filepath.Join(t.TempDir(), "understudy.db"))
			if _, err := db.Save(t.Context(), page()); err != nil { // the kind is known from now on
				t.Fatal(err)
			}
			w.Changed[3]++
			seen, err := store.WatchSync(db, one.table)
			if err != nil {
				t.Fatal(err)
			}
			if err := one.do(db); err != nil {
				t.Fatal(err)
			}
			how, err := seen()
			if err != nil || len(how) == 0 {
				t.Fatalf("nothing was written: %v", err)
			}
			for _, n := range how {
				if n != one.want {
					t.Errorf("synchronous = %d, want %d", n, one.want)
				}
			}
		})
	}
}
