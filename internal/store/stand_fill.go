// Places and terms of records that were saved before there were any, or before
// the spec named the fields that terms are made of.

package store

import (
	"context"
	"database/sql/driver"
)

var (
	selectTermsOf  = &statement{head: "SELECT terms FROM kind WHERE number = ?"}
	updateTermsOf  = &statement{head: "UPDATE kind SET terms = ? WHERE number = ?"}
	selectUnplaced = &statement{head: "SELECT number, version, state, place FROM held WHERE number > ? ORDER BY number LIMIT ?"}
)

// fillPlaces gives records of older files their places, and makes the terms of
// kinds that have none or others. It is part of opening, since what is asked of
// half an index would be answered wrongly.
func (db *DB) fillPlaces(ctx context.Context, c *conn) error {
	f := &standing{db: db, c: c}
	for _, k := range db.catalog.kinds {
		is := ""
		if _, err := c.one(selectTermsOf, []driver.Value{k.number}, func(r []driver.Value) { is, _ = r[0].(string) }); err != nil {
			return err
		}
		if is != fingerprint(k.terms) {
			return f.rebuild(ctx)
		}
	}
	return nil
}

// standing is the filling of places and terms.
type standing struct {
	db    *DB
	c     *conn
	kinds map[int64]*kindRow         // by the numbers of their shapes
	given struct{ record, at int64 } // the place given last
}

var (
	clearTerms  = &statement{head: "INSERT INTO terms (terms) VALUES ('delete-all')"}
	clearSpans  = &statement{head: "DELETE FROM span"}
	forgetTerms = &statement{head: "UPDATE kind SET terms = NULL"}
)

// rebuild gives places to what has none, and makes the terms of all kinds anew.
// What is broken off is begun again at the next opening.
func (f *standing) rebuild(ctx context.Context) error {
	if _, err := f.c.transaction(ctx, beginWrite, f.clear); err != nil {
		return err
	}
	last, n := int64(-1), fillSome
	for n == fillSome {
		_, err := f.c.transaction(ctx, beginWrite, func() (err error) {
			n, last, err = f.some(last)
			return err
		})
		if err != nil {
			return err
		}
	}
	_, err := f.c.transaction(ctx, beginWrite, f.done)
	return err
}

// rebuildTerms makes all terms anew in a transaction of the caller's, and gives
// places to what has none: until it ends others find by the former ones. told,
// which may be nil, hears after every few thousand held rows how many those were.
func (db *DB) rebuildTerms(ctx context.Context, c *conn, told func(rows int64)) error {
	f := &standing{db: db, c: c}
	if err := f.clear(); err != nil {
		return err
	}
	for last, n, rows := int64(-1), fillSome, int64(0); n == fillSome; {
		var err error
		if n, last, err = f.some(last); err == nil {
			err = checkContext(ctx)
		}
		if err != nil {
			return err
		}
		if rows += int64(n); told != nil {
			told(rows)
		}
	}
	return f.done()
}

// clear takes all terms out.
func (f *standing) clear() error {
	f.kinds = f.db.kindsOfShapes()
	for _, st := range []*statement{forgetTerms, clearTerms, clearSpans} {
		if err := f.c.exec(st, 0); err != nil {
			return err
		}
	}
	return nil
}

// done says what the terms are made of, and that all of them are there: a
// rebuild that was broken off before has none left to make.
func (f *standing) done() error {
	words := f.db.built.words.Load()
	if err := f.c.exec(updateBuilt, 0, words, int64(builtAll)); err != nil {
		return err
	}
	f.db.built.terms.Store(builtAll)
	f.db.catalog.mu.RLock()
	defer f.db.catalog.mu.RUnlock()
	for _, k := range f.db.catalog.kinds {
		if err := f.c.exec(updateTermsOf, 0, fingerprint(k.terms), k.number); err != nil {
			return err
		}
	}
	return nil
}

// some gives the records of some held rows after one their places and terms.
func (f *standing) some(after int64) (n int, last int64, err error) {
	last, f.given.record = after, -1
	blocks := f.db.blocks(f.c)
	var edits []edit
	err = f.c.query(selectUnplaced, 0, []driver.Value{after, int64(fillSome)}, func(r []driver.Value) error {
		n++
		last = r[0].(int64)
		e, shape, err := f.one(blocks, last, r[1].(int64), standOf(r[3]))
		if err == nil && e != nil && r[2].(int64)&(stateGone|stateForgotten) == 0 {
			edits = append(edits, *e)
			edits[len(edits)-1].shape = shape
		}
		return err
	})
	if err == nil {
		err = f.db.indexTerms(f.c, edits)
	}
	return n, last, err
}

// one is what the indexes are told of a held row, nil when it cannot be read.
func (f *standing) one(blocks *opened, held, version int64, at stand) (*edit, int64, error) {
	b, err := blocks.block(version / perBlock)
	if err != nil {
		return nil, 0, skipDamaged(err)
	}
	e, err := blocks.entry(version)
	k := f.kinds[b.shape]
	if err != nil || k == nil {
		return nil, 0, skipDamaged(err)
	}
	record := held / slots
	if at.at == noPosition && f.given.record == record {
		at.at = f.given.at
	}
	if at.at == noPosition {
		if at.at, err = f.place(k, record, e); err != nil {
			return nil, 0, err
		}
		f.given.record, f.given.at = record, at.at
	}
	if e.hollow() {
		return nil, 0, nil
	}
	spot, one := spotOf(at.at, b.shape), *e
	return &edit{kind: k, was: spot, is: spot, new: &one}, b.shape, nil
}

// place gives a record its place by the clock of a version: below those of its
// second that were found before it, as walks find them.
func (f *standing) place(k *kindRow, record int64, e *entry) (int64, error) {
	g := &placer{db: f.db, c: f.c, kind: k.number}
	second := int64(noSecond)
	if !e.hollow() {
		second = naturalSecond(k.spec, e.clock, e.body)
	}
	page := &placedPage{ground: g, rows: []*placing{{at: noPosition, second: second}}, after: true}
	if err := page.place(); err != nil {
		return 0, err
	}
	at := page.rows[0].at
	sign, err := f.c.signOf(k.number, record)
	if err != nil {
		return 0, err
	}
	if err := f.c.exec(insertPlace, 1, sign, at, record); err != nil {
		return 0, err
	}
	return at, f.c.exec(updatePlace, 0, stand{at: at}.value(), record*slots, record*slots+slots-1)
}

// kindsOfShapes are the kinds of shapes, by the shapes' numbers.
func (db *DB) kindsOfShapes() map[int64]*kindRow {
	db.catalog.mu.RLock()
	defer db.catalog.mu.RUnlock()
	kinds := make(map[int64]*kindRow, len(db.catalog.shapes))
	for _, s := range db.catalog.shapes {
		kinds[s.number] = s.kind
	}
	return kinds
}
