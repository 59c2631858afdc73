// This file opens and closes the database, and copies it to another one. It checks an existing file and never replaces it.

package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"understudy"

	"understudy/internal/store/annotations"
	"understudy/internal/store/catalog"
	"understudy/internal/store/claims"
	"understudy/internal/store/db"
	"understudy/internal/store/erase"
	"understudy/internal/store/evict"
	"understudy/internal/store/fts5"
	"understudy/internal/store/history"
	"understudy/internal/store/index"
	"understudy/internal/store/jobs"
	"understudy/internal/store/kv"
	"understudy/internal/store/move"
	"understudy/internal/store/nodes"
	"understudy/internal/store/pages"
	"understudy/internal/store/postgres"
	"understudy/internal/store/records"
	"understudy/internal/store/seek"
	"understudy/internal/store/series"
	"understudy/internal/store/sqlite"
	"understudy/internal/store/tsvector"
	"understudy/internal/store/verify"
	"understudy/internal/store/wordrows"
	"understudy/kit/retry"
)

// DB is a store in one database. It is safe for concurrent use: one goroutine writes and a few read, each
// for much less time than an upstream request takes. Its fields hold what is stored beside pages, records and
// changes.
type DB struct {
	Jobs        *jobs.Queue
	KV          *kv.Table
	Series      *series.Points
	Actions     *claims.Table
	Annotations *annotations.Book
	Nodes       *nodes.Table
	Eraser      *erase.Eraser
	Evictor     *evict.Evictor
	Verifier    *verify.Verifier
	Index       *index.Index

	// The embedded types give DB its methods for reading pages, records and history, and for searching.
	*pages.Reader
	*history.Records
	*seek.Seeker

	o       Options
	pool    *db.Pool
	opener  *records.Opener
	pages   *pages.Loader
	catalog *catalog.Catalog
	counts  counts
	scratch scratch
}

// counts are counters and callbacks by which the writing goroutine informs others.
type counts struct {
	pool     *db.Pool
	watchers watchers
	epoch    atomic.Int64 // twice the number of writes that moved records to make room; odd while such a write is open
	writes   atomic.Int64 // writes of all sorts, committed or not
	silent   atomic.Int64 // twice the number of writes that added or removed records without a change; odd while such a write is open
	erased   atomic.Int64 // the number of erased records, which must not be stored again
}

// Open opens the store. It creates the file if it is missing or empty. It does not touch a file that is damaged,
// belongs to another program, or was written by a newer Understudy. The error then says so in one sentence.
func Open(ctx context.Context, o Options) (*DB, error) {
	understudy.SetDefaults(&o.Logger, &o.Now)
	o.SaveTime = cmp.Or(max(o.SaveTime, 0), 2*time.Second)
	o.Readers = cmp.Or(max(o.Readers, 0), 4)
	engine, words, err := newEngine(&o)
	if err != nil {
		return nil, err
	}
	d := &DB{o: o}
	d.pool = db.NewPool(engine, o.Readers, o.Now, d.counts.settleWrite)
	catalog := catalog.New(d.pool, o.Specs)
	d.catalog, d.opener = catalog, records.New(catalog, seek.MaxHelpers+1)
	d.counts.pool, d.counts.watchers.pool = d.pool, d.pool
	d.Index = index.New(d.pool, catalog, d.opener, words)
	d.Seeker = seek.New(d.pool, catalog, d.opener, d.Index, &d.counts.epoch, o.Now)
	d.Records = history.New(d.pool, catalog, d.opener)
	d.Jobs, d.KV, d.Series = jobs.NewQueue(d.pool), kv.New(d.pool, o.Logger), series.New(d.pool)
	d.Actions, d.Annotations = claims.New(d.pool), annotations.New(d.pool, catalog)
	d.Nodes = nodes.New(d.pool, func() { d.counts.writes.Add(1) })
	d.Evictor = evict.New(evict.Options{Pool: d.pool, Store: evictable{d}, Now: o.Now, Logger: o.Logger})
	d.pages = pages.NewLoader(catalog, d.opener)
	d.Reader = pages.NewReader(d.pool, d.pages, d.Evictor.NoteRead)
	d.Verifier = verify.New(d.pool, catalog, d.opener, d.pages, d.Index)
	d.Eraser = erase.New(erase.Options{Pool: d.pool, Store: erasable{d}, Annotations: d.Annotations, Values: d.KV, Now: o.Now})
	if err := d.begin(ctx); err != nil {
		_ = d.Close()
		if db.ClassOf(err) == db.NoClass {
			return nil, fmt.Errorf("store: open %s: %w", engine.Name(), err)
		}
		return nil, StartError(engine.Name(), err)
	}
	d.Evictor.Start(ctx)
	d.Index.ScheduleFlush()
	return d, nil
}

// StartError describes an error of the database at path in one sentence: what is wrong with the file and what to do.
// It returns any other error unchanged.
func StartError(path string, err error) error {
	if IsPostgreSQL(path) {
		if engine, nerr := postgres.NewEngine(path); nerr == nil {
			path = engine.Name()
		}
	}
	reason, class := db.ReasonOf(err), db.ClassOf(err)
	switch {
	case class == db.NoClass, errors.As(err, new(*startError)):
		return err
	case class == db.Foreign:
		reason = "this is not a database; it was left as it is, move it away or use another --data folder"
	case class == db.Damaged:
		reason = "the database is damaged; it was left as it is, restore a copy or move it away"
	case class == db.Schema:
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

// begin opens the connections, prepares the database, and reads what is kept in memory.
func (d *DB) begin(ctx context.Context) error {
	c, err := d.pool.Engine.Dial(ctx, true)
	if err != nil {
		return err
	}
	err = d.pool.Engine.Prepare(ctx, c)
	if db.ClassOf(err) == db.Postponed {
		d.o.Logger.Warn("store: a later start will finish the schema, because an older process still runs", "error", err)
	} else if err != nil {
		_ = c.Close()
		return err
	}
	setLoaders(d)
	return d.pool.Start(ctx, c, func() error {
		err := d.catalog.Load(c)
		if err == nil && !d.o.unfinished {
			err = move.CheckComplete(c)
		}
		if err == nil {
			err = d.opener.FillClocks(ctx, c)
		}
		if err == nil {
			err = d.Index.Load(ctx, c)
		}
		if err == nil {
			err = d.Annotations.Load(c)
		}
		if err == nil {
			err = d.counts.loadErased(c)
		}
		return err
	})
}

// setLoaders says how to read again what another process has changed.
func setLoaders(d *DB) {
	d.pool.SetLoader(db.Catalog, func(_ context.Context, c db.Conn) error { return d.catalog.Load(c) })
	d.pool.SetLoader(db.Annotations, func(_ context.Context, c db.Conn) error { return d.Annotations.Load(c) })
	d.pool.SetLoader(db.Indexes, func(_ context.Context, c db.Conn) error { return d.Index.Reload(c) })
	d.pool.SetLoader(db.Words, func(context.Context, db.Conn) error { d.Index.AllowAnyWord(); return nil })
	d.pool.SetLoader(db.Moves, func(context.Context, db.Conn) error { d.counts.epoch.Add(2); return nil })
	d.pool.SetLoader(db.Silent, func(context.Context, db.Conn) error {
		d.counts.silent.Add(2)
		d.Nodes.NoteDeletions()
		return nil
	})
	d.pool.SetLoader(db.Kinds, func(_ context.Context, c db.Conn) error { return d.Nodes.NoteWrites(c) })
	d.pool.SetLoader(db.Pages, func(context.Context, db.Conn) error { d.Nodes.NoteDeletions(); return nil })
	d.pool.SetLoader(db.Erasures, func(_ context.Context, c db.Conn) error { return d.counts.loadErased(c) })
}

// Refresh loads what other processes have changed of what this process keeps in memory, as each transaction does. After
// it the memory contains every change that was committed before the call.
func (d *DB) Refresh(ctx context.Context) error {
	return db.WrapError(false, d.pool.Refresh(ctx), "refresh")
}

// Close waits for running transactions and closes the file. Later transactions fail with ErrClosed, also those of calls that
// are running. Close may be called twice.
func (d *DB) Close() error {
	d.Evictor.Stop()
	d.Evictor.SaveReads()
	if d.pool.RefuseCalls() {
		return nil
	}
	d.pool.WaitForCalls()
	d.Evictor.Wait()
	if err := errors.Join(d.Nodes.Close(), d.pool.Close()); err != nil {
		return fmt.Errorf("store: close: %w", err)
	}
	return nil
}

// IsPostgreSQL reports whether a text names a PostgreSQL database. Any other text is the path of an SQLite file.
func IsPostgreSQL(dsn string) bool {
	return strings.HasPrefix(dsn, "postgres://") || strings.HasPrefix(dsn, "postgresql://")
}

// newEngine returns the engine of the database that the options name, and its table of words. It makes a file that is
// not there.
func newEngine(o *Options) (db.Engine, wordrows.Table, error) {
	if IsPostgreSQL(o.Path) {
		engine, err := postgres.NewEngine(o.Path)
		if err != nil {
			return nil, nil, fmt.Errorf("store: %w", err)
		}
		return engine, tsvector.Table{}, nil
	}
	path, err := filepath.Abs(o.Path)
	if err != nil {
		return nil, nil, fmt.Errorf("store: open %s: %w", o.Path, err)
	}
	if err := sqlite.MakeFile(path); err != nil {
		return nil, nil, fmt.Errorf("store: open %s: %w; choose another folder with --data", path, err)
	}
	return sqlite.NewEngine(path, o.Limit, o.logShare()), fts5.Table{}, nil
}

// stopInterval is how often Move looks whether the servers have stopped.
const stopInterval = time.Second

// MoveOptions are what Move needs.
type MoveOptions struct {
	From, To string // as Options.Path
	// Report is called with the progress of each step: copy, index, verify.
	Report func(step string, done, total int64)
	// Notify is called with sentences for the user.
	Notify func(sentence string)
	// HasStopped reports whether the server has stopped that uses the data folder.
	HasStopped func() bool
}

// Move copies the store to another database, which is empty or has the beginning of such a copy, and builds the indexes
// there. Meanwhile the source answers reads, and writes to it wait or fail. Move returns when no server uses the source any
// more, so the copy has all that was ever written.
func Move(ctx context.Context, o MoveOptions) error {
	source, _, err := newEngine(&Options{Path: o.From})
	if err != nil {
		return err
	}
	target, _, err := newEngine(&Options{Path: o.To})
	if err != nil {
		return err
	}
	if source.Name() == target.Name() {
		return fmt.Errorf("store: %s is the database that is to be moved; name another one", target.Name())
	}
	err = move.Copy(ctx, move.Options{Source: source, Target: target, Notify: o.Notify,
		Report: func(done, total int64) { o.Report("copy", done, total) },
		Finish: func(c db.Conn) error {
			if err := o.complete(ctx); err != nil {
				return err
			}
			return o.awaitServers(ctx, c)
		}})
	if db.ClassOf(err) != db.NoClass {
		return db.WrapError(true, err, "move the database to %s", target.Name())
	}
	return err
}

// complete builds the indexes of the copy and verifies it.
func (o *MoveOptions) complete(ctx context.Context) (err error) {
	d, err := Open(ctx, Options{Path: o.To, unfinished: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	if d.Index.Progress() == (index.Progress{}) {
		err = d.Index.Clear(ctx)
	}
	if err == nil {
		err = d.Index.Build(ctx, func(done, total int64) { o.Report("index", done, total) })
	}
	if err != nil {
		return err
	}
	d.Verifier.OnRow = func(done, total int64) { o.Report("verify", done, total) }
	report, err := d.Verifier.Verify(ctx)
	if err == nil && len(report.Problems) > 0 {
		err = fmt.Errorf("store: the copy has a problem, which the source may have too: %s; run understudy store verify",
			report.Problems[0])
	}
	return err
}

// awaitServers waits until no server uses the source. c is its connection.
func (o *MoveOptions) awaitServers(ctx context.Context, c db.Conn) error {
	for told := false; ; told = true {
		running, err := nodes.CountRunning(c)
		if err != nil || running == 0 && o.HasStopped() {
			return err
		}
		if !told {
			o.Notify("The copy is complete. Now stop all servers: until then they answer reads and cannot write.")
			o.Report("waiting until the servers have stopped", 0, 0)
		}
		if err := retry.Wait(ctx, stopInterval); err != nil {
			return err
		}
	}
}
