// Bodies of records that stand far apart, each in a block of its own.

package records_test

import (
	"bytes"
	"sync"
	"testing"

	"understudy/internal/checktest"
	"understudy/internal/query"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
)

// TestScatteredBodies asks from several sides at once for records of many blocks
// and compares each with what is held of it; and then with a block in between
// that is damaged.
func TestScatteredBodies(t *testing.T) {
	t.Parallel()
	path := storetest.File(t)
	db := storetest.OpenAt(t, path)
	w := storetest.NewWorld(9, 900)
	for n, from := 0, 0; from < w.N; n++ {
		p, next := w.List(100, n, from, storetest.Epoch)
		from = next
		if _, err := db.Save(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	seek := func(want int, up bool) (found []query.Hit, err error) {
		q := query.RecordQuery{Source: storetest.Source, Kinds: []string{"calls"}, Shape: "calls", ExpectedRows: want, OldestFirst: up,
			Predicates: []query.Predicate{{Field: "status", Any: []string{"failed", "busy", "no-answer"}}}}
		err = db.Seek(t.Context(), q, func(f query.Hit) bool {
			found = append(found, f)
			return true
		})
		return found, err
	}
	var sides sync.WaitGroup
	for side := range 4 {
		sides.Go(func() {
			found, err := seek([]int{0, 1, 60, 900}[side], side%2 == 0)
			if err != nil || len(found) < 70 {
				t.Errorf("side %d: %d records, %v", side, len(found), err)
			}
			for i, f := range found {
				rec, err := db.Record(t.Context(), storetest.Source, "calls", "calls", f.Record.ID)
				if err != nil {
					t.Errorf("side %d, record %d: %s: %v", side, i, f.Record.ID, err)
					return
				}
				checktest.Equal(t, string(rec.Body), string(f.Record.Body), "side %d, record %d: %s: body", side, i, rec.ID)
				checktest.Equal(t, rec.Number, f.Record.Number, "side %d, record %d: %s: number", side, i, rec.ID)
				checktest.Equal(t, rec.Version, f.Record.Version, "side %d, record %d: %s: version", side, i, rec.ID)
				checktest.True(t, rec.Since.Equal(f.Record.Since), "side %d, record %d: %s: since is %v, want %v", side, i, rec.ID,
					rec.Since, f.Record.Since)
				if t.Failed() {
					return
				}
			}
		})
	}
	sides.Wait()
	all, err := seek(0, false)
	if err != nil {
		t.Fatal(err)
	}
	other := storetest.SQL(t, path)
	if _, err := other.Exec("UPDATE block SET body = randomblob(length(body)) WHERE number = (SELECT version / 64 FROM held WHERE number / "+
		"64 = ?)", all[len(all)/2].Record.Number); err != nil {
		t.Fatal(err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{0, 1, 60} {
		found, err := seek(want, false)
		checktest.MustTrue(t, err != nil, "wanted %d, with a damaged block: err is nil", want)
		checktest.Contains(t, err.Error(), "block", "wanted %d, with a damaged block: err.Error()", want)
		checktest.True(t, len(found) <= len(all)/2, "wanted %d, with a damaged block: len(found) is %v; %v", want,
			len(found), err)
		for i, f := range found {
			if !bytes.Equal(f.Record.Body, all[i].Record.Body) {
				t.Errorf("wanted %d: %s has changed", want, f.Record.ID)
			}
		}
	}
}

// TestABodyThatStandsOften: a record that stands in a page again and again is
// looked up once a body.
func TestABodyThatStandsOften(t *testing.T) {
	db := storetest.OpenItems(t, store.Options{})
	p := storetest.ItemsPage("often", 6000, 0)
	for i := range p.Rows {
		p.Rows[i].ID = "often_0"
	}
	saved, err := db.Save(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(saved.Changes); n != 1 {
		t.Errorf("%d changes, want one", n)
	}
}
