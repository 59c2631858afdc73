// Windows: records in the order of their clock, as they are or as they were.

package store

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

// clockPosting is a place in the order of a window.
type clockPosting struct{ clock, record int64 }

// window is an understudy.RangeScan with its numbers.
type window struct {
	query.RangeScan
	shape    *catalog.Shape
	parent   int64
	from, to int64        // clocks from..to-1
	below    clockPosting // only what comes after it
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
func begins(w query.RangeScan) clockPosting {
	if w.Below.Record == 0 {
		return clockPosting{math.MaxInt64, math.MaxInt64}
	}
	return clockPosting{w.Below.Clock, w.Below.Record}
}

// windows reads records by their clocks.
type windows struct{ *DB }

// window gives w its numbers; ok is false when nothing can be in it.
func (db windows) window(c *sqlite.Conn, w query.RangeScan) (*window, bool, error) {
	s := db.catalog.Shape(w.Source, w.Kind, w.Shape)
	if s == nil {
		return nil, false, nil
	}
	parent, err := records.ParentNumber(c, w.Parent)
	v := &window{RangeScan: w, shape: s, parent: parent, below: begins(w)}
	v.from, v.to = bounds(w)
	return v, parent >= 0, err
}

var (
	selectRows = &sqlite.Statement{Head: `SELECT c.clock, c.record, h.version, h.state FROM clock c
		JOIN held h ON h.number = c.record * 64 + ?1
		WHERE c.shape = ?2 AND c.parent = ?3 AND c.old = 0 AND (c.clock, c.record) < (?4, ?5) AND c.clock >= ?6 AND c.clock < ?7
		AND (c.clock <> 0 OR ?8)
		AND h.state & ?9 = 0 ORDER BY c.clock DESC, c.record DESC LIMIT ?10`}
	selectSpots = &sqlite.Statement{Head: `SELECT clock, record FROM clock WHERE shape = ? AND parent = ? AND old = ?
		AND (clock, record) < (?, ?)
		AND clock >= ? AND clock < ? AND (clock <> 0 OR ?) ORDER BY clock DESC, record DESC LIMIT ?`}
)

// Rows returns the records of a window that are held and present, in its
// order; Start and End are 0. One window can be read in parts, with Below: a
// record whose clock changes meanwhile may be missed or come twice. A kind,
// shape or parent nothing is known of has none.
func (db *DB) Rows(ctx context.Context, w query.RangeScan) ([]understudy.Row, error) {
	leave, err := db.pool.Begin()
	if err != nil {
		return nil, err
	}
	defer leave()
	var rows []understudy.Row
	err = db.pool.Read(ctx, func(c *sqlite.Conn) error {
		v, ok, err := windows{db}.window(c, w)
		if err != nil || !ok {
			return err
		}
		rows, err = v.rows(ctx, c, db.opener.Open(c))
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
	if v.Open {
		not |= records.Final
	}
	limit := limitOf(v.RangeScan)
	unclocked := int64(0)
	if v.Unclocked {
		unclocked = 1
	}
	args := []driver.Value{v.shape.Slot, v.shape.Number, v.parent, v.below.clock, v.below.record, v.from, v.to, unclocked, not, int64(limit)}
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

// RecordsAt hands out the records of a window that were present at a time, as
// they looked then and in the order of the clocks they had then, until yield
// returns false: at most w.Limit of them, all when that is 0. What came later is
// not among them; what went since is, while its body is held (see RecordAt for
// what a record says of itself, and which stands for one that is not held). The zero time is now. It reads a few records
// at a time and holds nothing while yield runs; what is saved meanwhile does
// not show, unless at is now.
func (db *DB) RecordsAt(ctx context.Context, w query.RangeScan, at time.Time, yield func(rec *understudy.Record,
	clock int64) bool) error {
	leave, err := db.pool.Begin()
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
		err = db.pool.Read(ctx, func(c *sqlite.Conn) error {
			v, ok, err := windows{db}.window(c, w)
			if err != nil || !ok {
				more = false
				return err
			}
			v.below = below
			found, more, err = windows{db}.recordsAt(c, v, until)
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
func (db windows) recordsAt(c *sqlite.Conn, v *window, at int64) (found []recordThen, more bool, err error) {
	spots, more, err := v.postings(c)
	if err != nil {
		return nil, false, err
	}
	blocks := db.opener.Open(c)
	for _, s := range spots {
		rec := &understudy.Record{Source: v.Source, Kind: v.Kind, Shape: v.Shape}
		e, err := periods(db).recordAt(c, blocks, rec, s.record*records.Slots+v.shape.Slot, at)
		if errors.Is(err, understudy.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, false, err
		}
		if e.Clock == s.clock && (v.Parent == "" || e.Parent == v.Parent) && !(v.Open && e.Final) {
			found = append(found, recordThen{rec, e.Clock})
		}
	}
	if len(spots) > 0 {
		v.below = spots[len(spots)-1]
	}
	return found, more, nil
}

// spots are the next places where records of the window stand or stood.
func (v *window) postings(c *sqlite.Conn) (postings []clockPosting, more bool, err error) {
	unclocked := int64(0)
	if v.Unclocked {
		unclocked = 1
	}
	for old := range int64(2) {
		n := 0
		args := []driver.Value{v.shape.Number, v.parent, old, v.below.clock, v.below.record, v.from, v.to, unclocked, int64(rowsAtOnce)}
		err := c.Query(selectSpots, 0, args, func(r []driver.Value) error {
			postings = append(postings, clockPosting{r[0].(int64), r[1].(int64)})
			n++
			return nil
		})
		if err != nil {
			return nil, false, err
		}
		more = more || n == rowsAtOnce
	}
	slices.SortFunc(postings, compareSpots)
	postings = slices.Compact(postings)
	return postings[:min(len(postings), rowsAtOnce)], more || len(postings) > rowsAtOnce, nil
}

// compareSpots puts the newest clock first, and of one clock the record that
// was found last.
func compareSpots(a, b clockPosting) int {
	return cmp.Or(cmp.Compare(b.clock, a.clock), cmp.Compare(b.record, a.record))
}
