// What a question does not ask for is not read.

package store

import (
	"math"
	"path/filepath"
	"testing"

	"understudy"
	"understudy/internal/query"
	"understudy/internal/store/postings"
	"understudy/internal/store/sqlite"
)

// H2: what records of a kind say that is not asked for is not passed over, in no
// class: the index gives no spot of them, and they move no caller's time.
func TestHiddenKindsAreNotRead(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "understudy.db")
	db := openWords(t, path)
	saveMessages(t, db, 0, 300) // each says "delivered" in a plain field
	call := `{"sid":"CA00000000000000000000000000000001","status":"completed","direction":"inbound"}`
	p := &understudy.Page{Key: understudy.Key{Source: "twilio", URI: "/c"}, Kind: "calls", Shape: "calls", List: true, Status: 200,
		Body: []byte(call),
		Rows: []understudy.Row{{ID: "CA00000000000000000000000000000001", Clock: 1_770_000_000, End: len(call)}}}
	if _, err := db.Save(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	given := func(text *query.Text, kinds ...string) (n int) {
		t.Helper()
		s, err := planner{db}.seek(&query.RecordQuery{Source: "twilio", Kinds: kinds, Text: text})
		if err != nil {
			t.Fatal(err)
		}
		if err := db.pool.Read(t.Context(), func(c *sqlite.Conn) error {
			spots, err := s.p.stream(c)
			at, ok := beginning(false), err == nil
			for ; ok; n++ {
				if at, ok, err = spots.Advance(at); !ok || err != nil {
					break
				}
				at, ok = postings.Following(at, false)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return n
	}
	plain := []string{""}
	for reopened := range 2 {
		for _, c := range []struct {
			text  *query.Text
			kinds []string
			want  int
		}{
			{&query.Text{Words: []string{"delivered"}, In: plain}, []string{"calls"}, 0},
			{&query.Text{Op: query.TextPrefix, Words: []string{"deliv"}, In: plain}, []string{"calls"}, 0},
			{&query.Text{Words: []string{"everything"}}, []string{"calls"}, 0},
			{&query.Text{Words: []string{"completed"}, In: plain}, []string{"calls"}, 1},
			{&query.Text{Words: []string{"delivered"}, In: plain}, []string{"calls", "messages"}, 300},
		} {
			if got := given(c.text, c.kinds...); got != c.want {
				t.Errorf("%v in %v: the index gives %d spots, want %d (opened again: %d)", c.text.Words, c.kinds, got, c.want, reopened)
			}
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		db = openWords(t, path)
	}
}

// beginning is where an iterator begins.
func beginning(up bool) int64 {
	if up {
		return math.MinInt64
	}
	return math.MaxInt64
}
