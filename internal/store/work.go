// Work: every transaction begins here, one writer's in its turn, readers' beside it.

package store

import (
	"context"
	"fmt"
	"sync/atomic"

	"understudy"
)

// release is write for what takes things out: it may use the reserve.
func (db *DB) release(ctx context.Context, work func(c *conn) (broken bool, err error)) error {
	return db.write(ctx, func(c *conn) (broken bool, err error) {
		if db.room.most == 0 {
			return work(c)
		}
		if _, err := c.grow(db.room.most + db.room.reserve); err != nil {
			return false, err
		}
		broken, err = work(c)
		_, gerr := c.grow(db.room.most)
		return broken || gerr != nil, err
	})
}

// enter counts a call; what it returns must be called when the call ends.
func (db *DB) enter() (leave func(), err error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.closed {
		return nil, fmt.Errorf("store: %w", understudy.ErrClosed)
	}
	db.active.Add(1)
	return db.active.Done, nil
}

// write hands the writing connection to work, once the others are done.
func (db *DB) write(ctx context.Context, work func(c *conn) (broken bool, err error)) error {
	var c *conn
	select {
	case c = <-db.writer:
	case <-ctx.Done():
		return ctx.Err()
	}
	if c == nil {
		var err error
		if c, err = db.dialWriter(ctx); err != nil {
			db.writer <- nil
			return err
		}
	}
	broken, err := work(c)
	for _, n := range []*atomic.Int64{&db.widened, &db.silent} {
		if n.Load()%2 != 0 {
			n.Add(1)
		}
	}
	err = db.limited(c, err)
	if !broken {
		broken = c.hurry(err) != nil
	}
	if broken {
		_ = c.close()
		c = nil
	}
	db.writer <- c
	return err
}

// read hands a reading connection to work, inside one read transaction, so
// that all it sees is of one moment.
func (db *DB) read(ctx context.Context, work func(c *conn) error) error {
	var c *conn
	select {
	case c = <-db.readers:
	case <-ctx.Done():
		return ctx.Err()
	}
	if c == nil {
		var err error
		if c, err = dial(ctx, db.path, readerCache); err != nil {
			db.readers <- nil
			return err
		}
	}
	broken, err := c.transaction(ctx, beginRead, func() error { return work(c) })
	if broken {
		_ = c.close()
		c = nil
	}
	db.readers <- c
	return err
}
