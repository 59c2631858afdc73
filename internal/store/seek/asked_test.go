// What a question reads, and what it goes on from.

package seek_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"understudy"
	"understudy/internal/query"
	"understudy/internal/store"
	"understudy/internal/store/db"
	"understudy/internal/store/order"
	"understudy/internal/store/postings"
	"understudy/internal/store/seek"
	"understudy/spec"
	"understudy/upstream"
)

func openWords(t testing.TB, path string) *store.DB {
	t.Helper()
	sp, err := upstream.ReadBuiltIn("twilio")
	if err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(context.Background(), store.Options{Path: path, Specs: map[string]*spec.Spec{"twilio": sp}, SaveTime: time.Minute,
		Now: func() time.Time { return time.Unix(1_780_000_000, 0) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// saveMessages saves messages from a number on, each with a word of its own.
func saveMessages(t testing.TB, db *store.DB, from, n int) {
	t.Helper()
	p := &understudy.Page{Key: understudy.Key{Source: "twilio", URI: fmt.Sprint("/m", from)}, Kind: "messages", Shape: "messages", List: true,
		Status: 200, At: time.Unix(1_780_000_000, 0)}
	for i := from; i < from+n; i++ {
		at := len(p.Body)
		p.Body = fmt.Appendf(p.Body, `{"sid":"SM%032x","body":"zanzibar%06d speaks of everything","from":"+1415555%04d","status":"delivered"}`, i,
			i, max(i-1999, 0))
		p.Rows = append(p.Rows, understudy.Row{ID: fmt.Sprintf("SM%032x", i), Clock: int64(1_770_000_000 - i), Start: at, End: len(p.Body)})
	}
	if _, err := db.Save(context.Background(), p); err != nil {
		t.Fatal(err)
	}
}

// H2: what records of a kind say that is not asked for is not passed over, in no
// field: the index gives no posting of them, and they move no caller's time.
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
	given := func(text *query.Text, kinds ...string) int {
		t.Helper()
		n, err := seek.CountPostings(t.Context(), db.Seeker, query.RecordQuery{Source: "twilio", Kinds: kinds, Text: text})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	status := map[string][]string{"calls": {"status"}, "messages": {"status"}}
	for reopened := range 2 {
		for _, c := range []struct {
			text  *query.Text
			kinds []string
			want  int
		}{
			{&query.Text{Words: []string{"delivered"}, Fields: status}, []string{"calls"}, 0},
			{&query.Text{Op: query.TextPrefix, Words: []string{"deliv"}, Fields: status}, []string{"calls"}, 0},
			{&query.Text{Words: []string{"everything"}}, []string{"calls"}, 0},
			{&query.Text{Words: []string{"completed"}, Fields: status}, []string{"calls"}, 1},
			{&query.Text{Words: []string{"delivered"}, Fields: status}, []string{"calls", "messages"}, 300},
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

// A record makes room for others while a question is under way: it goes on
// from where the record stands in what it reads, before the move is committed,
// right after it, and later.
func TestAQuestionFollowsWhatMadeRoom(t *testing.T) {
	t.Parallel()
	d := openWords(t, filepath.Join(t.TempDir(), "understudy.db"))
	saveMessages(t, d, 0, 20)
	ctx, id := context.Background(), fmt.Sprintf("SM%032x", 7)
	was, err := d.FindPlace(ctx, "twilio", "messages", id)
	if err != nil {
		t.Fatal(err)
	}
	s, err := seek.Begin(d.Seeker, query.RecordQuery{Source: "twilio", Kinds: []string{"messages"}})
	if err != nil {
		t.Fatal(err)
	}
	prepare := func(when string, want query.OrderKey) {
		t.Helper()
		if below, err := s.Prepare(ctx); err != nil || below != want {
			t.Fatalf("%s it goes on below %d, want %d (%v)", when, below, want, err)
		}
	}
	prepare("at first", 0)
	s.Looked(8, was)
	widen := func() error {
		var g *order.Assigner
		return s.Pool.Write(ctx, func(c db.Conn) (bool, error) {
			broken, err := c.RunTransaction(ctx, func() error {
				g = order.NewAssigner(c, s.Kind, func() { s.Epoch.Store(s.Epoch.Load() | 1) })
				if err := g.MoveApart(int64(was)>>postings.ShapeBits+1, 1, func(map[int64]int64) {}); err != nil {
					return err
				}
				prepare("before it is committed", was)
				return nil
			})
			is := order.KeyOf(g.CurrentPositions[8], s.Kind)
			if err == nil && is == was {
				return false, errors.New("it did not move")
			}
			prepare("right after", is)
			return broken, err
		})
	}
	if err := widen(); err != nil {
		t.Fatal(err)
	}
	now, err := d.FindPlace(ctx, "twilio", "messages", id)
	if err != nil {
		t.Fatal(err)
	}
	prepare("later", now)
	prepare("once more", now)
}
