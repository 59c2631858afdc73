// Indexes are filled anew: after an interruption, by another spec, and over damage.

package index_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/query"
	"understudy/internal/store"
	"understudy/internal/store/index"
	"understudy/internal/store/storetest"
	"understudy/spec"
	"understudy/upstream"
)

// A rebuild that is broken off goes on later, by which time records have come,
// changed and gone.
func TestRebuildInterrupted(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "understudy.db")
	db := storetest.OpenWords(t, path)
	storetest.SaveMessages(t, db, 0, 1200)
	ctx, stop := context.WithCancel(t.Context())
	err := errors.Join(db.Index.Clear(ctx), db.Index.Build(ctx, func(done, total int64) {
		if done >= 400 {
			stop()
		}
	}))
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	storetest.VerifyDB(t, db)
	text := query.RecordQuery{Source: "twilio", Text: &query.Text{Words: []string{"everything"}}}
	if _, err := db.Count(t.Context(), text, 0, time.Time{}); !errors.Is(err, understudy.ErrIndexing) ||
		!strings.Contains(err.Error(), " of 1200") {
		t.Fatalf("counted while it is being built: %v", err)
	}
	change := func(i int, body string) {
		one := fmt.Sprintf(`{"sid":"SM%032x","body":%q}`, i, body)
		p := &understudy.Page{Key: understudy.Key{Source: "twilio", URI: fmt.Sprint("/one", i)}, Kind: "messages", Shape: "messages", Status: 200,
			At: time.Unix(1_780_000_100, 0), Body: []byte(one),
			Rows: []understudy.Row{{ID: fmt.Sprintf("SM%032x", i), Clock: int64(1_770_000_000 - i), End: len(one)}}}
		if body == "" {
			p.Rows, p.Status, p.ID = nil, 404, fmt.Sprintf("SM%032x", i)
		}
		if _, err := db.Save(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	for _, i := range []int{3, 1100} { // one that is in the index already, one that is not
		change(i, "nothing")
		change(i+1, "")
	}
	storetest.SaveMessages(t, db, 1200, 100)
	storetest.VerifyDB(t, db)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = storetest.OpenWords(t, path)
	{
		done, total, err := db.Index.CountIndexed(t.Context())
		checktest.MustNoError(t, err, "")
		checktest.MustTrue(t, done >= 400, "done is %v, want >= 400", done)
		checktest.MustTrue(t, done < total, "done is %v", done)
		checktest.MustEqual(t, total, 1300, "total")
	}
	if err := db.Index.Build(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if got := storetest.CountText(t, db, text.Text); got != 1296 {
		t.Errorf("%d are found", got)
	}
	if got := storetest.CountText(t, db, &query.Text{Words: []string{"nothing"}}); got != 2 {
		t.Errorf("%d are found", got)
	}
	storetest.VerifyDB(t, db)
}

// What the spec calls text has changed: the words are made anew.
func TestAnotherSpec(t *testing.T) {
	path := filepath.Join(t.TempDir(), "understudy.db")
	db := storetest.OpenWords(t, path)
	storetest.SaveMessages(t, db, 0, 10)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	sp, err := upstream.ReadBuiltIn("twilio")
	if err != nil {
		t.Fatal(err)
	}
	sp.Kind("messages").Field("status").Class = spec.ClassName
	db, err = store.Open(t.Context(), store.Options{Path: path, Specs: map[string]*spec.Spec{"twilio": sp}, SaveTime: storetest.Patience})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	named := &query.Text{Words: []string{"delivered"}, Fields: map[string][]string{"messages": {"status"}}}
	if _, err := db.Count(t.Context(), query.RecordQuery{Text: named}, 0, time.Time{}); !errors.Is(err, understudy.ErrIndexing) {
		t.Fatalf("counted: %v", err)
	}
	if err := db.Index.Build(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if got := storetest.CountText(t, db, named); got != 10 {
		t.Errorf("%d are found", got)
	}
	storetest.VerifyDB(t, db)
}

// The spec names other fields after a rebuild was broken off: terms begin anew,
// and words go on.
func TestAnotherSpecAmidARebuild(t *testing.T) {
	path := filepath.Join(t.TempDir(), "understudy.db")
	db := storetest.OpenWords(t, path)
	storetest.SaveMessages(t, db, 0, 1200)
	ctx, stop := context.WithCancel(t.Context())
	if err := errors.Join(db.Index.Clear(ctx), db.Index.Build(ctx, func(int64, int64) { stop() })); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	sp, err := upstream.ReadBuiltIn("twilio")
	if err != nil {
		t.Fatal(err)
	}
	sp.Kind("messages").Field("body").Type = spec.TypeSelect
	db, err = store.Open(t.Context(), store.Options{Path: path, Specs: map[string]*spec.Spec{"twilio": sp}, SaveTime: storetest.Patience})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	count := func(field, value string, want int64) {
		t.Helper()
		q := query.RecordQuery{Source: "twilio", Kinds: []string{"messages"}, Predicates: []query.Predicate{{Field: field, Any: []string{value}}}}
		if got, err := db.Count(t.Context(), q, 0, time.Time{}); err != nil || got.N != want {
			t.Errorf("%s %s: %d, %v, want %d", field, value, got.N, err, want)
		}
	}
	u := db.Index.Progress()
	checktest.Equal(t, u.Terms, 0, "after opening with another spec: u.Terms")
	checktest.True(t, u.Words != 0, "after opening with another spec: u.Words is 0")
	checktest.True(t, u.Words != index.BuiltAll, "after opening with another spec: u.Words is %v", u.Words)
	storetest.VerifyDB(t, db)
	for name, q := range map[string]query.RecordQuery{
		"words": {Text: &query.Text{Words: []string{"everything"}}},
		"terms": {Source: "twilio", Kinds: []string{"messages"}, Predicates: []query.Predicate{{Field: "status", Any: []string{"delivered"}}}},
	} {
		if _, err := db.Count(t.Context(), q, 0, time.Time{}); !errors.Is(err, understudy.ErrIndexing) {
			t.Fatalf("%s counted: %v", name, err)
		}
	}
	if err := db.Index.Build(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	count("status", "delivered", 1200)
	count("body", "zanzibar001100 speaks of everything", 1)
	if got := storetest.CountText(t, db, &query.Text{Words: []string{"everything"}}); got != 1200 {
		t.Errorf("%d are found", got)
	}
	storetest.VerifyDB(t, db)
}

// An index that was not filled to the end is filled anew: nothing is answered
// from a half of it.
func TestIndexIsFilledAgain(t *testing.T) {
	path, pages := storetest.Filled(t)
	db := storetest.SQL(t, path)
	for _, s := range []string{"UPDATE kind SET parent = NULL", "DELETE FROM clock WHERE record % 3 = 0"} {
		if _, err := db.Exec(s); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	again := storetest.OpenAt(t, path)
	rows, err := again.ReadRows(t.Context(), query.RangeScan{Source: storetest.Source, Kind: "calls", Shape: "calls", Limit: 10_000})
	checktest.MustNoError(t, err, "")
	checktest.MustEqual(t, len(rows), 600, "len(rows)")
	checktest.Equal(t, rows[0].ID, pages[0].Rows[0].ID, "rows[0].ID")
	if r, err := again.Verifier.Verify(t.Context()); err != nil || len(r.Problems) > 0 {
		t.Errorf("verify: %q, %v", r.Problems, err)
	}
}

// Records that cannot be read end the filling of the indexes: a search says that, and no
// longer that the index is being built.
func TestIndexThatMeetsDamageIsNotBeingBuilt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "understudy.db")
	db := storetest.OpenAt(t, path)
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
	db = storetest.OpenAt(t, path)
	if err := db.Index.Clear(t.Context()); err != nil {
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
	if _, _, err := db.Index.CountIndexed(t.Context()); !errors.Is(err, understudy.ErrDamaged) {
		t.Errorf("its progress: %v", err)
	}
	space, err := db.MeasureSpace(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !space.Damaged {
		t.Error("the file does not count as damaged")
	}
}
