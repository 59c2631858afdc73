// This file is the pool of connections: one writes, and a few read. Every transaction begins here. Writers take turns,
// and readers run at the same time as a writer.

package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"modernc.org/sqlite"

	"understudy"
)

// pageSize is the page size of a new file in bytes. A packed block of about 9 KiB fits pages of 8 KiB better
// than pages of 4 KiB and saves 54 bytes per call record.
const pageSize = 8 << 10

// The page caches of connections, in KiB. The operating system also caches the file.
const (
	WriterCache = 4 << 10
	readerCache = 512
)

// Pool manages the connections to one file.
type Pool struct {
	Path       string
	afterWrite func() // called after each write, while the writing connection is in use

	Writer  chan *Conn // contains the writing connection while nobody uses it; nil means that the next user must dial a new one
	readers chan *Conn

	// Pages is the maximum number of pages of the file that saves may use; 0 means no limit. Only the goroutine with the
	// writing connection uses this field.
	Pages  int64
	growth growth

	mu     sync.Mutex
	closed bool
	reads  [parts]atomic.Int64
	// Damaged is set after part of the file could not be read.
	Damaged atomic.Bool
	Active  sync.WaitGroup // counts the running calls, for which Close waits

	file *os.File // the file that Sanitize reads and overwrites; nil until it is needed
}

// growth is the current size limit of the file and its log.
type growth struct {
	limit    int64 // maximum bytes of the file and its log together; 0 means no limit
	log      int64 // maximum bytes of the log
	reserve  int64 // pages beyond Pool.Pages that work that frees space may use
	maxPages int64 // the maximum number of pages last set in SQLite
}

func NewPool(path string, readers int, limit, log int64, afterWrite func()) *Pool {
	return &Pool{Path: path, growth: growth{limit: limit, log: log}, afterWrite: afterWrite,
		Writer: make(chan *Conn, 1), readers: make(chan *Conn, readers)}
}

// Start puts the writing connection into the pool and opens the reading connections.
func (p *Pool) Start(ctx context.Context, writer *Conn) error {
	p.Writer <- writer
	for range cap(p.readers) {
		r, err := Dial(ctx, p.Path, readerCache)
		if err != nil {
			return err
		}
		p.readers <- r
	}
	return nil
}

// DialWriter opens a writing connection and sets the page size, the log size and the size limit.
func (p *Pool) DialWriter(ctx context.Context) (*Conn, error) {
	c, err := Dial(ctx, p.Path, WriterCache)
	if err != nil {
		return nil, err
	}
	// SQLite uses this page size only if the file is still empty.
	if err := c.ExecuteOnce(fmt.Sprintf("PRAGMA page_size = %d", pageSize)); err != nil {
		_ = c.Close()
		return nil, err
	}
	// A checkpoint writes a changed page once, however often the page changed since the last checkpoint. So a longer log
	// saves writes of index pages.
	size, err := c.QueryInteger("PRAGMA page_size")
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	log := p.growth.log
	for _, pragma := range []string{fmt.Sprintf("wal_autocheckpoint = %d", log/size), fmt.Sprintf("journal_size_limit = %d", log)} {
		if err := c.QueryOnce("PRAGMA "+pragma, func([]driver.Value) error { return nil }); err != nil {
			_ = c.Close()
			return nil, err
		}
	}
	if err := p.setGrowthLimit(c, size); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// OpenSQL opens the file through database/sql, because the migrations need that.
func (p *Pool) OpenSQL() (*sql.DB, error) {
	connector, err := sqlite.NewConnector(dsn(p.Path))
	if err != nil {
		return nil, err
	}
	file := sql.OpenDB(connector)
	file.SetMaxOpenConns(1)
	return file, nil
}

// Release runs work with the writing connection, as Write does, but for work that deletes data. Such work may use the
// reserved pages.
func (p *Pool) Release(ctx context.Context, work func(c *Conn) (broken bool, err error)) error {
	return p.Write(ctx, func(c *Conn) (broken bool, err error) {
		if p.Pages == 0 {
			return work(c)
		}
		if _, err := c.setMaxPages(p.Pages + p.growth.reserve); err != nil {
			return false, err
		}
		broken, err = work(c)
		_, gerr := c.setMaxPages(p.Pages)
		return broken || gerr != nil, err
	})
}

// Change runs work in a writing transaction.
func (p *Pool) Change(ctx context.Context, work func(c *Conn) error) error {
	return p.Write(ctx, func(c *Conn) (bool, error) {
		return c.RunTransaction(ctx, BeginWrite, func() error { return work(c) })
	})
}

// ChangeDurably runs work in a writing transaction that is on the disk when ChangeDurably returns. It survives a crash
// of the machine, so the caller may promise the result to others.
func (p *Pool) ChangeDurably(ctx context.Context, work func(c *Conn) error) error {
	return p.Write(ctx, func(c *Conn) (bool, error) {
		return c.RunDurably(func() (bool, error) {
			return c.RunTransaction(ctx, BeginWrite, func() error { return work(c) })
		})
	})
}

// ReleaseChange runs work like Change, but for work that ends or deletes something. It may use the reserved pages.
func (p *Pool) ReleaseChange(ctx context.Context, work func(c *Conn) error) error {
	return p.Release(ctx, func(c *Conn) (bool, error) {
		return c.RunTransaction(ctx, BeginWrite, func() error { return work(c) })
	})
}

// ReleaseDurably runs work like ChangeDurably, but for work that ends or deletes something. It may use the reserved
// pages.
func (p *Pool) ReleaseDurably(ctx context.Context, work func(c *Conn) error) error {
	return p.Release(ctx, func(c *Conn) (bool, error) {
		return c.RunDurably(func() (bool, error) {
			return c.RunTransaction(ctx, BeginWrite, func() error { return work(c) })
		})
	})
}

// Begin registers a call. The caller must call leave when the call ends. After RefuseCalls it returns ErrClosed.
func (p *Pool) Begin() (leave func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, fmt.Errorf("store: %w", understudy.ErrClosed)
	}
	p.Active.Add(1)
	return p.Active.Done, nil
}

// Write waits until the writing connection is free and runs work with it.
func (p *Pool) Write(ctx context.Context, work func(c *Conn) (broken bool, err error)) error {
	var c *Conn
	select {
	case c = <-p.Writer:
	case <-ctx.Done():
		return ctx.Err()
	}
	if c == nil {
		var err error
		if c, err = p.DialWriter(ctx); err != nil {
			p.Writer <- nil
			return err
		}
	}
	broken := true
	err := Guard(func() (err error) { broken, err = work(c); return err })
	p.afterWrite()
	p.noteDamage(err)
	err = p.explainFull(c, err)
	if !broken {
		broken = c.setBusyTimeout(err) != nil
	}
	if broken {
		_ = c.Close()
		c = nil
	}
	p.Writer <- c
	return err
}

// Read runs work with a reading connection inside one read transaction. So work sees one consistent snapshot.
func (p *Pool) Read(ctx context.Context, work func(c *Conn) error) error {
	var c *Conn
	select {
	case c = <-p.readers:
	case <-ctx.Done():
		return ctx.Err()
	}
	if c == nil {
		var err error
		if c, err = Dial(ctx, p.Path, readerCache); err != nil {
			p.readers <- nil
			return err
		}
	}
	broken, err := c.RunTransaction(ctx, beginRead, func() error { return work(c) })
	p.noteDamage(err)
	for part, n := range c.reads {
		p.reads[part].Add(n)
	}
	c.reads = Reads{}
	if broken {
		_ = c.Close()
		c = nil
	}
	p.readers <- c
	return err
}

// noteDamage sets Damaged if err means that part of the file could not be read.
func (p *Pool) noteDamage(err error) {
	if _, code := ReasonOf(err); code == CodeCorrupt {
		p.Damaged.Store(true)
	}
}

// Reads returns how many rows Read has read from each part of the file.
func (p *Pool) Reads() (all Reads) {
	for part := range p.reads {
		all[part] = p.reads[part].Load()
	}
	return all
}

// RefuseCalls makes later calls fail with ErrClosed. It reports whether it was called before.
func (p *Pool) RefuseCalls() (again bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	again = p.closed
	p.closed = true
	return again
}

// Close closes the connections. No call may be running.
func (p *Pool) Close() (err error) {
	for range len(p.readers) {
		if c := <-p.readers; c != nil {
			err = errors.Join(err, c.Close())
		}
	}
	select {
	case c := <-p.Writer:
		if c != nil {
			err = errors.Join(err, c.Close())
		}
	default:
	}
	if p.file != nil {
		err = errors.Join(err, p.file.Close())
	}
	return err
}
