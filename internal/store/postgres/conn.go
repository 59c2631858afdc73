// This file has the methods of one connection. Statements without results wait for the next statement that returns rows,
// and are sent together with it.

package postgres

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql/driver"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"understudy/internal/store/db"
)

const (
	maxWait    = time.Minute     // how long one exchange with the database may take
	endWait    = 5 * time.Second // how long a rollback and the end of a connection may take
	answerWait = time.Second     // how long a cancel request may take
	maxQueued  = 256             // how many statements wait at most before they are sent
	maxBytes   = 1 << 20         // how many bytes of parameters wait at most before they are sent
	portion    = 256             // how many rows of a whole table are read at once
)

// Conn is one connection. It implements db.Conn.
type Conn struct {
	config   *pgconn.Config
	raw      *pgconn.PgConn
	prepares bool                                     // whether the server keeps prepared statements
	texts    map[variant]string                       // the texts of statements
	prepared map[variant]*pgconn.StatementDescription // the statements that the server has prepared; nil if it keeps none
	prefix   string                                   // begins their names; no other connection has it, which may share a session of PgBouncer
	cursors  int                                      // the number of cursors opened so far

	queue  []queued        // the statements that were not sent yet
	queued int             // the bytes of their parameters
	ahead  map[string]rows // the rows of queries announced by Expect; nil until they are read

	work    context.Context // the context of the open transaction, or nil
	limit   context.Context // the context that limits the time of the current work, or nil
	durable bool            // whether the next transactions wait for the disk regardless of the server's settings
	hooks   db.Hooks
	reads   db.Reads
}

// open opens the connection to the server.
func (c *Conn) open(ctx context.Context) error {
	raw, err := pgconn.ConnectConfig(ctx, c.config)
	if err != nil {
		return err
	}
	if c.raw = raw; c.prepares {
		c.prepared, c.prefix = map[variant]*pgconn.StatementDescription{}, rand.Text()
	}
	return nil
}

// variant is a statement with a number of tuples. suffix is the text that a writing transaction appends.
type variant struct {
	st     *db.Statement
	n      int
	suffix string
}

// queued is a statement that was not sent yet.
type queued struct {
	key     variant
	text    string // the text of a statement that is run only once; key is then empty
	values  [][]byte
	formats []int16
	ahead   string // the key in Conn.ahead of a query announced by Expect
}

// rows are the rows that a statement has returned.
type rows [][]driver.Value

// binaryResults asks for every column in binary format.
var binaryResults = []int16{binaryFormat}

// Execute implements db.Conn. In a transaction it does not wait for the result. The next query or the commit returns the
// error of the statement.
func (c *Conn) Execute(st *db.Statement, n int, args ...driver.Value) error {
	if err := c.push(variant{st: st, n: n}, "", args); err != nil {
		return err
	}
	if c.work != nil && len(c.queue) < maxQueued && c.queued < maxBytes {
		return nil
	}
	_, err := c.send()
	return err
}

// Query implements db.Conn. It reads all rows before it calls each.
func (c *Conn) Query(st *db.Statement, n int, args []driver.Value, each func(row []driver.Value) error) error {
	if st.Whole && c.work != nil {
		return c.queryPortions(st, n, args, each)
	}
	if err := c.push(variant{st: st, n: n}, "", args); err != nil {
		return err
	}
	if len(c.ahead) > 0 {
		if found, ok, err := c.takeAhead(); ok || err != nil {
			return c.visitRows(found, err, st.Reads, each)
		}
	}
	found, err := c.send()
	return c.visitRows(found, err, st.Reads, each)
}

// Expect implements db.Conn. The announced query is sent together with the next query.
func (c *Conn) Expect(st *db.Statement, n int, args ...driver.Value) error {
	if c.work == nil {
		return nil
	}
	if err := c.push(variant{st: st, n: n}, "", args); err != nil {
		return err
	}
	q := &c.queue[len(c.queue)-1]
	q.ahead = q.identify()
	c.ahead[q.ahead] = nil
	return nil
}

// takeAhead returns the rows of the last query in the queue if Expect has announced that query. It removes the query from the queue.
func (c *Conn) takeAhead() (found rows, ok bool, err error) {
	last := len(c.queue) - 1
	key := c.queue[last].identify()
	if found, ok = c.ahead[key]; !ok {
		return nil, false, nil
	}
	c.queue = c.queue[:last]
	if found == nil {
		if _, err := c.send(); err != nil {
			return nil, false, err
		}
		found = c.ahead[key]
	}
	delete(c.ahead, key)
	return found, true, nil
}

// identify returns a text that identifies a query and its arguments.
func (q *queued) identify() string {
	key := fmt.Appendf(nil, "%p %d", q.key.st, q.key.n)
	for i, v := range q.values {
		key = fmt.Appendf(key, " %d %t %d ", q.formats[i], v == nil, len(v))
		key = append(key, v...)
	}
	return string(key)
}

// visitRows calls each for every row that a statement has returned.
func (c *Conn) visitRows(found rows, err error, part db.Part, each func(row []driver.Value) error) error {
	if err != nil {
		return err
	}
	c.reads[part] += int64(len(found))
	return db.Guard(func() error {
		for _, row := range found {
			if err := each(row); err != nil {
				return err
			}
		}
		return nil
	})
}

// queryPortions reads the rows of a whole table in portions, through a cursor.
func (c *Conn) queryPortions(st *db.Statement, n int, args []driver.Value, each func(row []driver.Value) error) error {
	c.cursors++
	name := "whole" + strconv.Itoa(c.cursors)
	if err := c.push(variant{}, "DECLARE "+name+" NO SCROLL CURSOR FOR "+textOf(st, n), args); err != nil {
		return err
	}
	for more := true; more; {
		if err := c.push(variant{}, fmt.Sprintf("FETCH %d FROM %s", portion, name), nil); err != nil {
			return err
		}
		got := 0
		found, err := c.send()
		err = c.visitRows(found, err, st.Reads, func(row []driver.Value) error {
			got++
			return each(row)
		})
		if err != nil {
			return err
		}
		more = got == portion
	}
	return c.push(variant{}, "CLOSE "+name, nil)
}

// QueryOnce implements db.Conn. PostgreSQL plans the query for these values of the parameters.
func (c *Conn) QueryOnce(text string, args []driver.Value, each func(row []driver.Value) error) error {
	if err := c.push(variant{}, numberParameters(text), args); err != nil {
		return err
	}
	found, err := c.send()
	return c.visitRows(found, err, db.Index, each)
}

// push appends a statement to the queue of statements to send.
func (c *Conn) push(key variant, text string, args []driver.Value) error {
	if c.limit != nil && c.limit.Err() != nil {
		return c.limit.Err()
	}
	q := queued{key: key, text: text}
	var err error
	q.values, q.formats, err = appendParameters(make([][]byte, 0, len(args)), make([]int16, 0, len(args)), args)
	if err != nil {
		return err
	}
	for _, v := range q.values {
		c.queued += len(v)
	}
	c.queue = append(c.queue, q)
	return nil
}

// text returns the text of a queued statement.
func (c *Conn) text(q *queued) string {
	if q.key.st == nil {
		return q.text
	}
	text, ok := c.texts[q.key]
	if !ok {
		text = textOf(q.key.st, q.key.n) + q.key.suffix
		c.texts[q.key] = text
	}
	return text
}

// send sends all queued statements in one round trip. It returns the rows of the last statement. Outside a transaction it
// sends them again if another transaction has aborted them.
func (c *Conn) send() (found rows, err error) {
	queue := c.queue
	c.queue, c.queued = c.queue[:0], 0
	defer clear(queue)
	if c.work != nil {
		return c.exchange(queue)
	}
	err = db.RunAgain(c.context(), func() (err error) { found, err = c.exchange(queue); return err })
	return found, err
}

// exchange sends statements and reads their results.
func (c *Conn) exchange(queue []queued) (found rows, err error) {
	if c.raw.IsClosed() {
		return nil, newLostError(errors.New("before the statement"))
	}
	ctx, cancel := context.WithTimeout(c.context(), maxWait)
	defer cancel()
	p := c.raw.StartPipeline(ctx)
	var fresh []variant // the statements that are prepared by this exchange, in order
	for i := range queue {
		q := &queue[i]
		switch {
		case c.prepared == nil || q.key.st == nil:
			p.SendQueryParams(c.text(q), q.values, nil, q.formats, binaryResults)
			continue
		case c.prepared[q.key] == nil:
			name := c.prefix + strconv.Itoa(len(c.prepared)+1)
			p.SendPrepare(name, c.text(q), nil)
			c.prepared[q.key] = &pgconn.StatementDescription{Name: name}
			fresh = append(fresh, q.key)
		}
		p.SendQueryStatement(c.prepared[q.key], q.values, q.formats, binaryResults)
	}
	found, columns, err := c.read(p, queue)
	for i, key := range fresh {
		if i < len(columns) {
			c.prepared[key].Fields = columns[i] // so that the server need not describe them again
		} else {
			delete(c.prepared, key)
		}
	}
	if err != nil {
		err = c.explain(ctx, err)
	}
	return found, err
}

// read sends the statements of queue as a pipeline and reads the results. It returns the rows of the last statement, and
// the columns of each statement that was prepared. It stores the rows of queries that Expect has announced.
func (c *Conn) read(p *pgconn.Pipeline, queue []queued) (found rows, columns [][]pgconn.FieldDescription, err error) {
	if err := p.Sync(); err != nil {
		return nil, nil, errors.Join(err, p.Close())
	}
	for err == nil {
		var result any
		result, err = p.GetResults()
		switch result := result.(type) {
		case *pgconn.StatementDescription:
			columns = append(columns, result.Fields)
			continue
		case *pgconn.ResultReader:
			if found, err = readRows(result, err); err == nil && queue[0].ahead != "" {
				c.ahead[queue[0].ahead] = found
			}
			queue = queue[1:]
			continue
		}
		break // the end of the pipeline, or an error
	}
	if cerr := p.Close(); err == nil {
		err = cerr
	}
	return found, columns, err
}

// readRows reads the rows of one statement.
func readRows(result *pgconn.ResultReader, err error) (found rows, _ error) {
	found = rows{} // not nil, which means that nothing was found
	for err == nil && result.NextRow() {
		var row []driver.Value
		row, err = readRow(result.FieldDescriptions(), result.Values())
		found = append(found, row)
	}
	tag, cerr := result.Close()
	if err == nil {
		err = cerr
	}
	if err == nil && tag.String() == "ROLLBACK" {
		err = errRolledBack
	}
	return found, err
}

// errRolledBack is the error of a commit if a statement of the transaction has failed.
var errRolledBack = errors.New("the transaction was rolled back because a statement of it failed")

// context returns the context that limits the current statements.
func (c *Conn) context() context.Context { return cmp.Or(c.limit, c.work, context.Background()) }

// explain returns the error of an exchange with its class. If the caller's context has ended, it returns the error of the context.
func (c *Conn) explain(ctx context.Context, err error) error {
	if cause := c.context().Err(); cause != nil {
		return cause
	}
	if ctx.Err() != nil {
		return &db.Error{Class: db.Away, Reason: fmt.Sprintf("the database did not answer within %v", maxWait), Err: err}
	}
	if c.raw.IsClosed() {
		return newLostError(err)
	}
	return wrapError(err)
}

// SetHooks implements db.Conn.
func (c *Conn) SetHooks(h db.Hooks) { c.hooks = h }

// TakeReads implements db.Conn.
func (c *Conn) TakeReads() (reads db.Reads) {
	reads, c.reads = c.reads, db.Reads{}
	return reads
}

// Close implements db.Conn. Behind PgBouncer it waits until the last cancel request is answered, because the process may end then.
func (c *Conn) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), endWait)
	defer cancel()
	err := c.raw.Close(ctx)
	if !c.prepares {
		select {
		case <-c.raw.CleanupDone():
		case <-time.After(answerWait):
		}
	}
	return err
}
