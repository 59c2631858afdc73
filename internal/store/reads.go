// Reads: when pages were read, kept in memory and written with the next save.

package store

import (
	"context"
	"database/sql/driver"
	"sync"
	"time"

	"understudy/internal/store/sqlite"
)

// maxReads bounds how many reads wait to be written; what comes while so many
// wait is noted at a later read.
const maxReads = 4096

// closeTime bounds what is written at the end.
const closeTime = 5 * time.Second

// reads are times of reads by the page's number, in Unix seconds.
type reads struct {
	sync.Mutex
	at map[int64]int64
}

// note remembers that a page was read now, if its last read is long past.
func (r *reads) note(p *pageRow, now time.Time) {
	s := now.Unix()
	if age := s - p.lastRead(); age >= 0 && age < int64(readEvery/time.Second) {
		return
	}
	r.Lock()
	defer r.Unlock()
	if r.at == nil {
		r.at = map[int64]int64{}
	}
	if _, ok := r.at[p.number]; ok || len(r.at) < maxReads {
		r.at[p.number] = s
	}
}

// take hands out at most n of them; give puts them back.
func (r *reads) take(n int) map[int64]int64 {
	r.Lock()
	defer r.Unlock()
	if len(r.at) <= n {
		all := r.at
		r.at = nil
		return all
	}
	some := make(map[int64]int64, n)
	for number, at := range r.at {
		if len(some) == n {
			break
		}
		some[number] = at
		delete(r.at, number)
	}
	return some
}

func (r *reads) give(back map[int64]int64) {
	r.Lock()
	defer r.Unlock()
	if r.at == nil {
		r.at = map[int64]int64{}
	}
	for number, at := range back {
		if len(r.at) < maxReads {
			r.at[number] = at
		}
	}
}

// lastRead is when the page was last read or saved, in Unix seconds.
func (p *pageRow) lastRead() int64 { return max(p.read, p.at/int64(time.Second)) }

var updateRead = &sqlite.Statement{Head: "UPDATE page SET read = ? WHERE number = ?"}

// putReads writes some reads, inside a transaction. undo puts them back when
// the transaction fails.
func (db *DB) putReads(c *sqlite.Conn) (undo func(), err error) {
	some := db.reads.take(sqlite.MaxTuples)
	undo = func() { db.reads.give(some) }
	for number, at := range some {
		if err := c.Exec(updateRead, 0, driver.Value(at), driver.Value(number)); err != nil {
			return undo, err
		}
	}
	return undo, nil
}

// keepReads writes what waits.
func (db *DB) keepReads() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	for db.reads.waiting() {
		err := db.pool.Release(ctx, func(c *sqlite.Conn) (bool, error) {
			return c.Transaction(ctx, sqlite.BeginWrite, func() error {
				_, err := db.putReads(c)
				return err
			})
		})
		if err != nil {
			db.o.Logger.Debug("store: times of reads are lost", "err", err)
			return
		}
	}
}

func (r *reads) waiting() bool {
	r.Lock()
	defer r.Unlock()
	return len(r.at) > 0
}
