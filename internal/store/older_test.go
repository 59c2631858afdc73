// A file of a former schema is brought up to date with all it holds.

package store_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
)

// older is a store as the program before migration 3 wrote it: 60 calls seen
// in three pages at 0, 1 and 2 s; then call 3 changed at 100 s, call 4 at 110 s
// and back at 120 s, call 5 went at 130 s, call 6 at 140 s and came again at
// 150 s, call 25 was forgotten, call 7 was seen in another shape at 160 s, and
// call 8 changed at 170 s.
func older(t *testing.T) string {
	t.Helper()
	f, err := os.Open("testdata/schema2.db.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "understudy.db")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestOlderFile(t *testing.T) {
	path := older(t)
	w := storetest.NewWorld(11, 60)
	at := func(s int) time.Time { return storetest.Epoch.Add(time.Duration(s) * time.Second) }
	was := func(i, steps int) []byte {
		w.Changed[i] = steps
		defer delete(w.Changed, i)
		return w.AppendCall(nil, i)
	}
	for range 2 {
		db := openDB(t, path)
		if r, err := db.Verify(t.Context()); err != nil || len(r.Problems) > 0 {
			t.Fatalf("verify: %q, %v", r.Problems, err)
		}
		for _, c := range []struct {
			call, at, steps int // steps -1: it was not there
		}{
			{0, 0, 0}, {0, -1, -1}, {21, 1, 0}, {21, 0, -1}, {3, 99, 0}, {3, 100, 1}, {4, 115, 1}, {4, 119, 1}, {4, 120, 0}, {5, 129, 0}, {5, 130, -1},
			{6, 150, 0}, {25, 50, -1}, {8, 169, 0}, {8, 170, 2},
		} {
			rec, err := db.RecordAt(t.Context(), storetest.Source, "calls", "calls", w.ID(c.call), at(c.at))
			switch {
			case c.steps < 0 && !errors.Is(err, understudy.ErrNotFound):
				t.Errorf("call %d at %d s: %v, want it not to be there", c.call, c.at, err)
			case c.steps >= 0 && (err != nil || !bytes.Equal(rec.Body, was(c.call, c.steps))):
				t.Errorf("call %d at %d s: %v, %+v", c.call, c.at, err, rec)
			}
		}
		for call, want := range map[int]string{0: "000", 3: "100 000", 4: "120 110 000", 5: "130- 000", 7: "160 000", 8: "170 000"} {
			all, err := db.History(t.Context(), storetest.Source, "calls", w.ID(call), 0)
			if err != nil {
				t.Fatal(err)
			}
			if got := told(all); got != want {
				t.Errorf("history of call %d: %s, want %s", call, got, want)
			}
		}
		rows, err := db.Rows(t.Context(), understudy.Window{Source: storetest.Source, Kind: "calls", Shape: "calls"})
		if err != nil || len(rows) != 58 {
			t.Fatalf("%d rows, %v, want all but one that went and one that was forgotten", len(rows), err)
		}
		for i, r := range rows {
			if i > 0 && r.Clock >= rows[i-1].Clock {
				t.Fatalf("row %d comes after %+v: %+v", i, rows[i-1], r)
			}
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestOlderFileIsFound opens files of before there were places and terms, and
// of before there were words: what the indexes do not have yet is found once
// they are filled, also when that was broken off.
func TestOlderFileIsFound(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*testing.T) (path string, records int){
		"of before places": func(t *testing.T) (string, int) { return older(t), 58 },
		"of before words": func(t *testing.T) (string, int) {
			path, _ := filled(t)
			former := raw(t, path)
			for _, s := range []string{
				"DROP TABLE word", "DROP TABLE words", "DROP TABLE built", "ALTER TABLE kind DROP COLUMN words",
				"DELETE FROM goose_db_version WHERE version_id > 6",
			} {
				if _, err := former.Exec(s); err != nil {
					t.Fatalf("%s: %v", s, err)
				}
			}
			if err := former.Close(); err != nil {
				t.Fatal(err)
			}
			return path, 600
		},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			path, records := open(t)
			db := openDB(t, path)
			ask := understudy.Seek{Source: storetest.Source, Kinds: []string{"calls"}}
			found := func(db *store.DB, q understudy.Seek) (n int, err error) {
				err = db.Seek(t.Context(), q, func(understudy.Found) bool { n++; return true })
				return n, err
			}
			byTerm, byWord := ask, ask
			byTerm.Terms = []understudy.Term{{Field: "status", Any: []string{"busy"}}}
			byWord.Text = &understudy.Text{Words: []string{"busy"}}
			for _, q := range []understudy.Seek{ask, byTerm} {
				if _, err := found(db, q); (err == nil) == (records == 58) || err != nil && !errors.Is(err, understudy.ErrIndexing) {
					t.Errorf("before it is filled: %v", err)
				}
			}
			if _, err := found(db, byWord); !errors.Is(err, understudy.ErrIndexing) || !strings.Contains(err.Error(), "the index is being built: 0 of ") {
				t.Errorf("by the word, at once: %v", err)
			}
			ctx, stop := context.WithCancel(t.Context())
			err := db.Index(ctx, func(int64, int64) { stop() })
			if stop(); err != nil && !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			if _, serr := found(db, byWord); (err == nil) != (serr == nil) {
				t.Errorf("filled: %v, found: %v", err, serr)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			db = openDB(t, path)
			if err := db.Index(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			busy, last, all := 0, understudy.Place(0), 0
			err = db.Seek(t.Context(), ask, func(f understudy.Found) bool {
				if all++; all > 1 && f.Place >= last {
					t.Errorf("%s stands at %d after %d", f.Record.ID, f.Place, last)
				}
				last = f.Place
				if bytes.Contains(f.Record.Body, []byte(`"status":"busy"`)) {
					busy++
				}
				return true
			})
			if err != nil || all != records || busy == 0 {
				t.Fatalf("%d of %d records, %d busy, %v", all, records, busy, err)
			}
			for range 2 {
				if done, total, err := db.Indexed(t.Context()); err != nil || done != total {
					t.Errorf("%d of %d, %v", done, total, err)
				}
				for _, q := range []understudy.Seek{byTerm, byWord} {
					if n, err := found(db, q); err != nil || n != busy {
						t.Errorf("%d, %v, want %d", n, err, busy)
					}
				}
				if r, err := db.Verify(t.Context()); err != nil || len(r.Problems) > 0 {
					t.Errorf("verify: %q, %v", r.Problems, err)
				}
				if err := db.Close(); err != nil {
					t.Fatal(err)
				}
				db = openDB(t, path)
			}
		})
	}
}

// What of an older file cannot be read has no place until a page shows it; from
// then on it has one.
func TestOlderFileWithDamage(t *testing.T) {
	t.Parallel()
	path := older(t)
	former := raw(t, path)
	if _, err := former.Exec("UPDATE block SET body = x'00' WHERE number = 2"); err != nil {
		t.Fatal(err)
	}
	if err := former.Close(); err != nil {
		t.Fatal(err)
	}
	db := openDB(t, path)
	if err := db.Index(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	w := storetest.NewWorld(11, 60)
	listed := func() map[string]int {
		ids := map[string]int{}
		ask := understudy.Seek{Source: storetest.Source, Kinds: []string{"calls"}}
		if err := db.Seek(t.Context(), ask, func(f understudy.Found) bool { ids[f.Record.ID]++; return true }); err != nil {
			t.Fatal(err)
		}
		return ids
	}
	if n := len(listed()); n == 0 || n > 50 {
		t.Fatalf("%d records are found, want those in the other blocks", n)
	}
	for step := range 2 {
		for i := range w.N {
			w.Changed[i] = 3 + step
		}
		p, _ := w.List(60, 0, 0, storetest.Epoch.Add(time.Duration(step+1)*time.Hour))
		if _, err := db.Save(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		ids := listed()
		for i := range w.N {
			if n := ids[w.ID(i)]; n != 1 {
				t.Errorf("save %d: call %d is told %d times", step, i, n)
			}
		}
	}
}

// told is a history as the seconds its stretches began at, the newest first; a
// going has a "-".
func told(all []understudy.Version) string {
	var b []byte
	for i, v := range all {
		if i > 0 {
			b = append(b, ' ')
		}
		s := int(v.From.Sub(storetest.Epoch) / time.Second)
		b = append(b, byte('0'+s/100), byte('0'+s/10%10), byte('0'+s%10))
		if v.Gone {
			b = append(b, '-')
		}
	}
	return string(b)
}

// An index that was not filled to the end is filled anew: nothing is answered
// from a half of it.
func TestIndexIsFilledAgain(t *testing.T) {
	path, pages := filled(t)
	db := raw(t, path)
	for _, s := range []string{"UPDATE kind SET parent = NULL", "DELETE FROM clock WHERE record % 3 = 0"} {
		if _, err := db.Exec(s); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	again := openDB(t, path)
	rows, err := again.Rows(t.Context(), understudy.Window{Source: storetest.Source, Kind: "calls", Shape: "calls", Limit: 10_000})
	if err != nil || len(rows) != 600 || rows[0].ID != pages[0].Rows[0].ID {
		t.Errorf("%d rows, %v", len(rows), err)
	}
	if r, err := again.Verify(t.Context()); err != nil || len(r.Problems) > 0 {
		t.Errorf("verify: %q, %v", r.Problems, err)
	}
}

// A save of former times may have filled many blocks with one run of changes:
// each of them was made then, not when its records were seen last.
func TestOlderRunOfBlocks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "understudy.db")
	db := openDB(t, path)
	w := storetest.NewWorld(5, 200)
	for _, at := range []time.Time{storetest.Epoch, storetest.Epoch.Add(time.Hour)} {
		p, _ := w.List(200, 0, 0, at)
		if _, err := db.Save(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	older := raw(t, path)
	for _, s := range []string{
		"UPDATE held SET seen = (SELECT max(seen) FROM held)", // of a final one it lags
		"CREATE TABLE version (held INTEGER NOT NULL, hash INTEGER NOT NULL, version INTEGER NOT NULL, PRIMARY KEY (held, hash, version)) STRICT, WITHOUT ROWID",
		"DROP TABLE past", "DROP TABLE made", "DROP TABLE fields", "DROP TABLE parent", "DROP TABLE clock",
		"ALTER TABLE held DROP COLUMN stretch", "ALTER TABLE held DROP COLUMN since", "ALTER TABLE change DROP COLUMN fields", "ALTER TABLE kind DROP COLUMN parent",
		"DROP TABLE job", "DROP TABLE job_plan", "DROP TABLE note", "DROP TABLE erasure", "DROP TABLE erasing", "DROP TABLE retired",
		"ALTER TABLE name DROP COLUMN erased", "ALTER TABLE counter DROP COLUMN erased", "ALTER TABLE counter DROP COLUMN seal",
		"DROP TABLE terms", "DROP TABLE place", "DROP TABLE span", "ALTER TABLE held DROP COLUMN place", "ALTER TABLE kind DROP COLUMN terms",
		"DROP TABLE word", "DROP TABLE words", "DROP TABLE built", "ALTER TABLE kind DROP COLUMN words",
		"DELETE FROM goose_db_version WHERE version_id > 2",
	} {
		if _, err := older.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	if err := older.Close(); err != nil {
		t.Fatal(err)
	}
	db = openDB(t, path)
	for i := range w.N {
		rec, err := db.RecordAt(t.Context(), storetest.Source, "calls", "calls", w.ID(i), storetest.Epoch.Add(time.Minute))
		if err != nil || !rec.Since.Equal(storetest.Epoch) {
			t.Fatalf("call %d a minute after it came: %v, %+v", i, err, rec)
		}
	}
	if r, err := db.Verify(t.Context()); err != nil || len(r.Problems) > 0 {
		t.Errorf("verify: %q, %v", r.Problems, err)
	}
}
