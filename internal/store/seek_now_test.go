// What a question is answered from while the writing connection is at work.

package store_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/query"
	"understudy/internal/store"
	"understudy/internal/store/db"
	"understudy/internal/store/index"
	"understudy/internal/store/sqlite"
	"understudy/internal/store/storetest"
)

// What the file says of its indexes counts, not what memory still says: an index
// may have been emptied a moment ago. A parent is found by the index of terms.
func TestAnEmptiedIndexAnswersNothing(t *testing.T) {
	t.Parallel()
	d := storetest.OpenWords(t, filepath.Join(t.TempDir(), "understudy.db"))
	storetest.SaveMessages(t, d, 0, 20)
	ask := func(q query.RecordQuery) error {
		q.Source, q.Kinds = "twilio", []string{"messages"}
		return d.Seek(t.Context(), q, func(query.Hit) bool { return true })
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
		{fmt.Sprint("UPDATE built SET words = ", int64(index.BuiltAll), ", terms = ", int64(index.BuiltAll)), nil}} {
		err := store.Pool(d).Write(t.Context(), func(c db.Conn) (bool, error) { return false, c.(*sqlite.Conn).ExecuteOnce(step.sql) })
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
	db := storetest.OpenWords(t, filepath.Join(t.TempDir(), "understudy.db"))
	storetest.SaveMessages(t, db, 0, 2048+10)
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
		ids = append(ids, f.Record.ID)
		return true
	})
	n, cerr := db.Count(ctx, q, 0, time.Time{})
	checktest.MustNoError(t, err, "")
	checktest.MustNoError(t, cerr, "cerr")
	checktest.MustEqual(t, len(ids), 1, "len(ids)")
	checktest.Equal(t, n.N, 1, "n.N")
}
