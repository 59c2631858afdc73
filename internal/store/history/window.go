// This file reads ranges of records by clock, as they are or as they were.

package history

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"math"
	"slices"
	"time"

	"understudy"
	"understudy/internal/query"
	"understudy/internal/store/catalog"
	"understudy/internal/store/db"
	"understudy/internal/store/records"
)

const (
	defaultRows = 1000
	maxRows     = 10_000
	// rowsAtOnce is the number of records that ScanRecordsAt reads in one read transaction.
	rowsAtOnce = 256
)

// window is a query.RangeScan with the numbers of the database.
type window struct {
	scan     query.RangeScan
	shape    *catalog.Shape
	parent   int64
	from, to int64                // clocks from the first up to, but not including, the second
	below    records.ClockPosting // only postings that come after this posting in descending order are read
}

// bounds returns the first clock of a range and the clock after the last.
func bounds(w query.RangeScan) (from, to int64) {
	from, to = math.MinInt64, math.MaxInt64
	switch {
	case w.NoClock:
		return 0, 1
	case w.From != 0:
		from = w.From
	}
	if w.To != 0 {
		to = w.To
	}
	return from, to
}

// startBelow returns the place below which a range begins.
func startBelow(w query.RangeScan) records.ClockPosting {
	if w.Below.Record == 0 {
		return records.ClockPosting{Clock: math.MaxInt64, Record: math.MaxInt64}
	}
	return records.ClockPosting{Clock: w.Below.Clock, Record: w.Below.Record}
}

// buildWindow looks up the numbers for a range. The result is false if the range must be empty.
func (h *Records) buildWindow(c db.Conn, w query.RangeScan) (*window, bool, error) {
	s := h.catalog.Shape(w.Source, w.Kind, w.Shape)
	if s == nil {
		return nil, false, nil
	}
	parent, err := records.FindParent(c, w.Parent)
	v := &window{scan: w, shape: s, parent: parent, below: startBelow(w)}
	v.from, v.to = bounds(w)
	return v, parent >= 0, err
}

var (
	selectRows = &db.Statement{Head: `SELECT c.clock, c.record, h.version, h.state FROM clock c
		JOIN held h ON h.number = c.record * 64 + ?1
		WHERE c.shape = ?2 AND c.parent = ?3 AND c.old = 0 AND (c.clock, c.record) < (?4, ?5) AND c.clock >= ?6 AND c.clock < ?7
		AND (c.clock <> 0 OR ?8 <> 0)
		AND h.state & ?9 = 0 ORDER BY c.clock DESC, c.record DESC LIMIT ?10`}
)

// ReadRows returns the present records of a range, in its order; Start and End are 0. A caller can read a range in
// parts with Below. A record whose clock changes meanwhile may then be missed or returned twice. An unknown
// kind, shape or parent has no records.
func (h *Records) ReadRows(ctx context.Context, w query.RangeScan) ([]understudy.Row, error) {
	var rows []understudy.Row
	err := h.pool.Read(ctx, func(c db.Conn) error {
		v, ok, err := h.buildWindow(c, w)
		if err != nil || !ok {
			return err
		}
		rows, err = v.readRows(ctx, c, h.records.Open(c))
		return err
	})
	return rows, db.WrapError(false, err, "rows of %s %s", w.Source, w.Kind)
}

// readRows reads the present records of the range.
func (v *window) readRows(ctx context.Context, c db.Conn, blocks *records.Blocks) (rows []understudy.Row, err error) {
	not := int64(records.Gone | records.Forgotten)
	if v.scan.NotFinal {
		not |= records.Final
	}
	limit := min(cmp.Or(max(v.scan.Limit, 0), defaultRows), maxRows)
	unclocked := int64(0)
	if v.scan.NoClock {
		unclocked = 1
	}
	args := []driver.Value{v.shape.Slot, v.shape.Number, v.parent, v.below.Clock, v.below.Record, v.from, v.to, unclocked, not, int64(limit)}
	err = c.Query(selectRows, 0, args, func(r []driver.Value) error {
		version := r[2].(int64)
		e, err := blocks.ReadEntry(version)
		if err != nil {
			return err
		}
		if e.Clock == r[0].(int64) {
			rows = append(rows, understudy.Row{ID: e.ID, Clock: e.Clock, Parent: e.Parent, Final: e.Final, Record: e.Record, Version: version})
		}
		return db.CheckContext(ctx)
	})
	return rows, err
}

// ScanRecordsAt calls yield for the records of a range that were present at a time, as they were then and in the
// order of their clocks then, until yield returns false. It returns at most w.Limit records; 0 means all.
// Records that came later are left out. Records deleted since are included while their bodies are stored; see
// RecordAt for the details. The zero time means now. It reads a few records at a time and holds no connection
// while yield runs. Unless at is now, later saves do not show.
func (h *Records) ScanRecordsAt(ctx context.Context, w query.RangeScan, at time.Time, yield func(rec *understudy.Record,
	clock int64) bool) (err error) {
	until := int64(math.MaxInt64)
	if !at.IsZero() {
		until = at.UnixNano()
	}
	below, given := startBelow(w), 0
	for more := true; more && err == nil; {
		var found []recordThen
		err = h.pool.Read(ctx, func(c db.Conn) error {
			v, ok, err := h.buildWindow(c, w)
			if err != nil || !ok {
				more = false
				return err
			}
			v.below = below
			found, more, err = h.readRecordsAt(c, v, until)
			below = v.below
			return err
		})
		for i := range found {
			if err != nil || w.Limit > 0 && given == w.Limit || !yield(found[i].rec, found[i].clock) {
				more = false
				break
			}
			given++
		}
	}
	return db.WrapError(false, err, "records of %s %s at %s", w.Source, w.Kind, at.Format(time.RFC3339))
}

// recordThen is a record as it was, with its clock then.
type recordThen struct {
	rec   *understudy.Record
	clock int64
}

// readRecordsAt reads the next few results of ScanRecordsAt and moves v.below.
func (h *Records) readRecordsAt(c db.Conn, v *window, at int64) (found []recordThen, more bool, err error) {
	spots, more, err := v.readNext(c)
	if err != nil {
		return nil, false, err
	}
	for _, s := range spots {
		held := s.Record*records.Slots + v.shape.Slot
		if err := records.ExpectPeriods(c, held, held); err != nil {
			return nil, false, err
		}
	}
	blocks := h.records.Open(c)
	for _, s := range spots {
		rec := &understudy.Record{Source: v.scan.Source, Kind: v.scan.Kind, Shape: v.scan.Shape}
		e, err := h.completeRecord(c, blocks, rec, s.Record*records.Slots+v.shape.Slot, at)
		if errors.Is(err, understudy.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, false, err
		}
		if e.Clock == s.Clock && (v.scan.Parent == "" || e.Parent == v.scan.Parent) && !(v.scan.NotFinal && e.Final) {
			found = append(found, recordThen{rec, e.Clock})
		}
	}
	if len(spots) > 0 {
		v.below = spots[len(spots)-1]
	}
	return found, more, nil
}

// readNext returns the next clock postings of records whose current or earlier clock is in the range.
func (v *window) readNext(c db.Conn) (spots []records.ClockPosting, more bool, err error) {
	scan := records.ClockScan{Shape: v.shape.Number, Parent: v.parent, From: v.from, To: v.to, Unclocked: v.scan.NoClock}
	for _, scan.Old = range []bool{false, true} {
		some, err := scan.ReadBelow(c, v.below, rowsAtOnce)
		if err != nil {
			return nil, false, err
		}
		spots = append(spots, some...)
		more = more || len(some) == rowsAtOnce
	}
	slices.SortFunc(spots, compareSpots)
	spots = slices.Compact(spots)
	return spots[:min(len(spots), rowsAtOnce)], more || len(spots) > rowsAtOnce, nil
}

// compareSpots sorts by descending clock and, for equal clocks, by descending record number.
func compareSpots(a, b records.ClockPosting) int {
	return cmp.Or(cmp.Compare(b.Clock, a.Clock), cmp.Compare(b.Record, a.Record))
}
