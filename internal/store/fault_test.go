// Disks that fill up, files that are locked or damaged.

package store_test

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
)

func TestDiskFull(t *testing.T) {
	path := filepath.Join(t.TempDir(), "understudy.db")
	db := storetest.OpenAt(t, path)
	pages := storetest.Pages(storetest.NewWorld(1, 2000), 50, storetest.Epoch)
	if _, err := db.Save(t.Context(), pages[0]); err != nil {
		t.Fatal(err)
	}
	if err := store.LimitPages(db, 80); err != nil {
		t.Fatal(err)
	}
	full := -1
	for i, p := range pages {
		if _, err := db.Save(t.Context(), p); err != nil {
			checktest.MustTrue(t, errors.Is(err, understudy.ErrNotStored),
				"page %d: err is %v, want understudy.ErrNotStored", i, err)
			checktest.MustEqual(t, storetest.Reason(err), "disk full", "page %d: storetest.Reason(err)", i)
			checktest.MustContains(t, err.Error(), "store: save page "+p.Key.String(), "page %d: err.Error()", i)
			full = i
			break
		}
	}
	if full < 1 {
		t.Fatalf("the disk was never full")
	}
	changes, err := db.ReadChanges(t.Context(), storetest.Source, 0, 10_000)
	if err != nil || len(changes) != 50*full {
		t.Fatalf("%d changes, want %d, %v: a refused page left some", len(changes), 50*full, err)
	}
	// When there is room again, saving goes on by itself, and without a gap.
	if err := store.LimitPages(db, 1<<30); err != nil {
		t.Fatal(err)
	}
	saved, err := db.Save(t.Context(), pages[full])
	if err != nil || saved.Changes[0].N != int64(50*full+1) {
		t.Fatalf("%+v, %v", saved.Changes, err)
	}
	for _, p := range pages[:full+1] {
		if got, err := db.ReadPage(t.Context(), p.Key); err != nil || !bytes.Equal(got.Body, p.Body) {
			t.Fatalf("page %s: %v", p.Key, err)
		}
	}
	if r, err := db.Verifier.Verify(t.Context()); err != nil || len(r.Problems) > 0 {
		t.Errorf("verify: %v, %v", r.Problems, err)
	}
}

// A waiter for the writing connection leaves at its own deadline.
func TestWaitingToSaveHasADeadline(t *testing.T) {
	db := storetest.OpenAt(t, filepath.Join(t.TempDir(), "understudy.db"))
	release := store.HoldWriter(db)
	defer release()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	p, _ := storetest.NewWorld(1, 50).List(50, 0, 0, storetest.Epoch)
	if _, err := db.Save(ctx, p); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("save: %v", err)
	}
}
