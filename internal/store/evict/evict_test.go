// Making room in a file: in time, behind the saves, and counted.

package evict_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
)

// clock is set by hand and read by many.
type clock struct{ n atomic.Int64 }

func (c *clock) Now() time.Time { return storetest.Epoch.Add(time.Duration(c.n.Load())) }

func limited(t *testing.T, path string, limit int64, now func() time.Time) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), store.Options{Path: path, Limit: limit, Now: now, Specs: storetest.Specs(t),
		SaveTime: storetest.Patience})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// fill saves pages of a walk until something is evicted, and gives those that
// were stored.
func fill(t *testing.T, db *store.DB, w *storetest.World, when time.Time) (pages []*understudy.Page) {
	t.Helper()
	for _, p := range storetest.Pages(w, 50, when) {
		switch _, err := db.Save(t.Context(), p); {
		case err == nil:
			pages = append(pages, p)
		case !errors.Is(err, understudy.ErrNotStored):
			t.Fatal(err)
		}
		if s, err := db.MeasureSpace(t.Context()); err != nil || s.EvictedPages > 0 {
			return pages
		}
	}
	t.Fatal("nothing was evicted")
	return nil
}

// The store makes room by itself, behind its saves, and remembers how much.
func TestRoomIsMadeBehindSaves(t *testing.T) {
	path := filepath.Join(storetest.MemoryDir(t), "understudy.db")
	var c clock
	db := limited(t, path, 1<<20, c.Now)
	w := storetest.NewWorld(1, 10_000)
	pages := fill(t, db, w, storetest.Epoch)
	db.Evictor.Wait()
	held := 0
	for _, p := range pages {
		got, err := db.ReadPage(t.Context(), p.Key)
		switch {
		case err == nil && bytes.Equal(got.Body, p.Body):
			held++
		case !errors.Is(err, understudy.ErrNotFound):
			t.Fatalf("page %s: %v", p.Key, err)
		}
	}
	before, err := db.MeasureSpace(t.Context())
	checktest.MustNoError(t, err, "%d of %d pages are held", held, len(pages))
	checktest.True(t, before.File <= 1<<20, "%d of %d pages are held: before.File is %v", held, len(pages),
		before.File)
	checktest.True(t, int(before.EvictedPages) >= len(pages)-held,
		"%d of %d pages are held: int(before.EvictedPages) is %v", held, len(pages), int(before.EvictedPages))
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = limited(t, path, 0, c.Now)
	after, err := db.MeasureSpace(t.Context())
	checktest.MustNoError(t, err, "opened again")
	checktest.Equal(t, after.EvictedPages, before.EvictedPages, "opened again: after.EvictedPages")
	checktest.True(t, after.EvictedAt.Equal(before.EvictedAt),
		"opened again: after.EvictedAt.Equal(before.EvictedAt) is false")
	checktest.True(t, !after.EvictedAt.IsZero(), "opened again: after.EvictedAt.IsZero() is true")
	if r, err := db.Verifier.Verify(t.Context()); err != nil || len(r.Problems) > 0 {
		t.Errorf("verify: %v, %v", r.Problems, err)
	}
}

// A limit that was lowered makes room at the next start.
func TestALoweredLimitMakesRoom(t *testing.T) {
	t.Parallel()
	path := filepath.Join(storetest.MemoryDir(t), "understudy.db")
	var c clock
	db := limited(t, path, 0, c.Now)
	w := storetest.NewWorld(1, 2000)
	for i, pageSize := range []int{50, 10, 7} {
		for _, p := range storetest.Pages(w, pageSize, storetest.Epoch.Add(time.Duration(i)*time.Hour)) {
			if _, err := db.Save(t.Context(), p); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	db = limited(t, path, info.Size(), c.Now)
	db.Evictor.Wait()
	s, err := db.MeasureSpace(t.Context())
	checktest.MustNoError(t, err, "")
	checktest.True(t, s.EvictedPages != 0, "s.EvictedPages is 0")
	checktest.True(t, s.File <= info.Size(), "s.File is %v", s.File)
	checktest.True(t, s.Free != 0, "s.Free is 0")
	{
		r, err := db.Verifier.Verify(t.Context())
		checktest.MustNoError(t, err, "verify")
		checktest.MustTrue(t, len(r.Problems) <= 0, "verify: len(r.Problems) is %v, want <= 0", len(r.Problems))
		checktest.Equal(t, r.Records, 2000, "verify: r.Records")
	}
}

// What was replaced stays, however much it is, where there is no limit.
func TestVersionsStay(t *testing.T) {
	var c clock
	db := limited(t, filepath.Join(storetest.MemoryDir(t), "understudy.db"), 0, c.Now)
	w := storetest.NewWorld(1, 100)
	save := func(n int) *understudy.Page {
		c.n.Store(int64(n) * int64(time.Minute))
		p, _ := w.List(50, 0, 0, c.Now())
		if _, err := db.Save(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		return p
	}
	versions := func() int64 {
		db.Evictor.Wait()
		r, err := db.Verifier.Verify(t.Context())
		if err != nil || len(r.Problems) > 0 {
			t.Fatalf("verify: %v, %v", r.Problems, err)
		}
		s, err := db.ReadStats(t.Context())
		if err != nil || s.Space.EvictedVersions != 0 {
			t.Fatalf("%+v, %v: nothing is evicted without a limit", s, err)
		}
		return s.Versions
	}
	for n := range 20 {
		for i := range 50 {
			w.Changed[i] = n
		}
		save(n)
	}
	kept, _ := w.List(40, 0, 0, c.Now())
	if _, err := db.Save(t.Context(), kept); err != nil {
		t.Fatal(err)
	}
	w.Changed[0] = 100
	save(21)
	last := save(2 * 24 * 60)
	if n := versions(); n != 20*50+1 {
		t.Fatalf("%d versions after two days, want all 1001", n)
	}
	for i := range 50 {
		all, err := db.ReadHistory(t.Context(), storetest.Source, "calls", w.ID(i), 0)
		checktest.MustNoError(t, err, "call %d", i)
		checktest.MustTrue(t, len(all) >= 20, "call %d: len(all) is %v, want >= 20", i, len(all))
		checktest.MustTrue(t, len(all[19].Body) != 0, "call %d: len(all[19].Body) is 0", i)
	}
	for _, p := range []*understudy.Page{last, kept} {
		if got, err := db.ReadPage(t.Context(), p.Key); err != nil || !bytes.Equal(got.Body, p.Body) {
			t.Errorf("page %s: %v", p.Key, err)
		}
	}
	changes, err := db.ReadChanges(t.Context(), storetest.Source, 0, store.MaxChanges)
	if err != nil || len(changes) != 1001 {
		t.Fatalf("%d changes, %v", len(changes), err)
	}
	for i, ch := range changes[:1000] {
		if ch.ID != w.ID(i%50) {
			t.Fatalf("change %d is of %s, want %s", ch.N, ch.ID, w.ID(i%50))
		}
	}
}

// Closing does not wait for the end of it.
func TestCloseEndsMakingRoom(t *testing.T) {
	var c clock
	path := filepath.Join(storetest.MemoryDir(t), "understudy.db")
	db := limited(t, path, 1<<20, c.Now)
	for i, p := range storetest.Pages(storetest.NewWorld(1, 10_000), 50, storetest.Epoch) {
		if _, err := db.Save(t.Context(), p); err != nil || i == 150 {
			break
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := db.Evictor.Evict(t.Context()); !errors.Is(err, understudy.ErrClosed) {
		t.Errorf("evict: %v", err)
	}
	db = limited(t, path, 0, c.Now)
	if r, err := db.Verifier.Verify(t.Context()); err != nil || len(r.Problems) > 0 {
		t.Errorf("verify: %v, %v", r.Problems, err)
	}
}

// Times of reads outlive a restart, and cost no write of their own.
func TestReadsAreKept(t *testing.T) {
	path := storetest.File(t)
	var c clock
	db := limited(t, path, 0, c.Now)
	pages := storetest.Pages(storetest.NewWorld(1, 300), 50, storetest.Epoch)
	for _, p := range pages {
		if _, err := db.Save(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	reads := func() (n int) {
		if err := storetest.SQL(t, path).QueryRow("SELECT count(*) FROM page WHERE read = ?",
			storetest.Epoch.Add(2*time.Hour).Unix()).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	c.n.Store(int64(2 * time.Hour))
	for _, p := range pages[:3] {
		if _, err := db.ReadPage(t.Context(), p.Key); err != nil {
			t.Fatal(err)
		}
	}
	if n := reads(); n != 0 {
		t.Errorf("%d reads were written at once", n)
	}
	if _, err := db.Save(t.Context(), pages[5]); err != nil {
		t.Fatal(err)
	}
	if n := reads(); n != 3 {
		t.Errorf("%d reads were written with the next save, want 3", n)
	}
	if _, err := db.ReadPage(t.Context(), pages[4].Key); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if n := reads(); n != 4 {
		t.Errorf("%d reads are known after the end, want 4", n)
	}
}
