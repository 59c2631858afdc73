// What a question is answered from while the writing connection is at work.

package store

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"pgregory.net/rapid"

	"understudy"
	"understudy/internal/query"
	"understudy/internal/store/order"
	"understudy/internal/store/postings"
	"understudy/internal/store/sqlite"
)

// What the file says of its indexes counts, not what memory still says: an index
// may have been emptied a moment ago. A parent is found by the index of terms.
func TestAnEmptiedIndexAnswersNothing(t *testing.T) {
	t.Parallel()
	db := openWords(t, filepath.Join(t.TempDir(), "understudy.db"))
	saveMessages(t, db, 0, 20)
	ask := func(q query.RecordQuery) error {
		q.Source, q.Kinds = "twilio", []string{"messages"}
		return db.Seek(t.Context(), q, func(query.Hit) bool { return true })
	}
	asked := map[string]query.RecordQuery{
		"a parent": {Parent: "AC01"},
		"a term":   {Predicates: []query.Predicate{{Field: "status", Any: []string{"delivered"}}}},
		"a text":   {Text: &query.Text{Words: []string{"everything"}}},
	}
	for _, step := range []struct {
		sql  string
		want error
	}{{"UPDATE built SET words = 0, terms = 0", understudy.ErrIndexing},
		{fmt.Sprint("UPDATE built SET words = ", int64(builtAll), ", terms = ", int64(builtAll)), nil}} {
		err := db.pool.Write(t.Context(), func(c *sqlite.Conn) (bool, error) { return false, c.Run(step.sql) })
		if err != nil {
			t.Fatal(err)
		}
		for name, q := range asked {
			if err := ask(q); !errors.Is(err, step.want) {
				t.Errorf("%s, %s: %v, want %v", name, step.sql, err, step.want)
			}
		}
		if err := ask(query.RecordQuery{}); err != nil {
			t.Errorf("any record: %v", err)
		}
	}
}

// A word that stands in more records of another kind than one part of a question
// looks at is found all the same.
func TestAWordUnderManyOfAnotherKind(t *testing.T) {
	t.Parallel()
	db := openWords(t, filepath.Join(t.TempDir(), "understudy.db"))
	saveMessages(t, db, 0, seekLook+10)
	body := `{"sid":"CF01","friendly_name":"all of everything","status":"completed"}`
	p := &understudy.Page{Key: understudy.Key{Source: "twilio", URI: "/c"}, Kind: "conferences", Shape: "conferences", List: true, Status: 200,
		Body: []byte(body), Rows: []understudy.Row{{ID: "CF01", Clock: 1_600_000_000, End: len(body)}}, At: time.Unix(1_780_000_000, 0)}
	if _, err := db.Save(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	q := query.RecordQuery{Source: "twilio", Kinds: []string{"conferences"}, Text: &query.Text{Words: []string{"everything"}}}
	var ids []string
	err := db.Seek(ctx, q, func(f query.Hit) bool {
		ids = append(ids, f.ID)
		return true
	})
	if n, cerr := db.Count(ctx, q, 0, time.Time{}); err != nil || cerr != nil || len(ids) != 1 || n.N != 1 {
		t.Errorf("%v, %v; counted %v, %v", ids, err, n, cerr)
	}
}

// A record makes room for others while a question is under way: it goes on
// from where the record stands in what it reads, before the move is committed,
// right after it, and later.
func TestAQuestionFollowsWhatMadeRoom(t *testing.T) {
	t.Parallel()
	db := openWords(t, filepath.Join(t.TempDir(), "understudy.db"))
	saveMessages(t, db, 0, 20)
	ctx, id := context.Background(), fmt.Sprintf("SM%032x", 7)
	was, err := db.PlaceOf(ctx, "twilio", "messages", id)
	if err != nil {
		t.Fatal(err)
	}
	s, err := planner{db}.seek(&query.RecordQuery{Source: "twilio", Kinds: []string{"messages"}})
	if err != nil {
		t.Fatal(err)
	}
	prepare := func(when string, want query.OrderKey) {
		t.Helper()
		if err := db.pool.Read(ctx, func(c *sqlite.Conn) error { return s.prepare(ctx, c) }); err != nil {
			t.Fatal(err)
		}
		if s.below != want {
			t.Errorf("%s it goes on below %d, want %d", when, s.below, want)
		}
	}
	kind := s.p.kinds[0]
	prepare("at first", 0)
	s.last, s.below = heldAt{kind: kind, record: 8}, was
	widen := func() error {
		var g *order.Assigner
		return db.pool.Write(ctx, func(c *sqlite.Conn) (bool, error) {
			broken, err := c.Transaction(ctx, sqlite.BeginWrite, func() error {
				g = order.NewAssigner(c, kind.Number, &db.epoch)
				if err := g.Rebalance(int64(was)>>postings.ShapeBits+1, 1, func(map[int64]int64) {}); err != nil {
					return err
				}
				prepare("before it is committed", was)
				return nil
			})
			is := order.KeyOf(g.Stands[8], kind.Number)
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
	now, err := db.PlaceOf(ctx, "twilio", "messages", id)
	if err != nil {
		t.Fatal(err)
	}
	prepare("later", now)
	prepare("once more", now)
}

// TestRecordSet puts records in and takes them out, as a map has them.
func TestRecordSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var set recordSet
		want := map[int64]bool{}
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			record, in := rapid.Int64Range(0, 300).Draw(t, "record"), rapid.Bool().Draw(t, "in")
			set.set(record, in)
			want[record] = in
		}
		for record := range int64(400) {
			if set.has(record) != want[record] {
				t.Fatalf("record %d: %v", record, set.has(record))
			}
		}
	})
}
