// What is damaged is found, and what is sound is not called damaged.

package verify_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/query"
	"understudy/internal/sample"
	"understudy/internal/store"
	"understudy/internal/store/erase"
	"understudy/internal/store/storetest"
)

// TestVerifySeesPlaces spoils places and terms.
func TestVerifySeesPlaces(t *testing.T) {
	for _, spoil := range []struct{ name, text, want string }{
		{"a place is missing", "DELETE FROM place WHERE record = 3", "is missing at its position"},
		{"a place is another's", "UPDATE place SET record = 99 WHERE record = 3", "is missing at its position"},
		{"a place too many", "INSERT INTO place VALUES (1, 17, 4)", "positions are in use"},
		{"a row without a place", "UPDATE held SET place = NULL WHERE number = 3 * 64", "has no position"},
		{"one that is there counts as gone", "UPDATE place SET kind = -kind WHERE record = 3", "is among the deleted records"},
		{"terms too many", "INSERT INTO term_chunk VALUES (1, 5, 7, x'000100')", "where no record is"},
		{"another term", "INSERT INTO term_chunk SELECT 1, 5, (place >> 1 << 10) + 1, x'000100' FROM held WHERE number = 3 * 64",
			"which are not"},
		{"times too few", "DELETE FROM span WHERE field = '~end_time'", "its time in end_time is outside"},
		{"no terms", "DELETE FROM term_chunk", "the index has 0 terms for it"},
	} {
		t.Run(strings.ReplaceAll(spoil.name, " ", "-"), func(t *testing.T) {
			path := storetest.File(t)
			db := storetest.OpenAt(t, path)
			p, _ := storetest.NewWorld(5, 10).List(10, 0, 0, storetest.Epoch)
			if _, err := db.Save(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			if err := db.Index.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			if r, err := db.Verifier.Verify(t.Context()); err != nil || len(r.Problems) > 0 {
				t.Fatalf("verify: %q, %v", r.Problems, err)
			}
			other := storetest.SQL(t, path)
			if _, err := other.Exec(spoil.text); err != nil {
				t.Fatal(err)
			}
			if err := other.Close(); err != nil {
				t.Fatal(err)
			}
			r, err := db.Verifier.Verify(t.Context())
			if err != nil || !strings.Contains(strings.Join(r.Problems, "\n"), spoil.want) {
				t.Errorf("verify: %q, %v, want %q", r.Problems, err, spoil.want)
			}
			if !strings.Contains(spoil.text, "term_chunk") {
				return
			}
			if err := errors.Join(db.Index.Clear(t.Context()), db.Index.Build(t.Context(), nil)); err != nil {
				t.Error(err)
			}
			if r, err := db.Verifier.Verify(t.Context()); err != nil || len(r.Problems) > 0 {
				t.Errorf("verify, made anew: %q, %v", r.Problems, err)
			}
		})
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
			path, pages := storetest.Filled(t)
			sqlite := storetest.SQL(t, path)
			if res, err := sqlite.Exec(damage); err != nil {
				t.Fatal(err)
			} else if n, _ := res.RowsAffected(); n == 0 {
				t.Fatal("nothing was damaged")
			}
			if err := sqlite.Close(); err != nil {
				t.Fatal(err)
			}
			db := storetest.OpenAt(t, path)
			for _, p := range pages {
				got, err := db.ReadPage(t.Context(), p.Key)
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
	path, pages := storetest.Filled(t)
	sqlite := storetest.SQL(t, path)
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
	db := storetest.OpenAt(t, path)
	failures := 0
	for _, p := range pages {
		got, err := db.ReadPage(t.Context(), p.Key)
		if err == nil && !bytes.Equal(got.Body, p.Body) {
			t.Fatalf("page %s came back wrong", p.Key)
		}
		if err != nil {
			failures++
		}
	}
	r, err := db.Verifier.Verify(t.Context())
	checktest.True(t, failures != 0, "%d pages fail, verify: failures is 0; %v", failures, err)
	checktest.MustNoError(t, err, "%d pages fail, verify", failures)
	checktest.True(t, len(r.Problems) != 0, "%d pages fail, verify: len(r.Problems) is 0", failures)
}

// What verifying finds never advises to verify, and of pending rows says that a rebuild helps.
func TestVerifyNeverAdvisesItself(t *testing.T) {
	for damage, want := range map[string]string{
		"INSERT INTO pending (body) VALUES (randomblob(20))":                "run understudy store rebuild",
		"DELETE FROM block WHERE number = 3":                                "block 3 is missing",
		"UPDATE block SET body = randomblob(length(body)) WHERE number = 3": "block 3",
	} {
		path, _ := storetest.Filled(t)
		sqlite := storetest.SQL(t, path)
		if _, err := sqlite.Exec(damage); err != nil {
			t.Fatal(err)
		}
		if err := sqlite.Close(); err != nil {
			t.Fatal(err)
		}
		r, err := storetest.OpenAt(t, path).Verifier.Verify(t.Context())
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

// Both commands count the records that are there; verify tells how many more went.
func TestStatsAndVerifyCountTheSame(t *testing.T) {
	db := storetest.OpenItems(t, store.Options{})
	if _, err := db.Save(t.Context(), storetest.ItemsPage("p", 3, 1)); err != nil {
		t.Fatal(err)
	}
	gone := &understudy.Page{Key: understudy.Key{Source: "items", URI: "/v1/items/p_1"}, Kind: "items", Shape: "items", ID: "p_1", Status: 404,
		At: time.Unix(1780000100, 0)}
	if _, err := db.Save(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	s, err := db.ReadStats(t.Context())
	r, verr := db.Verifier.Verify(t.Context())
	checktest.MustNoError(t, err, "stats")
	checktest.MustNoError(t, verr, "stats")
	checktest.Equal(t, s.Records, 2, "stats: s.Records")
	checktest.Equal(t, r.Records, 2, "stats: r.Records")
	checktest.Equal(t, r.Gone, 1, "stats: r.Gone")
	checktest.True(t, len(r.Problems) <= 0, "stats: len(r.Problems) is %v, want <= 0", len(r.Problems))
}

// Verify announces as many rows as it then checks, on a store with versions, lists and single records, records below
// others, deleted, erased and purged records, and words that are in the index or still wait for it.
func TestVerifyAnnouncesTheRowsThatItChecks(t *testing.T) {
	db := storetest.OpenWords(t, storetest.File(t))
	empty := storetest.VerifyDB(t, db)
	checktest.Equal(t, empty.Blocks, 0, "blocks of an empty store")
	w := storetest.NewWorld(3, 300)
	for i, size := range []int{50, 7} {
		for _, p := range storetest.Pages(w, size, storetest.Epoch.Add(time.Duration(i)*time.Hour)) {
			if _, err := db.Save(t.Context(), p); err != nil {
				t.Fatal(err)
			}
		}
	}
	storetest.SaveMessages(t, db, 0, 200)
	if err := db.Index.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	storetest.SaveMessages(t, db, 2000, 5)
	for i, saved := range []struct{ call, status int }{{7, 200}, {7, 200}, {8, 200}, {8, 200}, {8, 404}} {
		id := w.ID(saved.call)
		body := fmt.Appendf(nil, `{"sid": %q, "status": "version %d"}`, id, i)
		p := &understudy.Page{Key: understudy.Key{Source: storetest.Source, URI: "/calls/" + id}, Kind: "calls", Shape: "calls", ID: id,
			Status: saved.status, Body: body, At: storetest.Epoch.Add(time.Duration(i+2) * time.Hour)}
		if saved.status == 200 {
			p.Rows = []understudy.Row{{ID: id, Clock: 1_770_000_000 + int64(i), Parent: w.ID(1), End: len(body)}}
		}
		if _, err := db.Save(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		storetest.VerifyDB(t, db)
	}
	if _, _, err := db.ForgetRecord(t.Context(), storetest.Source, "calls", w.ID(9)); err != nil {
		t.Fatal(err)
	}
	storetest.VerifyDB(t, db)
	if _, _, err := db.Eraser.EraseNumber(t.Context(), storetest.Source, "+14155550003"); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Eraser.EraseListed(t.Context(), erase.Job{}); err != nil {
		t.Fatal(err)
	}
	r := storetest.VerifyDB(t, db)
	checktest.True(t, r.Pages > 0, "no page is left")
	checktest.True(t, r.Versions > r.Records, "%d versions of %d records: want earlier versions", r.Versions, r.Records)
	checktest.Equal(t, r.Gone, 2, "deleted and erased records")
}

// A merge that another connection made is no damage: verify looks at what is
// there, and not at what its connection remembers.
func TestVerifyAfterMerges(t *testing.T) {
	t.Parallel()
	db := storetest.OpenWords(t, filepath.Join(t.TempDir(), "understudy.db"))
	for i := range 40 {
		storetest.SaveMessages(t, db, i*5, 5)
		storetest.CountText(t, db, &query.Text{Words: []string{"everything"}})
		storetest.VerifyDB(t, db)
	}
}
