// Building: an index made anew from the records, a few in one transaction, while everything else goes on.

package index

import (
	"context"
	"database/sql/driver"
	"fmt"
	"slices"

	"understudy"
	"understudy/internal/query"
	"understudy/internal/store/codec"
	"understudy/internal/store/order"
	"understudy/internal/store/postings"
	"understudy/internal/store/records"
	"understudy/internal/store/sqlite"
)

var selectRecords = &sqlite.Statement{Head: "SELECT record FROM counter"}

// Searchable says why a question cannot be answered yet: by what the file says in
// the same moment as the rest, since an index may be emptied or done meanwhile.
func (x *Index) Searchable(c *sqlite.Conn, q *query.RecordQuery) error {
	terms := q.Termed()
	if q.Text == nil && !terms {
		return nil
	}
	u, err := BuiltNow(c)
	if q.Text == nil {
		u.Words = BuiltAll
	}
	if !terms {
		u.Terms = BuiltAll
	}
	if err != nil || u.least() == BuiltAll {
		return err
	}
	if err := x.brokenError(); err != nil {
		return err
	}
	return errIndexing(c, u.least())
}

// brokenError returns the error of an index whose filling met damage, nil while it goes on.
func (x *Index) brokenError() error {
	if !x.broken.Load() {
		return nil
	}
	return sqlite.Damaged("the index could not be filled")
}

// errIndexing is the error of what waits for an index that is built up to a record.
func errIndexing(c *sqlite.Conn, at int64) error {
	total := int64(0)
	if _, err := c.One(selectRecords, nil, func(r []driver.Value) { total = r[0].(int64) }); err != nil {
		return err
	}
	return fmt.Errorf("%w: %d of %d", understudy.ErrIndexing, min(at, total), total)
}

// Empty empties the indexes of terms and words; places are kept. Until Build has
// filled them anew questions that need them are ErrIndexing.
func (x *Index) Empty(ctx context.Context) error {
	leave, err := x.pool.Begin()
	if err != nil {
		return err
	}
	defer leave()
	return sqlite.Failed(true, x.empty(ctx), "empty the indexes")
}

func (x *Index) empty(ctx context.Context) error {
	return x.pool.Release(ctx, func(c *sqlite.Conn) (bool, error) {
		x.broken.Store(false)
		return false, x.setBuilt(ctx, c, Progress{}, nil, nil)
	})
}

// Build fills what an index lacks: after the spec has changed what is text or can be asked for, or when filling was
// broken off; most often nothing. It may be broken off and goes on where it was. progress may be nil.
func (x *Index) Build(ctx context.Context, progress func(done, total int64)) error {
	leave, err := x.pool.Begin()
	if err != nil {
		return err
	}
	defer leave()
	return sqlite.Failed(true, x.build(ctx, progress), "fill the indexes")
}

func (x *Index) build(ctx context.Context, progress func(done, total int64)) error {
	for x.built.load().least() != BuiltAll {
		var total int64
		err := x.pool.Write(ctx, func(c *sqlite.Conn) (bool, error) {
			if _, err := c.One(selectRecords, nil, func(r []driver.Value) { total = r[0].(int64) }); err != nil {
				return false, err
			}
			return x.buildSome(ctx, c)
		})
		_, code := sqlite.ReasonOf(err)
		x.broken.Store(code == sqlite.CodeCorrupt)
		if err != nil {
			return err
		}
		if progress != nil {
			progress(min(x.built.load().least(), total), total)
		}
	}
	return nil
}

var selectBuild = &sqlite.Statement{Head: "SELECT number, version, state, place FROM held WHERE number >= ? ORDER BY number LIMIT ?"}

// buildSome adds the next records to the indexes that lack them.
func (x *Index) buildSome(ctx context.Context, c *sqlite.Conn) (broken bool, err error) {
	is := x.built.load()
	will, after := is, is.least()
	broken, err = c.Transaction(ctx, sqlite.BeginWrite, func() error {
		edits, last, err := x.nextEdits(c, after)
		if err != nil {
			return err
		}
		add := func(to *int64) []Edit { // what an index is told that is built up to a record
			if *to != after {
				return nil
			}
			*to = last
			return edits
		}
		x.members = readFacts(edits, x.members[:0])
		more, err := x.changes(c, add(&will.Words), add(&will.Terms))
		if err == nil {
			err = x.write(c, more)
		}
		if err != nil {
			return err
		}
		return c.Exec(updateBuilt, 0, will.Words, will.Terms)
	})
	if err == nil {
		x.built.store(will)
	}
	return broken, err
}

// nextEdits are what tells the indexes of the present records after one, up to the record last.
func (x *Index) nextEdits(c *sqlite.Conn, after int64) (edits []Edit, last int64, err error) {
	type row struct{ number, version int64 }
	var rows []row
	n := 0
	last = after
	err = c.Query(selectBuild, 0, []driver.Value{(after + 1) * records.Slots, int64(buildSome)}, func(r []driver.Value) error {
		n++
		last = r[0].(int64) / records.Slots
		if r[2].(int64)&(records.Gone|records.Forgotten) == 0 {
			rows = append(rows, row{r[0].(int64), r[1].(int64)})
			edits = append(edits, Edit{Is: order.ReadPosition(r[3]).At})
		}
		return nil
	})
	if err != nil {
		return nil, 0, err
	}
	if n < buildSome {
		last = BuiltAll
	} else {
		last-- // its other shapes may come next
	}
	blocks := x.records.Open(c)
	kept := edits[:0]
	for i, r := range rows {
		if r.number/records.Slots > last {
			break
		}
		e := edits[i]
		if err := x.Read(blocks, &e, r.version); err != nil {
			return nil, 0, err
		}
		if e.New != nil {
			kept = append(kept, e)
		}
	}
	return kept, last, nil
}

// Read completes an edit that has its position with what its version says;
// one whose body cannot be read is not in the indexes.
func (x *Index) Read(blocks *records.Blocks, e *Edit, version int64) error {
	b, err := blocks.Block(version / codec.PerBlock)
	if err != nil {
		return records.SkipDamaged(err)
	}
	body, err := blocks.Entry(version)
	if err != nil || body.Pruned() {
		return records.SkipDamaged(err)
	}
	one := *body
	e.Kind, e.Shape, e.New = x.catalog.KindOfShape(b.Shape), b.Shape, &one
	e.Is = postings.At(e.Is, b.Shape)
	if e.Kind == nil {
		return sqlite.Damaged("shape %d has no kind", b.Shape)
	}
	return nil
}

// indexed are the edits an index is told of that is built up to a record.
func indexed(edits []Edit, upto int64) []Edit {
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
