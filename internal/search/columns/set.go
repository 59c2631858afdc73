// This file contains the set of the tables of all kinds. They are filled and updated in the background.

package columns

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"understudy"
	"understudy/internal/query"
	"understudy/kit/lockwatch"
	"understudy/spec"
)

// Store reads records. store.DB implements it.
type Store interface {
	Seek(ctx context.Context, q query.RecordQuery, yield func(query.Hit) bool) error
	ReadEdition(ctx context.Context, source string) (change, silent int64, err error)
	ReadChanges(ctx context.Context, source string, after int64, limit int) ([]understudy.Change, error)
}

// Limits of the background work on a table.
const (
	workTime        = 10 * time.Minute
	recordsPerBatch = 256  // the number of records that are added under one lock
	changesPerRead  = 1000 // how many changes are read at once
	// the number of unread changes after which the table is reset, because reading more changes one by one takes too long
	maxChanges = 50_000
)

// Set is the set of the tables of a store. It is safe for concurrent use.
type Set struct {
	store Store
	limit int64
	log   *slog.Logger

	mu       lockwatch.Mutex // guards tables and useCount; locked before the lock of a table
	tables   map[[2]string]*Table
	useCount int64

	closing lockwatch.Mutex // guards Close and the start of background work; locked after the lock of a table
	ctx     context.Context
	cancel  context.CancelFunc
	work    sync.WaitGroup
}

// NewSet returns an empty set of about limit bytes, or DefaultLimit if limit is 0. Close ends its background work.
func NewSet(store Store, limit int64, log *slog.Logger) *Set {
	limit = cmp.Or(max(limit, 0), DefaultLimit)
	s := &Set{store: store, limit: limit, log: log, tables: map[[2]string]*Table{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// SetLimit changes the limit of memory in bytes; 0 means DefaultLimit. If the limit rises, a full table is emptied,
// so that the next sum reads all its records.
func (s *Set) SetLimit(limit int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	limit = cmp.Or(max(limit, 0), DefaultLimit)
	for _, t := range s.tables {
		if t.Lock(); limit > s.limit && t.progress.full && t.progress.working == nil {
			t.removeAll()
		}
		t.Unlock()
	}
	s.limit = limit
}

// DefaultLimit is the default memory limit of a set, in bytes.
const DefaultLimit = 96 << 20

// Close ends the background work and waits for it.
func (s *Set) Close() error {
	s.closing.Lock()
	s.cancel()
	s.closing.Unlock()
	s.work.Wait()
	return nil
}

// Table returns the table of a kind and creates it if needed.
func (s *Set) Table(source string, k *spec.Kind) *Table {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tables[[2]string{source, k.Name}]
	if t == nil {
		t = newTable(source, k)
		s.tables[[2]string{source, k.Name}] = t
	}
	s.useCount++
	t.progress.lastUsed = s.useCount
	return t
}

// State is how much of the store a table has read.
type State struct {
	Current  bool  // whether the rows contain every change of the store
	Complete bool  // whether every record of the kind has a row
	Full     bool  // whether some records have no row because the memory is full
	Change   int64 // the number of the last change that the rows contain
}

// Refresh updates the rows of a table. If whole is true, it also adds rows for all records. It waits until the
// channel enough is closed; then the work continues in the background.
func (s *Set) Refresh(ctx context.Context, enough <-chan struct{}, t *Table, whole bool) (State, error) {
	change, silent, err := s.store.ReadEdition(ctx, t.Source)
	if err != nil {
		return State{}, fmt.Errorf("columns: edition of %s: %w", t.Source, err)
	}
	for {
		t.Lock()
		if !t.progress.hasEdition(silent) {
			t.reset()
			t.progress.silent, t.progress.change, t.progress.started = silent, change, true
		}
		now := State{Current: t.readAfter() >= change, Complete: t.progress.complete, Full: t.progress.full, Change: t.progress.change}
		done, failed := t.progress.working, t.progress.err
		ready := now.Current && (now.Complete || now.Full || !whole)
		if !ready && done == nil && failed == nil {
			done = s.startWork(t, whole)
		}
		t.progress.err = nil
		t.Unlock()
		switch {
		case ready:
			return now, nil
		case failed != nil:
			return now, failed
		case done == nil:
			return now, understudy.ErrClosed
		}
		select {
		case <-done:
		case <-enough:
			return now, nil
		case <-ctx.Done():
			return now, ctx.Err()
		}
	}
}

// readAfter returns the number of the change after which changes must be read. The caller must hold the table's lock.
func (t *Table) readAfter() int64 {
	from := t.progress.change
	for w := range t.watchers {
		if w.Ready {
			from = min(from, w.watermark)
		}
	}
	return from
}

// startWork starts background work on a locked table. It returns nil if the set is closed.
func (s *Set) startWork(t *Table, whole bool) chan struct{} {
	s.closing.Lock()
	defer s.closing.Unlock()
	if s.ctx.Err() != nil {
		return nil
	}
	done := make(chan struct{})
	t.progress.working = done
	s.work.Go(func() {
		ctx, cancel := context.WithTimeout(s.ctx, workTime)
		defer cancel()
		err := s.fill(ctx, t, whole)
		if err == nil {
			err = s.follow(ctx, t)
		}
		if err != nil && s.ctx.Err() == nil {
			s.log.Warn("search: columns", "source", t.Source, "kind", t.Kind.Name, "err", err)
		}
		t.Lock()
		t.progress.working, t.progress.err = nil, err
		t.Unlock()
		close(done)
	})
	return done
}

// errReset ends the work on a table that was reset during the work.
var errReset = errors.New("columns: the table is built again from the beginning")

// fill adds a row for every record, newest first.
func (s *Set) fill(ctx context.Context, t *Table, whole bool) error {
	t.Lock()
	silent, done := t.progress.silent, t.progress.complete || t.progress.full
	t.Unlock()
	if done || !whole {
		return nil
	}
	var batch []*understudy.Record
	var stopped error
	put := func() bool {
		stopped = s.putRecords(t, silent, batch)
		batch = batch[:0]
		return stopped == nil && ctx.Err() == nil
	}
	err := s.store.Seek(ctx, query.RecordQuery{Source: t.Source, Kinds: []string{t.Kind.Name}}, func(h query.Hit) bool {
		batch = append(batch, h.Record)
		return len(batch) < recordsPerBatch || put()
	})
	if err == nil && stopped == nil {
		put()
	}
	switch {
	case errors.Is(stopped, errReset), errors.Is(stopped, errFull):
		return nil
	case stopped != nil:
		return stopped
	case err != nil:
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	}
	t.Lock()
	t.progress.complete = t.progress.silent == silent && !t.progress.full
	t.Unlock()
	return nil
}

var errFull = errors.New("columns: no room for more rows")

// putRecords adds records to a table after making room. It returns errFull if there is no room.
func (s *Set) putRecords(t *Table, silent int64, batch []*understudy.Record) error {
	if !s.MakeRoom(t) {
		t.Lock()
		t.progress.full = true
		t.Unlock()
		return errFull
	}
	t.Lock()
	defer t.Unlock()
	if !t.progress.hasEdition(silent) {
		return errReset
	}
	for _, r := range batch {
		t.applyRecord(r.Number, r)
	}
	return nil
}

// MakeRoom empties the least recently used tables until the set has room for more rows of the table keep. Tables
// with running work are not emptied. MakeRoom reports whether there is room.
func (s *Set) MakeRoom(keep *Table) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		var all int64
		var oldest *Table
		for _, t := range s.tables {
			t.Lock()
			all += t.bytes()
			if t != keep && t.progress.working == nil && len(t.unreadable) > 0 && (oldest == nil || t.progress.lastUsed < oldest.progress.lastUsed) {
				oldest = t
			}
			t.Unlock()
		}
		if all < s.limit {
			return true
		}
		if oldest == nil {
			return false
		}
		oldest.Lock()
		oldest.removeAll()
		oldest.Unlock()
	}
}

// follow applies the store's new changes to a table.
func (s *Set) follow(ctx context.Context, t *Table) error {
	for read := 0; ; {
		t.Lock()
		after, silent, begun := t.readAfter(), t.progress.silent, t.progress.started
		t.Unlock()
		if !begun {
			return nil
		}
		changes, err := s.store.ReadChanges(ctx, t.Source, after, changesPerRead)
		if err != nil || len(changes) == 0 {
			return err
		}
		if read += len(changes); read > maxChanges {
			t.Lock()
			t.reset()
			t.Unlock()
			return nil
		}
		if err := s.applyChanges(ctx, t, silent, changes); err != nil {
			if errors.Is(err, errReset) {
				return nil
			}
			return err
		}
	}
}

// applyChanges reads the changed records, and updates or deletes their rows.
func (s *Set) applyChanges(ctx context.Context, t *Table, silent int64, changes []understudy.Change) error {
	deleted := map[int64]bool{}
	q := query.RecordQuery{Source: t.Source, Kinds: []string{t.Kind.Name}}
	for _, c := range changes {
		if c.Kind == t.Kind.Name && !deleted[c.Record] {
			deleted[c.Record] = true
			q.IDs = append(q.IDs, c.ID)
		}
	}
	var stored []*understudy.Record
	if len(q.IDs) > 0 {
		err := s.store.Seek(ctx, q, func(h query.Hit) bool {
			stored = append(stored, h.Record)
			delete(deleted, h.Record.Number)
			return ctx.Err() == nil
		})
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
	}
	err := errFull
	if t.mustAddRows() {
		err = s.putRecords(t, silent, stored)
	}
	if errors.Is(err, errFull) {
		err = s.replaceRows(t, silent, stored)
	}
	if err != nil {
		return err
	}
	t.Lock()
	defer t.Unlock()
	if !t.progress.hasEdition(silent) {
		return errReset
	}
	for record := range deleted {
		t.applyRecord(record, nil)
	}
	last := changes[len(changes)-1].N
	t.progress.change = max(t.progress.change, last)
	if len(q.IDs) > 0 {
		t.progress.version++ // a follower may have been notified of a record that has no row
	}
	for w := range t.watchers {
		if w.follower != nil {
			for _, r := range stored {
				w.follower.UpdateRecord(r.Number, r)
			}
			for record := range deleted {
				w.follower.UpdateRecord(record, nil)
			}
		}
		if w.Ready {
			w.watermark = max(w.watermark, last)
		}
	}
	return nil
}

// mustAddRows reports whether changed records need new rows, because the table is complete or a watcher reads its rows.
func (t *Table) mustAddRows() bool {
	t.Lock()
	defer t.Unlock()
	rows := t.progress.complete
	for w := range t.watchers {
		rows = rows || w.watcher != nil
	}
	return rows
}

// replaceRows updates the rows of those records that have a row.
func (s *Set) replaceRows(t *Table, silent int64, stored []*understudy.Record) error {
	t.Lock()
	defer t.Unlock()
	if !t.progress.hasEdition(silent) {
		return errReset
	}
	for _, r := range stored {
		_, there := t.Row(r.Number)
		if there {
			t.applyRecord(r.Number, r)
		}
		t.progress.complete = t.progress.complete && there
	}
	return nil
}
