// This file records when pages are read. It keeps the times in memory until the next save writes them.

package evict

import (
	"context"
	"database/sql/driver"
	"time"

	"understudy/internal/store/db"
	"understudy/kit/lockwatch"
)

const (
	// maxReads is the maximum number of read times that wait to be written. Further times are dropped until there is room.
	maxReads = 4096
	// closeTime is the maximum time for writing the remaining read times when the store closes.
	closeTime = 5 * time.Second
	// minReadInterval is the minimum age of the stored time of a read before a newer time is written.
	minReadInterval = time.Hour
)

// reads are the times when pages were read, in Unix seconds, by the page's number.
type reads struct {
	lockwatch.Mutex
	at map[int64]int64
}

// NoteRead records that a page was read now, unless it was read or saved within the last hour. last is the time of the
// last read or save, in Unix seconds.
func (e *Evictor) NoteRead(page, last int64) { e.reads.note(page, last, e.o.Now()) }

func (r *reads) note(page, last int64, now time.Time) {
	s := now.Unix()
	if age := s - last; age >= 0 && age < int64(minReadInterval/time.Second) {
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

// take removes at most n read times and returns them. give puts them back.
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

var updateRead = &db.Statement{Head: "UPDATE page SET read = ? WHERE number = ?"}

// PutReads writes some of the read times, inside a transaction. The caller must call undo if the transaction fails.
func (e *Evictor) PutReads(c db.Conn) (undo func(), err error) {
	some := e.reads.take(db.MaxTuples)
	undo = func() { e.reads.give(some) }
	for number, at := range some {
		if err := c.Execute(updateRead, 0, driver.Value(at), driver.Value(number)); err != nil {
			return undo, err
		}
	}
	return undo, nil
}

// SaveReads writes all read times that wait to be written.
func (e *Evictor) SaveReads() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	for e.reads.hasTimes() {
		err := e.pool.ReleaseChange(ctx, func(c db.Conn) error {
			_, err := e.PutReads(c)
			return err
		})
		if err != nil {
			e.o.Logger.Debug("store: times of reads are lost", "err", err)
			return
		}
	}
}

func (r *reads) hasTimes() bool {
	r.Lock()
	defer r.Unlock()
	return len(r.at) > 0
}
