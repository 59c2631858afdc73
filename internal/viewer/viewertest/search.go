// Search: the real searcher over records of the simulated API.

package viewertest

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/query"
	"understudy/internal/search"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
	"understudy/internal/viewer/page"
	"understudy/request"
	"understudy/spec"
)

// searchGate is the gate as the searcher has it.
type searchGate struct{ gate *access.Gate }

// CanSee reports whether the caller sees a kind.
func (g searchGate) CanSee(c understudy.Caller, source, kind string) bool {
	return g.gate.CanSee(c, source, kind)
}

// Rule returns which records of a kind the caller may find.
func (g searchGate) Rule(c understudy.Caller, source, kind string) *query.RowRule {
	return g.gate.Rule(c, source, kind)
}

// CanSeeField reports whether the caller sees the whole of a field.
func (g searchGate) CanSeeField(c understudy.Caller, source, kind, field string) bool {
	return g.gate.Level(c, source, kind, field) == access.See
}

// MakeView returns a record as the caller sees it.
func (g searchGate) MakeView(c understudy.Caller, r *understudy.Record) ([]byte, error) {
	v, err := g.gate.MakeView(c, &understudy.Page{
		Key: understudy.Key{Source: r.Source}, Kind: r.Kind, Shape: r.Shape, Status: 200, Body: r.Body})
	if err != nil {
		return nil, err
	}
	return v.Body, nil
}

// WithSearch lets a viewer search records of the simulated API: those of four lists, and of more lists by their paths.
func WithSearch(t testing.TB, more ...string) func(*page.Options) {
	return func(o *page.Options) {
		path := filepath.Join(t.TempDir(), "understudy.db")
		lists := append([]string{"/Calls.json", "/Messages.json", "/Conferences.json", "/Recordings.json"}, more...)
		Must(t, os.WriteFile(path, fillDatabase(t, o, lists), 0o600))
		mem := openRecords(t, o, path)
		searcher, err := search.New(search.Options{
			Sources: o.Sources, Store: mem, Gate: searchGate{o.Gate}, Masked: o.Gate, KV: mem.KV, Key: bytes.Repeat([]byte{7}, 32),
			Now:    o.Now,
			Limits: search.Limits{Count: time.Minute, Facets: time.Minute, Time: time.Minute}, // the race detector takes its time
		})
		Must(t, err)
		o.Search, o.Shelf, o.Sums = searcher, searcher, searcher
		t.Cleanup(func() { Must(t, mem.Close()) })
	}
}

// filled has the files of databases by the spec of their source and the lists that they hold. The simulated API has the same
// records for every test of a package.
var filled = struct {
	sync.Mutex
	files map[filling][]byte
}{files: map[filling][]byte{}}

type filling struct {
	spec  *spec.Spec
	lists string
}

// fillDatabase returns the file of a database with the records of lists. The first caller of a package fetches them.
func fillDatabase(t testing.TB, o *page.Options, lists []string) []byte {
	filled.Lock()
	defer filled.Unlock()
	src := o.Sources[0]
	key := filling{src.Spec, strings.Join(lists, " ")}
	if file := filled.files[key]; file != nil {
		return file
	}
	path := storetest.File(t)
	db := openRecords(t, o, path)
	for _, list := range lists {
		for next := "/2010-04-01/Accounts/" + Account + list + "?PageSize=100"; next != ""; {
			at, params, _ := strings.Cut(next, "?")
			target, err := src.Spec.Resolve("twilio", at, params)
			Must(t, err)
			found, err := o.Mirror.(*Mirror).Fetch(t.Context(), request.Fetch{Target: target, Reason: request.ReasonWaiting,
				RetryWindow: time.Minute})
			Must(t, err)
			_, err = db.Save(t.Context(), found)
			Must(t, err)
			next = ""
			if !found.Next.IsZero() {
				next = found.Next.URI
			}
		}
	}
	Must(t, db.Close())
	file, err := os.ReadFile(path)
	Must(t, err)
	filled.files[key] = file
	return file
}

// openRecords opens the database at path for the records of the viewer's source.
func openRecords(t testing.TB, o *page.Options, path string) *store.DB {
	db, err := store.Open(t.Context(), store.Options{Path: path, Specs: map[string]*spec.Spec{o.Sources[0].Name: o.Sources[0].Spec},
		Now: func() time.Time { return Noon }, SaveTime: storetest.Patience})
	Must(t, err)
	return db
}
