// Where records lie is known by the spec that is read with them.

package catalog_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"understudy"
	"understudy/internal/query"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
	"understudy/spec"
)

// A spec that says later under which root its records lie finds those that were saved before.
func TestRootsAreFoundInOldRecords(t *testing.T) {
	t.Parallel()
	path := storetest.File(t)
	open := func(root string) *store.DB {
		t.Helper()
		sp := storetest.ItemsSpec(t)
		sp.Roots = spec.Roots{Kind: "shops", Vars: []string{"shop"}, Field: "of"}
		sp.Kinds = append(sp.Kinds, &spec.Kind{Name: "shops", ID: []string{"name"}, Fields: []*spec.Field{{Name: "name"}},
			Instances: []*spec.Instance{{Path: "/v1/shops/{shop}", ID: []string{"shop"}}}})
		items := sp.Kinds[0]
		items.Fields = append(items.Fields, &spec.Field{Name: "url", AbsoluteURL: true}, &spec.Field{Name: "shop"})
		if items.Root = root; root == "shop" { // a field that has its id
			items.Root, sp.VarFields = "", map[string]string{"shop": "shop"}
			items.Lists = append(items.Lists, &spec.List{Path: "/v1/shops/{shop}/items", Key: "items"})
		}
		if err := sp.Compile(); err != nil {
			t.Fatal(err)
		}
		if root == "shop" {
			sp.SplitByRoot()
		}
		db, err := store.Open(t.Context(), store.Options{Path: path, Specs: map[string]*spec.Spec{"items": sp}, SaveTime: storetest.Patience})
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
		window := query.RangeScan{Source: "items", Kind: "items", Shape: "items", Parent: "north", NoClock: true}
		rows, err := db.ReadRows(t.Context(), window)
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
