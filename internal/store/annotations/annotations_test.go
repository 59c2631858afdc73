package annotations_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"understudy"
	"understudy/internal/store"
	"understudy/internal/store/erase"
	"understudy/internal/store/storetest"
	"understudy/spec"
	"understudy/upstream"
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

const source = "twilio"

func id(n int) string { return fmt.Sprintf("SM%032d", n) }

func by(text, name string) understudy.Note { return understudy.Note{Text: text, By: name, At: noon} }

func mark(name string) *understudy.Mark { return &understudy.Mark{By: name, At: noon} }

// open is a store with three messages.
func open(t *testing.T) (db *store.DB, o store.Options) {
	twilio, err := upstream.ReadBuiltIn(source)
	if err != nil {
		t.Fatal(err)
	}
	o = store.Options{Path: storetest.File(t), Now: func() time.Time { return noon }, Specs: map[string]*spec.Spec{source: twilio}}
	db, err = store.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	for n := range 3 {
		save(t, db, n, fmt.Sprintf(`{"sid": %q, "from": "+1415555010%d", "body": "a text that is long enough: %d"}`, id(n), n, n))
	}
	return db, o
}

// save saves a message; body "": upstream has it no more.
func save(t *testing.T, db *store.DB, n int, body string) {
	t.Helper()
	p := &understudy.Page{Key: understudy.Key{Source: source, URI: "/messages/" + id(n)}, Kind: "messages", Shape: "messages", ID: id(n),
		Status: 404, At: noon, Body: []byte("{}")}
	if body != "" {
		p.Status, p.Body, p.Rows = 200, []byte(body), []understudy.Row{{ID: id(n), End: len(body)}}
	}
	if _, err := db.Save(t.Context(), p); err != nil {
		t.Fatal(err)
	}
}

// written is what is written on a message, as a text.
func written(db *store.DB, n int) string {
	a := db.Annotations.Annotation(source, "messages", id(n))
	if a == nil {
		return ""
	}
	var all []string
	for _, one := range a.Notes {
		all = append(all, one.By+": "+one.Text)
	}
	if a.Handled != nil {
		all = append(all, "handled by "+a.Handled.By)
	}
	return strings.Join(all, "; ")
}

func TestAnnotations(t *testing.T) {
	db, o := open(t)
	ctx := t.Context()
	note := func(n int, text, name string) {
		t.Helper()
		if err := db.Annotations.AddNote(ctx, source, "messages", id(n), by(text, name)); err != nil {
			t.Fatal(err)
		}
	}
	note(0, " called back\n", "anna")
	note(0, "called back", "anna") // a double click
	note(0, "called back", "ben")
	note(0, "paid", "anna")
	for _, name := range []string{"ben", "anna"} { // the first mark stays
		if err := db.Annotations.MarkHandled(ctx, source, "messages", id(0), mark(name)); err != nil {
			t.Fatal(err)
		}
	}
	want := "anna: called back; ben: called back; anna: paid; handled by ben"
	if got := written(db, 0); got != want {
		t.Errorf("written: %q", got)
	}
	version := db.Annotations.AnnotationsVersion()
	paid := db.Annotations.Annotation(source, "messages", id(0)).Notes[1]
	if err := db.Annotations.RemoveNote(ctx, source, "messages", id(0), paid.Number); err != nil {
		t.Error(err)
	}
	if err := db.Annotations.MarkHandled(ctx, source, "messages", id(0), nil); err != nil {
		t.Error(err)
	}
	if db.Annotations.AnnotationsVersion() <= version {
		t.Error("the version stays")
	}
	if err := db.Annotations.MarkHandled(ctx, source, "messages", id(1), mark("anna")); err != nil {
		t.Error(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if db, _ = store.Open(ctx, o); db == nil { // another process
		t.Fatal("it does not open")
	}
	defer db.Close()
	if got := [3]string{written(db, 0), written(db, 1), written(db, 2)}; got != [3]string{"anna: called back; anna: paid", "handled by anna"} {
		t.Errorf("after a restart: %q", got)
	}
	if all := db.Annotations.Annotations(source, "messages"); len(all) != 2 {
		t.Errorf("%d records have something written on them", len(all))
	}
}

func TestAnnotationErrors(t *testing.T) {
	db, _ := open(t)
	for _, c := range []struct {
		kind, id, text string
		want           error
	}{
		{"messages", id(0), " \n", understudy.ErrInvalid},
		{"messages", id(0), strings.Repeat("x", understudy.MaxNote+1), understudy.ErrInvalid},
		{"messages", id(0), "a\xff", understudy.ErrInvalid},
		{"messages", id(0), "a\x00b", understudy.ErrInvalid},
		{"messages", id(7), "hello", understudy.ErrNotFound},
		{"none", id(0), "hello", understudy.ErrNotFound},
	} {
		if err := db.Annotations.AddNote(t.Context(), source, c.kind, c.id, by(c.text, "anna")); !errors.Is(err, c.want) {
			t.Errorf("%s %s %.10q: %v", c.kind, c.id, c.text, err)
		}
	}
	if err := db.Annotations.RemoveNote(t.Context(), source, "messages", id(0), 1); !errors.Is(err, understudy.ErrNotFound) {
		t.Errorf("a note that is not there is removed: %v", err)
	}
	for n := range understudy.MaxNotes {
		if err := db.Annotations.AddNote(t.Context(), source, "messages", id(0), by(fmt.Sprint("note ", n), "anna")); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Annotations.AddNote(t.Context(), source, "messages", id(0), by("one more", "anna")); !errors.Is(err, understudy.ErrInvalid) {
		t.Errorf("above the bound: %v", err)
	}
	if got := written(db, 1) + written(db, 7); got != "" {
		t.Errorf("written: %q", got)
	}
}

// Many who write at once lose nothing.
func TestManyWriteNotes(t *testing.T) {
	db, o := open(t)
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			if err := db.Annotations.AddNote(t.Context(), source, "messages", id(i%2), by(fmt.Sprint("note ", i), "anna")); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	before := [2]string{written(db, 0), written(db, 1)}
	_ = db.Close()
	db, err := store.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if after := [2]string{written(db, 0), written(db, 1)}; after != before || strings.Count(after[0]+after[1], "note") != 20 {
		t.Errorf("written %q, then read %q", before, after)
	}
}

// What is written on a record goes with it, and what mentions the person on others; what
// is forgotten here alone, or is there again, keeps its notes.
func TestAnnotationsAreErased(t *testing.T) {
	db, _ := open(t)
	ctx := t.Context()
	for n, text := range []string{"her own note", "she called from +1 (415) 555-0100", "he wrote: a text that is long enough: 1"} {
		if err := db.Annotations.AddNote(ctx, source, "messages", id(n), by(text, "anna")); err != nil {
			t.Fatal(err)
		}
		if err := db.Annotations.MarkHandled(ctx, source, "messages", id(n), mark("anna")); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := db.ForgetRecord(ctx, source, "messages", id(0)); err != nil {
		t.Fatal(err)
	}
	if got := written(db, 0); got != "anna: her own note; handled by anna" {
		t.Errorf("of a record that was purged: %q", got)
	}
	save(t, db, 0, `{"sid": "`+id(0)+`", "from": "+14155550100", "body": "hello"}`)
	if _, _, err := db.Eraser.EraseNumber(ctx, source, "+14155550100"); err != nil {
		t.Fatal(err)
	}
	if err := db.Annotations.AddNote(ctx, source, "messages", id(0), by("once more", "anna")); !errors.Is(err, understudy.ErrNotFound) {
		t.Errorf("a note on what is being erased: %v", err)
	}
	if _, err := db.Eraser.EraseListed(ctx, erase.Job{}); err != nil {
		t.Fatal(err)
	}
	if got := [3]string{written(db, 0), written(db, 1), written(db, 2)}; got != [3]string{"", "handled by anna",
		"anna: he wrote: a text that is long enough: 1; handled by anna"} {
		t.Errorf("after the erasure of a number: %q", got)
	}
	if found, err := db.Verifier.FindTexts(ctx, "her own note", "4155550100", "555-0100"); err != nil || len(found) > 0 {
		t.Errorf("still held: %v, %v", found, err)
	}
	save(t, db, 1, "") // upstream has it no more
	if _, err := db.Eraser.EraseListed(ctx, erase.Job{}); err != nil {
		t.Fatal(err)
	}
	if got := [2]string{written(db, 1), written(db, 2)}; got != [2]string{"", "handled by anna"} {
		t.Errorf("after a deletion upstream: %q", got)
	}
	if r, err := db.Verifier.Verify(ctx); err != nil || len(r.Problems) > 0 {
		t.Errorf("verify: %v, %v", r.Problems, err)
	}
}
