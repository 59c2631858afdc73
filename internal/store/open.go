// This file opens and closes the database. It checks an existing file and never replaces it.

package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"

	"github.com/pressly/goose/v3"

	"understudy/internal/store/annotations"
	"understudy/internal/store/catalog"
	"understudy/internal/store/claims"
	"understudy/internal/store/erase"
	"understudy/internal/store/evict"
	"understudy/internal/store/history"
	"understudy/internal/store/index"
	"understudy/internal/store/jobs"
	"understudy/internal/store/kv"
	"understudy/internal/store/pages"
	"understudy/internal/store/records"
	"understudy/internal/store/seek"
	"understudy/internal/store/series"
	"understudy/internal/store/sqlite"
	"understudy/internal/store/verify"
)

//go:embed migrations/*.sql
var migrations embed.FS

// newestMigration is the number of the last file in migrations.
const newestMigration = 4

// applicationID marks a file as a database of Understudy, in the header of the SQLite file. Its bytes spell "Unst".
const applicationID = 0x556e7374

// DB is a store in one SQLite file. It is safe for concurrent use: one goroutine writes and a few read, each for much
// less time than an upstream request takes. Its fields hold what is stored beside pages, records and changes.
type DB struct {
	Jobs        *jobs.Queue
	KV          *kv.Table
	Series      *series.Points
	Actions     *claims.Table
	Annotations *annotations.Book
	Eraser      *erase.Eraser
	Evictor     *evict.Evictor
	Verifier    *verify.Verifier
	Index       *index.Index

	// The embedded types give DB its methods for reading pages, records and history, and for searching.
	*pages.Reader
	*history.Records
	*seek.Seeker

	o        Options
	pool     *sqlite.Pool
	opener   *records.Opener
	pages    *pages.Loader
	catalog  *catalog.Catalog
	counts   counts
	watchers watchers
	scratch  scratch
}

// counts are counters by which the writing goroutine informs others.
type counts struct {
	epoch  atomic.Int64 // twice the number of writes that moved records to make room; odd while such a write is open
	writes atomic.Int64 // writes of all sorts, committed or not
	silent atomic.Int64 // twice the number of writes that added or removed records without a change; odd while such a write is open
	erased atomic.Int64 // the number of erased records, which must not be stored again
}

// Open opens the store. It creates the file if it is missing or empty. It does not touch a file that is damaged,
// belongs to another program, or was written by a newer Understudy. The error then says so in one sentence.
func Open(ctx context.Context, o Options) (*DB, error) {
	o = o.withDefaults()
	path, err := filepath.Abs(o.Path)
	if err != nil {
		return nil, fmt.Errorf("store: open %s: %w", o.Path, err)
	}
	if err := makeFile(path); err != nil {
		return nil, fmt.Errorf("store: open %s: %w; choose another folder with --data", path, err)
	}
	catalog := catalog.New(o.Specs)
	db := &DB{o: o, catalog: catalog, opener: records.New(catalog, seek.MaxHelpers+1)}
	db.pool = sqlite.NewPool(path, o.Readers, o.Limit, o.logShare(), db.counts.settleWrite)
	db.watchers.pool = db.pool
	db.Index = index.New(db.pool, catalog, db.opener)
	db.Seeker = seek.New(db.pool, catalog, db.opener, db.Index, &db.counts.epoch, o.Now)
	db.Records = history.New(db.pool, catalog, db.opener)
	db.Jobs, db.KV, db.Series = jobs.NewQueue(db.pool), kv.New(db.pool), series.New(db.pool)
	db.Actions, db.Annotations = claims.New(db.pool), annotations.New(db.pool, catalog)
	db.Evictor = evict.New(evict.Options{Pool: db.pool, Store: evictable{db}, Now: o.Now, Logger: o.Logger})
	db.pages = pages.NewLoader(catalog, db.opener)
	db.Reader = pages.NewReader(db.pool, db.pages, db.Evictor.NoteRead)
	db.Verifier = verify.New(db.pool, catalog, db.opener, db.pages, db.Index)
	db.Eraser = erase.New(erase.Options{Pool: db.pool, Store: erasable{db}, Annotations: db.Annotations, Now: o.Now})
	c, err := db.begin(ctx)
	if err != nil {
		return nil, openError(path, err)
	}
	if err := db.pool.Start(ctx, c); err != nil {
		_ = db.Close()
		return nil, openError(path, err)
	}
	db.Evictor.Start(ctx)
	db.Index.ScheduleFlush()
	return db, nil
}

// makeFile creates the folder, and an empty file that only this user may read. It does not open an existing
// file, because closing it would release SQLite's locks.
func makeFile(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return stripPath(err)
	}
	if info, err := os.Stat(path); err == nil {
		if !info.Mode().IsRegular() {
			return errors.New("it is not a file")
		}
		return restrictAccess(path)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return stripPath(err)
	}
	return f.Close()
}

// restrictAccess removes the access of other users from an existing database and from the files that SQLite keeps
// beside it. SQLite gives such files the mode of the database. It returns an error if the modes cannot be changed.
func restrictAccess(path string) error {
	if runtime.GOOS == "windows" {
		return nil // Windows has no file modes like those of Unix
	}
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		info, err := os.Stat(name)
		if errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode().Perm()&0o077 == 0 {
			continue
		}
		if err == nil {
			err = os.Chmod(name, info.Mode().Perm()&0o700)
		}
		if err != nil {
			return fmt.Errorf("others may open %s, and its mode cannot be changed: %w", filepath.Base(name), err)
		}
	}
	return nil
}

// stripPath removes the path from a file system error, because the message that contains the error already names the
// path.
func stripPath(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return fmt.Errorf("cannot write there: %w", pe.Err)
	}
	return err
}

func openError(path string, err error) error {
	if _, code := sqlite.ReasonOf(err); code == 0 {
		return fmt.Errorf("store: open %s: %w", path, err)
	}
	return StartError(path, err)
}

// StartError describes an error of the database at path in one sentence: what is wrong with the file and what to do.
// It returns any other error unchanged.
func StartError(path string, err error) error {
	reason, code := sqlite.ReasonOf(err)
	switch {
	case code == 0, errors.As(err, new(*startError)):
		return err
	case code == sqlite.CodeNotADB:
		reason = "this is not a database; it was left as it is, move it away or use another --data folder"
	case code == sqlite.CodeCorrupt:
		reason = "the database is damaged; it was left as it is, restore a copy or move it away"
	case code == sqlite.CodeError:
		reason = "the database has not the tables that it should have: it is damaged, or was changed by another program; restore a copy " +
			"or move it away (" + joinLines(err) + ")"
	default:
		reason += " (" + joinLines(err) + ")"
	}
	return &startError{fmt.Sprintf("store: open %s: %s", path, reason), err}
}

func joinLines(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// startError is a database error in a sentence for people.
type startError struct {
	text string
	err  error
}

// Error returns the sentence.
func (e *startError) Error() string { return e.text }

// Unwrap returns the error of SQLite.
func (e *startError) Unwrap() error { return e.err }

// begin opens the writing connection, checks and migrates the file, and reads what is kept in memory.
func (db *DB) begin(ctx context.Context) (*sqlite.Conn, error) {
	c, err := db.pool.DialWriter(ctx)
	if err != nil {
		return nil, err
	}
	err = prepareFile(ctx, db.pool, c)
	if err == nil {
		err = db.catalog.Load(c)
	}
	if err == nil {
		err = db.opener.FillClocks(ctx, c)
	}
	if err == nil {
		err = db.Index.Load(ctx, c)
	}
	if err == nil {
		err = db.Annotations.Load(c)
	}
	if err == nil {
		err = db.counts.loadErased(c)
	}
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// prepareFile checks that the file is empty or was created by Understudy, and migrates it if its schema is not the
// newest.
func prepareFile(ctx context.Context, pool *sqlite.Pool, c *sqlite.Conn) error {
	tables, err := c.QueryInteger("SELECT count(*) FROM sqlite_schema")
	if err != nil {
		return err
	}
	id, err := c.QueryInteger("PRAGMA application_id")
	if err != nil {
		return err
	}
	has := int64(0)
	switch {
	case id == applicationID && tables > 0:
		if has, err = c.QueryInteger("SELECT coalesce(max(version_id), 0) FROM goose_db_version"); err != nil {
			return err
		}
	case id == applicationID: // an earlier start was interrupted while it created the file
	case tables > 0 || id != 0:
		return errors.New("this is a database of another program; it was left as it is, use another --data folder")
	}
	switch {
	case has > newestMigration:
		return fmt.Errorf("the database was made by a newer Understudy (its schema is number %d, this program knows %d); it was left "+
			"as it is, use the newer program or another --data folder", has, newestMigration)
	case has == newestMigration:
		return nil
	}
	for _, pragma := range []string{"journal_mode = WAL", fmt.Sprintf("application_id = %d", applicationID)} {
		if err := c.QueryOnce("PRAGMA "+pragma, func([]driver.Value) error { return nil }); err != nil {
			return err
		}
	}
	return migrate(ctx, pool)
}

// migrate runs the missing migrations, each in a transaction. SQLite runs a whole file: goose's own reader of SQL takes
// a buffer of 4 MiB for each line of it.
func migrate(ctx context.Context, pool *sqlite.Pool) error {
	files, err := migrations.ReadDir("migrations")
	if err != nil {
		return err
	}
	steps := make([]*goose.Migration, len(files))
	for i, file := range files {
		number, err := goose.NumericComponent(file.Name())
		if err != nil {
			return err
		}
		text, err := migrations.ReadFile("migrations/" + file.Name())
		if err != nil {
			return err
		}
		steps[i] = goose.NewGoMigration(number, &goose.GoFunc{RunTx: func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, string(text))
			return err
		}}, nil)
	}
	file, err := pool.OpenSQL()
	if err != nil {
		return err
	}
	defer file.Close()
	provider, err := goose.NewProvider(goose.DialectSQLite3, file, nil, goose.WithDisableGlobalRegistry(true),
		goose.WithLogger(goose.NopLogger()), goose.WithGoMigrations(steps...))
	if err != nil {
		return err
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}

// Close waits for running calls and closes the file. Calls after Close return ErrClosed. Close may be called twice.
func (db *DB) Close() error {
	if db.pool.RefuseCalls() {
		return nil
	}
	db.Evictor.Stop()
	db.pool.Active.Wait()
	db.Evictor.Wait()
	db.Evictor.SaveReads()
	if err := db.pool.Close(); err != nil {
		return fmt.Errorf("store: close: %w", err)
	}
	return nil
}
