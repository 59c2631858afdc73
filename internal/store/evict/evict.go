// This file frees space: near the limit the least recently read data is evicted.
//
//	95 %  evict pages not read for seven days, least recently read first
//	      then versions that are not the newest and that no page shows,
//	      oldest first
//	      then other pages, least recently read first, a quarter at a time,
//	      and after each quarter the versions that no page shows any more
//	90 %  stop
//
// Records are kept: the newest version of each record in every shape, from which instances are served. All work
// is done in small transactions, so that no save waits long. Later saves use the freed space inside the file.

// Package evict frees space in the file of a store that has a size limit.
package evict

import (
	"cmp"
	"context"
	"database/sql/driver"
	"log/slog"
	"math"
	"slices"
	"time"

	"understudy/internal/store/db"
)

const (
	evictAbovePercent   = 95      // eviction starts when more than this percentage of the limit is in use
	evictToPercent      = 90      // eviction stops when at most this percentage of the limit is in use
	pagesPerTransaction = 64      // the number of pages evicted in one transaction
	maxOldest           = 1 << 16 // the maximum number of pages chosen for eviction in one scan of the pages
	minEvicted          = 64      // the minimum number of pages to evict at once when all were read recently
	// unreadAge is how long ago a page must have been read for the last time to be evicted first.
	unreadAge = 7 * 24 * time.Hour
)

// Store is the store in whose file the evictor frees space.
type Store interface {
	// WatchVersions calls saved with the versions of each page that is saved from now on, until the caller calls end. The
	// calls come from the writing goroutine. What was committed before can be read when WatchVersions returns.
	WatchVersions(ctx context.Context, saved func(versions []int64)) (end func(), err error)
	// VisitShown calls each with the versions that each stored page shows.
	VisitShown(ctx context.Context, each func(versions []int64)) error
	// Prune deletes the bodies of versions, except for the newest of each record, and returns how many bodies
	// it deleted. The versions are given by block, as a bit set of positions in the block.
	Prune(c db.Conn, versions map[int64]uint64) (removed int64, err error)
}

// Options are the settings of an Evictor. All are required.
type Options struct {
	Pool   *db.Pool
	Store  Store
	Now    func() time.Time
	Logger *slog.Logger
}

// Evictor frees space in one file. It is safe for concurrent use.
type Evictor struct {
	o          Options
	pool       *db.Pool
	reads      reads
	background background
	writes     int64 // the number of saves that may follow before the file's size is checked again
}

// New returns an Evictor. It does nothing before Start.
func New(o Options) *Evictor {
	e := &Evictor{o: o, pool: o.Pool}
	e.background.begin()
	return e
}

// pagesPerSave is about how many pages of the file one save may need.
const pagesPerSave = 1024

// checkFull reports whether the next save may reach the level at which eviction starts. The writing goroutine
// calls it after each save. Usually the count of the last check is enough. failed means that the save failed,
// perhaps for lack of space.
func (e *Evictor) checkFull(c db.Conn, failed bool) (bool, error) {
	if e.writes--; e.writes > 0 && !failed {
		return false, nil
	}
	e.writes = 0
	if e.pool.Engine.Limit() == 0 {
		return false, nil
	}
	used, err := e.pool.Engine.CountUsed(c)
	if err != nil {
		return false, err
	}
	e.writes = max(0, (e.pool.Engine.Limit()*evictAbovePercent/100-used)/pagesPerSave)
	return used*100 > e.pool.Engine.Limit()*evictAbovePercent, nil
}

// checkUse reports whether more than percent of the limit is in use.
func (e *Evictor) checkUse(c db.Conn, percent int64) (bool, error) {
	if e.pool.Engine.Limit() == 0 {
		return false, nil
	}
	used, err := e.pool.Engine.CountUsed(c)
	return used*100 > e.pool.Engine.Limit()*percent, err
}

// Start begins to evict in the background if the file is near its limit.
func (e *Evictor) Start(ctx context.Context) {
	_ = e.pool.Write(ctx, func(c db.Conn) (bool, error) { e.StartIfNeeded(c, true); return false, nil })
}

// StartIfNeeded begins to evict in the background if the file is near its limit. The store calls it after every
// save, with the writing connection. failed means that the save failed.
func (e *Evictor) StartIfNeeded(c db.Conn, failed bool) {
	near, err := e.checkFull(c, failed)
	if err != nil || !near || !e.background.takeTurn(e.o.Now()) {
		return
	}
	e.background.work.Go(func() {
		if err := e.runTurn(e.background.ctx, e.makeRoom); err != nil && e.background.ctx.Err() == nil {
			e.o.Logger.Warn("store: making room failed", "err", err)
		}
	})
}

// Evict frees space now if the file is near its limit, after the current work has ended. StartIfNeeded also frees
// space, but later. Evict is for callers that cannot wait.
func (e *Evictor) Evict(ctx context.Context) error {
	select {
	case e.background.running <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	err := e.runTurn(ctx, func(ctx context.Context) (enough bool, err error) {
		near := false
		err = e.pool.Write(ctx, func(c db.Conn) (bool, error) { near, err = e.checkUse(c, evictAbovePercent); return false, err })
		if err != nil || !near {
			return true, err
		}
		return e.makeRoom(ctx)
	})
	return db.WrapError(false, err, "make room in %s", e.pool.Engine.Name())
}

// runTurn does the work of a turn and gives the turn back.
func (e *Evictor) runTurn(ctx context.Context, work func(context.Context) (enough bool, err error)) error {
	enough, err := work(ctx)
	e.background.endTurn(e.o.Now(), !enough)
	return err
}

// makeRoom evicts until there is enough space. enough is false if the file is still too full after everything that may
// be evicted was evicted.
func (e *Evictor) makeRoom(ctx context.Context) (enough bool, err error) {
	e.SaveReads()
	left, err := e.evictPages(ctx, e.o.Now().Add(-unreadAge).Unix(), math.MaxInt64)
	for {
		if enough, err = e.checkRoom(ctx, err); err != nil || enough {
			return enough, err
		}
		_, err = e.sweep(ctx)
		if enough, err = e.checkRoom(ctx, err); err != nil || enough || left == 0 {
			return enough, err
		}
		left, err = e.evictPages(ctx, math.MaxInt64, max(minEvicted, left/4))
		if err != nil {
			return false, err
		}
	}
}

// checkRoom reports whether there is enough space again. If err is not nil, it returns err instead.
func (e *Evictor) checkRoom(ctx context.Context, err error) (enough bool, _ error) {
	if err != nil {
		return false, err
	}
	err = e.pool.Write(ctx, func(c db.Conn) (bool, error) {
		beyond, err := e.checkUse(c, evictToPercent)
		enough = !beyond
		return false, err
	})
	return enough, err
}

// pageAge is a page with the time when it was last read or saved, in Unix seconds.
type pageAge struct{ number, read int64 }

// evictPages evicts at most n pages, least recently read first, until there is enough space. It leaves out pages that
// were read after the time before. left is the number of pages that remain.
func (e *Evictor) evictPages(ctx context.Context, before, n int64) (left int64, err error) {
	for {
		oldest, all, err := e.findOldest(ctx, before, int(min(n, maxOldest)))
		if err != nil {
			return 0, err
		}
		left, n = all, n-int64(len(oldest))
		for part := range slices.Chunk(oldest, pagesPerTransaction) {
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

// lastUse is the time in Unix seconds when a row of table page was last read or saved.
const lastUse = "CASE WHEN read > at / 1000000000 THEN read ELSE at / 1000000000 END"

var (
	selectAges = &db.Statement{Head: "SELECT number, " + lastUse + " FROM page WHERE number > ? ORDER BY number LIMIT ?"}
	// deletePages deletes the given pages, except for pages that were read or saved after they were chosen.
	deletePages = &db.Statement{Head: "DELETE FROM page WHERE " + lastUse + " <= ? " +
		"AND number IN (", Tuple: "?", Tail: ") RETURNING 1"}
	updateEvicted = &db.Statement{Head: "UPDATE counter SET evicted_pages = evicted_pages + ?, evicted_versions = " +
		"evicted_versions + ?, evicted_at = ?"}
)

// findOldest returns the n least recently read pages in that order. It leaves out pages that were read after the time
// before. all is the number of all pages.
func (e *Evictor) findOldest(ctx context.Context, before int64, n int) (oldest []pageAge, all int64, err error) {
	shorten := func() {
		slices.SortFunc(oldest, func(a, b pageAge) int { return cmp.Or(cmp.Compare(a.read, b.read), cmp.Compare(a.number, b.number)) })
		oldest = oldest[:min(n, len(oldest))]
	}
	const chunk = 1024
	last, rows := int64(-1), chunk
	for rows == chunk {
		rows = 0
		err := e.pool.Read(ctx, func(c db.Conn) error {
			return db.VisitRows(c, selectAges, []driver.Value{last, int64(chunk)}, func(r []driver.Value) {
				last = r[0].(int64)
				rows++
				if read := r[1].(int64); read <= before {
					oldest = append(oldest, pageAge{last, read})
				}
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
	err = e.pool.Release(ctx, func(c db.Conn) (bool, error) {
		broken, err := c.RunTransaction(ctx, func() error {
			err := c.Query(deletePages, len(part), args, func([]driver.Value) error { gone++; return nil })
			if err != nil || gone == 0 {
				return err
			}
			return e.countEvicted(c, gone, 0)
		})
		if err != nil {
			return broken, err
		}
		beyond, err := e.checkUse(c, evictToPercent)
		enough = !beyond
		return false, err
	})
	return gone, enough, err
}

// countEvicted adds to the counters of evicted pages and versions.
func (e *Evictor) countEvicted(c db.Conn, pages, versions int64) error {
	return c.Execute(updateEvicted, 0, pages, versions, e.o.Now().UnixNano())
}

// Stop cancels the eviction in the background and refuses further eviction. Call Wait to wait until it has ended.
func (e *Evictor) Stop() { e.background.stop() }

// Wait waits until no eviction runs in the background.
func (e *Evictor) Wait() { e.background.work.Wait() }
