// A file of before there were places is filled while everything else goes on.

package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy"
)

// formerly makes a file one of before there were places, terms and words.
func formerly(t *testing.T, db *DB) {
	t.Helper()
	err := db.write(t.Context(), func(c *conn) (bool, error) {
		for _, s := range []string{
			"DROP TABLE terms", "DROP TABLE place", "DROP TABLE span", "ALTER TABLE held DROP COLUMN place", "ALTER TABLE kind DROP COLUMN terms",
			"DROP TABLE word", "DROP TABLE words", "DROP TABLE built", "ALTER TABLE kind DROP COLUMN words", "DELETE FROM goose_db_version WHERE version_id > 5",
		} {
			if err := c.run(s); err != nil {
				return false, fmt.Errorf("%s: %w", s, err)
			}
		}
		return false, nil
	})
	if err = errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}

// crowded is a page of messages, two hundred and twenty a second, each a version.
func crowded(version int, after string, numbers ...int) *understudy.Page {
	uri := "/2010-04-01/Accounts/AC00000000000000000000000000000001/Messages.json?PageSize=50"
	if after != "" {
		uri += "&Page=1&PageToken=PA" + after
	}
	p := &understudy.Page{Key: understudy.Key{Source: "twilio", URI: uri}, Kind: "messages", Shape: "messages", List: true, Status: 200, At: time.Unix(1_780_000_000+int64(version), 0)}
	for _, i := range numbers {
		at := len(p.Body)
		p.Body = fmt.Appendf(p.Body, `{"sid":"SM%032x","body":"version%d of %d","from":"+14155550100","status":"delivered"}`, i, version, i)
		p.Rows = append(p.Rows, understudy.Row{ID: fmt.Sprintf("SM%032x", i), Clock: 1_770_000_000 - int64(i)/220, Start: at, End: len(p.Body)})
	}
	return p
}

// TestAnOlderFileIsFilledBehind opens such a file, fills it a little at a time
// and begins anew in between, while records come, change and go. Nothing is
// answered from a part of it, all of it is right at every moment, and in the end
// everything is found, in order.
func TestAnOlderFileIsFilledBehind(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "understudy.db")
	db := openWords(t, path)
	save := func(p *understudy.Page) {
		t.Helper()
		if _, err := db.Save(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	const n = 1300 // three times what is filled at once
	for from := 0; from < n; from += 50 {
		p := crowded(0, "", numbersFrom(from, 50)...)
		p.Key.URI = fmt.Sprint("/former/", from)
		save(p)
	}
	formerly(t, db)
	db = openWords(t, path)
	any, word := understudy.Seek{Source: "twilio"}, understudy.Seek{Source: "twilio", Text: &understudy.Text{Words: []string{"version0"}}}
	term := understudy.Seek{Source: "twilio", Kinds: []string{"messages"}, Terms: []understudy.Term{{Field: "status", Any: []string{"delivered"}}}}
	steps, changed, widened := 0, 0, int64(0)
	for whole := false; !whole; steps++ {
		if steps > 20 {
			t.Fatal("it is never done")
		}
		for name, q := range map[string]understudy.Seek{"any": any, "word": word, "term": term} {
			if _, err := db.Count(t.Context(), q, 0, time.Time{}); !errors.Is(err, understudy.ErrIndexing) || !strings.Contains(err.Error(), fmt.Sprint(" of ", n)) {
				t.Errorf("step %d: %s: %v, want it to be filled", steps, name, err)
			}
		}
		last := fmt.Sprintf("SM%032x", n-1)
		if _, err := db.PlaceOf(t.Context(), "twilio", "messages", last); !errors.Is(err, understudy.ErrIndexing) && changed == 0 {
			t.Errorf("step %d: the place of the last: %v", steps, err)
		}
		// Some that have places, some that have none, and some of either.
		save(crowded(steps+1, fmt.Sprintf("SM%032x", 300), 301+steps, 302+steps))
		save(crowded(steps+1, "", 1100+steps, 1101+steps, 500+steps))
		changed++
		gone := &understudy.Page{Key: understudy.Key{Source: "twilio", URI: "/gone"}, Kind: "messages", Shape: "messages", ID: fmt.Sprintf("SM%032x", 1290-steps), Status: 404, At: time.Unix(1_780_001_000, 0)}
		save(gone)
		if steps == 1 { // in the middle; it takes long
			wholeWords(t, db)
		}
		if steps%2 == 1 {
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			db = openWords(t, path)
		}
		ctx, stop := context.WithCancel(t.Context())
		err := db.Index(ctx, func(int64, int64) { stop() })
		if stop(); err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		widened += db.widened.Load()
		whole = err == nil
	}
	if steps < 3 || widened == 0 {
		t.Errorf("filled in %d steps, room was made %d times", steps, widened)
	}
	wholeWords(t, db)
	var places []understudy.Place
	old := 0
	err := db.Seek(t.Context(), any, func(f understudy.Found) bool {
		places = append(places, f.Place)
		if bytes.Contains(f.Body, []byte(`"version0 of`)) {
			old++
		}
		return true
	})
	if err != nil || len(places) != n-steps || !slices.IsSortedFunc(places, func(a, b understudy.Place) int { return int(min(max(b-a, -1), 1)) }) {
		t.Errorf("%d records, want %d, in order: %v", len(places), n-steps, err)
	}
	for q, want := range map[*understudy.Seek]int{&term: n - steps, &word: old} {
		if got, err := db.Count(t.Context(), *q, 0, time.Time{}); err != nil || got.N != int64(want) {
			t.Errorf("%d, %v, want %d", got.N, err, want)
		}
	}
}

func numbersFrom(from, n int) (all []int) {
	for i := range n {
		all = append(all, from+i)
	}
	return all
}
