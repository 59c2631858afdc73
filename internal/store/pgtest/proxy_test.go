//go:build unix

package pgtest

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"understudy/internal/checktest"
)

func TestProxyCountsRoundTripsAndMakesThemSlower(t *testing.T) {
	t.Parallel()
	const latency = 20 * time.Millisecond
	var pool Pool
	proxy := NewProxy(t, pool.Database(t), latency)
	conn, err := pgx.Connect(t.Context(), proxy.DSN())
	checktest.MustNoError(t, err, "connect")
	t.Cleanup(func() { checktest.NoError(t, conn.Close(context.Background()), "close") })
	large := strings.Repeat("x", 1<<20)
	for _, step := range []struct {
		name  string
		trips int64
		run   func() error
	}{
		{"a simple query", 1, func() error { return conn.PgConn().Exec(t.Context(), "SELECT 1; SELECT 2").Close() }},
		{"a large parameter and a large answer", 1, func() error {
			r := conn.PgConn().ExecParams(t.Context(), "SELECT $1", [][]byte{[]byte(large)}, nil, nil, nil).Read()
			if r.Err == nil && string(r.Rows[0][0]) != large {
				return errors.New("the answer is another one")
			}
			return r.Err
		}},
		{"a pipeline", 1, func() error {
			p := conn.PgConn().StartPipeline(t.Context())
			for range 100 {
				p.SendQueryParams("SELECT 1", nil, nil, nil, nil)
			}
			return errors.Join(p.Sync(), p.Close())
		}},
		{"nothing", 0, func() error { return nil }},
	} {
		start, before := time.Now(), proxy.RoundTrips()
		checktest.MustNoError(t, step.run(), "%s", step.name)
		checktest.Equal(t, proxy.RoundTrips()-before, step.trips, "round trips of %s", step.name)
		took := time.Since(start)
		checktest.True(t, took >= time.Duration(step.trips)*latency, "%s takes %v, less than the latency", step.name, took)
	}
}

func TestProxyEndsSessionsWithTheTest(t *testing.T) {
	t.Parallel()
	var pool Pool
	dsn := pool.Database(t)
	var conn *pgx.Conn
	t.Run("inner", func(t *testing.T) {
		proxy := NewProxy(t, dsn, 0)
		var err error
		conn, err = pgx.Connect(t.Context(), proxy.DSN())
		checktest.MustNoError(t, err, "connect")
	})
	_, err := conn.PgConn().Conn().Read(make([]byte, 1))
	checktest.True(t, errors.Is(err, io.EOF), "a session of a proxy that has ended reads %v", err)
}
