// This file reads which sessions of the database wait for which.

package postgres

import (
	"context"
	"database/sql/driver"
	"strconv"
	"strings"
	"time"

	"understudy/internal/store/locks"
)

// sessionsQuery reads the sessions of the database. pg_blocking_pids does not know who uses a page that VACUUM needs alone
// (BufferPin). This may be each session that has locked the table of the VACUUM.
const sessionsQuery = `WITH wanted AS (SELECT pid, mode || ' on ' || CASE WHEN relation IS NULL THEN locktype
	ELSE CASE locktype WHEN 'relation' THEN '' ELSE locktype || ' of ' END || CAST(CAST(relation AS regclass) AS TEXT) END AS text
	FROM pg_locks WHERE NOT granted),
	pin AS (SELECT a.pid, string_agg(DISTINCT CAST(CAST(v.relation AS regclass) AS TEXT), ', ') AS text,
	string_agg(DISTINCT CAST(h.pid AS TEXT), ' ') AS pids FROM pg_stat_activity a JOIN pg_locks v ON v.pid = a.pid AND v.granted
	AND v.mode = 'ShareUpdateExclusiveLock' AND v.locktype = 'relation' LEFT JOIN pg_locks h ON h.locktype = 'relation'
	AND h.database = v.database AND h.relation = v.relation AND h.granted AND h.pid <> v.pid
	WHERE a.wait_event = 'BufferPin' GROUP BY a.pid)
	SELECT CAST(a.pid AS BIGINT), coalesce(CAST(a.usename AS TEXT), ''), coalesce(nullif(a.application_name, ''), a.backend_type, ''),
	coalesce(a.state, ''), coalesce(left(a.query, 1000), ''),
	CAST(coalesce(1000 * extract(epoch FROM clock_timestamp() - a.xact_start), 0) AS BIGINT),
	CAST(coalesce(1000 * extract(epoch FROM clock_timestamp() - a.query_start), 0) AS BIGINT),
	coalesce(w.text, 'BufferPin of a page of ' || p.text, ''),
	CASE WHEN w.pid IS NULL THEN '' ELSE array_to_string(pg_blocking_pids(a.pid), ' ') END, coalesce(p.pids, '')
	FROM pg_stat_activity a LEFT JOIN wanted w ON w.pid = a.pid LEFT JOIN pin p ON p.pid = a.pid
	WHERE a.datname = current_database() AND a.pid <> pg_backend_pid() ORDER BY a.pid`

// sessionsTimeout is how long reading the sessions may take.
const sessionsTimeout = 10 * time.Second

// ListSessions returns the sessions of the database. It opens a connection of its own and uses none of our tables.
func (e *Engine) ListSessions(ctx context.Context) (all []locks.Session, err error) {
	c, err := e.Dial(ctx, false)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	err = c.LimitTime(ctx, sessionsTimeout, func() error {
		return c.QueryOnce(sessionsQuery, nil, func(r []driver.Value) error {
			s := locks.Session{PID: r[0].(int64), User: r[1].(string), Program: r[2].(string), State: r[3].(string),
				Query: locks.HideValues(r[4].(string)), Seconds: float64(r[5].(int64)) / 1000, Wanted: r[7].(string),
				Blockers: parseNumbers(r[8].(string)), Pinners: parseNumbers(r[9].(string))}
			if s.Wanted != "" {
				s.Waited = float64(r[6].(int64)) / 1000
			}
			all = append(all, s)
			return nil
		})
	})
	return all, err
}

func parseNumbers(list string) (all []int64) {
	for word := range strings.FieldsSeq(list) {
		if n, err := strconv.ParseInt(word, 10, 64); err == nil {
			all = append(all, n)
		}
	}
	return all
}
