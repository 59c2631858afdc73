// The pool: one connection that writes, a few that read, and the end of both.
// Every transaction begins here: the writer's in its turn, readers' beside it.

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

// pageSize is the size of a new file's pages. A packed block of some 9 KiB fills
// pages of 8 KiB better than pages of 4 KiB: a call takes 54 bytes less.
const pageSize = 8 << 10

// The page caches of connections, in KiB. The system's cache is behind them.
const (
	WriterCache = 4 << 10
	readerCache = 512
)

// Pool is the connections to one file.
type Pool struct {
	Path       string
	afterWrite func() // called after each write, with the writing connection held

	Writer  chan *Conn // holds the writing connection; nil in it means: dial again
	readers chan *Conn

	// Pages is how many pages the file may have by saves; 0: any number. The
	// goroutine with the writing connection uses it.
	Pages  int64
	growth growth

	mu     sync.Mutex
	closed bool
	reads  [parts]atomic.Int64
	// Damaged is set when part of the file could not be read.
	Damaged atomic.Bool
	Active  sync.WaitGroup // calls under way

	file *os.File // what Sanitize reads and overwrites; nil until it is needed
}

// growth is what SQLite was told about the size of the file.
type growth struct {
	limit    int64 // bytes of the file and its log; 0: any number
	log      int64 // bytes of the log
	reserve  int64 // pages beyond Pool.Pages for work that makes room
	maxPages int64 // the last bound SQLite was given
}

func NewPool(path string, readers int, limit, log int64, afterWrite func()) *Pool {
	return &Pool{Path: path, growth: growth{limit: limit, log: log}, afterWrite: afterWrite,
		Writer: make(chan *Conn, 1), readers: make(chan *Conn, readers)}
}

// Start puts the writing connection into the pool and dials those that read.
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

func (p *Pool) DialWriter(ctx context.Context) (*Conn, error) {
	c, err := Dial(ctx, p.Path, WriterCache)
	if err != nil {
		return nil, err
	}
	// Only a file that is still empty takes this size.
	if err := c.Run(fmt.Sprintf("PRAGMA page_size = %d", pageSize)); err != nil {
		_ = c.Close()
		return nil, err
	}
	// Each checkpoint writes a page of the file once however often it changed,
	// so a longer log saves writes of the indexes.
	size, err := c.Integer("PRAGMA page_size")
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	log := p.growth.log
	for _, pragma := range []string{fmt.Sprintf("wal_autocheckpoint = %d", log/size), fmt.Sprintf("journal_size_limit = %d", log)} {
		if err := c.Ask("PRAGMA "+pragma, func([]driver.Value) error { return nil }); err != nil {
			_ = c.Close()
			return nil, err
		}
	}
	if err := p.bound(c, size); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// Sql opens the file through database/sql, which migrations ask for.
func (p *Pool) SQL() (*sql.DB, error) {
	connector, err := sqlite.NewConnector(dsn(p.Path))
	if err != nil {
		return nil, err
	}
	file := sql.OpenDB(connector)
	file.SetMaxOpenConns(1)
	return file, nil
}

// Release is write for what takes things out: it may use the reserve.
func (p *Pool) Release(ctx context.Context, work func(c *Conn) (broken bool, err error)) error {
	return p.Write(ctx, func(c *Conn) (broken bool, err error) {
		if p.Pages == 0 {
			return work(c)
		}
		if _, err := c.grow(p.Pages + p.growth.reserve); err != nil {
			return false, err
		}
		broken, err = work(c)
		_, gerr := c.grow(p.Pages)
		return broken || gerr != nil, err
	})
}

// Change runs work in a writing transaction.
func (p *Pool) Change(ctx context.Context, work func(c *Conn) error) error {
	return p.Write(ctx, func(c *Conn) (bool, error) {
		return c.Transaction(ctx, BeginWrite, func() error { return work(c) })
	})
}

// ChangeDurably is Change for what is promised to somebody: it is on the disk when it
// returns, also after a crash of the machine.
func (p *Pool) ChangeDurably(ctx context.Context, work func(c *Conn) error) error {
	return p.Write(ctx, func(c *Conn) (bool, error) {
		return c.Durably(func() (bool, error) {
			return c.Transaction(ctx, BeginWrite, func() error { return work(c) })
		})
	})
}

// ReleaseChange is Change for what ends something: it may use the reserve.
func (p *Pool) ReleaseChange(ctx context.Context, work func(c *Conn) error) error {
	return p.Release(ctx, func(c *Conn) (bool, error) {
		return c.Transaction(ctx, BeginWrite, func() error { return work(c) })
	})
}

// ReleaseDurably is ChangeDurably for what ends something: it may use the reserve.
func (p *Pool) ReleaseDurably(ctx context.Context, work func(c *Conn) error) error {
	return p.Release(ctx, func(c *Conn) (bool, error) {
		return c.Durably(func() (bool, error) {
			return c.Transaction(ctx, BeginWrite, func() error { return work(c) })
		})
	})
}

// Begin counts a call; what it returns must be called when the call ends.
func (p *Pool) Begin() (leave func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, fmt.Errorf("store: %w", understudy.ErrClosed)
	}
	p.Active.Add(1)
	return p.Active.Done, nil
}

// Write hands the writing connection to work, once the others are done.
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
	err = p.limited(c, err)
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

// Read hands a reading connection to work, inside one read transaction, so
// that all it sees is of one moment.
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
	broken, err := c.Transaction(ctx, beginRead, func() error { return work(c) })
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

// noteDamage sets Damaged if err says that part of the file could not be read.
func (p *Pool) noteDamage(err error) {
	if _, code := ReasonOf(err); code == CodeCorrupt {
		p.Damaged.Store(true)
	}
}

// Reads returns how many rows Read has read, by part.
func (p *Pool) Reads() (all Reads) {
	for part := range p.reads {
		all[part] = p.reads[part].Load()
	}
	return all
}

// end makes every later call ErrClosed, and says whether it had done so before.
func (p *Pool) Shut() (again bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	again = p.closed
	p.closed = true
	return again
}

// Close closes the connections, once no call is under way.
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
