package postgres

import (
	"context"
	"database/sql/driver"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"understudy/internal/checktest"
	"understudy/internal/store/db"
	"understudy/internal/store/pgtest"
)

// exec is the parameter of a DSN that PgBouncer needs in transaction mode.
const exec = "&default_query_exec_mode=exec"

// visitSessions runs a transaction of each connection at the same time, so that PgBouncer opens as many sessions.
func visitSessions(t *testing.T, conns []*Conn, visit func(c *Conn) error) error {
	if len(conns) == 0 {
		return nil
	}
	_, err := conns[0].RunTransaction(t.Context(), func() error {
		return errors.Join(visit(conns[0]), visitSessions(t, conns[1:], visit))
	})
	return err
}

func TestTransactionsBehindPgBouncerMayHaveAnySession(t *testing.T) {
	t.Parallel()
	var empty pgtest.Pool
	dsn := pgtest.Bouncer(t, empty.Database(t), "default_pool_size=3", "server_idle_timeout=600") + exec
	c := dial(t, dsn)
	e, err := NewEngine(dsn)
	checktest.MustNoError(t, err, "NewEngine")
	checktest.MustNoError(t, e.Prepare(t.Context(), c), "create the tables")
	conns := []*Conn{c, dial(t, dsn), dial(t, dsn)}
	showDurable := &db.Statement{Head: "SELECT pg_backend_pid(), current_setting('synchronous_commit')"}
	sessions := map[int64]bool{}
	for range 4 {
		_, err := c.RunDurably(func() (bool, error) {
			return c.RunTransaction(t.Context(), func() error {
				_, err := db.QueryRow(c, showDurable, nil, func(r []driver.Value) { checktest.Equal(t, r[1].(string), "on", "durable") })
				return err
			})
		})
		checktest.NoError(t, err, "a durable transaction")
		err = visitSessions(t, conns, func(c *Conn) error {
			_, err := db.QueryRow(c, showDurable, nil, func(r []driver.Value) {
				sessions[r[0].(int64)] = true
				checktest.Equal(t, r[1].(string), "off", "durability after a durable transaction")
			})
			return err
		})
		checktest.NoError(t, err, "transactions at the same time")
	}
	checktest.Equal(t, len(sessions), 3, "sessions")
}

func TestWithoutItsParameterPgBouncerIsNamed(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Bouncer(t, thingTables.Database(t), "default_pool_size=3")
	conns := []*Conn{dial(t, dsn), dial(t, dsn), dial(t, dsn)}
	var err error
	for range 4 {
		err = errors.Join(err, visitSessions(t, conns, func(c *Conn) error {
			_, err := db.QueryRow(c, countThings, nil, func([]driver.Value) {})
			return err
		}))
	}
	checktest.MustTrue(t, err != nil, "statements stay prepared behind PgBouncer")
	checktest.Contains(t, db.ReasonOf(err), "add default_query_exec_mode=exec to store.dsn", "reason of %v", err)
}

// PgBouncer keeps the connections of its clients while it does not reach the database. It closes them after query_wait_timeout.
func TestADatabaseThatPgBouncerDoesNotReachIsAway(t *testing.T) {
	t.Parallel()
	dsn := thingTables.Database(t)
	through := pgtest.Bouncer(t, dsn, "query_wait_timeout=1") + exec
	c := dial(t, through)
	addThings(t, c, 1)
	name := c.config.Database
	admin := connectOutside(t, strings.Replace(dsn, "/"+name+"?", "/postgres?", 1))
	allow := func(allowed string) { runOutside(t, admin, "ALTER DATABASE "+name+" ALLOW_CONNECTIONS "+allowed) }
	allow("false")
	runOutside(t, admin, "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE datname = $1", name)
	_, err := c.RunTransaction(t.Context(), func() error { return c.Query(countThings, 0, nil, ignore) })
	allow("true")
	checktest.Equal(t, db.ClassOf(err), db.Away, "class of %v", err)
	checktest.Equal(t, db.ReasonOf(err), "the database is not reachable", "reason of %v", err)
	// PgBouncer refuses clients until it has reached the database again.
	for deadline := time.Now().Add(maxWait); ; {
		c := dial(t, through)
		_, err := c.RunTransaction(t.Context(), func() error { return c.Query(countThings, 0, nil, ignore) })
		if err == nil {
			break
		}
		checktest.Equal(t, db.ClassOf(err), db.Away, "class of %v", err)
		checktest.MustTrue(t, time.Now().Before(deadline), "still %v", err)
	}
}

// PgBouncer before 1.21 exits if a client sends a cancel request and does not wait for the answer.
func TestPgBouncerOutlivesCancelledStatements(t *testing.T) {
	t.Parallel()
	var empty pgtest.Pool
	dsn := pgtest.Bouncer(t, empty.Database(t)) + exec
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				c := dial(t, dsn)
				ctx, cancel := context.WithTimeout(t.Context(), rand.N(2*time.Millisecond))
				_, _ = c.RunTransaction(ctx, func() error { return c.QueryOnce("SELECT 1 FROM pg_sleep(0.001)", nil, ignore) })
				cancel()
				_ = c.Close()
			}
		})
	}
	wg.Wait()
	_, err := dial(t, dsn).RunTransaction(t.Context(), func() error { return nil })
	checktest.NoError(t, err, "a transaction after the statements that were cancelled")
}
