// Which forms of ids a kind has.

package catalog_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
)

// TestNewKindsStoreShortIDs: while an older program may use the database, a kind stores ids in the forms that such a program knows. It
// keeps them afterwards, so that no id has two forms. A kind that is new then has the short forms.
func TestNewKindsStoreShortIDs(t *testing.T) {
	path := storetest.File(t)
	change := func(statement string) {
		file := storetest.SQL(t, path)
		_, err := file.Exec(statement)
		checktest.MustNoError(t, errors.Join(err, file.Close()), "%s", statement)
	}
	save := func(kind string) {
		db := storetest.OpenAt(t, path)
		p := &understudy.Page{Key: understudy.Key{Source: "api", URI: "/" + kind}, Kind: kind, Shape: kind, Status: 200, At: storetest.Epoch}
		for n := range 3 {
			id, start := fmt.Sprintf("ad91e02b-a147-4c47-aa8c-00000000000%d", n), len(p.Body)
			p.Body = fmt.Appendf(p.Body, `{"id":%q,"name":"x"}`, id)
			p.Rows = append(p.Rows, understudy.Row{ID: id, Start: start, End: len(p.Body)})
		}
		_, err := db.Save(t.Context(), p)
		checktest.MustNoError(t, err, "save %s", kind)
		for _, row := range p.Rows {
			r, err := db.Record(t.Context(), "api", kind, kind, row.ID)
			checktest.MustNoError(t, err, "read %s", row.ID)
			checktest.Contains(t, string(r.Body), row.ID, "body of %s", row.ID)
		}
		report, err := db.Verifier.Verify(t.Context())
		checktest.MustNoError(t, err, "verify")
		checktest.Equal(t, len(report.Problems), 0, "problems that verify finds: %v", report.Problems)
		stats, err := db.ReadStats(t.Context())
		checktest.MustNoError(t, err, "stats")
		isRecent := func(one store.TableSize) bool { return one.Name == "name_recent" && one.Bytes > 0 }
		checktest.True(t, slices.ContainsFunc(stats.Tables, isRecent), "no size of name_recent in %v", stats.Tables)
		checktest.MustNoError(t, db.Close(), "close")
	}
	checktest.MustNoError(t, storetest.OpenAt(t, path).Close(), "close")
	change("UPDATE counter SET needs = 0")
	save("old")
	change("UPDATE counter SET needs = 14")
	save("old")
	save("new")
	file := storetest.SQL(t, path)
	defer file.Close()
	for kind, want := range map[string]int{"old": 37, "new": 17} {
		var records, size int
		err := file.QueryRow("SELECT count(*), max(length(n.id)) FROM names n JOIN kind k ON k.number = n.kind WHERE k.name = ?", kind).
			Scan(&records, &size)
		checktest.MustNoError(t, err, "read the ids of %s", kind)
		checktest.Equal(t, records, 3, "ids of the kind %s", kind)
		checktest.Equal(t, size, want, "bytes of an id of the kind %s", kind)
	}
}
