// Ids of earlier versions get shorter, in both engines.

package names_test

import (
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"sync"
	"testing"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/sample"
	"understudy/internal/store"
	"understudy/internal/store/erase"
	"understudy/internal/store/nodes"
	"understudy/internal/store/storetest"
)

// engine is a database to test with.
type engine struct {
	name, driver string
	old, compact string // statements: create the tables of earlier versions, leave no space in the tables
	open         func(t testing.TB) (path string)
}

var engines = []engine{
	{"SQLite", "sqlite", "SELECT 1", "VACUUM", storetest.File},
	{"PostgreSQL", "pgx", `DO $$
		DECLARE one TEXT;
		BEGIN
			DROP VIEW names;
			FOREACH one IN ARRAY ARRAY['name_recent', 'name_middle', 'name'] LOOP
				EXECUTE 'DROP TABLE ' || one;
				EXECUTE 'CREATE TABLE ' || one || ' (kind BIGINT NOT NULL, id BYTEA NOT NULL, record BIGINT NOT NULL, '
					'erased BIGINT NOT NULL DEFAULT 0, PRIMARY KEY (kind, id))';
			END LOOP;
			CREATE VIEW names AS
				SELECT kind, id, record, erased FROM name_recent UNION ALL
				SELECT kind, id, record, erased FROM name_middle UNION ALL
				SELECT kind, id, record, erased FROM name;
		END $$`, "VACUUM FULL", storetest.Database},
}

// execute runs a statement in a closed database.
func (e *engine) execute(t testing.TB, path, statement string, args ...any) {
	t.Helper()
	file, err := sql.Open(e.driver, path)
	checktest.MustNoError(t, err, "open")
	_, err = file.Exec(statement, args...)
	checktest.MustNoError(t, errors.Join(err, file.Close()), "%s", statement)
}

// newID returns the n-th id of a kind.
func newID(kind string, n int) string {
	h := fnv.New128a()
	fmt.Fprint(h, n)
	x := h.Sum(nil)
	switch kind {
	case "customers":
		return fmt.Sprintf("customer_%x-%x-%x-%x-%x", x[:4], x[4:6], x[6:8], x[8:10], x[10:])
	case "numbers":
		return fmt.Sprint(1_000_000_000 + n)
	}
	return "any id " + hex.EncodeToString(x)
}

var kinds = []string{"customers", "numbers", "others"}

// save saves records of a kind.
func save(t testing.TB, db *store.DB, kind string, count int) {
	t.Helper()
	p := &understudy.Page{Key: understudy.Key{Source: "api", URI: "/" + kind}, Kind: kind, Shape: kind, Status: 200, At: storetest.Epoch}
	for n := range count {
		start := len(p.Body)
		p.Body = fmt.Appendf(p.Body, `{"id":%q}`, newID(kind, n))
		p.Rows = append(p.Rows, understudy.Row{ID: newID(kind, n), Start: start, End: len(p.Body)})
	}
	_, err := db.Save(t.Context(), p)
	checktest.MustNoError(t, err, "save %s", kind)
}

// newOld returns the path of a database whose kinds store ids as earlier versions do.
func (e *engine) newOld(t testing.TB, count int) (path string) {
	t.Helper()
	path = e.open(t)
	e.execute(t, path, e.old)
	e.execute(t, path, "UPDATE counter SET needs = 0")
	db := storetest.OpenAt(t, path)
	for _, kind := range kinds {
		save(t, db, kind, count)
	}
	checktest.MustNoError(t, db.Close(), "close")
	e.execute(t, path, "UPDATE counter SET needs = 14")
	return path
}

// measure returns the bytes of the tables of ids.
func measure(t testing.TB, db *store.DB) (bytes int64) {
	t.Helper()
	stats, err := db.ReadStats(t.Context())
	checktest.MustNoError(t, err, "stats")
	for _, one := range stats.Tables {
		if strings.HasPrefix(one.Name, "name") {
			bytes += one.Bytes
		}
	}
	return bytes
}

// advise returns what the ids of all kinds save.
func advise(t testing.TB, db *store.DB) (saves int64) {
	t.Helper()
	all, err := store.FindShorterIDs(t.Context(), db)
	checktest.MustNoError(t, err, "advise")
	checktest.Equal(t, len(all), len(kinds), "kinds")
	for _, one := range all {
		checktest.True(t, one.Short <= one.Bytes, "%s: %d bytes are not shorter than %d", one.Kind, one.Short, one.Bytes)
		checktest.True(t, one.Kind == "others" || one.Short <= 17*one.IDs, "%s: %d bytes for %d ids", one.Kind, one.Short, one.IDs)
		saves += one.Saves
	}
	return saves
}

func TestShrinkSavesWhatAdvisePredicts(t *testing.T) {
	ids := sample.Count(3000, 200_000)
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			path := e.newOld(t, 1)
			for number, kind := range kinds { // a row without a record is enough to be measured
				var rows []string
				for n := 1; n <= ids; n++ {
					literal := map[string]string{"sqlite": "x'00%x'", "pgx": `'\x00%x'`}[e.driver]
					rows = append(rows, fmt.Sprintf("(%d, "+literal+", %d)", number+1, newID(kind, n), number*ids+n+10))
					if len(rows) == 1000 || n == ids {
						e.execute(t, path, "INSERT INTO name (kind, id, record) VALUES "+strings.Join(rows, ", "))
						rows = nil
					}
				}
			}
			e.execute(t, path, e.compact)
			db := storetest.OpenAt(t, path)
			before, predicted := measure(t, db), advise(t, db)
			_, _, err := db.Shrink(t.Context())
			checktest.MustNoError(t, err, "shrink")
			saved := before - measure(t, db)
			checktest.True(t, saved*10 > predicted*9 && saved*10 < predicted*11, "%d bytes saved, %d predicted", saved, predicted)
			checktest.Equal(t, advise(t, db), 0, "bytes to save afterwards")
			t.Logf("%s: %d bytes before, %d saved, %d predicted", e.name, before, saved, predicted)
		})
	}
}

func TestReadersFindRecordsWhileIDsGetShorter(t *testing.T) {
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			path := e.newOld(t, 50)
			db := storetest.OpenAt(t, path)
			erased := newID("customers", 7)
			_, _, err := db.Eraser.EraseNumber(t.Context(), "api", "customers/"+erased)
			checktest.MustNoError(t, err, "list a record")
			_, err = db.Eraser.EraseListed(t.Context(), erase.Job{})
			checktest.MustNoError(t, err, "erase a record")
			stop, readers := make(chan struct{}), sync.WaitGroup{}
			for n := range 3 {
				readers.Go(func() {
					for ; ; n = (n + 1) % 50 {
						select {
						case <-stop:
							return
						default:
						}
						kind := kinds[n%3]
						if id := newID(kind, n); id != erased {
							_, err := db.Record(t.Context(), "api", kind, kind, id)
							checktest.NoError(t, err, "read %s", id)
						}
					}
				})
			}
			_, _, err = db.Shrink(t.Context())
			checktest.NoError(t, err, "shrink")
			close(stop)
			readers.Wait()
			checktest.Equal(t, advise(t, db), 0, "bytes to save afterwards")
			for _, kind := range kinds {
				save(t, db, kind, 51)
			}
			isErased, err := db.IsErased(t.Context(), "api", "customers", erased)
			checktest.NoError(t, err, "IsErased")
			checktest.True(t, isErased, "the erased record may be stored again")
			report := storetest.VerifyDB(t, db)
			checktest.Equal(t, len(report.Problems), 0, "problems: %q", report.Problems)
			checktest.Equal(t, report.Records, 3*51-1, "records")
		})
	}
}

func TestIDsStayWhileAnotherProcessUsesTheDatabase(t *testing.T) {
	e := engines[1]
	db := storetest.OpenAt(t, e.newOld(t, 50))
	for _, id := range []string{"one", "two"} {
		_, err := db.Nodes.Renew(t.Context(), nodes.Node{ID: id})
		checktest.MustNoError(t, err, "a lease for %s", id)
	}
	before := advise(t, db)
	_, after, err := db.Shrink(t.Context())
	checktest.MustNoError(t, err, "shrink")
	checktest.True(t, before > 0, "nothing to save")
	checktest.Equal(t, after.LongIDs, before, "bytes that shorter ids would save, says the result")
	checktest.Equal(t, advise(t, db), before, "bytes to save")
	checktest.MustNoError(t, db.Nodes.Remove(t.Context(), "two"), "remove a process")
	_, after, err = db.Shrink(t.Context())
	checktest.MustNoError(t, err, "shrink")
	checktest.Equal(t, after.LongIDs, 0, "bytes that shorter ids would save, when they were stored")
	checktest.Equal(t, advise(t, db), 0, "bytes to save by one process")
}
