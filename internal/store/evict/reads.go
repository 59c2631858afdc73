// The times at which pages were read: kept in memory and written with the next
// save.

package evict

import (
	"context"
	"database/sql/driver"
	"sync"
	"time"

	"understudy/internal/store/sqlite"
)

const (
	// maxReads bounds how many reads wait to be written. Further ones are dropped;
	// a later read of the same page is noted.
	maxReads = 4096
	// closeTime bounds what is written at the end.
	closeTime = 5 * time.Second
	// readEvery is how old the noted time of a read may get before another is
	// worth a write.
	readEvery = time.Hour
)

// reads are times of reads by the page's number, in Unix seconds.
type reads struct {
	sync.Mutex
	at map[int64]int64
}

// NoteRead remembers that a page was read now, unless it was read or saved within
// the last hour. last is when that was, in Unix seconds.
func (e *Evictor) NoteRead(page, last int64) { e.reads.note(page, last, e.o.Now()) }

func (r *reads) note(page, last int64, now time.Time) {
	s := now.Unix()
	if age := s - last; age >= 0 && age < int64(readEvery/time.Second) {
		return
	}
	r.Lock()
	defer r.Unlock()
	if r.at == nil {
		r.at = map[int64]int64{}
	}
	if _, ok := r.at[page]; ok || len(r.at) < maxReads {
		r.at[page] = s
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

var updateRead = &sqlite.Statement{Head: "UPDATE page SET read = ? WHERE number = ?"}

// PutReads writes some times of reads, inside a transaction. undo puts them back
// when the transaction fails.
func (e *Evictor) PutReads(c *sqlite.Conn) (undo func(), err error) {
	some := e.reads.take(sqlite.MaxTuples)
	undo = func() { e.reads.give(some) }
	for number, at := range some {
		if err := c.Exec(updateRead, 0, driver.Value(at), driver.Value(number)); err != nil {
			return undo, err
		}
	}
	return undo, nil
}

// SaveReads writes all times of reads that wait to be written.
func (e *Evictor) SaveReads() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	for e.reads.waiting() {
		err := e.pool.Release(ctx, func(c *sqlite.Conn) (bool, error) {
			return c.Transaction(ctx, sqlite.BeginWrite, func() error {
				_, err := e.PutReads(c)
				return err
			})
		})
		if err != nil {
			e.o.Logger.Debug("store: times of reads are lost", "err", err)
			return
		}
	}
}

func (r *reads) waiting() bool {
	r.Lock()
	defer r.Unlock()
	return len(r.at) > 0
}
