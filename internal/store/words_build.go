// Building: an index made anew from the records, a few in one transaction,
// while everything else goes on.

package store

import (
	"context"
	"database/sql/driver"
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"understudy"
)

// built is up to which record an index has what it is to have: records with
// higher numbers come later, and are left out of it until then.
type built struct{ words, terms atomic.Int64 }

// builtAll is up to which record a whole index is built.
const builtAll = math.MaxInt64

// buildSome is how many held rows are looked at in one transaction.
const buildSome = 512

var (
	selectBuilt = &statement{head: "SELECT words, terms FROM built"}
	updateBuilt = &statement{head: "UPDATE built SET words = ?, terms = ?"}
	updateWords = &statement{head: "UPDATE kind SET words = ? WHERE number = ?"}
	emptyWords  = &statement{head: "INSERT INTO words (words) VALUES ('delete-all')"}
	emptyTerms  = &statement{head: "INSERT INTO terms (terms) VALUES ('delete-all')"}
)

// checkWords is part of opening: it empties the index of words when a spec has
// changed which fields are text.
func (db *DB) checkWords(ctx context.Context, c *conn) error {
	var changed []*kindRow
	upto := db.built.words.Load()
	for _, k := range db.catalog.kinds {
		if k.spec == nil || k.form == k.text.form() {
			continue
		}
		changed = append(changed, k)
		_, err := c.one(selectKindRecords, []driver.Value{k.number}, func(r []driver.Value) {
			if r[0].(int64) > 0 {
				upto = 0
			}
		})
		if err != nil {
			return err
		}
	}
	if len(changed) == 0 {
		return nil
	}
	return db.setBuilt(ctx, c, upto, db.built.terms.Load(), changed)
}

var selectKindRecords = &statement{head: "SELECT records FROM kind WHERE number = ?"}

// learnBuilt reads how far the indexes are.
func (db *DB) learnBuilt(c *conn) error {
	_, err := c.one(selectBuilt, nil, func(r []driver.Value) {
		db.built.words.Store(r[0].(int64))
		db.built.terms.Store(r[1].(int64))
	})
	return err
}

// setBuilt says up to which record the indexes are right from now on; one that
// begins anew is emptied. Kinds are those whose text is found in a new way.
func (db *DB) setBuilt(ctx context.Context, c *conn, words, terms int64, kinds []*kindRow) error {
	_, err := c.transaction(ctx, beginWrite, func() error {
		for _, k := range kinds {
			if err := c.exec(updateWords, 0, k.text.form(), k.number); err != nil {
				return err
			}
		}
		if words == 0 {
			if err := c.exec(emptyWords, 0); err != nil {
				return err
			}
		}
		if terms == 0 {
			if err := c.exec(emptyTerms, 0); err != nil {
				return err
			}
		}
		return c.exec(updateBuilt, 0, words, terms)
	})
	if err == nil {
		for _, k := range kinds {
			k.form = k.text.form()
		}
		db.built.words.Store(words)
		db.built.terms.Store(terms)
	}
	return err
}

// Indexed says how many of how many records the indexes have; when they are as
// many, questions of every sort are answered. It asks nothing of the database
// when all is there.
func (db *DB) Indexed(ctx context.Context) (done, total int64, err error) {
	at := min(db.built.words.Load(), db.built.terms.Load())
	leave, err := db.enter()
	if err != nil {
		return 0, 0, err
	}
	defer leave()
	err = db.read(ctx, func(c *conn) error {
		_, err := c.one(selectRecords, nil, func(r []driver.Value) { total = r[0].(int64) })
		return err
	})
	return min(at, total), total, failed(false, err, "see what is indexed")
}

var selectRecords = &statement{head: "SELECT record FROM counter"}

// searchable says why a question cannot be answered yet: by what the file says in
// the same moment as the rest, since an index may be emptied or done meanwhile.
func (c *conn) searchable(q *understudy.Seek) error {
	if q.Text == nil && len(q.Terms) == 0 && q.Parent == "" {
		return nil
	}
	at := int64(builtAll)
	_, err := c.one(selectBuilt, nil, func(r []driver.Value) {
		if q.Text != nil {
			at = r[0].(int64)
		}
		if len(q.Terms) > 0 || q.Parent != "" {
			at = min(at, r[1].(int64))
		}
	})
	if err != nil || at == builtAll {
		return err
	}
	var total int64
	if _, err := c.one(selectRecords, nil, func(r []driver.Value) { total = r[0].(int64) }); err != nil {
		return err
	}
	return fmt.Errorf("%w: %d of %d", understudy.ErrIndexing, min(at, total), total)
}

// Rebuild empties the indexes of terms and words and fills them anew, in small
// transactions beside everything else; places are kept. Until it is done
// questions that need them are ErrIndexing. Broken off, it is finished by
// Index. progress may be nil.
func (db *DB) Rebuild(ctx context.Context, progress func(done, total int64)) error {
	leave, err := db.enter()
	if err != nil {
		return err
	}
	defer leave()
	if err = db.empty(ctx); err == nil {
		err = db.build(ctx, progress)
	}
	return failed(true, err, "rebuild the indexes")
}

// Empty is the first half of Rebuild, Index the other.
func (db *DB) Empty(ctx context.Context) error {
	leave, err := db.enter()
	if err != nil {
		return err
	}
	defer leave()
	return failed(true, db.empty(ctx), "empty the indexes")
}

func (db *DB) empty(ctx context.Context) error {
	return db.release(ctx, func(c *conn) (bool, error) {
		return false, db.setBuilt(ctx, c, 0, 0, nil)
	})
}

// Index fills what an index lacks: after an upgrade, after the spec has changed
// what is text, or when a Rebuild was broken off; most often nothing. It may be
// broken off and goes on where it was. progress may be nil.
func (db *DB) Index(ctx context.Context, progress func(done, total int64)) error {
	leave, err := db.enter()
	if err != nil {
		return err
	}
	defer leave()
	return failed(true, db.build(ctx, progress), "fill the indexes")
}

func (db *DB) build(ctx context.Context, progress func(done, total int64)) error {
	for min(db.built.words.Load(), db.built.terms.Load()) != builtAll {
		var total int64
		err := db.write(ctx, func(c *conn) (bool, error) {
			if _, err := c.one(selectRecords, nil, func(r []driver.Value) { total = r[0].(int64) }); err != nil {
				return false, err
			}
			return db.buildSome(ctx, c)
		})
		if err != nil {
			return err
		}
		if progress != nil {
			progress(min(db.built.words.Load(), db.built.terms.Load(), total), total)
		}
	}
	return nil
}

var selectBuild = &statement{head: "SELECT number, version, state, place FROM held WHERE number >= ? ORDER BY number LIMIT ?"}

// buildSome adds the next records to the indexes that lack them.
func (db *DB) buildSome(ctx context.Context, c *conn) (broken bool, err error) {
	words, terms := db.built.words.Load(), db.built.terms.Load()
	after := min(words, terms)
	upto := int64(builtAll)
	broken, err = c.transaction(ctx, beginWrite, func() error {
		edits, last, err := db.nextEdits(c, after)
		if err != nil {
			return err
		}
		upto = last
		if words == after {
			err = c.putWords(&db.cutting, edits)
			words = upto
		}
		if err == nil && terms == after {
			err = db.indexTerms(c, edits)
			terms = upto
		}
		if err != nil {
			return err
		}
		return c.exec(updateBuilt, 0, words, terms)
	})
	if err == nil {
		db.built.words.Store(words)
		db.built.terms.Store(terms)
	}
	return broken, err
}

// nextEdits are what tells the indexes of the present records after one, up to
// the record last.
func (db *DB) nextEdits(c *conn, after int64) (edits []edit, last int64, err error) {
	type row struct{ number, version int64 }
	var rows []row
	n := 0
	last = after
	err = c.query(selectBuild, 0, []driver.Value{(after + 1) * slots, int64(buildSome)}, func(r []driver.Value) error {
		n++
		last = r[0].(int64) / slots
		if r[2].(int64)&(stateGone|stateForgotten) == 0 && r[3] != nil {
			rows = append(rows, row{r[0].(int64), r[1].(int64)})
			edits = append(edits, edit{is: standOf(r[3]).at})
		}
		return nil
	})
	if err != nil {
		return nil, 0, err
	}
	if n < buildSome {
		last = builtAll
	} else {
		last-- // its other shapes may come next
	}
	blocks := db.blocks(c)
	kept := edits[:0]
	for i, r := range rows {
		if r.number/slots > last {
			break
		}
		e := edits[i]
		if err := db.editOf(blocks, &e, r.version); err != nil {
			return nil, 0, err
		}
		if e.new != nil {
			kept = append(kept, e)
		}
	}
	return kept, last, nil
}

// editOf completes an edit that has its position with what its version says;
// one whose body cannot be read is not in the indexes.
func (db *DB) editOf(blocks *opened, e *edit, version int64) error {
	b, err := blocks.block(version / perBlock)
	if err != nil {
		return skipDamaged(err)
	}
	body, err := blocks.entry(version)
	if err != nil || body.hollow() {
		return skipDamaged(err)
	}
	one := *body
	e.kind, e.shape, e.new = db.kindOfShape(b.shape), b.shape, &one
	e.is = spotOf(e.is, b.shape)
	if e.kind == nil {
		return damaged("shape %d has no kind", b.shape)
	}
	return nil
}

// indexed are the edits an index is told of that is built up to a record.
func indexed(edits []edit, upto int64) []edit {
	if upto == builtAll {
		return edits
	}
	return slices.DeleteFunc(slices.Clone(edits), func(e edit) bool {
		one := e.new
		if one == nil {
			one = e.old
		}
		return one == nil || one.record > upto
	})
}

// kindOfShape is the kind of a shape's number, nil when there is none.
func (db *DB) kindOfShape(number int64) *kindRow {
	db.catalog.mu.RLock()
	defer db.catalog.mu.RUnlock()
	for _, s := range db.catalog.shapes {
		if s.number == number {
			return s.kind
		}
	}
	return nil
}
