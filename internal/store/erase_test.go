// The store against the rules of erasing.

package store_test

import (
	"fmt"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/store"
	"understudy/internal/store/erase"
	"understudy/internal/store/storetest"
	"understudy/request"
)

func TestDBErases(t *testing.T) {
	storetest.RunErasing(t, func(t testing.TB, now func() time.Time) storetest.Erasing {
		db, err := store.Open(t.Context(), storetest.EraseOptions(t, now))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		return newTested(t, db)
	})
}

// What a crash leaves listed and unmarked goes all the same, many more records
// than one transaction marks, and each is told of once.
func TestListedBeforeACrash(t *testing.T) {
	const many = 700
	o := storetest.EraseOptions(t, func() time.Time { return storetest.Epoch })
	db, err := store.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	save := func(db *store.DB) request.SaveResult {
		p := &understudy.Page{Key: understudy.Key{Source: "twilio", URI: "/calls"}, Kind: "calls", Shape: "calls", List: true, Status: 200,
			At: storetest.Epoch}
		for n := range many {
			from := len(p.Body)
			p.Body = append(p.Body, fmt.Sprintf(`{"sid": "CA%032d", "from": "+14155550100"}`, n)...)
			p.Rows = append(p.Rows, understudy.Row{ID: fmt.Sprintf("CA%032d", n), Clock: int64(1000 + n), Start: from, End: len(p.Body)})
		}
		saved, err := db.Save(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		return saved
	}
	save(db)
	listed, err := store.List(t.Context(), db, "twilio", "+14155550100")
	if err != nil || listed.Number == 0 {
		t.Fatalf("%+v, %v", listed, err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if db, err = store.Open(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if w, err := db.Eraser.CountWaiting(t.Context()); err != nil || w.Records != many {
		t.Fatalf("waiting %+v, %v", w, err)
	}
	done, err := db.Eraser.EraseListed(t.Context(), erase.Job{})
	checktest.MustNoError(t, err, "")
	checktest.MustEqual(t, len(done), 1, "len(done)")
	checktest.MustEqual(t, done[0].Number, listed.Number, "done[0].Number")
	checktest.MustEqual(t, done[0].Records, many, "done[0].Records")
	checktest.MustTrue(t, !done[0].Done.IsZero(), "done[0].Done.IsZero() is true")
	went := map[string]int{}
	changes, err := db.ReadChanges(t.Context(), "twilio", many, 2*many)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range changes {
		if c.Type == understudy.Deleted {
			went[c.ID]++
		}
	}
	if len(changes) != many || len(went) != many {
		t.Errorf("%d changes, %d records went", len(changes), len(went))
	}
	if saved := save(db); saved.Page.NotStored != "erased" || len(saved.Changes) != 0 {
		t.Errorf("saved again: %q, %d changes", saved.Page.NotStored, len(saved.Changes))
	}
	if r, err := db.Verifier.Verify(t.Context()); err != nil || len(r.Problems) > 0 {
		t.Errorf("verify: %q, %v", r.Problems, err)
	}
}
