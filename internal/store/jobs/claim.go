// Package jobs stores jobs in the database, one row for each. A runner claims a job with one SQL statement.
package jobs

import (
	"context"
	"database/sql/driver"
	"fmt"
	"slices"
	"time"

	"understudy"
	"understudy/internal/store/db"
	"understudy/internal/store/nodes"
)

// Limits of a job.
const (
	maxJobKey   = 512  // maximum bytes of a job's key, and of the name of its kind
	maxJobError = 1024 // maximum bytes of a job's error, and of its note
	maxAdded    = 1000 // maximum number of jobs in one call of AddJobs
	sweepLimit  = 256  // maximum number of lost leases, or of expired jobs, that one claim handles
)

const jobColumns = `number, kind, key, payload, lane, once, attempts, weight, run_after, expires_at, state, attempt, fence, worker, error,
	created, started, ended, lease_end, stop, again, done, total, note, mark`

var (
	insertJob = &db.Statement{Head: `INSERT INTO job (kind, key, payload, lane, once, attempts, weight, run_after, expires_at,
		created, mark, state)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1) ON CONFLICT (kind, key) WHERE state <= 2 AND key <> '' DO NOTHING RETURNING number`}
	selectLiveJob = &db.Statement{Head: "SELECT number FROM job WHERE kind = ? AND key = ? AND state <= 2 AND key <> ''"}

	// loseLeases archives jobs with an expired lease or makes them wait again. An interrupted run counts as an
	// attempt, so that a job that crashes its process is not repeated forever.
	loseLeases = nodes.NewStatement(`UPDATE job SET
		state = CASE WHEN stop = 1 THEN 5 WHEN once = 1 OR attempt >= attempts THEN 4 ELSE 1 END,
		ended = CASE WHEN stop = 1 OR once = 1 OR attempt >= attempts THEN CAST(?1 AS BIGINT) ELSE 0 END,
		error = CASE WHEN stop = 1 THEN 'cancelled' WHEN once = 1 THEN 'broke off: its process ended or was not heard of; it runs at most once'
			ELSE 'broke off: its process ended or was not heard of' END,
		run_after = ?1, lease_end = 0
		WHERE number IN (SELECT number FROM job WHERE state = 2 AND (lease_end < ?1 OR (?2 <> 0 AND worker <> ?3)
			OR once = 0 AND attempt < attempts AND worker IN (SELECT id FROM node WHERE alive < `, `)) LIMIT ?4) RETURNING state`)
	expireJobs = &db.Statement{Head: `UPDATE job SET state = 6, ended = ?1
		WHERE number IN (SELECT number FROM job WHERE state = 1 AND expires_at > 0 AND expires_at <= ?1 LIMIT ?2) RETURNING number`}

	// claimJob claims the job whose turn it is. room are the kinds and lanes with a free place, counted over
	// all processes. Each offers its first candidate by a seek in an index, so the cost does not grow with the
	// number of waiting jobs. Only one transaction at a time writes, so no row is locked.
	claimJob = &db.Statement{Head: "WITH want (kind, most, lease) AS (VALUES ", Tuple: "(?, CAST(? AS BIGINT), CAST(? AS BIGINT))", Tail: `),
		room AS (SELECT w.kind, l.lane FROM want w, (SELECT 0 AS lane UNION ALL SELECT 1 UNION ALL SELECT 2) l
			WHERE l.lane <= ? AND (SELECT count(*) FROM job r WHERE r.state = 2 AND r.kind = w.kind) < w.most),
		first AS (SELECT (SELECT j.number FROM job j WHERE j.state = 1 AND j.kind = room.kind AND j.lane = room.lane
		AND j.run_after <= ? AND j.weight <= ?
			ORDER BY j.run_after, j.number LIMIT 1) AS number FROM room)
		UPDATE job SET state = 2, attempt = attempt + 1, fence = fence + 1, worker = ?, started = ?, stop = 0, done = 0, total = 0, note = '',
			lease_end = ? + (SELECT lease FROM want WHERE want.kind = job.kind)
		WHERE number = (SELECT j.number FROM first JOIN job j ON j.number = first.number ORDER BY j.lane, j.run_after, j.number LIMIT 1)
		RETURNING ` + jobColumns}
	// nextJob reads when the next job of the given kinds is planned, and whether a job is due already.
	nextJob = &db.Statement{Head: "WITH want (kind) AS (VALUES ", Tuple: "(?)", Tail: `),
		seat AS (SELECT w.kind, l.lane FROM want w, (SELECT 0 AS lane UNION ALL SELECT 1 UNION ALL SELECT 2) l)
		SELECT (SELECT min(t) FROM (
				SELECT (SELECT min(j.run_after) FROM job j WHERE j.state = 1 AND j.kind = seat.kind AND j.lane = seat.lane
				AND j.run_after > ?) AS t FROM seat
				UNION ALL SELECT min(lease_end) FROM job WHERE state = 2
				UNION ALL SELECT min(expires_at) FROM job WHERE state = 1 AND expires_at > 0) times),
			EXISTS (SELECT 1 FROM seat JOIN job j ON j.kind = seat.kind AND j.lane = seat.lane WHERE j.state = 1 AND j.run_after <= ?)`}
)

// Queue keeps jobs in the database. It is safe for concurrent use.
type Queue struct{ pool *db.Pool }

// NewQueue returns the job queue of a database.
func NewQueue(pool *db.Pool) *Queue { return &Queue{pool} }

// Now returns the time by the clock that the processes on the database share. Leases and scheduled times are compared with it.
func (q *Queue) Now() time.Time { return q.pool.Now() }

// nanos returns a time in the form that the database stores: Unix nanoseconds, or 0 for the zero time.
func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// blob returns b, or an empty slice for nil, so that the column is never NULL.
func blob(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// checkJob returns an error for a job that cannot be stored.
func checkJob(j *understudy.Job) error {
	switch {
	case j.Kind == "" || len(j.Kind) > maxJobKey:
		return fmt.Errorf("%w: a job has a kind, of at most %d bytes", understudy.ErrInvalid, maxJobKey)
	case len(j.Key) > maxJobKey:
		return fmt.Errorf("%w: a job's key has at most %d bytes", understudy.ErrInvalid, maxJobKey)
	case len(j.Payload) > understudy.MaxJobPayload || len(j.Checkpoint) > understudy.MaxJobPayload:
		return fmt.Errorf("%w: a job's payload and mark have at most %d bytes each", understudy.ErrInvalid, understudy.MaxJobPayload)
	case j.MaxAttempts < 1 || j.Weight < 0 || int(j.Priority) >= understudy.PriorityCount:
		return fmt.Errorf("%w: a job has attempts, no negative weight, and a lane", understudy.ErrInvalid)
	}
	return nil
}

// checkAdded returns an error if any of the jobs cannot be stored.
func checkAdded(jobs []understudy.Job) error {
	if len(jobs) > maxAdded {
		return fmt.Errorf("%w: at most %d jobs at once", understudy.ErrInvalid, maxAdded)
	}
	for i := range jobs {
		if err := checkJob(&jobs[i]); err != nil {
			return err
		}
	}
	return nil
}

// AddJobs stores jobs, all or none, at most 1,000 at once. When it returns they are on the disk. It returns the number
// of each job. If a live job has the same Kind and Key, it returns the number of that job. It uses only the fields of
// the request (Kind to ExpiresAt, and Mark). Attempts must be set. Errors: ErrInvalid, ErrNotStored.
func (q *Queue) AddJobs(ctx context.Context, now time.Time, jobs ...understudy.Job) ([]int64, error) {
	if err := checkAdded(jobs); err != nil {
		return nil, db.WrapError(true, err, "add jobs")
	}
	var numbers []int64
	err := q.pool.ChangeDurably(ctx, func(c db.Conn) error {
		numbers = make([]int64, 0, len(jobs))
		for i := range jobs {
			n, err := addJob(c, now, &jobs[i])
			if err != nil {
				return err
			}
			numbers = append(numbers, n)
		}
		return nil
	})
	if err != nil {
		return nil, db.WrapError(true, err, "add jobs")
	}
	return numbers, nil
}

func addJob(c db.Conn, now time.Time, j *understudy.Job) (number int64, err error) {
	after := j.RunAfter
	if after.Before(now) {
		after = now // so that jobs whose time has passed begin in the order in which they were added
	}
	args := []driver.Value{j.Kind, j.Key, blob(j.Payload), int64(j.Priority), flag(j.AtMostOnce), int64(j.MaxAttempts), j.Weight, nanos(after),
		nanos(j.ExpiresAt), nanos(now), blob(j.Checkpoint)}
	keep := func(r []driver.Value) { number = r[0].(int64) }
	added, err := c.QueryRow(insertJob, args, keep)
	if err == nil && !added {
		_, err = c.QueryRow(selectLiveJob, []driver.Value{j.Kind, j.Key}, keep)
	}
	return number, err
}

// ClaimJobs claims jobs that may begin: the most urgent lane first, then by due time, then by number. First it
// takes back expired leases and archives expired jobs. All happens in one transaction, and one statement claims
// each job. Errors: ErrInvalid, ErrNotStored.
func (q *Queue) ClaimJobs(ctx context.Context, want understudy.Claim) (understudy.Claimed, error) {
	if err := checkClaim(&want); err != nil {
		return understudy.Claimed{}, db.WrapError(true, err, "claim jobs")
	}
	var got understudy.Claimed
	err := q.pool.ReleaseChange(ctx, func(c db.Conn) error {
		got = understudy.Claimed{}
		if err := sweepJobs(c, &want, &got); err != nil {
			return err
		}
		if err := claimJobs(c, &want, &got); err != nil {
			return err
		}
		return readNext(c, &want, &got)
	})
	if err == nil {
		err = q.syncClaims(ctx, got.Jobs)
	}
	if err != nil {
		return understudy.Claimed{}, db.WrapError(true, err, "claim jobs")
	}
	return got, nil
}

// stampJob adds a number to the end of a lease. Executed with 1 and then with -1, it restores the row but forces
// SQLite to write it.
var stampJob = &db.Statement{Head: "UPDATE job SET lease_end = lease_end + ? WHERE number = ?"}

// syncClaims makes claims durable if one of the jobs runs at most once. Otherwise a crash of the machine could
// make that job run again. A durable commit also makes earlier commits durable. Other jobs may run again.
func (q *Queue) syncClaims(ctx context.Context, claimed []understudy.Job) error {
	i := slices.IndexFunc(claimed, func(j understudy.Job) bool { return j.AtMostOnce })
	if i < 0 {
		return nil
	}
	return q.pool.ChangeDurably(ctx, func(c db.Conn) error {
		if err := c.Execute(stampJob, 0, int64(1), claimed[i].Number); err != nil {
			return err
		}
		return c.Execute(stampJob, 0, int64(-1), claimed[i].Number)
	})
}

// maxKinds is the maximum number of kinds in a claim, because each kind is a tuple of one statement.
const maxKinds = 2048

func checkClaim(want *understudy.Claim) error {
	if want.Worker == "" || len(want.Kinds) == 0 || len(want.Kinds) > maxKinds {
		return fmt.Errorf("%w: a claim has a worker and 1 to %d kinds", understudy.ErrInvalid, maxKinds)
	}
	return nil
}

func sweepJobs(c db.Conn, want *understudy.Claim, got *understudy.Claimed) error {
	now := nanos(want.Now)
	err := c.Query(loseLeases, 0, []driver.Value{now, flag(want.OnlyProcess), want.Worker, int64(sweepLimit)}, func(r []driver.Value) error {
		got.Count(understudy.JobState(r[0].(int64)))
		return nil
	})
	if err != nil {
		return err
	}
	return c.Query(expireJobs, 0, []driver.Value{now, int64(sweepLimit)}, func([]driver.Value) error {
		got.Expired++
		return nil
	})
}

// claimJobs claims jobs one by one, up to the limit of the claim.
func claimJobs(c db.Conn, want *understudy.Claim, got *understudy.Claimed) error {
	now := nanos(want.Now)
	var args []driver.Value
	for _, k := range want.Kinds {
		args = append(args, k.Name, int64(k.MaxRunning), int64(k.Lease))
	}
	args = append(args, int64(want.Priority), now, want.Weight, want.Worker, now, now)
	for len(got.Jobs) < want.Limit {
		before := len(got.Jobs)
		err := c.Query(claimJob, len(want.Kinds), args, func(r []driver.Value) error {
			got.Jobs = append(got.Jobs, jobOf(r))
			return nil
		})
		if err != nil || len(got.Jobs) == before {
			return err
		}
	}
	return nil
}

// readNext fills in what the claim returns about the next jobs.
func readNext(c db.Conn, want *understudy.Claim, got *understudy.Claimed) error {
	now := nanos(want.Now)
	var args []driver.Value
	for _, k := range want.Kinds {
		args = append(args, k.Name)
	}
	return c.Query(nextJob, len(want.Kinds), append(args, now, now), func(r []driver.Value) error {
		if next, ok := r[0].(int64); ok {
			got.Next = db.Time(next)
		}
		got.Blocked = r[1].(int64) != 0
		return nil
	})
}
