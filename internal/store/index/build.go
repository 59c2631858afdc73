// This file fills an index from the records, a few in each transaction, while the store is in use.

package index

import (
	"context"
	"database/sql/driver"
	"fmt"
	"slices"

	"understudy"
	"understudy/internal/query"
	"understudy/internal/store/codec"
	"understudy/internal/store/db"
	"understudy/internal/store/order"
	"understudy/internal/store/postings"
	"understudy/internal/store/records"
)

var selectRecords = &db.Statement{Head: "SELECT record FROM counter"}

// CheckSearchable returns an error if a query needs an index that is not complete yet. It reads the progress in
// the same transaction as the query, because another goroutine may empty or complete an index meanwhile.
func (x *Index) CheckSearchable(c db.Conn, q *query.RecordQuery) error {
	terms := q.HasTerms()
	if q.Text == nil && !terms {
		return nil
	}
	u, err := ReadProgress(c)
	if q.Text == nil {
		u.Words = BuiltAll
	}
	if !terms {
		u.Terms = BuiltAll
	}
	if err != nil || u.lowest() == BuiltAll {
		return err
	}
	if err := x.checkBroken(); err != nil {
		return err
	}
	total := int64(0)
	if _, err := db.QueryRow(c, selectRecords, nil, func(r []driver.Value) { total = r[0].(int64) }); err != nil {
		return err
	}
	return fmt.Errorf("%w: %d of %d", understudy.ErrIndexing, min(u.lowest(), total), total)
}

// checkBroken returns an error if damaged data stopped the filling of an index.
func (x *Index) checkBroken() error {
	if !x.broken.Load() {
		return nil
	}
	return db.NewDamageError("the index could not be filled")
}

// Clear empties the indexes of terms and words. The places of records are kept. Until Build has filled the indexes
// again, queries that need them return ErrIndexing.
func (x *Index) Clear(ctx context.Context) error {
	err := x.pool.Release(ctx, func(c db.Conn) (bool, error) {
		x.broken.Store(false)
		return false, x.setProgress(ctx, c, Progress{}, nil, nil)
	})
	return db.WrapError(true, err, "empty the indexes")
}

// Build adds the records that the indexes lack, after an interruption or because the spec has changed which fields are
// text or searchable. Usually no record is missing. If Build is interrupted, the next call continues. progress may be
// nil.
func (x *Index) Build(ctx context.Context, progress func(done, total int64)) error {
	return db.WrapError(true, x.build(ctx, progress), "fill the indexes")
}

// build fills the indexes until both are complete. It remembers whether damaged data stopped it.
func (x *Index) build(ctx context.Context, progress func(done, total int64)) error {
	for x.built.load().lowest() != BuiltAll {
		var total int64
		err := x.pool.Write(ctx, func(c db.Conn) (bool, error) {
			if _, err := db.QueryRow(c, selectRecords, nil, func(r []driver.Value) { total = r[0].(int64) }); err != nil {
				return false, err
			}
			return x.buildSome(ctx, c)
		})
		x.broken.Store(db.ClassOf(err) == db.Damaged)
		if err != nil {
			return err
		}
		if progress != nil {
			progress(min(x.built.load().lowest(), total), total)
		}
	}
	return nil
}

var selectBuild = &db.Statement{Head: "SELECT number, version, state, place FROM held WHERE number >= ? ORDER BY number LIMIT ?"}

// buildSome adds the next records to each index that lacks them.
func (x *Index) buildSome(ctx context.Context, c db.Conn) (broken bool, err error) {
	is := x.built.load()
	will, after := is, is.lowest()
	broken, err = c.RunTransaction(ctx, func() error {
		edits, last, err := x.readNextEdits(c, after)
		if err != nil {
			return err
		}
		add := func(to *int64) []Edit { // returns the edits for an index that is filled up to the record number to
			if *to != after {
				return nil
			}
			*to = last
			return edits
		}
		x.members = readFacts(edits, x.members[:0])
		more, err := x.computeChanges(c, add(&will.Words), add(&will.Terms))
		if err == nil {
			err = x.write(c, more)
		}
		if err != nil {
			return err
		}
		x.pool.MarkChanged(db.Indexes)
		return c.Execute(updateBuilt, 0, will.Words, will.Terms)
	})
	if err == nil {
		x.built.store(will)
	}
	return broken, err
}

// readNextEdits returns edits for the present records after the record number after, up to and including last.
func (x *Index) readNextEdits(c db.Conn, after int64) (edits []Edit, last int64, err error) {
	type row struct{ number, version int64 }
	var rows []row
	n := 0
	last = after
	err = db.VisitRows(c, selectBuild, []driver.Value{(after + 1) * records.Slots, int64(buildSome)}, func(r []driver.Value) {
		n++
		last = r[0].(int64) / records.Slots
		if r[2].(int64)&(records.Gone|records.Forgotten) == 0 {
			rows = append(rows, row{r[0].(int64), r[1].(int64)})
			edits = append(edits, Edit{Is: order.ReadPosition(r[3]).At})
		}
	})
	if err != nil {
		return nil, 0, err
	}
	if n < buildSome {
		last = BuiltAll
	} else {
		last-- // the next read may return other shapes of the last record, so that record is read again
	}
	blocks := x.records.Open(c)
	kept := edits[:0]
	for i, r := range rows {
		if r.number/records.Slots > last {
			break
		}
		e := edits[i]
		if err := x.ReadEdit(blocks, &e, r.version); err != nil {
			return nil, 0, err
		}
		if e.New != nil {
			kept = append(kept, e)
		}
	}
	return kept, last, nil
}

// ReadEdit reads the body of a version and adds it to an edit that has only its position. If the body cannot be read,
// the edit gets no data.
func (x *Index) ReadEdit(blocks *records.Blocks, e *Edit, version int64) error {
	b, err := blocks.ReadBlock(version / codec.PerBlock)
	if err != nil {
		return records.SkipDamaged(err)
	}
	body, err := blocks.ReadEntry(version)
	if err != nil || body.IsPruned() {
		return records.SkipDamaged(err)
	}
	one := *body
	e.Kind, e.New = x.catalog.KindOfShape(b.Shape), &one
	e.Is = postings.New(e.Is, b.Shape)
	if e.Kind == nil {
		return db.NewDamageError("shape %d has no kind", b.Shape)
	}
	return nil
}

// coveredEdits returns the edits of the records whose numbers are not greater than upto, up to which an index is
// filled.
func coveredEdits(edits []Edit, upto int64) []Edit {
	if upto == BuiltAll {
		return edits
	}
	return slices.DeleteFunc(slices.Clone(edits), func(e Edit) bool {
		one := e.New
		if one == nil {
			one = e.Old
		}
		return one == nil || one.Record > upto
	})
}
