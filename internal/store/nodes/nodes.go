// Package nodes stores the table of the processes ("nodes") that share a database. Each node renews its row regularly. The
// row also says up to which position the node's memory contains the changes of the other nodes. All times are times of the
// database, so the clocks of the machines do not matter.
package nodes

import (
	"bytes"
	"context"
	"database/sql/driver"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"understudy/internal/store/db"
	"understudy/internal/store/migrations"
)

// Lease is how long a node may answer from memory after it has renewed its row.
const Lease = 2 * time.Second

// Node is one process that shares the database.
type Node struct {
	ID string `json:"id"`
	// URL is where other nodes reach it; "" if they cannot reach it. With TLS its fragment is the fingerprint of the node's key.
	URL      string        `json:"url,omitempty"`
	Version  string        `json:"version"`
	Settings string        `json:"-"` // the settings that must be equal on all nodes, in a form that reveals nothing secret
	Started  time.Time     `json:"started"`
	Seen     int64         `json:"-"`      // the position up to which the node's memory contains the changes of other nodes
	Behind   int64         `json:"behind"` // the number of changes that the node's memory does not have yet
	Left     time.Duration `json:"-"`      // how long its lease lasts; at most 0 once it has ended
	Note     []byte        `json:"-"`      // the value with the name KVName, or nil
	// Parts says how the nodes divide the budgets of requests. It is the same in all nodes that were read together.
	Parts       string `json:"-"`
	PartsWrites int64  `json:"-"` // how often Parts was replaced
}

// now is an SQL expression for the time of the database in Unix nanoseconds.
const (
	nowSQLite   = "CAST(unixepoch('subsec') * 1000 AS INTEGER) * 1000000"
	nowStandard = "CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT) * 1000"
)

// NewStatement returns a statement with the time of the database between two texts.
func NewStatement(before, after string) *db.Statement {
	return &db.Statement{Head: before + nowSQLite + after, Standard: before + nowStandard + after}
}

var (
	putNode = NewStatement("INSERT INTO node (id, url, version, settings, started, seen, alive, knows) SELECT ?1, ?2, ?3, ?4, now, ?5, "+
		"now + ?6, ?7 FROM (SELECT ",
		" AS now) clock WHERE true ON CONFLICT (id) DO UPDATE SET url = excluded.url, seen = excluded.seen, alive = excluded.alive")
	selectNodes = NewStatement("SELECT id, url, version, settings, started, seen, position - seen, needs, alive - ",
		", (SELECT value FROM kv WHERE name = '"+notePrefix+"' || id), writes, parts FROM node CROSS JOIN counter CROSS JOIN budget ORDER BY id")
	updateParts = &db.Statement{Head: "UPDATE budget SET writes = writes + 1, parts = ?1 WHERE writes = ?2 RETURNING 1"}
	deleteNode  = &db.Statement{Head: "DELETE FROM node WHERE id = ?"}
	deleteEnded = NewStatement("DELETE FROM node WHERE alive < ", " - 3600000000000 "+
		"AND NOT EXISTS (SELECT 1 FROM kv WHERE name = '"+notePrefix+"' || id)")
)

const notePrefix = "write/"

// KVName returns the name of the value that notes which writes a node has sent upstream. A node with such a note stays listed.
func KVName(id string) string { return notePrefix + id }

// Table is the table of nodes. It is safe for concurrent use.
type Table struct {
	pool      *db.Pool
	noteWrite func() // called after a write of another process
	others    atomic.Pointer[Others]
	// generations are the generations of the kinds up to which Others.Written was called. The goroutine with the writing
	// connection owns them.
	generations map[int64]int64
	// conn has the connection for renewals, and claims has the connections for claims. So neither waits for the transactions of the store.
	// A connection is nil until it is dialled. A goroutine takes a connection from the channel before it uses the connection.
	conn, claims chan db.Conn
}

// maxClaims is the number of connections for claims.
const maxClaims = 2

// New returns the table of nodes of a database. The table calls noteWrite after another process has written.
func New(pool *db.Pool, noteWrite func()) *Table {
	t := &Table{pool: pool, noteWrite: noteWrite, conn: make(chan db.Conn, 1), claims: make(chan db.Conn, maxClaims),
		generations: map[int64]int64{}}
	t.conn <- nil
	for range maxClaims {
		t.claims <- nil
	}
	return t
}

// use runs work with a connection from a channel. work must be a single statement, so that no lock waits for this process.
func (t *Table) use(ctx context.Context, from chan db.Conn, work func(c db.Conn) error) error {
	return t.pool.Use(ctx, from, func(c db.Conn) (bool, error) {
		err := c.LimitTime(ctx, Lease, func() error { return work(c) })
		return err != nil, err
	})
}

// Close closes the connections. No other call may be running.
func (t *Table) Close() (err error) {
	for _, from := range []chan db.Conn{t.conn, t.claims} {
		for range cap(from) {
			if c := <-from; c != nil {
				err = errors.Join(err, c.Close())
			}
		}
	}
	return err
}

// Renew loads the changes of other nodes into memory, records this in the row of the node, and renews the node's lease. It
// returns all nodes, also those whose lease has ended in the last hour. The lease begins before the call.
func (t *Table) Renew(ctx context.Context, n Node) (all []Node, err error) {
	if err := t.pool.Refresh(ctx); err != nil {
		return nil, db.WrapError(false, err, "load what other processes have changed")
	}
	err = t.pool.Use(ctx, t.conn, db.Transaction(ctx, func(c db.Conn) error {
		err := c.Execute(putNode, 0, n.ID, n.URL, n.Version, n.Settings, t.pool.Position(), int64(Lease), int64(migrations.Newest))
		if err == nil {
			err = c.Execute(deleteEnded, 0)
		}
		if err == nil {
			all, err = list(c)
		}
		return err
	}))
	return all, db.WrapError(true, err, "renew the lease of this process")
}

// Timeline returns the number of the database's history. It changes if a standby is promoted. It is 0 if it is not known.
func (t *Table) Timeline() int64 { return t.pool.Timeline() }

// List returns all nodes.
func (t *Table) List(ctx context.Context) (all []Node, err error) {
	err = t.pool.Read(ctx, func(c db.Conn) (err error) {
		all, err = list(c)
		return err
	})
	return all, db.WrapError(false, err, "list the processes that share the database")
}

func list(c db.Conn) (all []Node, err error) {
	err = c.Query(selectNodes, 0, nil, func(r []driver.Value) error {
		note, _ := r[9].([]byte)
		all = append(all, Node{Note: bytes.Clone(note), ID: r[0].(string), URL: r[1].(string), Version: r[2].(string), Settings: r[3].(string),
			Started: time.Unix(0, r[4].(int64)).UTC(), Seen: r[5].(int64), Behind: r[6].(int64),
			Left: time.Duration(r[8].(int64)), PartsWrites: r[10].(int64), Parts: r[11].(string)})
		return migrations.CheckNeeds(r[7].(int64))
	})
	return all, err
}

// CountRunning returns how many nodes have a lease.
func CountRunning(c db.Conn) (n int, err error) {
	all, err := list(c)
	return len(slices.DeleteFunc(all, func(one Node) bool { return one.Left <= 0 })), err
}

// ReplaceParts replaces Parts. It returns false if another node has done so since Parts was read with that number of writes.
func (t *Table) ReplaceParts(ctx context.Context, writes int64, parts string) (done bool, err error) {
	err = t.use(ctx, t.conn, func(c db.Conn) error {
		done, err = db.QueryRow(c, updateParts, []driver.Value{parts, writes}, func([]driver.Value) {})
		return err
	})
	return done, db.WrapError(true, err, "divide the budgets of requests")
}

// Remove deletes the row of a node that ends, so that no other node waits for it.
func (t *Table) Remove(ctx context.Context, id string) error {
	err := t.pool.Use(ctx, t.conn, db.Transaction(ctx, func(c db.Conn) error { return c.Execute(deleteNode, 0, id) }))
	return db.WrapError(true, err, "remove this process")
}
