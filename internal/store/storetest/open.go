// Open: a store for a test, over a file of the test's own.

package storetest

import (
	"context"
	"errors"
	"flag"
	"log/slog"
	"os"
	"strconv"
	"testing"
	"time"

	"understudy/internal/query"
	"understudy/internal/sample"
	"understudy/internal/store"
	"understudy/internal/store/pgtest"
	"understudy/internal/store/verify"
	"understudy/spec"
	"understudy/spec/paging"
	"understudy/spec/spectest"
)

// Open opens a store over a new, empty database, and closes it when the test
// ends. Of the options Path is set, and SaveTime when it is zero. In a
// testing/synctest bubble it takes the bubble's T, so that the store is closed
// before the bubble ends.
func Open(t testing.TB, o store.Options) *store.DB {
	t.Helper()
	o.Path = File(t)
	if o.SaveTime == 0 {
		o.SaveTime = time.Minute
	}
	db, err := store.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// OpenTwo opens two stores over one new, empty database, as two processes do, and closes both when the test ends.
func OpenTwo(t testing.TB) (a, b *store.DB) {
	t.Helper()
	path := File(t)
	return OpenAt(t, path), OpenAt(t, path)
}

// Patience is how long a save may take on a busy machine, in tests that are not
// about that.
const Patience = time.Minute

// OpenAt opens the store at path with the built-in specs, and closes it when the test ends.
func OpenAt(t testing.TB, path string) *store.DB {
	t.Helper()
	logger := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
	db, err := store.Open(t.Context(), store.Options{Path: path, Specs: Specs(t), Logger: logger, SaveTime: Patience})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// MemoryDir returns a folder without a disk behind it, where there is one: a small
// limit means a short log, and so a wait for the disk after every few saves.
func MemoryDir(t testing.TB) string {
	dir, err := os.MkdirTemp("/dev/shm", "understudy-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// Specs returns the specs the tests' sources have.
func Specs(t testing.TB) map[string]*spec.Spec {
	t.Helper()
	sp := spectest.BuiltIn(t, "twilio")
	return map[string]*spec.Spec{"twilio": sp}
}

// OpenWords opens the store at path at the time of the messages that SaveMessages saves.
func OpenWords(t testing.TB, path string) *store.DB {
	t.Helper()
	sp := spectest.BuiltIn(t, "twilio")
	db, err := store.Open(context.Background(), store.Options{Path: path, Specs: map[string]*spec.Spec{"twilio": sp}, SaveTime: Patience,
		Now: func() time.Time { return time.Unix(1_780_000_000, 0) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// ItemsSpec returns the spec of an API whose records may all be of one second.
func ItemsSpec(t testing.TB) *spec.Spec {
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

// OpenItems opens a new store of the records of ItemsSpec.
func OpenItems(t testing.TB, o store.Options) *store.DB {
	t.Helper()
	o.Path, o.Specs = File(t), map[string]*spec.Spec{"items": ItemsSpec(t)}
	db, err := store.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// EraseOptions returns the options of a new store whose messages have a retention.
func EraseOptions(t testing.TB, now func() time.Time) store.Options {
	return store.Options{Path: File(t), Specs: Specs(t), Now: now, SaveTime: Patience,
		Retention: map[string]map[string]time.Duration{Source: {"messages": Keep}}}
}

// CountText returns how many records have a text.
func CountText(t testing.TB, db *store.DB, text *query.Text) int64 {
	t.Helper()
	n, err := db.Count(context.Background(), query.RecordQuery{Source: "twilio", Text: text}, 0, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	return n.N
}

// VerifyDB fails the test if the store has problems, or if the number of rows that Verify announces is not the number
// of rows that it checks. It returns the report.
func VerifyDB(t testing.TB, db *store.DB) verify.Report {
	t.Helper()
	announced, checked := int64(-1), int64(0)
	db.Verifier.OnRow = func(done, total int64) {
		if announced < 0 {
			announced = total
		}
		checked = done
	}
	r, err := db.Verifier.Verify(context.Background())
	db.Verifier.OnRow = nil
	if err != nil || len(r.Problems) > 0 {
		t.Errorf("verify: %q, %v", r.Problems, err)
	} else if checked != announced {
		t.Errorf("verify: %d rows are checked, %d were announced", checked, announced)
	}
	return r
}

// Reason returns what an error gives as its reason.
func Reason(err error) string {
	var s interface{ ShortString() string }
	if errors.As(err, &s) {
		return s.ShortString()
	}
	return ""
}

// FewerChecks lets random tests under the race detector make one in share of the checks asked for, until the test ends.
func FewerChecks(t *testing.T, share int) {
	if !sample.UnderRace {
		return
	}
	checks := flag.Lookup("rapid.checks")
	n, err := strconv.Atoi(checks.Value.String())
	if err != nil {
		t.Fatal(err)
	}
	before := checks.Value.String()
	if err := flag.Set("rapid.checks", strconv.Itoa(max(n/share, 1))); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = flag.Set("rapid.checks", before) })
}

// databases are PostgreSQL databases with the tables of a store.
var databases = pgtest.Pool{Prepare: func(ctx context.Context, dsn string) error {
	db, err := store.Open(ctx, store.Options{Path: dsn})
	if err != nil {
		return err
	}
	return db.Close()
}}

// Database returns the DSN of an empty PostgreSQL database that the test has to itself until it ends.
func Database(t testing.TB) (dsn string) {
	t.Helper()
	return databases.Database(t)
}
