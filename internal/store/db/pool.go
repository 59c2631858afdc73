// This file is the pool of connections: one that writes, a few that read. Every transaction begins here.
// Writers take turns, readers run beside them.

package db

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"understudy"
	"understudy/kit/lockwatch"
	"understudy/kit/retry"
)

const (
	maxRuns  = 3                     // how often work is run at most
	maxPause = 50 * time.Millisecond // the longest pause before work is run again
	rowConns = 4                     // the number of connections of ChangeRows

	closeTries = 100                   // how often CloseReaders tries to close the readers
	closeWait  = 20 * time.Millisecond // how long readers wait in one attempt
	closePause = 50 * time.Millisecond // the pause between two attempts
)

var errReadersStay = errors.New("a reader uses the database for too long; try again later")

// Pool manages the connections to one database.
type Pool struct {
	Engine     Engine
	now        func() time.Time // the clock of this process
	wall       func() time.Time // tells since when a write runs; not now, because writes begin while tests step that clock
	afterWrite func()           // called after each write, while the writing connection is in use

	writer  chan Conn     // holds the writing connection; a nil connection means: dial again
	next    chan struct{} // has one element while a call of Write waits for the writing connection or has it
	readers chan Conn     // holds the reading connections
	rows    chan Conn     // holds the connections of ChangeRows; nil until they are used

	writing atomic.Pointer[callers] // the callers of the write that has the writing connection, or nil

	mu     lockwatch.Mutex
	closed bool
	active sync.WaitGroup // counts the calls of Write and UseReader that are running

	memory      memory
	generations *Statement                           // reads the generations
	clock       atomic.Pointer[[2]time.Time]         // the last reading of the database's clock, and the time of this process then; or nil
	barrier     atomic.Pointer[func(position int64)] // see SetBarrier
	reads       [parts]atomic.Int64
	damaged     atomic.Bool // part of the database could not be read
}

// NewPool returns a pool without connections. afterWrite is called after each write, before the next one begins.
func NewPool(engine Engine, readers int, now func() time.Time, afterWrite func()) *Pool {
	p := &Pool{Engine: engine, now: now, wall: time.Now, afterWrite: afterWrite, writer: make(chan Conn, 1), next: make(chan struct{}, 1),
		readers: make(chan Conn, readers), rows: make(chan Conn, rowConns), generations: selectGenerations}
	for range rowConns {
		p.rows <- nil
	}
	return p
}

// Start loads what the process remembers, puts the writing connection into the pool and opens the reading
// connections. The database is prepared already. After an error only Close may be called.
func (p *Pool) Start(ctx context.Context, writer Conn, load func() error) error {
	seen, err := p.readGenerations(writer)
	if err != nil && ClassOf(err) != Away {
		p.generations = selectTopicsOnly
		seen, err = p.readGenerations(writer)
	}
	if err != nil {
		_ = writer.Close()
		return err
	}
	p.memory.seen.Store(&seen)
	p.addHooks(writer, true)
	p.writer <- writer
	if err := Guard(load); err != nil {
		return err
	}
	for range cap(p.readers) {
		r, err := p.Engine.Dial(ctx, false)
		if err != nil {
			return err
		}
		p.addHooks(r, false)
		p.readers <- r
	}
	return nil
}

// begin registers a use of the database. The caller must call leave when the use ends. After RefuseCalls it returns ErrClosed.
func (p *Pool) begin() (leave func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, fmt.Errorf("store: %w", understudy.ErrClosed)
	}
	p.active.Add(1)
	return p.active.Done, nil
}

// take returns the connection of a channel, or dials a new one in its place. The caller returns it to the
// channel.
func (p *Pool) take(ctx context.Context, from chan Conn) (c Conn, err error) {
	select {
	case c = <-from:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if c == nil {
		if c, err = p.Engine.Dial(ctx, from != p.readers); err != nil {
			from <- nil
			return nil, err
		}
		if from == p.readers || from == p.writer {
			p.addHooks(c, from == p.writer)
		}
	}
	return c, nil
}

// giveBack returns a connection to its channel. It closes a broken connection.
func giveBack(to chan Conn, c Conn, broken bool) {
	if broken {
		_ = c.Close()
		c = nil
	}
	to <- c
}

// RunAgain runs work, and again if its error has the class Aborted, at most three times and until ctx ends. Pauses of random
// length keep transactions that have met from meeting again. work begins anew each time.
func RunAgain(ctx context.Context, work func() error) (err error) {
	for n := 1; ; n++ {
		err = work()
		if ClassOf(err) != Aborted || n == maxRuns || retry.Wait(ctx, rand.N(maxPause)) != nil {
			return err
		}
	}
}

// Transaction returns a function that runs work in a writing transaction, as RunAgain does.
func Transaction(ctx context.Context, work func(c Conn) error) func(c Conn) (broken bool, err error) {
	return func(c Conn) (broken bool, err error) {
		err = RunAgain(ctx, func() (err error) {
			broken, err = c.RunTransaction(ctx, func() error { return work(c) })
			return err
		})
		return broken, err
	}
}

// DurableTransaction returns a function like Transaction. The commit survives a crash of the machine.
func DurableTransaction(ctx context.Context, work func(c Conn) error) func(c Conn) (broken bool, err error) {
	return func(c Conn) (broken bool, err error) {
		return c.RunDurably(func() (bool, error) { return Transaction(ctx, work)(c) })
	}
}

// Change runs work in a writing transaction. As for the three functions below, work is run again if another transaction has
// aborted it.
func (p *Pool) Change(ctx context.Context, work func(c Conn) error) error {
	return p.Write(ctx, Transaction(ctx, work))
}

// ChangeDurably runs work like Change, for promises to others. The commit is on the disk when it returns and survives a
// crash of the machine.
func (p *Pool) ChangeDurably(ctx context.Context, work func(c Conn) error) error {
	return p.Write(ctx, DurableTransaction(ctx, work))
}

// ReleaseChange runs work like Change, for work that ends or deletes something. It may use the reserve.
func (p *Pool) ReleaseChange(ctx context.Context, work func(c Conn) error) error {
	return p.Release(ctx, Transaction(ctx, work))
}

// ReleaseDurably runs work like ChangeDurably, for work that ends or deletes something. It may use the reserve.
func (p *Pool) ReleaseDurably(ctx context.Context, work func(c Conn) error) error {
	return p.Release(ctx, DurableTransaction(ctx, work))
}

// ChangeRows runs work like ReleaseChange, for work that changes no topic and locks the rows that it changes. If the engine
// locks rows, it runs beside the other writers of this and other processes, on a connection of its own.
func (p *Pool) ChangeRows(ctx context.Context, work func(c Conn) error) error {
	if !p.Engine.CanLockRows() {
		return p.ReleaseChange(ctx, work)
	}
	return p.Use(ctx, p.rows, Transaction(ctx, work))
}

// Release runs work that deletes, as Write does. Such work may use the reserve.
func (p *Pool) Release(ctx context.Context, work func(c Conn) (broken bool, err error)) error {
	return p.Write(ctx, func(c Conn) (broken bool, err error) {
		if p.Engine.Limit() == 0 {
			return work(c)
		}
		if err := p.Engine.OpenReserve(c, true); err != nil {
			return false, err
		}
		broken, err = work(c)
		return p.Engine.OpenReserve(c, false) != nil || broken, err
	})
}

// Write waits for its turn and runs work with the writing connection.
func (p *Pool) Write(ctx context.Context, work func(c Conn) (broken bool, err error)) error {
	leave, err := p.begin()
	if err != nil {
		return err
	}
	defer leave()
	select {
	case p.next <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	c := &callers{since: p.wall()}
	runtime.Callers(2, c.frames[:])
	p.writing.Store(c)
	await, err := p.useWriter(ctx, work)
	p.writing.Store(nil)
	<-p.next
	if barrier := p.barrier.Load(); barrier != nil && await != 0 {
		(*barrier)(await)
	}
	return err
}

// useWriter runs work with the writing connection. It returns the position that the call must wait for, or 0. A caller that is not
// the next one waits for at most two other uses.
func (p *Pool) useWriter(ctx context.Context, work func(c Conn) (broken bool, err error)) (await int64, err error) {
	c, err := p.take(ctx, p.writer)
	if err != nil {
		return 0, err
	}
	broken := true
	err = Guard(func() (err error) { broken, err = work(c); return err })
	p.afterWrite()
	p.noteDamage(err)
	err, unusable := p.Engine.EndWrite(c, err)
	await, p.memory.await = p.memory.await, 0
	giveBack(p.writer, c, broken || unusable)
	return await, err
}

// Writing describes a write that has the writing connection, or waits for the connection to be dialled.
type Writing struct {
	What  string    `json:"what"` // the function that writes
	Since time.Time `json:"since"`
}

// callers are the callers of a write. The first ones are methods of the pool.
type callers struct {
	since  time.Time
	frames [8]uintptr
}

// longWrite is the duration from which ReadWriting returns a write.
const longWrite = time.Second

// ReadWriting returns the write that has had the writing connection for longer than a second, or nil.
func (p *Pool) ReadWriting() *Writing {
	c := p.writing.Load()
	if c == nil || p.wall().Sub(c.since) < longWrite {
		return nil
	}
	w := &Writing{Since: c.since}
	frames := runtime.CallersFrames(c.frames[:])
	for more := true; more && (w.What == "" || strings.HasPrefix(w.What, "store/db.")); {
		var frame runtime.Frame
		frame, more = frames.Next()
		w.What = strings.TrimPrefix(frame.Function, "understudy/internal/")
	}
	return w
}

// Read runs work with a reading connection inside one read transaction. So work sees one consistent snapshot.
func (p *Pool) Read(ctx context.Context, work func(c Conn) error) error {
	return p.UseReader(ctx, func(c Conn) (bool, error) {
		broken, err := c.RunReading(ctx, func() error { return work(c) })
		p.noteDamage(err)
		for part, n := range c.TakeReads() {
			p.reads[part].Add(n)
		}
		return broken, err
	})
}

// UseReader runs work with a reading connection, without a transaction.
func (p *Pool) UseReader(ctx context.Context, work func(c Conn) (broken bool, err error)) error {
	return p.Use(ctx, p.readers, work)
}

// Use runs work with a connection of a channel, which the caller owns and closes. In place of nil it dials a connection that
// may write. Its transactions lock nothing and load no changes of other processes.
func (p *Pool) Use(ctx context.Context, from chan Conn, work func(c Conn) (broken bool, err error)) error {
	leave, err := p.begin()
	if err != nil {
		return err
	}
	defer leave()
	c, err := p.take(ctx, from)
	if err != nil {
		return err
	}
	broken, err := work(c)
	giveBack(from, c, broken)
	return err
}

// CloseReaders closes all reading connections, and lets readers wait until reopen is called. If the running reads take long, it
// tries again, and returns an error at last.
func (p *Pool) CloseReaders(ctx context.Context) (reopen func(), err error) {
	for range closeTries {
		if reopen, err = p.closeReaders(ctx); err == nil || retry.Wait(ctx, closePause) != nil {
			return reopen, err
		}
	}
	return reopen, errReadersStay
}

// closeReaders returns an error if the running reads take longer than closeWait.
func (p *Pool) closeReaders(ctx context.Context) (reopen func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, closeWait)
	defer cancel()
	var all []Conn
	for range cap(p.readers) {
		select {
		case c := <-p.readers:
			all = append(all, c)
		case <-ctx.Done():
			for _, c := range all {
				p.readers <- c
			}
			return func() {}, ctx.Err()
		}
	}
	for _, c := range all {
		if c != nil {
			_ = c.Close() // a connection that stays open keeps its lock, which the caller finds
		}
	}
	return func() {
		for range all {
			p.readers <- nil
		}
	}, nil
}

// noteDamage remembers that part of the database could not be read, if err says so.
func (p *Pool) noteDamage(err error) {
	if ClassOf(err) == Damaged {
		p.damaged.Store(true)
	}
}

// IsDamaged reports whether part of the database could not be read since the pool was started.
func (p *Pool) IsDamaged() bool { return p.damaged.Load() }

// Reads returns how many rows Read has read, by part.
func (p *Pool) Reads() (all Reads) {
	for part := range p.reads {
		all[part] = p.reads[part].Load()
	}
	return all
}

// RefuseCalls makes later calls of Write and UseReader fail with ErrClosed. It reports whether it was called before.
func (p *Pool) RefuseCalls() (again bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	again = p.closed
	p.closed = true
	return again
}

// WaitForCalls returns when all transactions have ended that began before RefuseCalls.
func (p *Pool) WaitForCalls() { p.active.Wait() }

// Close closes the connections and the engine. No call may be running.
func (p *Pool) Close() (err error) {
	for _, from := range []chan Conn{p.readers, p.rows} {
		for range len(from) {
			if c := <-from; c != nil {
				err = errors.Join(err, c.Close())
			}
		}
	}
	select {
	case c := <-p.writer:
		if c != nil {
			err = errors.Join(err, c.Close())
		}
	default:
	}
	return errors.Join(err, p.Engine.Close())
}
