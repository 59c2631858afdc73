// Evict: what was not read for longest goes when the limit is near.
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

package store

import (
	"cmp"
	"context"
	"database/sql/driver"
	"math"
	"slices"
	"sync"
	"time"

	"understudy/internal/store/sqlite"
)

const (
	evictAt    = 95      // per cent of the limit in use: begin
	evictTo    = 90      // per cent: enough
	evictPages = 64      // pages in one transaction
	maxOldest  = 1 << 16 // pages chosen in one walk
	leastShare = 64      // pages that go at once when all were read lately
	// evictPause is how long nothing is tried again after everything that may
	// go has gone, or after an error.
	evictPause = time.Minute
)

// room is the work of making room, behind the saves.
type room struct {
	turn  chan struct{} // who makes room or sweeps has it
	mu    sync.Mutex
	ended bool
	end   context.CancelFunc
	ctx   context.Context
	pause time.Time // nothing is tried before
	work  sync.WaitGroup
}

func (r *room) open() {
	r.turn = make(chan struct{}, 1)
	r.ctx, r.end = context.WithCancel(context.Background())
}

// stop ends what is under way and refuses more.
func (r *room) stop() {
	r.mu.Lock()
	r.ended = true
	r.mu.Unlock()
	r.end()
}

// due reports whether to begin behind the saves, and takes the turn then.
func (r *room) due(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	waiting := now.Before(r.pause) && r.pause.Sub(now) <= evictPause // a clock set back ends it
	if r.ended || waiting {
		return false
	}
	select {
	case r.turn <- struct{}{}:
		return true
	default:
		return false
	}
}

// done gives the turn back. tried says that more cannot be had now.
func (r *room) done(now time.Time, tried bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	<-r.turn
	if tried {
		r.pause = now.Add(evictPause)
	}
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

// beyond reports whether more than per cent of the limit is in use.
func (db *DB) beyond(c *sqlite.Conn, percent int64) (bool, error) {
	if db.pool.Pages == 0 {
		return false, nil
	}
	used, err := usedPages(c)
	return used*100 > db.pool.Pages*percent, err
}

// look begins to make room when that is due.
func (db *DB) look(ctx context.Context) {
	_ = db.pool.Write(ctx, func(c *sqlite.Conn) (bool, error) { db.maintain(c); return false, nil })
}

// tidy begins to make room, behind, when that is due. It is told of every save
// with the writing connection held.
func (db *DB) maintain(c *sqlite.Conn) {
	near, err := db.beyond(c, evictAt)
	if err != nil || !near || !db.room.due(db.o.Now()) {
		return
	}
	db.room.work.Go(func() {
		if err := db.during(db.room.ctx, db.makeRoom); err != nil && db.room.ctx.Err() == nil {
			db.o.Logger.Warn("store: making room failed", "err", err)
		}
	})
}

// Evict makes room now, if the limit is near; what is under way is waited for.
// The store does it by itself behind its saves; Evict is for who cannot wait.
func (db *DB) Evict(ctx context.Context) error {
	leave, err := db.pool.Begin()
	if err != nil {
		return err
	}
	defer leave()
	select {
	case db.room.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	err = db.during(ctx, func(ctx context.Context) (enough bool, err error) {
		near := false
		err = db.pool.Write(ctx, func(c *sqlite.Conn) (bool, error) { near, err = db.beyond(c, evictAt); return false, err })
		if err != nil || !near {
			return true, err
		}
		return db.makeRoom(ctx)
	})
	return sqlite.Failed(false, err, "make room in %s", db.pool.Path)
}

// during does the work of a turn and gives it back.
func (db *DB) during(ctx context.Context, work func(context.Context) (enough bool, err error)) error {
	enough, err := work(ctx)
	db.room.done(db.o.Now(), !enough)
	return err
}

// makeRoom evicts until there is room; enough is false when all that may go
// has gone and it is not.
func (db *DB) makeRoom(ctx context.Context) (enough bool, err error) {
	db.keepReads()
	left, err := db.evictPages(ctx, db.o.Now().Add(-unread).Unix(), math.MaxInt64)
	for {
		if enough, err = db.enough(ctx, err); err != nil || enough {
			return enough, err
		}
		_, err = db.sweep(ctx)
		if enough, err = db.enough(ctx, err); err != nil || enough || left == 0 {
			return enough, err
		}
		left, err = db.evictPages(ctx, math.MaxInt64, max(leastShare, left/4))
		if err != nil {
			return false, err
		}
	}
}

// enough reports whether there is room again, unless err says that it cannot
// be made.
func (db *DB) enough(ctx context.Context, err error) (enough bool, _ error) {
	if err != nil {
		return false, err
	}
	err = db.pool.Write(ctx, func(c *sqlite.Conn) (bool, error) {
		beyond, err := db.beyond(c, evictTo)
		enough = !beyond
		return false, err
	})
	return enough, err
}

// pageAge is a page and when it was last read or saved, in Unix seconds.
type pageAge struct{ number, read int64 }

// evictPages evicts at most n pages read at before or earlier, longest unread
// first, until there is room. left is how many pages are still there.
func (db *DB) evictPages(ctx context.Context, before, n int64) (left int64, err error) {
	for {
		oldest, all, err := db.oldest(ctx, before, int(min(n, maxOldest)))
		if err != nil {
			return 0, err
		}
		left, n = all, n-int64(len(oldest))
		for part := range slices.Chunk(oldest, evictPages) {
			gone, enough, err := db.evictSome(ctx, part)
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
func (db *DB) oldest(ctx context.Context, before int64, n int) (oldest []pageAge, all int64, err error) {
	shorten := func() {
		slices.SortFunc(oldest, func(a, b pageAge) int { return cmp.Or(cmp.Compare(a.read, b.read), cmp.Compare(a.number, b.number)) })
		oldest = oldest[:min(n, len(oldest))]
	}
	const chunk = 1024
	last, rows := int64(-1), chunk
	for rows == chunk {
		rows = 0
		err := db.pool.Read(ctx, func(c *sqlite.Conn) error {
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
func (db *DB) evictSome(ctx context.Context, part []pageAge) (gone int64, enough bool, err error) {
	args := []driver.Value{part[len(part)-1].read}
	for _, p := range part {
		args = append(args, p.number)
	}
	err = db.pool.Release(ctx, func(c *sqlite.Conn) (bool, error) {
		broken, err := c.Transaction(ctx, sqlite.BeginWrite, func() error {
			err := c.Query(deletePages, len(part), args, func([]driver.Value) error { gone++; return nil })
			if err != nil || gone == 0 {
				return err
			}
			return db.evicted(c, gone, 0)
		})
		if err != nil {
			return broken, err
		}
		beyond, err := db.beyond(c, evictTo)
		enough = !beyond
		return false, err
	})
	return gone, enough, err
}

// evicted counts what the limit has made go.
func (db *DB) evicted(c *sqlite.Conn, pages, versions int64) error {
	return c.Exec(countEvicted, 0, pages, versions, db.o.Now().UnixNano())
}
