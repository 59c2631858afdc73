// The walk of the design: 10,000 records at three page sizes.

package pages_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/sample"
	"understudy/internal/store/storetest"
)

// Pages refer to records, so a walk at another page size adds little: < 5 % of
// the file each. Between the walks calls change, and some go.
func TestWalkAtThreePageSizes(t *testing.T) {
	t.Parallel()
	path := storetest.File(t)
	walked := sample.Count(400, 10_000)
	w := storetest.NewWorld(1, walked)
	rng := rand.New(rand.NewPCG(1, 2))
	pages := map[understudy.Key]*understudy.Page{}
	walk := func(pageSize int, when time.Time, changes int) {
		db := storetest.OpenAt(t, path)
		made := 0
		for _, p := range storetest.Pages(w, pageSize, when) {
			saved, err := db.Save(t.Context(), p)
			if err != nil {
				t.Fatal(err)
			}
			made += len(saved.Changes)
			pages[p.Key] = p
			got, err := db.ReadPage(t.Context(), p.Key)
			checktest.MustNoError(t, err, "page %s does not come back", p.Key)
			checktest.MustTrue(t, bytes.Equal(got.Body, p.Body),
				"page %s does not come back: got.Body is %q, want %q", p.Key, got.Body, p.Body)
			checktest.MustTrue(t, !got.Superseded, "page %s does not come back: got.Superseded is true", p.Key)
		}
		if made != changes {
			t.Fatalf("page size %d: %d changes, want %d", pageSize, made, changes)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	walk(50, storetest.Epoch, walked)
	last := storetest.FileSize(t, path)
	for i, pageSize := range []int{41, 200} {
		walk(pageSize, storetest.Epoch.Add(time.Duration(i+1)*time.Hour), 0)
		now := storetest.FileSize(t, path)
		added := 100 * float64(now-last) / float64(last)
		t.Logf("page size %d: %d bytes, %.1f %% more", pageSize, now, added)
		if added >= 5 {
			t.Errorf("page size %d added %.1f %% to %d bytes", pageSize, added, last)
		}
		last = now
	}
	// Changes between further walks: every page still comes back as it was.
	for i, pageSize := range []int{50, 41} {
		changed := map[int]bool{}
		for range 30 {
			n := rng.IntN(w.N)
			w.Changed[n]++
			changed[n] = true
		}
		walk(pageSize, storetest.Epoch.Add(time.Duration(i+3)*time.Hour), len(changed))
	}
	db := storetest.OpenAt(t, path)
	old := 0
	for _, p := range pages {
		got, err := db.ReadPage(t.Context(), p.Key)
		if err != nil || !bytes.Equal(got.Body, p.Body) {
			t.Fatalf("page %s does not come back: %v", p.Key, err)
		}
		if got.Superseded {
			old++
		}
	}
	if old == 0 || old > 150 {
		t.Errorf("%d pages are superseded by 60 changes", old)
	}
	if r, err := db.Verifier.Verify(t.Context()); err != nil || len(r.Problems) > 0 {
		t.Fatalf("verify: %v %v", r.Problems, err)
	}
}

// The skeletons alone hold no body: no record's own text is in a page's row. The
// size of the file would also tell when the indexes were written, which is by time.
func TestPagesHoldNoBodies(t *testing.T) {
	path := storetest.File(t)
	w := storetest.NewWorld(2, 1000)
	save := func(pageSize int, when time.Time) (bodies, stored int64) {
		db := storetest.OpenAt(t, path)
		for _, p := range storetest.Pages(w, pageSize, when) {
			if _, err := db.Save(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			bodies += int64(len(p.Body))
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		sqlite := storetest.SQL(t, path)
		const query = "SELECT (SELECT sum(length(body)) FROM page) + (SELECT sum(length(body)) FROM block)"
		if err := errors.Join(sqlite.QueryRow(query).Scan(&stored), sqlite.Close()); err != nil {
			t.Fatal(err)
		}
		return bodies, stored
	}
	_, before := save(50, storetest.Epoch)
	bodies, after := save(100, storetest.Epoch.Add(time.Hour))
	if added := after - before; added <= 0 || added > bodies/500 {
		t.Errorf("ten pages of %d bytes in all added %d bytes to %d", bodies, added, before)
	}
}
