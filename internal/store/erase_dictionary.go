// Dictionaries that hold what is erased are retired: what they pack is packed
// anew, then they go.

package store

import (
	"context"
	"database/sql/driver"
)

const repackRows = 32 // blocks or pages packed anew in one transaction

var (
	insertRetired    = &statement{head: "INSERT OR IGNORE INTO retired (dictionary) VALUES (?)"}
	unsetDictionary  = &statement{head: "UPDATE shape SET dictionary = 0 WHERE dictionary = ?"}
	unsetEnvelope    = &statement{head: "UPDATE shape SET envelope = 0 WHERE envelope = ?"}
	selectRetired    = &statement{head: "SELECT dictionary FROM retired ORDER BY dictionary"}
	deleteRetired    = &statement{head: "DELETE FROM retired WHERE dictionary = ?"}
	deleteDictionary = &statement{head: "DELETE FROM dictionary WHERE number = ?"}

	selectBlocksOf = &statement{head: "SELECT number FROM block WHERE number > ? AND dictionary = ? ORDER BY number LIMIT ?"}
	selectPagesOf  = &statement{head: "SELECT number, size, body FROM page WHERE number > ? AND dictionary = ? ORDER BY number LIMIT ?"}
	updatePacked   = &statement{head: "UPDATE page SET dictionary = 0, body = ? WHERE number = ?"}
)

// retire puts the dictionaries that hold a trace out of use, in a transaction.
func (b *batch) retire(c *conn) error {
	for number, body := range b.dictionaries {
		if !b.traces.in(body) {
			continue
		}
		for _, st := range []*statement{insertRetired, unsetDictionary, unsetEnvelope} {
			if err := c.exec(st, 0, number); err != nil {
				return err
			}
		}
		b.db.o.Logger.Warn("store: a dictionary held what is erased and is retired", "dictionary", number)
	}
	return nil
}

// repackRetired packs anew what retired dictionaries pack, and deletes them.
func (db *DB) repackRetired(ctx context.Context) error {
	var all []int64
	err := db.read(ctx, func(c *conn) error {
		return c.query(selectRetired, 0, nil, func(r []driver.Value) error { all = append(all, r[0].(int64)); return nil })
	})
	for _, number := range all {
		if err == nil {
			err = db.repack(ctx, number)
		}
	}
	return err
}

func (db *DB) repack(ctx context.Context, dictionary int64) error {
	if err := db.unuse(ctx, dictionary); err != nil {
		return err
	}
	for _, some := range []func(*conn, int64, int64) (int64, error){db.repackBlocks, db.repackPages} {
		for last := int64(-1); last != 0; {
			err := db.release(ctx, func(c *conn) (bool, error) {
				from := last
				return c.transaction(ctx, beginWrite, func() (err error) { last, err = some(c, dictionary, from); return err })
			})
			if err != nil {
				return err
			}
		}
	}
	err := db.release(ctx, func(c *conn) (bool, error) {
		return c.transaction(ctx, beginWrite, func() error {
			if err := c.exec(deleteDictionary, 0, dictionary); err != nil {
				return err
			}
			return c.exec(deleteRetired, 0, dictionary)
		})
	})
	if err == nil {
		db.packer.forget(dictionary)
	}
	return err
}

// unuse makes saves pack without the dictionary from now on.
func (db *DB) unuse(ctx context.Context, dictionary int64) error {
	return db.write(ctx, func(*conn) (bool, error) {
		db.catalog.mu.Lock()
		defer db.catalog.mu.Unlock()
		for _, h := range db.catalog.shapes {
			for _, t := range []*training{&h.dictionary, &h.envelope} {
				if t.number == dictionary {
					*t = training{} // another may be trained
				}
			}
		}
		return false, nil
	})
}

// repackBlocks packs a few blocks anew; last is 0 when there are no more.
func (db *DB) repackBlocks(c *conn, dictionary, after int64) (last int64, err error) {
	var numbers []int64
	err = c.query(selectBlocksOf, 0, []driver.Value{after, dictionary, int64(repackRows)}, func(r []driver.Value) error {
		numbers = append(numbers, r[0].(int64))
		return nil
	})
	blocks := db.blocks(c)
	for _, number := range numbers {
		if err != nil {
			return 0, err
		}
		var b *block
		if b, err = blocks.edit(number); err == nil {
			b.dictionary = 0
		}
		last = number
	}
	if err == nil {
		err = blocks.write()
	}
	if len(numbers) < repackRows {
		last = 0
	}
	return last, err
}

// repackPages does the same with pages.
func (db *DB) repackPages(c *conn, dictionary, after int64) (last int64, err error) {
	type row struct {
		number, size int64
		body         []byte
	}
	var rows []row
	err = c.query(selectPagesOf, 0, []driver.Value{after, dictionary, int64(repackRows)}, func(r []driver.Value) error {
		rows = append(rows, row{r[0].(int64), r[1].(int64), r[2].([]byte)})
		return nil
	})
	for _, r := range rows {
		if err != nil {
			return 0, err
		}
		var raw []byte
		if raw, err = db.unpack(c, r.body, dictionary, r.size); err == nil {
			packed, _ := db.packer.pack(nil, raw, 0)
			err = c.exec(updatePacked, 0, packed, r.number)
		}
		last = r.number
	}
	if len(rows) < repackRows {
		last = 0
	}
	return last, err
}
