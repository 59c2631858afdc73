// M7: one odd page delays no other.

package store_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"understudy"
	"understudy/internal/query"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
	"understudy/request"
	"understudy/spec"
	"understudy/spec/paging"
)

// itemsSpec is an API whose records may all be of one second.
func itemsSpec(t testing.TB) *spec.Spec {
	t.Helper()
	sp := &spec.Spec{
		Name: "items", Hosts: []spec.Host{{URL: "https://items.example"}}, Auth: spec.Auth{Style: "none"},
		Paging: spec.Paging{Rules: paging.Rules{Style: "body", Next: "next", Size: "limit", Tokens: []string{"after"}}},
		Kinds: []*spec.Kind{{Name: "items", ID: []string{"id"}, Clock: "at",
			Lists:  []*spec.List{{Path: "/v1/items", Key: "items"}},
			Fields: []*spec.Field{{Name: "id"}, {Name: "at", Type: "iso8601"}}}},
	}
	if err := sp.Compile(); err != nil {
		t.Fatal(err)
	}
	return sp
}

func openItems(t testing.TB, o store.Options) *store.DB {
	t.Helper()
	o.Path, o.Specs = storetest.File(t), map[string]*spec.Spec{"items": itemsSpec(t)}
	db, err := store.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// itemsPage is a page of n rows, each step seconds before the one above it.
func itemsPage(name string, n int, step int64) *understudy.Page {
	p := &understudy.Page{Key: understudy.Key{Source: "items", URI: "/v1/items?name=" + name}, Kind: "items", Shape: "items", List: true,
		Status: 200, At: time.Unix(1780000000, 0)}
	body := []byte(`{"items": [`)
	for i := range n {
		id, at, start := fmt.Sprintf("%s_%d", name, i), 1780000000-int64(i)*step, len(body)
		body = fmt.Appendf(body, `{"id": %q, "at": %q}`, id, time.Unix(at, 0).UTC().Format(time.RFC3339))
		p.Rows = append(p.Rows, understudy.Row{ID: id, Start: start, End: len(body), Clock: at})
		body = append(body, ", "...)
	}
	p.Body = append(body[:len(body)-2], `], "next": null}`...)
	return p
}

// TestAPageOfOneSecondIsLinear saves pages of one second, and as many rows of a
// second each. The first make others move: that is some work a row, not some work
// a row and row. The square shows from 10,000 rows on: UNDERSTUDY_PROVE=1.
func TestAPageOfOneSecondIsLinear(t *testing.T) {
	rows := 2000
	if os.Getenv("UNDERSTUDY_PROVE") != "" {
		rows = 10_000
	}
	took := func(step int64) time.Duration {
		db := openItems(t, store.Options{SaveTime: time.Hour})
		begin := time.Now()
		for i := range 6 {
			if _, err := db.Save(t.Context(), itemsPage(fmt.Sprint("page", i), rows, step)); err != nil {
				t.Fatal(err)
			}
		}
		return time.Since(begin)
	}
	var apart, same time.Duration
	for range 3 { // another process may have had the machine
		if apart, same = took(1), took(0); same < 6*apart {
			return
		}
	}
	t.Errorf("rows of one second take %v, rows of a second each %v", same, apart)
}

// TestASaveHasADeadline: a page that takes too long is given up, says so, and
// leaves nothing; what is saved next is.
func TestASaveHasADeadline(t *testing.T) {
	db := openItems(t, store.Options{SaveTime: time.Microsecond})
	long := itemsPage("long", 5000, 0)
	_, err := db.Save(t.Context(), long)
	var reason interface{ Short() string }
	if !errors.Is(err, understudy.ErrNotStored) || !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &reason) {
		t.Fatalf("saved in a microsecond: %v", err)
	}
	if want := "saving it took more than 1µs"; reason.Short() != want {
		t.Errorf("the reason is %q, want %q", reason.Short(), want)
	}
	if _, err := db.Page(t.Context(), long.Key); !errors.Is(err, understudy.ErrNotFound) {
		t.Errorf("its page: %v, want nothing", err)
	}
	// The connection is of use to others, which have their own time.
	if _, err := db.Touch(t.Context(), request.Invalidation{Source: "items", Kind: "items"}); err != nil {
		t.Errorf("the next write: %v", err)
	}
	// A caller's own end is no fault of the page.
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := db.Save(ended, long); errors.Is(err, understudy.ErrNotStored) || !errors.Is(err, context.Canceled) {
		t.Errorf("a save for nobody: %v", err)
	}
}

// TestABodyThatStandsOften: a record that stands in a page again and again is
// looked up once a body.
func TestABodyThatStandsOften(t *testing.T) {
	db := openItems(t, store.Options{})
	p := itemsPage("often", 6000, 0)
	for i := range p.Rows {
		p.Rows[i].ID = "often_0"
	}
	saved, err := db.Save(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(saved.Changes); n != 1 {
		t.Errorf("%d changes, want one", n)
	}
}

// A spec that says later under which root its records lie finds those that were saved before.
func TestRootsAreFoundInOldRecords(t *testing.T) {
	t.Parallel()
	path := storetest.File(t)
	open := func(root string) *store.DB {
		t.Helper()
		sp := itemsSpec(t)
		sp.Roots = spec.Roots{Kind: "shops", Vars: []string{"shop"}, Field: "of"}
		sp.Kinds = append(sp.Kinds, &spec.Kind{Name: "shops", ID: []string{"name"}, Fields: []*spec.Field{{Name: "name"}},
			Instances: []*spec.Instance{{Path: "/v1/shops/{shop}", ID: []string{"shop"}}}})
		items := sp.Kinds[0]
		items.Fields = append(items.Fields, &spec.Field{Name: "url", Absolute: true}, &spec.Field{Name: "shop"})
		if items.Root = root; root == "shop" { // a field that has its id
			items.Root, sp.Shown = "", map[string]string{"shop": "shop"}
			items.Lists = append(items.Lists, &spec.List{Path: "/v1/shops/{shop}/items", Key: "items"})
		}
		if err := sp.Compile(); err != nil {
			t.Fatal(err)
		}
		if root == "shop" {
			sp.Cover()
		}
		db, err := store.Open(t.Context(), store.Options{Path: path, Specs: map[string]*spec.Spec{"items": sp}, SaveTime: store.Patience})
		if err != nil {
			t.Fatal(err)
		}
		return db
	}
	ask := func(db *store.DB, q query.RecordQuery) (ids []string) {
		t.Helper()
		if err := db.Index.Build(t.Context(), func(int64, int64) {}); err != nil {
			t.Fatal(err)
		}
		q.Source, q.Kinds = "items", []string{"items"}
		if err := db.Seek(t.Context(), q, func(h query.Hit) bool { ids = append(ids, h.Record.ID); return true }); err != nil {
			t.Fatal(err)
		}
		return ids
	}
	under := func(db *store.DB, parent string) []string { return ask(db, query.RecordQuery{Parent: parent}) }
	db := open("")
	p := &understudy.Page{Key: understudy.Key{Source: "items", URI: "/v1/items"}, Kind: "items", Shape: "items", List: true, Status: 200,
		At: time.Unix(1780000000, 0)}
	for i, shop := range []string{"north", "south", "north"} {
		start := len(p.Body)
		p.Body = fmt.Appendf(p.Body, `{"id":"i%d","at":null,"url":"https://items.example/v1/shops/%s/items/%d","shop":"%[2]s"}`, i, shop, i)
		p.Rows = append(p.Rows, understudy.Row{ID: fmt.Sprint("i", i), Start: start, End: len(p.Body)})
	}
	if _, err := db.Save(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if ids := under(db, "north"); len(ids) > 0 {
		t.Errorf("without a root: %v", ids)
	}
	for _, root := range []string{"shop", "", "url"} {
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		db = open(root)
		window := query.RangeScan{Source: "items", Kind: "items", Shape: "items", Parent: "north", Unclocked: true}
		rows, err := db.Rows(t.Context(), window)
		if ids := under(db, "north"); root != "" && (!slices.Equal(ids, []string{"i0", "i2"}) || len(rows) != 2 || err != nil) {
			t.Errorf("with the root in %s: %v, %d rows, %v", root, ids, len(rows), err)
		}
		if r, err := db.Verifier.Verify(t.Context()); err != nil || len(r.Problems) > 0 {
			t.Errorf("with the root in %q: %v %v", root, r.Problems, err)
		}
	}
	defer func() { _ = db.Close() }()
	for value, want := range map[string][]string{"north": {"i0", "i2"}, "south": {"i1"}, "north~": nil} {
		q := query.RecordQuery{Predicates: []query.Predicate{{Field: "of", Any: []string{value}}}}
		if ids := ask(db, q); !slices.Equal(ids, want) {
			t.Errorf("of the root %s, by the field that shows it: %v, want %v", value, ids, want)
		}
	}
}
