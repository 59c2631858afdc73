// Stores are copied between files and PostgreSQL: whole, interrupted in each table, and changed meanwhile.

package move_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/query"
	"understudy/internal/sample"
	"understudy/internal/store"
	"understudy/internal/store/move"
	"understudy/internal/store/pgtest"
	"understudy/internal/store/storetest"
	"understudy/request"
)

// openSQL opens a database of either engine as any client would.
func openSQL(t *testing.T, path string) *sql.DB {
	t.Helper()
	if !store.IsPostgreSQL(path) {
		return storetest.SQL(t, path)
	}
	db, err := sql.Open("pgx", path)
	checktest.MustNoError(t, err, "open")
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func equal(t *testing.T, got, want []string, what string) {
	t.Helper()
	checktest.Equal(t, strings.Join(got, "\n"), strings.Join(want, "\n"), "%s", what)
}

// TestEveryColumnIsCopied compares the tables of the schema with those that are copied.
func TestEveryColumnIsCopied(t *testing.T) {
	rows, err := storetest.SQL(t, storetest.File(t)).Query("SELECT t.name, c.name FROM sqlite_schema t, pragma_table_info(t.name) c " +
		"WHERE t.type = 'table' AND t.name NOT LIKE 'word%' AND t.name <> 'sqlite_sequence' AND t.name NOT LIKE 'goose%'")
	checktest.MustNoError(t, err, "read the columns")
	is := map[string][]string{}
	for rows.Next() {
		var table, column string
		checktest.MustNoError(t, rows.Scan(&table, &column), "read a column")
		is[table] = append(is[table], column)
	}
	checktest.MustNoError(t, rows.Err(), "read the columns")
	for table, want := range move.Tables() {
		if table == "counter" {
			want = append(slices.Clone(want), "catalog", "annotations", "indexes", "words", "moves", "silent", "erasures", "sessions",
				"credentials", "watches", "keys", "progress", "kinds", "pages", "position", "needs", "jobs")
		}
		equal(t, slices.Sorted(slices.Values(is[table])), slices.Sorted(slices.Values(want)), "columns of "+table)
		delete(is, table)
	}
	equal(t, slices.Sorted(maps.Keys(is)), []string{"budget", "built", "job_kind", "node", "node_claim", "pending", "term_chunk",
		"term_run", "written"},
		"tables that are not copied")
}

func TestErrorsNameRowsByTheirKeys(t *testing.T) {
	checktest.Equal(t, move.Unequal("name", int64(3), []byte{'C', 'A', 0xab}, int64(7)).Error(), "table name: the row with kind 3, id 4341ab "+
		"is not the same in both databases; run the command again, it starts from the beginning", "the error")
	checktest.Equal(t, move.Unequal("kv", "watch/1", []byte{1}).Error(), "table kv: the row with name watch/1 is not the same in both "+
		"databases; run the command again, it starts from the beginning", "the error")
}

// Facts of the store that fill makes.
const (
	calls    = 600
	anyValue = "sync/twilio/calls"
)

// fill makes a store that has rows in every table, and returns its path.
func fill(t *testing.T, calls int) (path string) {
	t.Helper()
	ctx := t.Context()
	path = storetest.File(t)
	db := storetest.OpenAt(t, path)
	w := storetest.NewWorld(1, calls)
	for _, p := range storetest.Pages(w, 50, storetest.Epoch) {
		_, err := db.Save(ctx, p)
		checktest.MustNoError(t, err, "save")
	}
	storetest.SaveMessages(t, db, 0, 60)
	storetest.SaveMessages(t, db, 2000, 5)
	gone := &understudy.Page{Key: understudy.Key{Source: "twilio", URI: "/gone"}, Kind: "calls", Shape: "calls", ID: w.ID(7), Status: 404,
		Body: []byte(`{}`), At: storetest.Epoch.Add(time.Minute)}
	_, err := db.Save(ctx, gone)
	checktest.MustNoError(t, err, "save a page of a record that is gone")
	again := w.AppendCall(nil, 9)
	body := strings.Replace(string(again), `{`, `{"note": "new", `, 1)
	_, err = db.Save(ctx, &understudy.Page{Key: understudy.Key{Source: "twilio", URI: "/9"}, Kind: "calls", Shape: "calls", ID: w.ID(9),
		Status: 200, Body: []byte(body), At: storetest.Epoch.Add(time.Minute), Rows: []understudy.Row{{ID: w.ID(9), End: len(body)}}})
	checktest.MustNoError(t, err, "save a new version")
	_, err = db.Touch(ctx, request.Invalidation{Source: "twilio", Kind: "calls", ID: w.ID(11)})
	checktest.MustNoError(t, err, "touch")
	checktest.MustNoError(t, db.Annotations.AddNote(ctx, "twilio", "calls", w.ID(12), understudy.Note{Text: "nötig", By: "a"}), "note")
	checktest.MustNoError(t, db.Annotations.MarkHandled(ctx, "twilio", "calls", w.ID(12), &understudy.Mark{By: "a"}), "mark")
	_, _, err = db.Eraser.EraseNumber(ctx, "twilio", "+14155550003")
	checktest.MustNoError(t, err, "erase")
	_, err = db.Jobs.AddJobs(ctx, storetest.Epoch, understudy.Job{Kind: "a", MaxAttempts: 1, Payload: []byte{0, 255}},
		understudy.Job{Kind: "a", MaxAttempts: 1})
	checktest.MustNoError(t, err, "add jobs")
	_, err = db.Jobs.CancelJob(ctx, 2, storetest.Epoch)
	checktest.MustNoError(t, err, "cancel a job")
	_, _, err = db.Jobs.PlanJob(ctx, storetest.Epoch, storetest.Epoch, storetest.Epoch, understudy.Job{Kind: "b", MaxAttempts: 1})
	checktest.MustNoError(t, err, "plan a job")
	for _, name := range []string{anyValue, "b\xff", "b\x00", "c", "bä"} {
		checktest.MustNoError(t, db.KV.SetValue(ctx, name, []byte("value of "+name)), "value")
	}
	checktest.MustNoError(t, db.Series.AddSamples(ctx, understudy.Series{Source: "twilio", Kind: "balance", Field: "balance"},
		understudy.Sample{At: storetest.Epoch, Value: "1.50"}), "sample")
	_, _, _, err = db.Actions.ClaimAction(ctx, "person and key", storetest.Epoch)
	checktest.MustNoError(t, err, "claim")
	checktest.MustNoError(t, db.Close(), "close")
	file := storetest.SQL(t, path)
	for _, text := range []string{
		"INSERT INTO name SELECT * FROM name_recent WHERE record % 3 = 0", "DELETE FROM name_recent WHERE record % 3 = 0",
		"INSERT INTO name_middle SELECT * FROM name_recent WHERE record % 3 = 1", "DELETE FROM name_recent WHERE record % 3 = 1",
		"INSERT INTO parent (id) VALUES ('CA1')",
		"DELETE FROM job WHERE kind = 'b'", // its number is not used again
	} {
		_, err := file.Exec(text)
		checktest.MustNoError(t, err, "%s", text)
	}
	for _, table := range move.Order() {
		checktest.True(t, countRows(t, file, table) > 0, "table %s has no rows to copy", table)
	}
	checktest.MustNoError(t, file.Close(), "close")
	return path
}

func countRows(t *testing.T, db *sql.DB, table string) (n int64) {
	t.Helper()
	checktest.MustNoError(t, db.QueryRow("SELECT count(*) FROM "+table).Scan(&n), "%s", table)
	return n
}

// options returns those of a move without a server.
func options(t *testing.T, from, to string) store.MoveOptions {
	return store.MoveOptions{From: from, To: to, Report: func(string, int64, int64) {},
		Notify: func(sentence string) { t.Errorf("it says %q", sentence) }, HasStopped: func() bool { return true }}
}

// facts are what a store answers.
type facts struct {
	pages, versions, values []string
	stats                   []store.KindStats
	found, next             int64
}

// readFacts opens a store with its specs, verifies it, and reads everything that fill has stored.
func readFacts(t *testing.T, path string) (f facts) {
	t.Helper()
	ctx := t.Context()
	db := storetest.OpenAt(t, path)
	done, total, err := db.Index.CountIndexed(ctx)
	checktest.True(t, err == nil && done == total, "%d of %d records are indexed, %v", done, total, err)
	storetest.VerifyDB(t, db)
	w := storetest.NewWorld(1, calls)
	for _, p := range storetest.Pages(w, 50, storetest.Epoch) {
		p, err := db.ReadPage(ctx, p.Key)
		if err != nil {
			f.pages = append(f.pages, err.Error())
			continue
		}
		f.pages = append(f.pages, fmt.Sprint(string(p.Body), p.At, p.Version, p.Superseded))
	}
	for n := range 20 {
		all, err := db.ReadHistory(ctx, "twilio", "calls", w.ID(n), 100)
		f.versions = append(f.versions, fmt.Sprint(all, err))
	}
	changes, err := db.ReadChanges(ctx, "twilio", 0, store.MaxChanges)
	f.versions = append(f.versions, fmt.Sprint(changes, err))
	value, err := db.KV.Value(ctx, anyValue)
	jobs, jerr := db.Jobs.ReadJobs(ctx, understudy.JobFilter{Limit: 10})
	samples, serr := db.Series.ReadSamples(ctx, understudy.Series{Source: "twilio", Kind: "balance", Field: "balance"})
	erasures, eerr := db.Eraser.ReadErasures(ctx, 0, 10)
	f.values = []string{fmt.Sprint(string(value), err), fmt.Sprint(jobs, jerr), fmt.Sprint(samples, serr), fmt.Sprint(erasures, eerr)}
	for _, a := range db.Annotations.Annotations("twilio", "calls") {
		f.values = append(f.values, fmt.Sprint(a.Notes, *a.Handled))
	}
	stats, err := db.ReadStats(ctx)
	checktest.NoError(t, err, "stats")
	f.stats = stats.Kinds
	f.found = storetest.CountText(t, db, &query.Text{Op: query.TextPrefix, Words: []string{"zanzibar"}})
	numbers, err := db.Jobs.AddJobs(ctx, storetest.Epoch, understudy.Job{Kind: "c", MaxAttempts: 1})
	checktest.NoError(t, err, "add a job")
	f.next = numbers[0]
	return f
}

// compareFacts compares the answers of two stores.
func compareFacts(t *testing.T, got, want facts) {
	t.Helper()
	equal(t, got.pages, want.pages, "pages")
	equal(t, got.versions, want.versions, "versions and changes")
	equal(t, got.values, want.values, "values")
	checktest.True(t, reflect.DeepEqual(got.stats, want.stats), "kinds: %+v, want %+v", got.stats, want.stats)
	checktest.True(t, got.found > 0, "no words are found")
	checktest.Equal(t, got.found, want.found, "records with a word")
	checktest.Equal(t, got.next, want.next, "the number of the next job")
}

func TestMoveThereAndBack(t *testing.T) {
	first, second, third := fill(t, calls), storetest.Database(t), filepath.Join(t.TempDir(), "back.db")
	copies := []string{second, third}
	var steps []string
	o := options(t, first, second)
	o.Report = func(step string, done, total int64) {
		if done == total {
			steps = append(steps, step)
		}
	}
	checktest.MustNoError(t, store.Move(t.Context(), o), "move to PostgreSQL")
	equal(t, slices.Compact(steps), []string{"copy", "index", "verify"}, "steps that were reported to be complete")
	if sample.IsFullRun() {
		copies = append(copies, storetest.Database(t))
		checktest.MustNoError(t, store.Move(t.Context(), options(t, second, copies[2])), "move to another PostgreSQL database")
	}
	checktest.MustNoError(t, store.Move(t.Context(), options(t, second, third)), "move back to a file")
	want := readFacts(t, first)
	for _, path := range copies {
		compareFacts(t, readFacts(t, path), want)
	}
}

// TestMoveContinuesInEachTable interrupts moves in every table, at its first row and, if it has more than one portion, in its middle.
func TestMoveContinuesInEachTable(t *testing.T) {
	from := fill(t, calls)
	var stops []int64
	file, before := storetest.SQL(t, from), int64(0)
	for _, table := range move.Order() {
		n := countRows(t, file, table)
		stops = append(stops, before+1)
		if n > 520 {
			stops = append(stops, before+520)
		}
		before += n
	}
	stops = append(stops, before+before/2) // while it compares
	checktest.MustNoError(t, file.Close(), "close")
	targets := []string{storetest.Database(t), filepath.Join(t.TempDir(), "to.db")}
	for _, to := range targets {
		chosen := sample.OneIn(t, 6)
		for i, stop := range stops {
			if !chosen() && i < len(stops)-1 {
				continue
			}
			ctx, cancel := context.WithCancel(t.Context())
			o := options(t, from, to)
			o.Report = func(step string, done, _ int64) {
				if step == "copy" && done == stop {
					cancel()
				}
			}
			err := store.Move(ctx, o)
			cancel()
			checktest.True(t, errors.Is(err, context.Canceled), "interrupted at %d: %v", stop, err)
		}
		_, err := store.Open(t.Context(), store.Options{Path: to})
		checktest.Contains(t, fmt.Sprint(err), "unfinished copy", "an unfinished copy is opened")
		err = store.Move(t.Context(), options(t, to, filepath.Join(t.TempDir(), "a.db")))
		checktest.Contains(t, fmt.Sprint(err), "unfinished copy", "an unfinished copy is moved")
		checktest.MustNoError(t, store.Move(t.Context(), options(t, from, to)), "the last run")
	}
	want := readFacts(t, from)
	for _, to := range targets {
		compareFacts(t, readFacts(t, to), want)
	}
}

func TestMoveStartsAgainAfterAChange(t *testing.T) {
	from, to := fill(t, 60), storetest.Database(t)
	interrupt := func(step string) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		o := options(t, from, to)
		o.Notify = func(string) {}
		o.Report = func(is string, _, _ int64) {
			if is == step {
				cancel()
			}
		}
		err := store.Move(ctx, o)
		checktest.True(t, errors.Is(err, context.Canceled), "interrupted in step %s: %v", step, err)
	}
	for n, step := range []string{"copy", "index", "verify"} {
		interrupt(step)
		db := storetest.OpenAt(t, from)
		checktest.MustNoError(t, db.KV.SetValue(t.Context(), "changed", []byte{byte(n)}), "change the source")
		checktest.MustNoError(t, db.Close(), "close")
	}
	var told []string
	o := options(t, from, to)
	o.Notify = func(sentence string) { told = append(told, sentence) }
	checktest.MustNoError(t, store.Move(t.Context(), o), "move")
	checktest.True(t, len(told) == 1 && strings.Contains(told[0], "has changed"), "it says %q", told)
	compareFacts(t, readFacts(t, to), readFacts(t, from))
}

// TestMoveFindsARowThatDiffers spoils a row after it was copied.
func TestMoveFindsARowThatDiffers(t *testing.T) {
	from := fill(t, 60)
	for _, to := range []string{storetest.Database(t), filepath.Join(t.TempDir(), "to.db")} {
		o := options(t, from, to)
		o.Report = func(step string, done, total int64) {
			if step == "copy" && done == total/2 {
				other := openSQL(t, to)
				_, err := other.Exec("UPDATE held SET seen = seen + 1 WHERE number = 3 * 64")
				checktest.MustNoError(t, errors.Join(err, other.Close()), "spoil a row")
			}
		}
		err := store.Move(t.Context(), o)
		checktest.Contains(t, fmt.Sprint(err), "table held: the row with number 192 is not the same", "the error")
		told := ""
		o = options(t, from, to)
		o.Notify = func(sentence string) { told = sentence }
		checktest.MustNoError(t, store.Move(t.Context(), o), "the next run")
		checktest.Contains(t, told, "starts again", "it says")
	}
}

func TestMoveRefuses(t *testing.T) {
	from := fill(t, 60)
	used := storetest.File(t)
	db := storetest.OpenAt(t, used)
	checktest.MustNoError(t, db.KV.SetValue(t.Context(), "a", []byte("b")), "use the target")
	checktest.MustNoError(t, db.Close(), "close")
	for to, want := range map[string]string{used: "the target is not empty: table kv has 1 rows", from: "name another one",
		"postgres://%": "not one of PostgreSQL"} {
		err := store.Move(t.Context(), options(t, from, to))
		checktest.True(t, err != nil && strings.Contains(err.Error(), want), "to %s: %v, want %q", to, err, want)
	}
}

// TestMoveWaitsForServers moves beside an open store, which answers meanwhile and cannot write.
func TestMoveWaitsForServers(t *testing.T) {
	for _, from := range []string{storetest.File(t), storetest.Database(t)} {
		db := storetest.OpenAt(t, from)
		storetest.SaveMessages(t, db, 0, 10)
		checktest.MustNoError(t, db.Index.Flush(t.Context()), "flush")
		waits := false
		o := options(t, from, filepath.Join(t.TempDir(), "to.db"))
		o.Notify = func(sentence string) { waits = strings.Contains(sentence, "stop all servers") }
		o.HasStopped = func() bool {
			_, err := db.Record(t.Context(), "twilio", "messages", "messages", fmt.Sprintf("SM%032x", 3))
			checktest.NoError(t, err, "read meanwhile")
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			checktest.True(t, db.KV.SetValue(ctx, "a", []byte("b")) != nil, "a write succeeds during the move")
			return waits
		}
		checktest.MustNoError(t, store.Move(t.Context(), o), "move")
		checktest.True(t, waits, "it did not ask to stop the servers")
		checktest.NoError(t, db.KV.SetValue(t.Context(), "a", []byte("b")), "write after the move")
	}
}

// TestIdleSourceKeepsItsLock: the indexes of a large copy take long to build. Meanwhile the transaction that locks the source does nothing.
func TestIdleSourceKeepsItsLock(t *testing.T) {
	t.Parallel()
	from := storetest.Database(t)
	db := storetest.OpenAt(t, from)
	storetest.SaveMessages(t, db, 0, 10)
	checktest.MustNoError(t, db.Close(), "close")
	o := options(t, from, filepath.Join(t.TempDir(), "to.db"))
	wait := sync.OnceFunc(func() { pgtest.Query(t, from, "SELECT pg_sleep(3.2)::text") }) // longer than a server may be idle in a transaction
	o.Report = func(step string, _, _ int64) {
		if step == "index" {
			wait()
		}
	}
	checktest.MustNoError(t, store.Move(t.Context(), o), "move")
}
