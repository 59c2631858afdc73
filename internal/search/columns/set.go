// Set: the tables of all kinds, filled and brought up to date behind those who ask.

package columns

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"understudy"
	"understudy/internal/query"
	"understudy/spec"
)

// Store has the records. store.DB does.
type Store interface {
	Seek(ctx context.Context, q query.RecordQuery, yield func(query.Hit) bool) error
	ReadEdition(ctx context.Context, source string) (change, silent int64, err error)
	ReadChanges(ctx context.Context, source string, after int64, limit int) ([]understudy.Change, error)
}

// Bounds of the work behind a table.
const (
	workTime  = 10 * time.Minute
	perBatch  = 256    // records put in under one lock
	perRead   = 1000   // changes read at once
	maxFollow = 50_000 // changes that are read one by one; after more the table begins anew
)

// Set is the tables of a store. It is safe for concurrent use.
type Set struct {
	store Store
	limit int64
	log   *slog.Logger

	mu   sync.Mutex // locked before a table
	all  map[[2]string]*Table
	used int64

	closing sync.Mutex // of the work; locked after a table
	ctx     context.Context
	cancel  context.CancelFunc
	work    sync.WaitGroup
}

// NewSet makes an empty set that takes about limit bytes at most; 0: DefaultLimit. Close ends its work.
func NewSet(store Store, limit int64, log *slog.Logger) *Set {
	if limit <= 0 {
		limit = DefaultLimit
	}
	s := &Set{store: store, limit: limit, log: log, all: map[[2]string]*Table{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// SetLimit changes about how many bytes the tables take at most; 0: DefaultLimit. Records that
// found no room are read by the next sum.
func (s *Set) SetLimit(limit int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if limit <= 0 {
		limit = DefaultLimit
	}
	for _, t := range s.all {
		if t.Lock(); limit > s.limit && t.progress.full && t.progress.working == nil {
			t.empty()
		}
		t.Unlock()
	}
	s.limit = limit
}

// DefaultLimit is how many bytes the tables of a set take when nothing else is said.
const DefaultLimit = 96 << 20

// Close ends the work behind the tables and waits for it.
func (s *Set) Close() error {
	s.closing.Lock()
	s.cancel()
	s.closing.Unlock()
	s.work.Wait()
	return nil
}

// Table is the table of a kind, perhaps an empty one.
func (s *Set) Table(source string, k *spec.Kind) *Table {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.all[[2]string{source, k.Name}]
	if t == nil {
		t = newTable(source, k)
		s.all[[2]string{source, k.Name}] = t
	}
	s.used++
	t.progress.used = s.used
	return t
}

// State is how far a table has come. The zero value is not far.
type State struct {
	Current bool  // every change that was there is in the rows
	Whole   bool  // every record has a row
	Full    bool  // not every record has one, for want of room
	Change  int64 // the number of the last change in the rows
}

// Refresh brings a table up to date with what is held now: its rows, and all of them when
// whole is wanted. It waits until enough is closed; the work goes on behind it.
func (s *Set) Refresh(ctx context.Context, enough <-chan struct{}, t *Table, whole bool) (State, error) {
	change, silent, err := s.store.ReadEdition(ctx, t.Source)
	if err != nil {
		return State{}, fmt.Errorf("columns: edition of %s: %w", t.Source, err)
	}
	for {
		t.Lock()
		if !t.progress.isOf(silent) {
			t.reset()
			t.progress.silent, t.progress.change, t.progress.begun = silent, change, true
		}
		now := State{Current: t.from() >= change, Whole: t.progress.whole, Full: t.progress.full, Change: t.progress.change}
		done, failed := t.progress.working, t.progress.failed
		ready := now.Current && (now.Whole || now.Full || !whole)
		if !ready && done == nil && failed == nil {
			done = s.begin(t, whole)
		}
		t.progress.failed = nil
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

// from is the change from which on changes have to be read. The table is locked.
func (t *Table) from() int64 {
	from := t.progress.change
	for w := range t.watchers {
		if w.Ready {
			from = min(from, w.from)
		}
	}
	return from
}

// begin starts to work on a table, which is locked; nil when the set is closed.
func (s *Set) begin(t *Table, whole bool) chan struct{} {
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
		t.progress.working, t.progress.failed = nil, err
		t.Unlock()
		close(done)
	})
	return done
}

// errAgain ends work on a table that began anew meanwhile.
var errAgain = errors.New("columns: the table begins anew")

// fill puts every record into a table, the newest first.
func (s *Set) fill(ctx context.Context, t *Table, whole bool) error {
	t.Lock()
	silent, done := t.progress.silent, t.progress.whole || t.progress.full
	t.Unlock()
	if done || !whole {
		return nil
	}
	var batch []*understudy.Record
	var stopped error
	put := func() bool {
		stopped = s.put(t, silent, batch)
		batch = batch[:0]
		return stopped == nil && ctx.Err() == nil
	}
	err := s.store.Seek(ctx, query.RecordQuery{Source: t.Source, Kinds: []string{t.Kind.Name}}, func(h query.Hit) bool {
		batch = append(batch, h.Record)
		return len(batch) < perBatch || put()
	})
	if err == nil && stopped == nil {
		put()
	}
	switch {
	case errors.Is(stopped, errAgain), errors.Is(stopped, errFull):
		return nil
	case stopped != nil:
		return stopped
	case err != nil:
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	}
	t.Lock()
	t.progress.whole = t.progress.silent == silent && !t.progress.full
	t.Unlock()
	return nil
}

var errFull = errors.New("columns: no room for more rows")

// put puts records into a table. It makes room when there is none.
func (s *Set) put(t *Table, silent int64, batch []*understudy.Record) error {
	if !s.Room(t) {
		t.Lock()
		t.progress.full = true
		t.Unlock()
		return errFull
	}
	t.Lock()
	defer t.Unlock()
	if !t.progress.isOf(silent) {
		return errAgain
	}
	for _, r := range batch {
		t.apply(r.Number, r)
	}
	return nil
}

// Room makes room for more rows of a table: the tables that were used least recently
// go, unless something works on them. It reports whether there is room.
func (s *Set) Room(keep *Table) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		var all int64
		var oldest *Table
		for _, t := range s.all {
			t.Lock()
			all += t.bytes()
			if t != keep && t.progress.working == nil && len(t.unreadable) > 0 && (oldest == nil || t.progress.used < oldest.progress.used) {
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
		oldest.empty()
		oldest.Unlock()
	}
}

// follow puts the changes of late into a table.
func (s *Set) follow(ctx context.Context, t *Table) error {
	for read := 0; ; {
		t.Lock()
		after, silent, begun := t.from(), t.progress.silent, t.progress.begun
		t.Unlock()
		if !begun {
			return nil
		}
		changes, err := s.store.ReadChanges(ctx, t.Source, after, perRead)
		if err != nil || len(changes) == 0 {
			return err
		}
		if read += len(changes); read > maxFollow {
			t.Lock()
			t.reset()
			t.Unlock()
			return nil
		}
		if err := s.followed(ctx, t, silent, changes); err != nil {
			if errors.Is(err, errAgain) {
				return nil
			}
			return err
		}
	}
}

// followed reads the records of some changes and puts them in, or takes them out.
func (s *Set) followed(ctx context.Context, t *Table, silent int64, changes []understudy.Change) error {
	gone := map[int64]bool{}
	q := query.RecordQuery{Source: t.Source, Kinds: []string{t.Kind.Name}}
	for _, c := range changes {
		if c.Kind == t.Kind.Name && !gone[c.Record] {
			gone[c.Record] = true
			q.IDs = append(q.IDs, c.ID)
		}
	}
	var held []*understudy.Record
	if len(q.IDs) > 0 {
		err := s.store.Seek(ctx, q, func(h query.Hit) bool {
			held = append(held, h.Record)
			delete(gone, h.Record.Number)
			return ctx.Err() == nil
		})
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
	}
	err := errFull
	if t.needsRows() {
		err = s.put(t, silent, held)
	}
	if errors.Is(err, errFull) {
		err = s.replace(t, silent, held)
	}
	if err != nil {
		return err
	}
	t.Lock()
	defer t.Unlock()
	if !t.progress.isOf(silent) {
		return errAgain
	}
	for record := range gone {
		t.apply(record, nil)
	}
	last := changes[len(changes)-1].N
	t.progress.change = max(t.progress.change, last)
	if len(q.IDs) > 0 {
		t.progress.version++ // also where no row changed
	}
	for w := range t.watchers {
		w.tell(held, gone)
		if w.Ready {
			w.from = max(w.from, last)
		}
	}
	return nil
}

// tell tells a follower what some records are now.
func (w *Watch) tell(held []*understudy.Record, gone map[int64]bool) {
	if w.follower == nil {
		return
	}
	for _, r := range held {
		w.follower.Changed(r.Number, r)
	}
	for record := range gone {
		w.follower.Changed(record, nil)
	}
}

// needsRows reports whether changed records get rows: others have them, or somebody is told of rows.
func (t *Table) needsRows() bool {
	t.Lock()
	defer t.Unlock()
	rows := t.progress.whole
	for w := range t.watchers {
		rows = rows || w.watcher != nil
	}
	return rows
}

// replace puts records into the rows that they have.
func (s *Set) replace(t *Table, silent int64, held []*understudy.Record) error {
	t.Lock()
	defer t.Unlock()
	if !t.progress.isOf(silent) {
		return errAgain
	}
	for _, r := range held {
		_, there := t.Row(r.Number)
		if there {
			t.apply(r.Number, r)
		}
		t.progress.whole = t.progress.whole && there
	}
	return nil
}
