// Disks that fill up, files that are locked or damaged.

package store_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/query"
	"understudy/internal/sample"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
)

// short is what an error gives as its reason.
func short(err error) string {
	var s interface{ Short() string }
	if errors.As(err, &s) {
		return s.Short()
	}
	return ""
}

func TestDiskFull(t *testing.T) {
	path := filepath.Join(t.TempDir(), "understudy.db")
	db := openDB(t, path)
	pages := pagesOf(storetest.NewWorld(1, 2000), 50, storetest.Epoch)
	if _, err := db.Save(t.Context(), pages[0]); err != nil {
		t.Fatal(err)
	}
	if err := store.LimitPages(db, 80); err != nil {
		t.Fatal(err)
	}
	full := -1
	for i, p := range pages {
		if _, err := db.Save(t.Context(), p); err != nil {
			if !errors.Is(err, understudy.ErrNotStored) || short(err) != "disk full" ||
				!strings.Contains(err.Error(), "store: save page "+p.Key.String()) {
				t.Fatalf("page %d: %v", i, err)
			}
			full = i
			break
		}
	}
	if full < 1 {
		t.Fatalf("the disk was never full")
	}
	changes, err := db.Changes(t.Context(), storetest.Source, 0, 10_000)
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
		if got, err := db.Page(t.Context(), p.Key); err != nil || !bytes.Equal(got.Body, p.Body) {
			t.Fatalf("page %s: %v", p.Key, err)
		}
	}
	if r, err := db.Verifier.Verify(t.Context()); err != nil || len(r.Problems) > 0 {
		t.Errorf("verify: %v, %v", r.Problems, err)
	}
}

func TestLockedByAnother(t *testing.T) {
	path := filepath.Join(t.TempDir(), "understudy.db")
	db := openDB(t, path)
	p, _ := storetest.NewWorld(1, 50).List(50, 0, 0, storetest.Epoch)
	if _, err := db.Save(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	conn, err := raw(t, path).Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	_, err = db.Save(t.Context(), p)
	if took := time.Since(start); !errors.Is(err, understudy.ErrNotStored) || !strings.Contains(short(err), "locked") || took > 4*time.Second {
		t.Errorf("after %v: %v", took, err)
	}
	// Those who come then do not wait for it one after the other.
	start = time.Now()
	for range 5 {
		if _, err := db.Save(t.Context(), p); !strings.Contains(short(err), "locked") {
			t.Errorf("again: %v", err)
		}
	}
	if took := time.Since(start); took > time.Second {
		t.Errorf("five more took %v", took)
	}
	if _, err := db.Page(t.Context(), p.Key); err != nil {
		t.Errorf("a page cannot be read meanwhile: %v", err)
	}
	if _, err := conn.ExecContext(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Save(t.Context(), p); err != nil {
		t.Errorf("after the lock is gone: %v", err)
	}
}

// A waiter for the writing connection leaves at its own deadline.
func TestWaitingToSaveHasADeadline(t *testing.T) {
	db := openDB(t, filepath.Join(t.TempDir(), "understudy.db"))
	release := store.HoldWriter(db)
	defer release()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	p, _ := storetest.NewWorld(1, 50).List(50, 0, 0, storetest.Epoch)
	if _, err := db.Save(ctx, p); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("save: %v", err)
	}
}

// Damage is an error that names the page or the record, never a wrong body,
// and Verify finds it.
func TestDamageIsFound(t *testing.T) {
	t.Parallel()
	run := sample.OneIn(t, 5)
	for _, damage := range []string{
		"UPDATE block SET body = randomblob(length(body)) WHERE number = 3",
		"UPDATE block SET body = substr(body, 1, length(body) - 7) WHERE number = 3",
		"UPDATE block SET size = size + 1 WHERE number = 3",
		"UPDATE block SET count = count - 1 WHERE number = 3",
		"DELETE FROM block WHERE number = 3",
		"UPDATE page SET body = randomblob(length(body)) WHERE number = 3",
		"UPDATE page SET sum = randomblob(16) WHERE number = 3",
		"UPDATE block SET body = (SELECT body FROM block b WHERE b.number = 4), size = (SELECT size FROM block b WHERE b.number = 4) WHERE " +
			"number = 3",
		"UPDATE kind SET records = records + 1",
		"UPDATE held SET hash = hash + 1 WHERE number % 640 = 0",
		"UPDATE held SET version = version + 1 WHERE number = 64",
		"INSERT INTO name SELECT * FROM name_recent WHERE record = 600",
		"UPDATE name_recent SET record = record + 1 WHERE record = 600",
		"UPDATE change SET n = n + 1 WHERE n = (SELECT max(n) FROM change)",
		"DELETE FROM change WHERE n = 51",
		"UPDATE page SET key = key + 1 WHERE number = 5",
	} {
		if !run() {
			continue
		}
		t.Run(damage, func(t *testing.T) {
			path, pages := filled(t)
			sqlite := raw(t, path)
			if res, err := sqlite.Exec(damage); err != nil {
				t.Fatal(err)
			} else if n, _ := res.RowsAffected(); n == 0 {
				t.Fatal("nothing was damaged")
			}
			if err := sqlite.Close(); err != nil {
				t.Fatal(err)
			}
			db := openDB(t, path)
			for _, p := range pages {
				got, err := db.Page(t.Context(), p.Key)
				if err == nil && !bytes.Equal(got.Body, p.Body) {
					t.Fatalf("page %s came back wrong", p.Key)
				}
				if err != nil && !strings.Contains(err.Error(), p.Key.String()) {
					t.Errorf("the error does not name the page: %v", err)
				}
			}
			r, err := db.Verifier.Verify(t.Context())
			if err != nil || len(r.Problems) == 0 {
				t.Errorf("verify: %v, %v", r.Problems, err)
			}
		})
	}
}

// The same, for bytes of the file that were overwritten: in every fifth of the
// database's pages that have bodies.
func TestOverwrittenPages(t *testing.T) {
	path, pages := filled(t)
	sqlite := raw(t, path)
	rows, err := sqlite.Query("SELECT pageno FROM dbstat WHERE name = 'block' AND pagetype = 'leaf' AND pageno % 5 = 0")
	if err != nil {
		t.Fatal(err)
	}
	var numbers []int64
	for rows.Next() {
		var n int64
		if err := rows.Scan(&n); err != nil {
			t.Fatal(err)
		}
		numbers = append(numbers, n)
	}
	if err := errors.Join(rows.Err(), rows.Close(), sqlite.Close()); err != nil || len(numbers) == 0 {
		t.Fatalf("pages %v: %v", numbers, err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range numbers {
		if _, err := f.WriteAt(bytes.Repeat([]byte{0xa5}, 2000), (n-1)*8192+1000); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	db := openDB(t, path)
	failures := 0
	for _, p := range pages {
		got, err := db.Page(t.Context(), p.Key)
		if err == nil && !bytes.Equal(got.Body, p.Body) {
			t.Fatalf("page %s came back wrong", p.Key)
		}
		if err != nil {
			failures++
		}
	}
	r, err := db.Verifier.Verify(t.Context())
	if failures == 0 || err != nil || len(r.Problems) == 0 {
		t.Errorf("%d pages fail, verify: %d problems, %v", failures, len(r.Problems), err)
	}
}

// What verifying finds never advises to verify, and of pending rows says that a rebuild helps.
func TestVerifyNeverAdvisesItself(t *testing.T) {
	for damage, want := range map[string]string{
		"INSERT INTO pending (body) VALUES (randomblob(20))":                "run understudy store rebuild",
		"DELETE FROM block WHERE number = 3":                                "block 3 is missing",
		"UPDATE block SET body = randomblob(length(body)) WHERE number = 3": "block 3",
	} {
		path, _ := filled(t)
		sqlite := raw(t, path)
		if _, err := sqlite.Exec(damage); err != nil {
			t.Fatal(err)
		}
		if err := sqlite.Close(); err != nil {
			t.Fatal(err)
		}
		r, err := openDB(t, path).Verifier.Verify(t.Context())
		if err != nil {
			t.Errorf("%s: %v", damage, err)
		}
		said := strings.Join(r.Problems, "\n")
		if strings.Contains(said, "store verify") {
			t.Errorf("%s: %s", damage, said)
		}
		if !strings.Contains(said, want) {
			t.Errorf("%s: %s, want %q", damage, said, want)
		}
	}
}

// Records that cannot be read end the filling of the indexes: a search says that, and no
// longer that the index is being built.
func TestIndexThatMeetsDamageIsNotBeingBuilt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "understudy.db")
	db := openDB(t, path)
	page, _ := storetest.NewWorld(1, 50).List(50, 0, 0, storetest.Epoch)
	if _, err := db.Save(t.Context(), page); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := storetest.Damage(path, "held"); err != nil {
		t.Fatal(err)
	}
	db = openDB(t, path)
	if err := db.Index.Empty(t.Context()); err != nil {
		t.Fatal(err)
	}
	search := func() error {
		q := query.RecordQuery{Text: &query.Text{Op: query.TextPrefix, Words: []string{"a"}}}
		return db.Seek(t.Context(), q, func(query.Hit) bool { return true })
	}
	if err := search(); !errors.Is(err, understudy.ErrIndexing) {
		t.Errorf("before it is filled: %v", err)
	}
	if err := db.Index.Build(t.Context(), nil); !errors.Is(err, understudy.ErrDamaged) {
		t.Errorf("filling it: %v", err)
	}
	if err := search(); !errors.Is(err, understudy.ErrDamaged) {
		t.Errorf("a search: %v", err)
	}
	if _, _, err := db.Index.Indexed(t.Context()); !errors.Is(err, understudy.ErrDamaged) {
		t.Errorf("its progress: %v", err)
	}
	space, err := db.Space(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !space.Damaged {
		t.Error("the file does not count as damaged")
	}
}
