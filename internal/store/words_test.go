// The index of words: what is erased leaves nothing, what is lost is told, and
// what is missing is made.

package store_test

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/query"
	"understudy/internal/store"
	"understudy/internal/store/db"
	"understudy/internal/store/erase"
	"understudy/internal/store/fts5"
	"understudy/internal/store/sqlite"
	"understudy/internal/store/storetest"
	"understudy/internal/store/wordrows"
)

// pendingRows is how many saves have left their words and terms to be written later.
func pendingRows(t testing.TB, d *store.DB) (rows int64) {
	t.Helper()
	err := store.Pool(d).Read(t.Context(), func(c db.Conn) (err error) {
		rows, err = c.(*sqlite.Conn).QueryInteger("SELECT count(*) FROM pending")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// What is saved is found at once, though the indexes are written with several saves, or a
// tenth of a second later.
func TestWrittenLaterFoundAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "understudy.db")
	synctest.Test(t, func(t *testing.T) {
		db := storetest.OpenWords(t, path)
		found := func(want int64) {
			t.Helper()
			if got := storetest.CountText(t, db, &query.Text{Op: query.TextPrefix, Words: []string{"zanz"}}); got != want {
				t.Errorf("%d are found by a word, want %d", got, want)
			}
			got, err := db.Count(t.Context(), query.RecordQuery{Source: "twilio", Kinds: []string{"messages"},
				Predicates: []query.Predicate{{Field: "status", Any: []string{"delivered"}}}}, 0, time.Time{})
			if err != nil || got.N != want {
				t.Errorf("%d are found by a term, want %d: %v", got.N, want, err)
			}
			storetest.VerifyDB(t, db)
		}
		most := int64(0)
		for i := range 12 {
			storetest.SaveMessages(t, db, 10*i, 10)
			most = max(most, pendingRows(t, db))
			found(int64(10 * (i + 1)))
		}
		{
			now := pendingRows(t, db)
			checktest.True(t, most >= 4, "most is %v, want >= 4", most)
			checktest.True(t, now != 0, "now is 0")
			checktest.True(t, now < most, "now is %v", now)
		}
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		if now := pendingRows(t, db); now != 0 {
			t.Errorf("%d rows are pending", now)
		}
		found(120)
		storetest.SaveMessages(t, db, 120, 10)
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		db = storetest.OpenWords(t, path)
		if pendingRows(t, db) == 0 {
			t.Error("nothing is pending any more")
		}
		found(130)
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		if now := pendingRows(t, db); now != 0 {
			t.Errorf("%d rows are pending", now)
		}
		found(130)
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// A word of a field that has few is found from its save on, whether the field was asked for
// before, while others ask, and when it is pending as the file is opened.
func TestWordsOfAFieldWithFewAreFoundFromTheirSaveOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "understudy.db")
	db := storetest.OpenWords(t, path)
	save := func(i int) *query.Text {
		t.Helper()
		status := fmt.Sprintf("state%02d", i)
		body := fmt.Appendf(nil, `{"sid":"SM%032x","status":%q}`, i, status)
		p := &understudy.Page{Key: understudy.Key{Source: "twilio", URI: fmt.Sprint("/m", i)}, Kind: "messages", Shape: "messages", Status: 200,
			At: time.Unix(1_780_000_000, 0), Body: body, Rows: []understudy.Row{{ID: fmt.Sprintf("SM%032x", i), Clock: int64(i), End: len(body)}}}
		if _, err := db.Save(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		return &query.Text{Words: []string{status}, Fields: map[string][]string{"messages": {"status"}}}
	}
	found := func(text *query.Text) {
		t.Helper()
		begins := &query.Text{Op: query.TextPrefix, Words: text.Words, Fields: text.Fields}
		if n, m := storetest.CountText(t, db, text), storetest.CountText(t, db, begins); n != 1 || m != 1 {
			t.Errorf("%s is found %d times, as a beginning %d times", text.Words[0], n, m)
		}
	}
	var first *query.Text
	for i := 70; first == nil || pendingRows(t, db) == 0; i++ { // on a slow machine the index may be written before the file is open again
		checktest.MustTrue(t, i < 100, "nothing is pending")
		first = save(i)
		checktest.MustNoError(t, db.Close(), "close")
		db = storetest.OpenWords(t, path)
	}
	var others sync.WaitGroup
	done := make(chan struct{})
	others.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			if _, err := db.Count(t.Context(), query.RecordQuery{Source: "twilio", Text: first}, 0, time.Time{}); err != nil {
				t.Error(err)
			}
		}
	})
	found(first)
	for i := range 70 { // more than are known of a field
		found(save(i))
	}
	close(done)
	others.Wait()
	found(first)
}

// Which words fields have is read before anybody searches: in a new file, and in one that is opened again.
func TestTheFirstSearchByWordsReadsNoMoreThanTheNext(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "understudy.db")
	read := func(db *store.DB, word string) int64 {
		t.Helper()
		before, err := db.MeasureSpace(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if n := storetest.CountText(t, db, &query.Text{Words: []string{word}}); n != 0 {
			t.Errorf("%s is found %d times", word, n)
		}
		after, err := db.MeasureSpace(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return after.Read.Index - before.Read.Index
	}
	db := storetest.OpenWords(t, path)
	for i := range 12 {
		storetest.SaveMessages(t, db, 100*i, 100)
	}
	for _, state := range []string{"a new file", "the file opened again"} {
		if first, next := read(db, "nobody"), read(db, "nowhere"); first != next {
			t.Errorf("%s: the first search reads %d entries of the index, the next %d", state, first, next)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		db = storetest.OpenWords(t, path)
		if err := db.Index.Learn(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// staleSeparators counts the pages of the index that are found by text that begins no
// word in it (package fts5).
const staleSeparators = `SELECT count(*) FROM words_idx i WHERE length(i.term) > 8 AND coalesce(instr(
	(SELECT term FROM word WHERE term >= substr(CAST(i.term AS TEXT), 2) LIMIT 1), substr(CAST(i.term AS TEXT), 2)), 0) <> 1`

// erased matches the words of the first 2,000 messages, and the beginnings of those of the first 1,000.
var erased = regexp.MustCompile(`zanzibar(00[01][0-9]{3}|000[0-9])`)

// Erased words are in no byte of the file, those included by which the pages of
// the index are found.
func TestErasedWordsLeaveNothing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "understudy.db")
	d := storetest.OpenWords(t, path)
	const n = 3000
	for from := 0; from < n; from += 50 {
		storetest.SaveMessages(t, d, from, 50)
	}
	var before int64
	piece := []byte("00102zanzibar")
	if err := store.Pool(d).Read(t.Context(), func(c db.Conn) (err error) {
		if n, err := c.(*sqlite.Conn).QueryInteger(staleSeparators); err != nil || n > 0 {
			return fmt.Errorf("%d separators stand for nothing already: %w", n, err)
		}
		return c.Query(&db.Statement{Head: "SELECT count(*) FROM words_idx WHERE substr(term, 1, 13) = ?"}, 0, []driver.Value{piece},
			func(r []driver.Value) error {
				before = r[0].(int64)
				return nil
			})
	}); err != nil {
		t.Fatal(err)
	}
	if before < 5 {
		t.Fatalf("%d pages of the index begin with such words", before)
	}
	// The numbers of the first 2,000 are one person's.
	if _, _, err := d.Eraser.EraseNumber(t.Context(), "twilio", "+14155550000"); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Eraser.EraseListed(t.Context(), erase.Job{}); err != nil {
		t.Fatal(err)
	}
	if got := storetest.CountText(t, d, &query.Text{Op: query.TextPrefix, Words: []string{"zanz"}}); got != n-2000 {
		t.Errorf("%d are found, want %d", got, n-2000)
	}
	if got := storetest.CountText(t, d, &query.Text{Words: []string{"everything"}}); got != n-2000 {
		t.Errorf("%d are found, want %d", got, n-2000)
	}
	storetest.VerifyDB(t, d)
	if err := store.Pool(d).Write(t.Context(), func(c db.Conn) (bool, error) {
		return false, c.(*sqlite.Conn).ExecuteOnce("INSERT INTO words (words) VALUES ('optimize')") // reads all that erasing left
	}); err != nil {
		t.Fatal(err)
	}
	storetest.VerifyDB(t, d)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(path + "*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if found := erased.Find(data); found != nil {
			t.Fatalf("%s holds %s", file, found)
		}
	}
}

// What the index lacks or has too much is told of by verify, and made right by a
// rebuild.
func TestWordsVerifiedAndRebuilt(t *testing.T) {
	t.Parallel()
	d := storetest.OpenWords(t, filepath.Join(t.TempDir(), "understudy.db"))
	storetest.SaveMessages(t, d, 0, 1500)
	storetest.VerifyDB(t, d)
	damage := func(c db.Conn) (bool, error) {
		return c.RunTransaction(t.Context(), func() error {
			row := wordrows.Row{0: "0102zanzibar000007 0102speaks 0102of 0102everything", 1: "0108delivered", 4: "010614155550000"}
			at, err := c.(*sqlite.Conn).QueryInteger("SELECT doc FROM word WHERE term = '0102zanzibar000007'")
			if err != nil {
				return err
			}
			return new(fts5.Table).Update(c, []wordrows.Write{{Posting: at, Delete: true, Row: row}, {Posting: 12345, Row: row}})
		})
	}
	if err := store.Pool(d).Write(t.Context(), damage); err != nil {
		t.Fatal(err)
	}
	r, err := d.Verifier.Verify(t.Context())
	if err != nil || len(r.Problems) != 2 {
		t.Fatalf("verify: %q, %v", r.Problems, err)
	}
	calls, last := 0, int64(0)
	{
		err := errors.Join(d.Index.Clear(t.Context()), d.Index.Build(t.Context(),
			func(done, total int64) { calls, last = calls+1, done; _ = total }))
		checktest.MustNoError(t, err, "rebuilt")
		checktest.MustTrue(t, calls >= 3, "rebuilt: calls is %v, want >= 3", calls)
		checktest.MustEqual(t, last, 1500, "rebuilt: last")
	}
	storetest.VerifyDB(t, d)
	if got := storetest.CountText(t, d, &query.Text{Words: []string{"zanzibar000007"}}); got != 1 {
		t.Errorf("found %d times", got)
	}
}
