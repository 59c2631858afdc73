// The pool: one connection that writes, a few that read, and the end of both.
// Every transaction begins here: the writer's in its turn, readers' beside it.

package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync"

	"modernc.org/sqlite"

	"understudy"
)

// pageSize is the size of a new file's pages. A packed block of some 9 KiB fills
// pages of 8 KiB better than pages of 4 KiB: a call takes 54 bytes less.
const pageSize = 8 << 10

// The page caches of connections, in KiB. The system's cache is behind them.
const (
	writerCache = 4 << 10
	readerCache = 512
)

// pool is the connections to one file.
type pool struct {
	path       string
	limit      int64  // bytes of the file and its log; 0: any number
	log        int64  // bytes of the log
	afterWrite func() // called after each write, with the writing connection held

	writer  chan *conn // holds the writing connection; nil in it means: dial again
	readers chan *conn

	// The writing connection's: pages the file may have by saves, 0 for any
	// number; how many more what makes room may use; and what SQLite was told.
	pages, reserve, maxPages int64

	mu     sync.Mutex
	closed bool
	active sync.WaitGroup // calls under way
}

func newPool(path string, readers int, limit, log int64, afterWrite func()) *pool {
	return &pool{path: path, limit: limit, log: log, afterWrite: afterWrite, writer: make(chan *conn, 1), readers: make(chan *conn, readers)}
}

// start puts the writing connection into the pool and dials those that read.
func (p *pool) start(ctx context.Context, writer *conn) error {
	p.writer <- writer
	for range cap(p.readers) {
		r, err := dial(ctx, p.path, readerCache)
		if err != nil {
			return err
		}
		p.readers <- r
	}
	return nil
}

func (p *pool) dialWriter(ctx context.Context) (*conn, error) {
	c, err := dial(ctx, p.path, writerCache)
	if err != nil {
		return nil, err
	}
	// Only a file that is still empty takes this size.
	if err := c.run(fmt.Sprintf("PRAGMA page_size = %d", pageSize)); err != nil {
		_ = c.close()
		return nil, err
	}
	// Each checkpoint writes a page of the file once however often it changed,
	// so a longer log saves writes of the indexes.
	size, err := c.number("PRAGMA page_size")
	if err != nil {
		_ = c.close()
		return nil, err
	}
	for _, pragma := range []string{fmt.Sprintf("wal_autocheckpoint = %d", p.log/size), fmt.Sprintf("journal_size_limit = %d", p.log)} {
		if err := c.ask("PRAGMA "+pragma, func([]driver.Value) error { return nil }); err != nil {
			_ = c.close()
			return nil, err
		}
	}
	if err := p.bound(c, size); err != nil {
		_ = c.close()
		return nil, err
	}
	return c, nil
}

// sql opens the file through database/sql, which migrations ask for.
func (p *pool) sql() (*sql.DB, error) {
	connector, err := sqlite.NewConnector(dsn(p.path))
	if err != nil {
		return nil, err
	}
	file := sql.OpenDB(connector)
	file.SetMaxOpenConns(1)
	return file, nil
}

// release is write for what takes things out: it may use the reserve.
func (p *pool) release(ctx context.Context, work func(c *conn) (broken bool, err error)) error {
	return p.write(ctx, func(c *conn) (broken bool, err error) {
		if p.pages == 0 {
			return work(c)
		}
		if _, err := c.grow(p.pages + p.reserve); err != nil {
			return false, err
		}
		broken, err = work(c)
		_, gerr := c.grow(p.pages)
		return broken || gerr != nil, err
	})
}

// enter counts a call; what it returns must be called when the call ends.
func (p *pool) enter() (leave func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, fmt.Errorf("store: %w", understudy.ErrClosed)
	}
	p.active.Add(1)
	return p.active.Done, nil
}

// write hands the writing connection to work, once the others are done.
func (p *pool) write(ctx context.Context, work func(c *conn) (broken bool, err error)) error {
	var c *conn
	select {
	case c = <-p.writer:
	case <-ctx.Done():
		return ctx.Err()
	}
	if c == nil {
		var err error
		if c, err = p.dialWriter(ctx); err != nil {
			p.writer <- nil
			return err
		}
	}
	broken, err := work(c)
	p.afterWrite()
	err = p.limited(c, err)
	if !broken {
		broken = c.hurry(err) != nil
	}
	if broken {
		_ = c.close()
		c = nil
	}
	p.writer <- c
	return err
}

// read hands a reading connection to work, inside one read transaction, so
// that all it sees is of one moment.
func (p *pool) read(ctx context.Context, work func(c *conn) error) error {
	var c *conn
	select {
	case c = <-p.readers:
	case <-ctx.Done():
		return ctx.Err()
	}
	if c == nil {
		var err error
		if c, err = dial(ctx, p.path, readerCache); err != nil {
			p.readers <- nil
			return err
		}
	}
	broken, err := c.transaction(ctx, beginRead, func() error { return work(c) })
	if broken {
		_ = c.close()
		c = nil
	}
	p.readers <- c
	return err
}

// end makes every later call ErrClosed, and says whether it had done so before.
func (p *pool) end() (again bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	again = p.closed
	p.closed = true
	return again
}

// close closes the connections, once no call is under way.
func (p *pool) close() (err error) {
	for range len(p.readers) {
		if c := <-p.readers; c != nil {
			err = errors.Join(err, c.close())
		}
	}
	select {
	case c := <-p.writer:
		if c != nil {
			err = errors.Join(err, c.close())
		}
	default:
	}
	return err
}
