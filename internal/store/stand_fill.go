// Places of records that were saved before there were any.

package store

import (
	"database/sql/driver"
)

// standing gives places to some records, in one transaction.
type standing struct {
	db      *DB
	c       *conn
	blocks  *opened
	kinds   map[int64]*kindRow // by the numbers of their shapes
	grounds map[*kindRow]*placer
	given   int64 // the record that was given a place last
}

// givePlaces gives places to those of the next records after one that have none,
// as many as nextEdits looks at. It says which others made room for them.
func (db *DB) givePlaces(c *conn, after int64) (moved []edit, err error) {
	f := &standing{db: db, c: c, blocks: db.blocks(c), kinds: db.kindsOfShapes(), grounds: map[*kindRow]*placer{}, given: -1}
	type row struct{ number, version int64 }
	var rows []row
	err = c.query(selectBuild, 0, []driver.Value{(after + 1) * slots, int64(buildSome)}, func(r []driver.Value) error {
		if r[3] == nil {
			rows = append(rows, row{r[0].(int64), r[1].(int64)})
		}
		return nil
	})
	for _, r := range rows {
		if record := r.number / slots; err == nil && record != f.given {
			err = f.one(record, r.version)
		}
	}
	for kind, g := range f.grounds {
		if err != nil {
			return nil, err
		}
		s := &saving{db: db, c: c, kind: kind, blocks: f.blocks, placer: g}
		err = s.editShifted(nil)
		moved = append(moved, s.edits...)
	}
	return moved, err
}

// one gives a record its place by the clock of a version: below those of its
// second that were found before it, as walks find them. One that cannot be read
// stays without.
func (f *standing) one(record, version int64) error {
	b, err := f.blocks.block(version / perBlock)
	if err != nil {
		return skipDamaged(err)
	}
	e, err := f.blocks.entry(version)
	k := f.kinds[b.shape]
	if err != nil || k == nil {
		return skipDamaged(err)
	}
	g := f.grounds[k]
	if g == nil {
		g = &placer{db: f.db, c: f.c, kind: k.number}
		f.grounds[k] = g
	}
	second := int64(noSecond)
	if !e.hollow() {
		second = naturalSecond(k.spec, e.clock, e.body)
	}
	page := &placedPage{ground: g, rows: []*placing{{at: noPosition, second: second}}, after: true}
	if err := page.place(); err != nil {
		return err
	}
	f.given = record
	at := page.rows[0].at
	sign, err := f.c.signOf(k.number, record)
	if err != nil {
		return err
	}
	if sign < 0 {
		g.left = 1
	}
	if err := f.c.exec(insertPlace, 1, sign, at, record); err != nil {
		return err
	}
	return f.c.exec(updatePlace, 0, stand{at: at}.value(), record*slots, record*slots+slots-1)
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
