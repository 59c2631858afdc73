// Windows: records in the order of their clock, as they are or as they were.

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
	"understudy/internal/store/records"
	"understudy/internal/store/sqlite"
)

const (
	rowsUsual = 1000
	rowsMost  = 10_000
	// rowsAtOnce is how many records RecordsAt looks at in one read of the store.
	rowsAtOnce = 256
)

// window is an understudy.RangeScan with its numbers.
type window struct {
	scan     query.RangeScan
	shape    *catalog.Shape
	parent   int64
	from, to int64                // clocks from..to-1
	below    records.ClockPosting // only what comes after it
}

// bounds are the clocks of a window, from the first to the one after the last.
func bounds(w query.RangeScan) (from, to int64) {
	from, to = math.MinInt64, math.MaxInt64
	switch {
	case w.Unclocked:
		return 0, 1
	case w.From != 0:
		from = w.From
	}
	if w.To != 0 {
		to = w.To
	}
	return from, to
}

// begins is the place a window begins below.
func begins(w query.RangeScan) records.ClockPosting {
	if w.Below.Record == 0 {
		return records.ClockPosting{Clock: math.MaxInt64, Record: math.MaxInt64}
	}
	return records.ClockPosting{Clock: w.Below.Clock, Record: w.Below.Record}
}

// window gives w its numbers; ok is false when nothing can be in it.
func (h *Records) window(c *sqlite.Conn, w query.RangeScan) (*window, bool, error) {
	s := h.catalog.Shape(w.Source, w.Kind, w.Shape)
	if s == nil {
		return nil, false, nil
	}
	parent, err := records.ParentNumber(c, w.Parent)
	v := &window{scan: w, shape: s, parent: parent, below: begins(w)}
	v.from, v.to = bounds(w)
	return v, parent >= 0, err
}

var (
	selectRows = &sqlite.Statement{Head: `SELECT c.clock, c.record, h.version, h.state FROM clock c
		JOIN held h ON h.number = c.record * 64 + ?1
		WHERE c.shape = ?2 AND c.parent = ?3 AND c.old = 0 AND (c.clock, c.record) < (?4, ?5) AND c.clock >= ?6 AND c.clock < ?7
		AND (c.clock <> 0 OR ?8)
		AND h.state & ?9 = 0 ORDER BY c.clock DESC, c.record DESC LIMIT ?10`}
)

// Rows returns the records of a window that are held and present, in its
// order; Start and End are 0. One window can be read in parts, with Below: a
// record whose clock changes meanwhile may be missed or come twice. A kind,
// shape or parent nothing is known of has none.
func (h *Records) Rows(ctx context.Context, w query.RangeScan) ([]understudy.Row, error) {
	leave, err := h.pool.Begin()
	if err != nil {
		return nil, err
	}
	defer leave()
	var rows []understudy.Row
	err = h.pool.Read(ctx, func(c *sqlite.Conn) error {
		v, ok, err := h.window(c, w)
		if err != nil || !ok {
			return err
		}
		rows, err = v.rows(ctx, c, h.records.Open(c))
		return err
	})
	return rows, sqlite.Failed(false, err, "rows of %s %s", w.Source, w.Kind)
}

// limitOf is how many rows a window gives at once.
func limitOf(w query.RangeScan) int {
	if w.Limit <= 0 {
		return rowsUsual
	}
	return min(w.Limit, rowsMost)
}

func (v *window) rows(ctx context.Context, c *sqlite.Conn, blocks *records.Blocks) (rows []understudy.Row, err error) {
	not := int64(records.Gone | records.Forgotten)
	if v.scan.Open {
		not |= records.Final
	}
	limit := limitOf(v.scan)
	unclocked := int64(0)
	if v.scan.Unclocked {
		unclocked = 1
	}
	args := []driver.Value{v.shape.Slot, v.shape.Number, v.parent, v.below.Clock, v.below.Record, v.from, v.to, unclocked, not, int64(limit)}
	err = c.Query(selectRows, 0, args, func(r []driver.Value) error {
		version := r[2].(int64)
		e, err := blocks.Entry(version)
		if err != nil {
			return err
		}
		if e.Clock == r[0].(int64) {
			rows = append(rows, understudy.Row{ID: e.ID, Clock: e.Clock, Parent: e.Parent, Final: e.Final, Record: e.Record, Version: version})
		}
		return sqlite.CheckContext(ctx)
	})
	return rows, err
}

// ScanRecordsAt hands out the records of a window that were present at a time, as
// they looked then and in the order of the clocks they had then, until yield
// returns false: at most w.Limit of them, all when that is 0. What came later is
// not among them; what went since is, while its body is held (see RecordAt for
// what a record says of itself, and which stands for one that is not held). The zero time is now. It reads a few records
// at a time and holds nothing while yield runs; what is saved meanwhile does
// not show, unless at is now.
func (h *Records) ScanRecordsAt(ctx context.Context, w query.RangeScan, at time.Time, yield func(rec *understudy.Record,
	clock int64) bool) error {
	leave, err := h.pool.Begin()
	if err != nil {
		return err
	}
	defer leave()
	until := int64(math.MaxInt64)
	if !at.IsZero() {
		until = at.UnixNano()
	}
	below, given := begins(w), 0
	for more := true; more && err == nil; {
		var found []recordThen
		err = h.pool.Read(ctx, func(c *sqlite.Conn) error {
			v, ok, err := h.window(c, w)
			if err != nil || !ok {
				more = false
				return err
			}
			v.below = below
			found, more, err = h.recordsAt(c, v, until)
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
	return sqlite.Failed(false, err, "records of %s %s at %s", w.Source, w.Kind, at.Format(time.RFC3339))
}

// recordThen is a record as it was, and its clock then.
type recordThen struct {
	rec   *understudy.Record
	clock int64
}

// recordsAt is the next few of RecordsAt; it moves v.below on.
func (h *Records) recordsAt(c *sqlite.Conn, v *window, at int64) (found []recordThen, more bool, err error) {
	spots, more, err := v.next(c)
	if err != nil {
		return nil, false, err
	}
	blocks := h.records.Open(c)
	for _, s := range spots {
		rec := &understudy.Record{Source: v.scan.Source, Kind: v.scan.Kind, Shape: v.scan.Shape}
		e, err := h.recordAt(c, blocks, rec, s.Record*records.Slots+v.shape.Slot, at)
		if errors.Is(err, understudy.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, false, err
		}
		if e.Clock == s.Clock && (v.scan.Parent == "" || e.Parent == v.scan.Parent) && !(v.scan.Open && e.Final) {
			found = append(found, recordThen{rec, e.Clock})
		}
	}
	if len(spots) > 0 {
		v.below = spots[len(spots)-1]
	}
	return found, more, nil
}

// next are the next places where records of the window stand or stood.
func (v *window) next(c *sqlite.Conn) (spots []records.ClockPosting, more bool, err error) {
	scan := records.ClockScan{Shape: v.shape.Number, Parent: v.parent, From: v.from, To: v.to, Unclocked: v.scan.Unclocked}
	for _, scan.Old = range []bool{false, true} {
		some, err := scan.Below(c, v.below, rowsAtOnce)
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

// compareSpots puts the newest clock first, and of one clock the record that
// was found last.
func compareSpots(a, b records.ClockPosting) int {
	return cmp.Or(cmp.Compare(b.Clock, a.Clock), cmp.Compare(b.Record, a.Record))
}
