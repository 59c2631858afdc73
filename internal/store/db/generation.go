// This file notices that another process has changed what this process keeps in memory of the database.
//
// Most of what a transaction needs it reads from rows. The rest is in memory, divided into topics. A transaction that
// changes a topic increments the topic's number in table counter (MarkChanged). If other connections may have
// committed, each transaction compares these numbers with those in memory, and the loader of a changed topic reads the
// topic again (SetLoader). A writing transaction compares them after it has the lock, so no other process can write
// between the comparison and the commit.

package db

import (
	"context"
	"database/sql/driver"
	"strings"
	"sync/atomic"
	"time"

	"understudy"
)

// Topic is a part of what a process keeps in memory of the database.
type Topic uint8

// The topics.
const (
	Catalog     Topic = iota // the numbers of sources, kinds and shapes
	Annotations              // the notes and marks of people
	Indexes                  // how far the indexes are filled, and the ranges of times in them
	Words                    // which words the index may have
	Moves                    // records were moved in lists to make room
	Silent                   // records appeared or disappeared without a change
	Erasures                 // records that must not be stored again
	Sessions                 // the sessions of people, among the small values
	Credentials              // the credentials of programs, among the small values
	Watches                  // the watches of people, among the small values
	Keys                     // the keys of cookies, among the small values
	Progress                 // the states of walks and webhooks, among the small values
	Kinds                    // how often there was a write to each kind
	Pages                    // pages were deleted that must not be shown any more
	Jobs                     // jobs were added, or wait again
	position                 // the changes of all topics that every node must have seen before a call returns
	timeline                 // not a topic: the number of the database's history, which is another one after a standby was promoted
	topics
)

// awaited are the topics whose changes every node must have seen before the call that changes them returns.
var awaited = [topics]bool{Silent: true, Erasures: true, Sessions: true, Credentials: true, Kinds: true, Pages: true}

// columns are the columns of table counter with the numbers of the topics.
var columns = [timeline]string{"catalog", "annotations", "indexes", "words", "moves", "silent", "erasures", "sessions", "credentials",
	"watches", "keys", "progress", "kinds", "pages", "jobs", "position"}

var selectTopics = "SELECT " + strings.Join(columns[:], ", ") + ", "

// standardTime is the time of the database in microseconds since 1970.
const standardTime = ", CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint) FROM counter"

var (
	// The last column is the time of the database, or 0 if it is that of this process.
	selectGenerations = &Statement{Head: selectTopics + "CAST(0 AS bigint), CAST(0 AS bigint) FROM counter", Standard: selectTopics +
		"CAST(CAST('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8) AS bit(32)) AS bigint)" + standardTime}
	// selectTopicsOnly is for servers that do not tell their timeline.
	selectTopicsOnly = &Statement{Head: selectGenerations.Head, Standard: selectTopics + "CAST(0 AS bigint)" + standardTime}
	// errReplaced is the error of each transaction after the timeline has changed or the position has gone back.
	errReplaced = &Error{Class: Away, Reason: understudy.ErrReplaced.Error(), Err: understudy.ErrReplaced}
)

var increment = func() (all [timeline]*Statement) {
	for t, name := range columns {
		all[t] = &Statement{Head: "UPDATE counter SET " + name + " = " + name + " + 1"}
	}
	return all
}()

// generations are the numbers of all topics.
type generations [topics]int64

// newGenerations returns the numbers of a row of selectGenerations.
func newGenerations(row []driver.Value) (g generations) {
	for i := range g {
		g[i] = row[i].(int64)
	}
	return g
}

func (p *Pool) readGenerations(c Conn) (g generations, err error) {
	_, err = QueryRow(c, p.generations, nil, func(r []driver.Value) { g = newGenerations(r); p.setClock(r) })
	return g, err
}

// setClock stores the time of the database in a row of selectGenerations that was just read.
func (p *Pool) setClock(row []driver.Value) {
	if t := row[topics].(int64); t != 0 {
		p.clock.Store(&[2]time.Time{time.UnixMicro(t), p.now()})
	}
}

// Now returns the time of the database without asking it, or that of this process if the database has none.
func (p *Pool) Now() time.Time {
	if c := p.clock.Load(); c != nil {
		return c[0].Add(p.now().Sub(c[1]))
	}
	return p.now()
}

// memory has the loader of each topic, and the generation of each topic that is in memory.
type memory struct {
	load [topics]func(ctx context.Context, c Conn) error
	seen atomic.Pointer[generations] // the generations in memory
	// changed are the topics that the open writing transaction changes, and committed is called after its commit. The
	// goroutine with the writing connection owns both.
	changed   [topics]bool
	committed []func()
	// await is the position of the last commit that the other nodes must have seen, or 0. The goroutine with the writing
	// connection owns it.
	await int64
}

// SetLoader makes load read a topic again after another process has changed it. load runs in a reading
// transaction of the writing connection. Call SetLoader before Start.
func (p *Pool) SetLoader(t Topic, load func(ctx context.Context, c Conn) error) {
	p.memory.load[t] = load
}

// MarkChanged says that the open writing transaction changes a topic. The caller changes the memory of this process
// itself, before the write ends.
func (p *Pool) MarkChanged(t Topic) {
	p.memory.changed[t] = true
	p.memory.changed[position] = p.memory.changed[position] || awaited[t]
}

// Timeline returns the number of the database's history, or 0 if it is not known.
func (p *Pool) Timeline() int64 { return p.memory.seen.Load()[timeline] }

// Position returns the number of the last change of an awaited topic that is in memory.
func (p *Pool) Position() int64 { return p.memory.seen.Load()[position] }

// SetBarrier makes each call that changes an awaited topic wait until barrier returns, after the commit. barrier gets the
// number of the change.
func (p *Pool) SetBarrier(barrier func(position int64)) { p.barrier.Store(&barrier) }

// CallAfterCommit makes the open writing transaction call change after its commit, before the next write begins. change
// is not called if the transaction is rolled back. It may change the memory of this process; it must not use the
// database.
func (p *Pool) CallAfterCommit(change func()) {
	p.memory.committed = append(p.memory.committed, change)
}

// addHooks makes the transactions of a connection compare the generations.
func (p *Pool) addHooks(c Conn, writing bool) {
	if !writing {
		c.SetHooks(Hooks{Read: p.generations, Begin: p.refreshReader})
		return
	}
	c.SetHooks(Hooks{Read: p.generations, Begin: p.refreshWriter, Commit: p.writeChanged, End: p.memory.end})
}

// end follows the end of a writing transaction.
func (m *memory) end(committed bool) {
	changed, calls := m.changed, m.committed
	m.changed, m.committed = [topics]bool{}, nil
	if !committed {
		return
	}
	for _, call := range calls { // before other goroutines learn that memory contains the change
		call()
	}
	if changed != [topics]bool{} {
		seen := *m.seen.Load()
		for t, changed := range changed {
			if changed {
				seen[t]++
			}
		}
		m.seen.Store(&seen)
		if changed[position] {
			m.await = seen[position]
		}
	}
}

// writeChanged increments the numbers of the topics that the writing transaction has changed.
func (p *Pool) writeChanged(c Conn) error {
	for t, changed := range p.memory.changed {
		if changed {
			if err := c.Execute(increment[t], 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// Refresh loads the topics that another process has changed.
func (p *Pool) Refresh(ctx context.Context) error {
	return p.Read(ctx, func(Conn) error { return nil })
}

// refreshWriter loads the topics that another process has changed. It runs in a transaction of the writing
// connection.
func (p *Pool) refreshWriter(ctx context.Context, c Conn, row []driver.Value) error {
	g := newGenerations(row)
	if seen := p.memory.seen.Load(); g[timeline] != seen[timeline] || g[position] < seen[position] {
		return errReplaced
	}
	for t, n := range g {
		if n == p.memory.seen.Load()[t] {
			continue
		}
		if load := p.memory.load[t]; load != nil {
			if err := load(ctx, c); err != nil {
				return err
			}
		}
	}
	p.memory.seen.Store(&g)
	return nil
}

// refreshReader does the same at the beginning of a reading transaction. It waits for the writing connection, because
// only the goroutine that has it may change what is in memory. It does not wait for the calls of Write that wait too: a lease
// must be renewed in time.
func (p *Pool) refreshReader(ctx context.Context, _ Conn, row []driver.Value) error {
	g := newGenerations(row)
	p.setClock(row) // not in a writing transaction, which may have waited for its lock after the time was read
	if g[timeline] != p.memory.seen.Load()[timeline] {
		return errReplaced
	}
	if !p.isBehind(&g) {
		return nil
	}
	_, err := p.useWriter(ctx, func(w Conn) (bool, error) {
		if !p.isBehind(&g) {
			return false, nil // another goroutine has loaded it meanwhile
		}
		return w.RunReading(ctx, func() error { return nil })
	})
	return err
}

// isBehind reports whether memory is older than a snapshot of the database.
func (p *Pool) isBehind(g *generations) bool {
	seen := p.memory.seen.Load()
	for t, n := range g {
		if n > seen[t] {
			return true
		}
	}
	return false
}
