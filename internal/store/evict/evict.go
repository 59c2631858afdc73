// Making room: what was not read for longest goes when the limit is near.
//
//	95 %  pages unread for seven days, longest unread first
//	      then versions that are not the newest and that no page shows, the
//	      oldest first
//	      then other pages, longest unread first, a quarter at a time, and
//	      after each quarter the versions that no page shows now
//	90 %  enough
//
// Records stay: of each the newest version in every shape, which answers
// instances. Everything is done in small transactions, so that no save waits
// long; what is freed inside the file is used again by later saves.

// Package evict makes room in the file of a store that has a limit.
package evict

import (
	"cmp"
	"context"
	"database/sql/driver"
	"log/slog"
	"math"
	"slices"
	"time"

	"understudy/internal/store/sqlite"
)

const (
	evictAt    = 95      // per cent of the limit in use: begin
	evictTo    = 90      // per cent: enough
	evictPages = 64      // pages in one transaction
	maxOldest  = 1 << 16 // pages chosen in one walk
	leastShare = 64      // pages that go at once when all were read lately
	// unread is how long a page must not have been read to be among the first to
	// go.
	unread = 7 * 24 * time.Hour
)

// Store is the store whose file the evictor makes room in.
type Store interface {
	// WatchVersions calls saved with the versions that each page saved from now
	// on shows, with the writing connection held, until end is called. What was
	// committed before can be read when it returns.
	WatchVersions(ctx context.Context, saved func(versions []int64)) (end func(), err error)
	// VisitShown calls each with the versions that every held page shows.
	VisitShown(ctx context.Context, each func(versions []int64)) error
	// Prune takes out the bodies of versions, but for the newest of each record,
	// and returns how many there were. The versions are given by block, as a set
	// of places in it.
	Prune(c *sqlite.Conn, versions map[int64]uint64) (removed int64, err error)
}

// Options are the settings of an Evictor. None may be nil.
type Options struct {
	Pool   *sqlite.Pool
	Store  Store
	Now    func() time.Time
	Logger *slog.Logger
}

// Evictor makes room in one file. Many goroutines may use it at once.
type Evictor struct {
	o          Options
	pool       *sqlite.Pool
	reads      reads
	background background
	writes     int64 // how many may still come before it is looked how full the file is
}

// New makes an Evictor that has nothing to do yet.
func New(o Options) *Evictor {
	e := &Evictor{o: o, pool: o.Pool}
	e.background.begin()
	return e
}

var (
	pragmaPages = &sqlite.Statement{Head: "PRAGMA page_count"}
	pragmaFree  = &sqlite.Statement{Head: "PRAGMA freelist_count"}
)

// usedPages is how many pages of the file are in use, those in the log included.
func usedPages(c *sqlite.Conn) (used int64, err error) {
	_, err = c.One(pragmaPages, nil, func(r []driver.Value) { used = r[0].(int64) })
	if err != nil {
		return 0, err
	}
	_, err = c.One(pragmaFree, nil, func(r []driver.Value) { used -= r[0].(int64) })
	return used, err
}

// mostWritten is about how many pages of the file one save may need.
const mostWritten = 1024

// soon reports whether the next save may bring the file to where making room begins.
// The goroutine with the writing connection asks, after each save; most often what it
// counted before is enough. failed: the save was not made, perhaps for want of room.
func (e *Evictor) soon(c *sqlite.Conn, failed bool) (bool, error) {
	if e.writes--; e.writes > 0 && !failed {
		return false, nil
	}
	e.writes = 0
	if e.pool.Pages == 0 {
		return false, nil
	}
	used, err := usedPages(c)
	if err != nil {
		return false, err
	}
	e.writes = max(0, (e.pool.Pages*evictAt/100-used)/mostWritten)
	return used*100 > e.pool.Pages*evictAt, nil
}

// beyond reports whether more than per cent of the limit is in use.
func (e *Evictor) beyond(c *sqlite.Conn, percent int64) (bool, error) {
	if e.pool.Pages == 0 {
		return false, nil
	}
	used, err := usedPages(c)
	return used*100 > e.pool.Pages*percent, err
}

// Start begins to make room when that is due.
func (e *Evictor) Start(ctx context.Context) {
	_ = e.pool.Write(ctx, func(c *sqlite.Conn) (bool, error) { e.Maintain(c, true); return false, nil })
}

// Maintain begins to make room in the background when that is due. The store calls
// it after every save, with the writing connection; failed: the save was not made.
func (e *Evictor) Maintain(c *sqlite.Conn, failed bool) {
	near, err := e.soon(c, failed)
	if err != nil || !near || !e.background.due(e.o.Now()) {
		return
	}
	e.background.work.Go(func() {
		if err := e.during(e.background.ctx, e.makeRoom); err != nil && e.background.ctx.Err() == nil {
			e.o.Logger.Warn("store: making room failed", "err", err)
		}
	})
}

// Evict makes room now, if the limit is near, after what is under way has ended.
// Maintain makes room as well, later; Evict is for a caller that cannot wait.
func (e *Evictor) Evict(ctx context.Context) error {
	leave, err := e.pool.Begin()
	if err != nil {
		return err
	}
	defer leave()
	select {
	case e.background.running <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	err = e.during(ctx, func(ctx context.Context) (enough bool, err error) {
		near := false
		err = e.pool.Write(ctx, func(c *sqlite.Conn) (bool, error) { near, err = e.beyond(c, evictAt); return false, err })
		if err != nil || !near {
			return true, err
		}
		return e.makeRoom(ctx)
	})
	return sqlite.Failed(false, err, "make room in %s", e.pool.Path)
}

// during does the work of a turn and gives it back.
func (e *Evictor) during(ctx context.Context, work func(context.Context) (enough bool, err error)) error {
	enough, err := work(ctx)
	e.background.done(e.o.Now(), !enough)
	return err
}

// makeRoom evicts until there is room; enough is false when all that may go
// has gone and it is not.
func (e *Evictor) makeRoom(ctx context.Context) (enough bool, err error) {
	e.SaveReads()
	left, err := e.evictPages(ctx, e.o.Now().Add(-unread).Unix(), math.MaxInt64)
	for {
		if enough, err = e.enough(ctx, err); err != nil || enough {
			return enough, err
		}
		_, err = e.sweep(ctx)
		if enough, err = e.enough(ctx, err); err != nil || enough || left == 0 {
			return enough, err
		}
		left, err = e.evictPages(ctx, math.MaxInt64, max(leastShare, left/4))
		if err != nil {
			return false, err
		}
	}
}

// enough reports whether there is room again, unless err says that it cannot
// be made.
func (e *Evictor) enough(ctx context.Context, err error) (enough bool, _ error) {
	if err != nil {
		return false, err
	}
	err = e.pool.Write(ctx, func(c *sqlite.Conn) (bool, error) {
		beyond, err := e.beyond(c, evictTo)
		enough = !beyond
		return false, err
	})
	return enough, err
}

// pageAge is a page and when it was last read or saved, in Unix seconds.
type pageAge struct{ number, read int64 }

// evictPages evicts at most n pages read at before or earlier, longest unread
// first, until there is room. left is how many pages are still there.
func (e *Evictor) evictPages(ctx context.Context, before, n int64) (left int64, err error) {
	for {
		oldest, all, err := e.oldest(ctx, before, int(min(n, maxOldest)))
		if err != nil {
			return 0, err
		}
		left, n = all, n-int64(len(oldest))
		for part := range slices.Chunk(oldest, evictPages) {
			gone, enough, err := e.evictSome(ctx, part)
			left -= gone
			if err != nil || enough {
				return left, err
			}
		}
		if n <= 0 || len(oldest) < maxOldest {
			return left, nil
		}
	}
}

var (
	selectAges = &sqlite.Statement{Head: "SELECT number, max(read, at / 1000000000) FROM page WHERE number > ? ORDER BY number LIMIT ?"}
	// deletePages spares what was read or saved since it was chosen.
	deletePages = &sqlite.Statement{Head: "DELETE FROM page WHERE max(read, at / 1000000000) <= ? " +
		"AND number IN (", Tuple: "?", Tail: ") RETURNING 1"}
	countEvicted = &sqlite.Statement{Head: "UPDATE counter SET evicted_pages = evicted_pages + ?, evicted_versions = " +
		"evicted_versions + ?, evicted_at = ?"}
)

// oldest chooses the n pages unread for longest of those read at before or
// earlier, in that order. all counts every page.
func (e *Evictor) oldest(ctx context.Context, before int64, n int) (oldest []pageAge, all int64, err error) {
	shorten := func() {
		slices.SortFunc(oldest, func(a, b pageAge) int { return cmp.Or(cmp.Compare(a.read, b.read), cmp.Compare(a.number, b.number)) })
		oldest = oldest[:min(n, len(oldest))]
	}
	const chunk = 1024
	last, rows := int64(-1), chunk
	for rows == chunk {
		rows = 0
		err := e.pool.Read(ctx, func(c *sqlite.Conn) error {
			return c.Query(selectAges, 0, []driver.Value{last, int64(chunk)}, func(r []driver.Value) error {
				last = r[0].(int64)
				rows++
				if read := r[1].(int64); read <= before {
					oldest = append(oldest, pageAge{last, read})
				}
				return nil
			})
		})
		if err != nil {
			return nil, 0, err
		}
		if all += int64(rows); len(oldest) >= 2*n {
			shorten()
		}
	}
	shorten()
	return oldest, all, nil
}

// evictSome evicts a few pages in one transaction.
func (e *Evictor) evictSome(ctx context.Context, part []pageAge) (gone int64, enough bool, err error) {
	args := []driver.Value{part[len(part)-1].read}
	for _, p := range part {
		args = append(args, p.number)
	}
	err = e.pool.Release(ctx, func(c *sqlite.Conn) (bool, error) {
		broken, err := c.Transaction(ctx, sqlite.BeginWrite, func() error {
			err := c.Query(deletePages, len(part), args, func([]driver.Value) error { gone++; return nil })
			if err != nil || gone == 0 {
				return err
			}
			return e.evicted(c, gone, 0)
		})
		if err != nil {
			return broken, err
		}
		beyond, err := e.beyond(c, evictTo)
		enough = !beyond
		return false, err
	})
	return gone, enough, err
}

// evicted counts what the limit has made go.
func (e *Evictor) evicted(c *sqlite.Conn, pages, versions int64) error {
	return c.Exec(countEvicted, 0, pages, versions, e.o.Now().UnixNano())
}

// Stop ends the work in the background and refuses more; Wait waits for its end.
func (e *Evictor) Stop() { e.background.stop() }

// Wait waits until no work is under way in the background.
func (e *Evictor) Wait() { e.background.work.Wait() }
