// Indexes are filled while everything else goes on.

package store_test

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
	"understudy/internal/checktest"
	"understudy/internal/query"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
)

// crowdedPage is a page of messages, two hundred and twenty a second, each a version.
func crowdedPage(version int, after string, numbers ...int) *understudy.Page {
	uri := "/2010-04-01/Accounts/AC00000000000000000000000000000001/Messages.json?PageSize=50"
	if after != "" {
		uri += "&Page=1&PageToken=PA" + after
	}
	p := &understudy.Page{Key: understudy.Key{Source: "twilio", URI: uri}, Kind: "messages", Shape: "messages", List: true, Status: 200,
		At: time.Unix(1_780_000_000+int64(version), 0)}
	for _, i := range numbers {
		at := len(p.Body)
		p.Body = fmt.Appendf(p.Body, `{"sid":"SM%032x","body":"version%d of %d","from":"+14155550100","status":"delivered"}`, i, version, i)
		p.Rows = append(p.Rows, understudy.Row{ID: fmt.Sprintf("SM%032x", i), Clock: 1_770_000_000 - int64(i)/220, Start: at, End: len(p.Body)})
	}
	return p
}

// TestIndexesAreFilledBehind empties the indexes, fills them a little at a time
// and opens the file anew in between, while records come, change and go. Nothing
// is answered from a part of them, they are right at every moment, and in the end
// everything is found, in order.
func TestIndexesAreFilledBehind(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "understudy.db")
	db := storetest.OpenWords(t, path)
	save := func(p *understudy.Page) {
		t.Helper()
		if _, err := db.Save(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	const n, more = 1300, 4200 // three times what is filled at once; more than there is room for
	total := n
	for from := 0; from < n; from += 50 {
		p := crowdedPage(0, "", numbersFrom(from, 50)...)
		p.Key.URI = fmt.Sprint("/former/", from)
		save(p)
	}
	if err := db.Index.Clear(t.Context()); err != nil {
		t.Fatal(err)
	}
	any, word := query.RecordQuery{Source: "twilio"}, query.RecordQuery{Source: "twilio", Text: &query.Text{Words: []string{"version0"}}}
	term := query.RecordQuery{Source: "twilio", Kinds: []string{"messages"},
		Predicates: []query.Predicate{{Field: "status", Any: []string{"delivered"}}}}
	steps, widened := 0, int64(0)
	for whole := false; !whole; steps++ {
		if steps > 20 {
			t.Fatal("it is never done")
		}
		for name, q := range map[string]query.RecordQuery{"word": word, "term": term} {
			if _, err := db.Count(t.Context(), q, 0, time.Time{}); !errors.Is(err, understudy.ErrIndexing) ||
				!strings.Contains(err.Error(), fmt.Sprint(" of ", total)) {
				t.Errorf("step %d: %s: %v, want it to be filled", steps, name, err)
			}
		}
		if got, err := db.Count(t.Context(), any, 0, time.Time{}); err != nil || got.N != int64(total-steps) {
			t.Errorf("step %d: %d records, %v, want %d without an index", steps, got.N, err, total-steps)
		}
		if steps == 1 { // so many between two of one second that others make room
			p := crowdedPage(steps, fmt.Sprintf("SM%032x", 300), append(numbersFrom(5000, more), 301)...)
			for i := range p.Rows {
				p.Rows[i].Clock = 1_770_000_000 - 300/220
			}
			save(p)
			total += more
		}
		// Some that are indexed, some that are not, and some of either.
		save(crowdedPage(steps+1, fmt.Sprintf("SM%032x", 300), 301+steps, 302+steps))
		save(crowdedPage(steps+1, "", 1100+steps, 1101+steps, 500+steps))
		gone := &understudy.Page{Key: understudy.Key{Source: "twilio", URI: "/gone"}, Kind: "messages", Shape: "messages",
			ID: fmt.Sprintf("SM%032x", 1290-steps), Status: 404, At: time.Unix(1_780_001_000, 0)}
		save(gone)
		widened += store.Epoch(db)
		if steps == 1 { // in the middle; it takes long
			storetest.VerifyDB(t, db)
		}
		if steps%2 == 1 {
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			db = storetest.OpenWords(t, path)
		}
		ctx, stop := context.WithCancel(t.Context())
		err := db.Index.Build(ctx, func(int64, int64) { stop() })
		if stop(); err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		whole = err == nil
	}
	if steps < 3 || widened == 0 {
		t.Errorf("filled in %d steps, room was made %d times", steps, widened)
	}
	storetest.VerifyDB(t, db)
	var places []query.OrderKey
	old := 0
	err := db.Seek(t.Context(), any, func(f query.Hit) bool {
		places = append(places, f.Order)
		if bytes.Contains(f.Record.Body, []byte(`"version0 of`)) {
			old++
		}
		return true
	})
	checktest.MustNoError(t, err, "%d records, want %d, in order", len(places), total-steps)
	checktest.MustEqual(t, len(places), total-steps, "%d records, want %d, in order: len(places)", len(places),
		total-steps)
	checktest.True(t,
		slices.IsSortedFunc(places, func(a, b query.OrderKey) int { return int(min(max(b-a, -1), 1)) }),
		"%d records, want %d, in order: slices.IsSortedFunc(places, func(a, b query.OrderKey) int { … is false",
		len(places), total-steps)
	for q, want := range map[*query.RecordQuery]int{&term: total - steps, &word: old} {
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
