// Package pgtest gives tests databases of a real PostgreSQL server.
//
// The first test that asks for a database starts the server. Each test binary has one server, in a temporary folder, which
// listens only on a socket. The server ends with the test binary, even if the binary is killed.
//
// A Pool prepares one database and copies it for the tests. No two tests use a database at the same time. When a test
// ends, its database returns to the pool and is cleaned for the next test. Cleaning deletes the rows that the test wrote,
// restores the rows of the migrations, and resets the sequences. A test that leaves a session open fails.
package pgtest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	// takeTimeout is how long a test waits for its database.
	takeTimeout = time.Minute

	// grace is how long a session may still be open after its test has ended. The server notices only later that a connection was closed.
	grace = 3 * time.Second

	// maxLogLines is how many lines of the server's log a failed test shows.
	maxLogLines = 40
)

// Pool gives tests empty databases that have the same schema. Its zero value gives databases without tables.
type Pool struct {
	// Prepare creates the schema in the database that dsn names. It is called once, and closes its connections. Foreign
	// keys must be DEFERRABLE INITIALLY IMMEDIATE. Every database of the pool has the rows that Prepare inserts.
	Prepare func(ctx context.Context, dsn string) error

	prepared sync.Once
	template *template
	err      error // the error of Prepare

	mu   sync.Mutex
	idle []*database
}

// lastDatabase is the number of the newest database. Pools share a server, so their databases have different numbers.
var lastDatabase atomic.Int64

// Database returns the data source name of an empty database, which only this test uses until it ends. The test must close
// all its connections to the database, in the test itself or in a function passed to t.Cleanup after the call of Database.
func (p *Pool) Database(t testing.TB) (dsn string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), takeTimeout)
	defer cancel()
	db, replaced, err := p.take(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, reason := range replaced {
		t.Logf("pgtest: %s", reason)
	}
	logStart := db.server.logSize()
	t.Cleanup(func() { p.release(t, db, logStart) })
	return db.dsn
}

// take returns a clean database that no test uses. It drops a database that cannot be cleaned; replaced says why.
func (p *Pool) take(ctx context.Context) (db *database, replaced []string, err error) {
	p.prepared.Do(func() { p.template, p.err = newTemplate(ctx, p.Prepare) })
	if p.err != nil {
		return nil, nil, p.err
	}
	for db := p.pop(); db != nil; db = p.pop() {
		cause := db.clean(ctx)
		if cause == nil {
			return db, replaced, nil
		}
		replaced = append(replaced, fmt.Sprintf("database %s is replaced: %v", db.name, cause))
		if err := db.drop(ctx); err != nil {
			return nil, replaced, err
		}
	}
	db, err = p.template.copy(ctx)
	return db, replaced, err
}

// pop takes the most recently used database from the free databases. It returns nil if no database is free.
func (p *Pool) pop() *database {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) == 0 {
		return nil
	}
	last := len(p.idle) - 1
	db := p.idle[last]
	p.idle = slices.Delete(p.idle, last, last+1)
	return db
}

// release returns a database to the pool. If a session is still open in the database, the test fails and the database is dropped.
func (p *Pool) release(t testing.TB, db *database, logStart int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), takeTimeout)
	defer cancel()
	open, err := db.waitForSessions(ctx)
	if err != nil {
		t.Errorf("pgtest: find the sessions that %s left open: %v", t.Name(), err)
	}
	if len(open) > 0 {
		t.Errorf("pgtest: %s ended with open sessions in its database:\n%s\n"+
			"Close connections before the test ends, for example by a function for t.Cleanup.", t.Name(), strings.Join(open, "\n"))
	}
	if t.Failed() {
		for _, line := range db.server.readLog(db.name, logStart, maxLogLines) {
			t.Logf("PostgreSQL: %s", line)
		}
	}
	if err != nil || len(open) > 0 {
		if err := db.drop(ctx); err != nil {
			t.Error(err)
		}
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, db)
}
