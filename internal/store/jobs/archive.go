// This file reads jobs and trims the archive.

package jobs

import (
	"cmp"
	"context"
	"database/sql/driver"
	"slices"
	"strings"
	"time"

	"understudy"
	"understudy/internal/store/db"
)

var (
	selectJob = &db.Statement{Head: "SELECT " + jobColumns + " FROM job WHERE number = ?"}
	countJobs = &db.Statement{Head: "SELECT (SELECT count(*) FROM job WHERE state = 1), (SELECT count(*) FROM job " +
		"WHERE state = 2), (SELECT count(*) FROM job WHERE state >= 3)"}
	trimJobsCount = &db.Statement{Head: "DELETE FROM job WHERE number IN (SELECT number FROM job WHERE state = ?1 " +
		"AND state >= 3 ORDER BY ended DESC, number DESC LIMIT 1000 OFFSET ?2) RETURNING number"}
	trimJobsAge = &db.Statement{Head: "DELETE FROM job WHERE number IN (SELECT number FROM job WHERE state = ?1 " +
		"AND state >= 3 AND ended < ?2 LIMIT 1000) RETURNING number"}
)

// jobOf converts the columns of jobColumns.
func jobOf(r []driver.Value) understudy.Job {
	n := func(i int) int64 { return r[i].(int64) }
	text := func(i int) string { return r[i].(string) }
	data := func(i int) []byte {
		b, _ := r[i].([]byte)
		if len(b) == 0 {
			return nil
		}
		return slices.Clone(b)
	}
	return understudy.Job{
		Number: n(0), Kind: text(1), Key: text(2), Payload: data(3), Priority: understudy.Priority(n(4)), AtMostOnce: n(5) != 0,
		MaxAttempts: int(n(6)),
		Weight:      n(7),
		RunAfter:    db.Time(n(8)), ExpiresAt: db.Time(n(9)), State: understudy.JobState(n(10)), Attempt: int(n(11)), Fence: n(12),
		Worker: text(13), Error: text(14),
		Created: db.Time(n(15)), Started: db.Time(n(16)), Ended: db.Time(n(17)), LeaseEnd: db.Time(n(18)),
		StopRequested: n(19) != 0, UncountedRuns: int(n(20)),
		Progress: understudy.Progress{Done: n(21), Total: n(22), Note: text(23)}, Checkpoint: data(24),
	}
}

// ReadJobs returns the jobs that match a filter, newest first.
func (q *Queue) ReadJobs(ctx context.Context, f understudy.JobFilter) ([]understudy.Job, error) {
	text, args := selectJobs(&f)
	var all []understudy.Job
	err := q.pool.Read(ctx, func(c db.Conn) error {
		return c.QueryOnce(text, args, func(r []driver.Value) error {
			all = append(all, jobOf(r))
			return nil
		})
	})
	return all, db.WrapError(false, err, "read jobs")
}

// selectJobs returns the SQL statement and its arguments for a filter. It has many variants that are rarely used, so
// the connection does not keep it prepared.
func selectJobs(f *understudy.JobFilter) (text string, args []driver.Value) {
	where := []string{"1 = 1"}
	add := func(clause string, v ...driver.Value) {
		where = append(where, clause)
		args = append(args, v...)
	}
	if f.Kind != "" {
		add("kind = ?", f.Kind)
	}
	if f.Number != 0 {
		add("number = ?", f.Number)
	}
	if f.Before != 0 {
		add("number < ?", f.Before)
	}
	if len(f.States) > 0 {
		in := make([]driver.Value, len(f.States))
		for i, s := range f.States {
			in[i] = int64(s)
		}
		add("state IN ("+strings.Repeat("?, ", len(in)-1)+"?)", in...)
	}
	return "SELECT " + jobColumns + " FROM job WHERE " + strings.Join(where, " AND ") + " ORDER BY number DESC LIMIT ?", append(args,
		int64(min(cmp.Or(max(f.Limit, 0), 100), understudy.MaxJobs)))
}

// CountJobs returns the numbers of waiting, running and archived jobs.
func (q *Queue) CountJobs(ctx context.Context) (n understudy.JobCounts, err error) {
	err = q.pool.Read(ctx, func(c db.Conn) error {
		_, err := db.QueryRow(c, countJobs, nil, func(r []driver.Value) {
			n = understudy.JobCounts{Waiting: r[0].(int64), Running: r[1].(int64), Archived: r[2].(int64)}
		})
		return err
	})
	return n, db.WrapError(false, err, "count jobs")
}

// TrimJobs deletes archived jobs: in each state all but the keep newest, and all that ended before a time. It
// deletes at most a few thousand at once; the next call deletes more. It returns how many it deleted. Then it makes the space of the
// former versions of many rows available for new ones.
func (q *Queue) TrimJobs(ctx context.Context, keep int, before time.Time) (removed int, err error) {
	err = q.pool.ChangeRows(ctx, func(c db.Conn) error {
		removed = 0
		count := func([]driver.Value) error { removed++; return nil }
		for state := understudy.JobDone; state <= understudy.JobExpired; state++ {
			if err := c.Query(trimJobsCount, 0, []driver.Value{int64(state), int64(max(keep, 0))}, count); err != nil {
				return err
			}
			if err := c.Query(trimJobsAge, 0, []driver.Value{int64(state), nanos(before)}, count); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && q.ended.Load() >= vacuumAfter && q.pool.Engine.CanLockRows() {
		q.ended.Store(0)
		err = q.pool.UseReader(ctx, func(c db.Conn) (bool, error) {
			return false, c.QueryOnce("VACUUM (SKIP_LOCKED) job", nil, func([]driver.Value) error { return nil })
		})
	}
	return removed, db.WrapError(true, err, "trim jobs")
}

// vacuumAfter is the number of ended runs after which an engine that locks rows cleans the table. Each run leaves two former versions of
// its row, and each claim reads their entries at the beginning of the indexes. The engine itself cleans only once a minute.
const vacuumAfter = 5000
