// This file saves a page: its records, their changes and the page itself, in one transaction.

package store

import (
	"context"
	"database/sql/driver"
	"fmt"
	"slices"

	"understudy"
	"understudy/internal/store/codec"
	"understudy/internal/store/db"
	"understudy/internal/store/erase"
	"understudy/internal/store/pages"
	"understudy/internal/store/records"
	"understudy/request"
)

// Save stores a page in one transaction: the new versions of its records, their changes, and the page itself.
// Only the records are stored if the Key has a source but no URI, as in the response to a write. A response of
// 404, 410 or 204 that names a record (Kind and ID) removes the record. A page with status 204 is never stored.
//
// The ID, Clock and Final of a row must follow from its bytes, because they are stored with the version. If a
// page shows a record twice, the last row counts, but both bodies are stored. Every save updates Seen. Only for
// a record in a final state may Seen lag by up to an hour. An observation up to five minutes older than the
// stored one lost a race. Its bytes are stored for the page, but it changes nothing.
//
// The response to a write (Page.IsWriteAnswer) is saved whatever was written or seen meanwhile, and a 204 removes its
// record. It is on the disk when Save returns. Other pages may be lost in a crash of the machine, but never in
// part.
//
// Save returns ErrOutdated and stores nothing if a write to the kind came after the fetch began, or if the
// store has a newer page of the key. It returns ErrNotStored if the page could not be saved. If that error has
// a method Short, it gives the reason in a word or two. An ErrNotStored that also wraps
// context.DeadlineExceeded means that this page took more than Options.SaveTime. In all these cases the caller
// may still respond with the page.
func (d *DB) Save(ctx context.Context, p *understudy.Page) (request.SaveResult, error) {
	if err := checkPage(p); err != nil {
		return request.SaveResult{}, db.WrapError(true, err, "save page %s", p.Key)
	}
	var s *saving
	err := db.RunAgain(ctx, func() error {
		s = newSaving(d, p)
		return d.pool.Write(ctx, func(c db.Conn) (bool, error) { return savePage(ctx, c, s) })
	})
	if err != nil {
		return request.SaveResult{}, db.WrapError(true, err, "save page %s", p.Key)
	}
	return s.savedPage(), nil
}

// savePage saves a page with the writing connection.
func savePage(ctx context.Context, c db.Conn, s *saving) (broken bool, err error) {
	d, p := s.db, s.p
	if err := d.catalog.Enter(ctx, c, p.Key.Source, p.Kind, p.Shape); err != nil {
		return false, err
	}
	s.c = c
	if p.Kind != "" {
		s.kind = d.catalog.Kind(p.Key.Source, p.Kind)
		s.shape = d.catalog.Shape(p.Key.Source, p.Kind, p.Shape)
	}
	run := func() (bool, error) {
		return c.RunTransaction(ctx, func() error { return c.LimitTime(ctx, d.o.SaveTime, s.run) })
	}
	if p.IsWriteAnswer() {
		broken, err = c.RunDurably(run)
	} else {
		broken, err = run()
	}
	if err == nil {
		d.counts.watchers.notify(s)
		if s.indexes.postponed {
			d.Index.ScheduleFlush()
		}
		if s.outcome.erasing && d.o.ToErase != nil {
			d.o.ToErase()
		}
	} else if s.outcome.undoReads != nil {
		s.outcome.undoReads()
	}
	d.scratch.trim()
	if !broken {
		d.Evictor.StartIfNeeded(c, err != nil)
	}
	return broken, err
}

// newSaving does the work that needs no connection: it computes hashes and cuts out the bytes outside the records.
func newSaving(db *DB, p *understudy.Page) *saving {
	s := &saving{db: db, p: p, at: p.At.UnixNano(), content: content{sum: p.Sum}}
	if p.At.IsZero() {
		s.at = db.o.Now().UnixNano()
	}
	if s.content.sum == [16]byte{} {
		s.content.sum = pages.SumOf(p.Body)
	}
	s.content.rows = slices.Clone(recordRows(p))
	s.content.hashes = make([]int64, len(s.content.rows))
	for i, r := range s.content.rows {
		s.content.hashes[i] = records.BodyHash(p.Body[r.Start:r.End])
	}
	_, whole := understudy.OutageRows(p.Header)
	if s.content.whole = whole != ""; s.content.whole {
		s.content.outside = p.Body
	} else if canStorePage(p) {
		s.content.outside, s.content.gaps = codec.SplitOutside(p.Body, s.content.rows)
	}
	return s
}

// run executes the statements of the save inside its transaction.
func (s *saving) run() error {
	if s.db.pool.Engine.IsDistant() {
		if err := (reads{s}).expect(); err != nil {
			return err
		}
	}
	if err := s.readCounters(); err != nil {
		return err
	}
	if isOutdated(s.p, s.counters.generation) {
		return fmt.Errorf("%w: a write to %s came after the fetch began", understudy.ErrOutdated, s.p.Kind)
	}
	if err := s.refuseRecords(); err != nil {
		return err
	}
	if s.content.whole {
		s.content.rows, s.content.hashes = nil, nil
		if s.kind != nil && (erase.IsRedactable(s.kind.Spec) || s.db.o.horizon(s.p.Key.Source, s.p.Kind) != 0) {
			s.content.refused = "it may have to be found again" // a page that is stored whole has no records by which it could be found
		}
	}
	var old oldPage
	if s.canStorePage() {
		var err error
		if old, err = s.readOldPage(); err != nil {
			return err
		}
		if old.number != 0 && isLate(s.at, old.at) {
			return fmt.Errorf("%w: a newer answer is stored", understudy.ErrOutdated)
		}
	}
	if isRemoval(s.p) {
		if err := s.removeRecord(); err != nil {
			return err
		}
	} else if len(s.content.rows) > 0 {
		if err := s.observe(); err != nil {
			return err
		}
	}
	var err error
	if s.indexes.postponed, err = s.db.Index.AddPending(s.c, s.indexes.edits); err != nil {
		return err
	}
	if s.canStorePage() {
		if err := s.putPage(old); err != nil {
			return err
		}
	}
	if err := s.putChanges(); err != nil {
		return err
	}
	if s.outcome.undoReads, err = s.db.Evictor.PutReads(s.c); err != nil {
		return err
	}
	return s.writeCounters()
}

var (
	selectCounters = &db.Statement{Head: `SELECT s.number, s.change, s.page, c.record, c.block, k.records, k.changes, k.generation
		FROM source s CROSS JOIN counter c LEFT JOIN kind k ON k.number = ? WHERE s.number = ?`}
	updateSource  = &db.Statement{Head: "UPDATE source SET change = ?, page = ? WHERE number = ?"}
	updateCounter = &db.Statement{Head: "UPDATE counter SET record = ?, block = ?"}
	updateKind    = &db.Statement{Head: "UPDATE kind SET records = ?, changes = ? WHERE number = ?"}
)

func (s *saving) readCounters() error {
	n := &s.counters
	found, err := db.QueryRow(s.c, selectCounters, reads{s}.counterArgs(), func(r []driver.Value) {
		n.source, n.change, n.page = r[0].(int64), r[1].(int64), r[2].(int64)
		n.record, n.block = r[3].(int64), r[4].(int64)
		if r[5] != nil {
			n.records, n.kindChanges, n.generation = r[5].(int64), r[6].(int64), r[7].(int64)
		}
	})
	if err == nil && !found {
		err = db.NewDamageError("source %s has no row", s.p.Key.Source)
	}
	return err
}

// writeCounters writes the counters that changed. It comes last, so that the transaction commits with final
// change numbers that no other transaction has used.
func (s *saving) writeCounters() error {
	n := &s.counters
	if n.changed.store {
		if err := s.c.Execute(updateCounter, 0, n.record, n.block); err != nil {
			return err
		}
	}
	if n.changed.kind {
		if err := s.c.Execute(updateKind, 0, n.records, n.kindChanges, s.kind.Number); err != nil {
			return err
		}
	}
	if n.changed.source {
		return s.c.Execute(updateSource, 0, n.change, n.page, n.source)
	}
	return nil
}

// savedPage returns a copy of the given page with the stored numbers, and the changes.
func (s *saving) savedPage() request.SaveResult {
	page := *s.p
	if page.Rows = s.content.rows; s.content.refused != "" {
		page.Rows, page.NotStored = s.p.Rows, s.content.refused
	}
	page.Sum = s.content.sum
	page.Version = s.outcome.version
	return request.SaveResult{Page: &page, Changes: s.outcome.changes}
}

// oldPage is the stored page of the same key.
type oldPage struct {
	number, at, version int64
	sum                 [16]byte
}

var (
	selectOldPage = &db.Statement{Head: "SELECT number, at, version, sum, size, body FROM page WHERE key = ? AND source = ?"}
	insertPage    = &db.Statement{Head: "INSERT INTO page (key, source, kind, shape, list, status, generation, at, version, " +
		"sum, size, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING number"}
	updatePage = &db.Statement{Head: "UPDATE page SET kind = ?, shape = ?, list = ?, status = ?, generation = ?, at = ?, " +
		"version = ?, sum = ?, size = ?, body = ? WHERE number = ?"}
)

// readOldPage reads the stored page of the same key. The number is 0 if there is none. A damaged page is replaced, whatever its key.
func (s *saving) readOldPage() (old oldPage, err error) {
	err = db.VisitRows(s.c, selectOldPage, []driver.Value{pages.KeyHash(s.p.Key), s.counters.source}, func(r []driver.Value) {
		sk, err := s.db.pages.UnpackSkeleton(r[5].([]byte), r[4].(int64))
		switch {
		case err == nil && sk.URI == s.p.Key.URI:
			old = oldPage{number: r[0].(int64), at: r[1].(int64), version: r[2].(int64)}
			copy(old.sum[:], r[3].([]byte))
		case err != nil && old.number == 0:
			old = oldPage{number: r[0].(int64)}
		}
	})
	return old, err
}

// putPage writes the page's row. The page keeps its version if its bytes are unchanged.
func (s *saving) putPage(old oldPage) error {
	sk := codec.Skeleton{ // it is compressed into one column
		URI: s.p.Key.URI, ContentType: s.p.ContentType, Charset: s.p.Charset, InitialAge: s.p.InitialAge, Kept: s.p.Header, ID: s.p.ID,
		Next: codec.NextOf(s.p), Gaps: s.content.gaps, Outside: s.content.outside, Versions: make([]int64, len(s.content.rows)),
	}
	for i := range s.content.rows {
		sk.Versions[i] = s.content.rows[i].Version
	}
	s.outcome.version = old.version
	if old.number == 0 || old.sum != s.content.sum {
		s.counters.page++
		s.counters.changed.source = true
		s.outcome.version = s.counters.page
	}
	var kind, shape int64
	if s.kind != nil {
		kind, shape = s.kind.Number, s.shape.Number
	}
	x := &s.db.scratch
	first, last := "", ""
	if len(s.content.rows) > 0 {
		first, last = s.content.rows[0].ID, s.content.rows[len(s.content.rows)-1].ID
	}
	x.raw = sk.AppendTo(x.raw[:0], first, last)
	x.packed = s.db.opener.Packer.Pack(x.packed[:0], x.raw)
	list := int64(0)
	if s.p.List {
		list = 1
	}
	if s.content.whole {
		list += wholePage
	}
	if s.outcome.pageRow = old.number; old.number != 0 {
		return s.c.Execute(updatePage, 0, kind, shape, list, int64(s.p.Status), s.p.Generation, s.at, s.outcome.version,
			s.content.sum[:], int64(len(x.raw)), x.packed, old.number)
	}
	args := []driver.Value{pages.KeyHash(s.p.Key), s.counters.source, kind, shape, list, int64(s.p.Status), s.p.Generation, s.at,
		s.outcome.version, s.content.sum[:], int64(len(x.raw)), x.packed}
	_, err := db.QueryRow(s.c, insertPage, args, func(r []driver.Value) { s.outcome.pageRow = r[0].(int64) })
	return err
}
