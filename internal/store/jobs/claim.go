// Package jobs stores jobs in the database, one row for each. A runner claims a job with one SQL statement.
package jobs

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
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

	sweepPause = 100 * time.Millisecond // how long claims that also end jobs do not look for lost leases
)

const jobColumns = `number, kind, key, payload, lane, once, attempts, weight, run_after, expires_at, state, attempt, fence, worker, error,
	created, started, ended, lease_end, stop, again, done, total, note, mark`

// The parts of claimJob that both engines have.
const (
	wantedKinds = "WITH want (kind, most, lease) AS "
	claimed     = `state = 2, attempt = attempt + 1, fence = fence + 1, worker = ?, started = ?, stop = 0, done = 0, total = 0,
		note = '', lease_end = ? + (SELECT lease FROM want WHERE want.kind = job.kind)`
)

var (
	insertJob = &db.Statement{Head: `INSERT INTO job (kind, key, payload, lane, once, attempts, weight, run_after, expires_at,
		created, mark, state)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1) ON CONFLICT (kind, key) WHERE state <= 2 AND key <> '' DO NOTHING RETURNING number`}
	selectLiveJob = &db.Statement{Head: "SELECT number FROM job WHERE kind = ? AND key = ? AND state <= 2 AND key <> ''"}

	hurryJob = &db.Statement{Head: "UPDATE job SET run_after = ?3 WHERE kind = ?1 AND key = ?2 AND state = 1 AND key <> '' AND run_after > ?3"}

	selectKeyed = &db.Statement{Head: "SELECT " + jobColumns + " FROM job WHERE kind = ? AND key = ? AND state <= 2 AND key <> '' UNION ALL " +
		"SELECT " + jobColumns + " FROM job WHERE kind = ? AND key = ? AND state >= 3 AND key <> '' ORDER BY number DESC LIMIT 1"}

	// loseLeases archives jobs with an expired lease or makes them wait again. An interrupted run counts as an
	// attempt, so that a job that crashes its process is not repeated forever.
	loseLeases = skipLocked(nodes.NewStatement(`WITH lost AS MATERIALIZED (SELECT number FROM job
		WHERE state = 2 AND (lease_end < ?1 OR (?2 <> 0 AND worker <> ?3 AND worker <> '`+understudy.OutsideWorker+`')
			OR once = 0 AND attempt < attempts AND worker IN (SELECT id FROM node WHERE alive < `, `)) LIMIT ?4) UPDATE job SET
		state = CASE WHEN stop = 1 THEN 5 WHEN once = 1 OR attempt >= attempts THEN 4 ELSE 1 END,
		ended = CASE WHEN stop = 1 OR once = 1 OR attempt >= attempts THEN CAST(?1 AS BIGINT) ELSE 0 END,
		error = CASE WHEN stop = 1 THEN 'cancelled' WHEN once = 1 THEN 'broke off: its process ended or was not heard of; it runs at most once'
			ELSE 'broke off: its process ended or was not heard of' END,
		run_after = ?1, lease_end = 0
		WHERE number IN (SELECT number FROM lost) RETURNING state`))
	expireJobs = skipLocked(&db.Statement{Head: `WITH late AS MATERIALIZED (SELECT number FROM job
		WHERE state = 1 AND expires_at > 0 AND expires_at <= ?1 LIMIT ?2) UPDATE job
		SET state = 6, ended = ?1 WHERE number IN (SELECT number FROM late) RETURNING number`})

	// claimJob claims the job whose turn it is. room are the kinds and lanes with a free place, counted over
	// all processes. Each offers its first candidate by a seek in an index, so the cost does not grow with the
	// number of waiting jobs. An engine that locks rows claims at once all jobs of the candidate's kind and lane that come before the
	// candidate of any other kind, except those that another process claims.
	claimJob = &db.Statement{Head: wantedKinds + "(VALUES ", Tuple: "(?, CAST(? AS BIGINT), CAST(? AS BIGINT))", Tail: `),
		room AS (SELECT w.kind, l.lane FROM want w, (SELECT 0 AS lane UNION ALL SELECT 1 UNION ALL SELECT 2) l
			WHERE l.lane <= ? AND (w.most = 2147483647 OR (SELECT count(*) FROM job r WHERE r.state = 2 AND r.kind = w.kind) < w.most)),
		first AS (SELECT (SELECT j.number FROM job j WHERE j.state = 1 AND j.kind = room.kind AND j.lane = room.lane
		AND j.run_after <= ? AND j.weight <= ?
			ORDER BY j.run_after, j.number LIMIT 1) AS number FROM room)
		UPDATE job SET ` + claimed + `
		WHERE number = (SELECT j.number FROM first JOIN job j ON j.number = first.number WHERE j.run_after <= ? AND j.weight <= ?
			ORDER BY j.lane, j.run_after, j.number LIMIT min(?, 1))
		RETURNING ` + jobColumns,
		Standard: wantedKinds + `(VALUES {}),
		room AS (SELECT w.kind, l.lane, w.most - CASE WHEN w.most = 2147483647 THEN 0
			ELSE (SELECT count(*) FROM job r WHERE r.state = 2 AND r.kind = w.kind) END AS free
			FROM want w, (VALUES (0), (1), (2)) l (lane) WHERE l.lane <= ?),
		first AS (SELECT room.*, (SELECT j.number FROM job j WHERE j.state = 1 AND j.kind = room.kind AND j.lane = room.lane
			AND j.run_after <= ? AND j.weight <= ? ORDER BY j.run_after, j.number LIMIT 1) AS number FROM room WHERE free > 0),
		turn AS MATERIALIZED (SELECT f.kind, f.lane, f.free, lead(j.run_after) OVER turns AS after, lead(j.number) OVER turns AS number
			FROM first f JOIN job j ON j.number = f.number WINDOW turns AS (PARTITION BY f.lane ORDER BY j.run_after, j.number)
			ORDER BY f.lane, j.run_after, j.number LIMIT 1)
		UPDATE job SET ` + claimed + ` WHERE number = ANY (ARRAY(SELECT j.number FROM turn, LATERAL (SELECT j.number FROM job j
			WHERE j.state = 1 AND j.kind = turn.kind AND j.lane = turn.lane AND (j.run_after, j.number) <
				(coalesce(turn.after, ?), coalesce(turn.number, 9223372036854775807))
			AND j.weight <= ? ORDER BY j.run_after, j.number LIMIT least(turn.free, ?) FOR UPDATE SKIP LOCKED) j))
		RETURNING ` + jobColumns}
	// lockKinds returns those of the kinds that have a due job, after no other transaction claims jobs of these kinds, so that their running
	// jobs can be counted. It is for engines that lock rows, as is insertKinds, which comes before it.
	lockKinds = &db.Statement{Head: "WITH want (kind) AS (VALUES ", Tuple: "(?)", Tail: `)
		SELECT k.kind FROM job_kind k JOIN want ON want.kind = k.kind
		WHERE EXISTS (SELECT 1 FROM (VALUES (0), (1), (2)) l (lane) JOIN job j ON j.lane = l.lane
			WHERE j.state = 1 AND j.kind = k.kind AND j.run_after <= ?) ORDER BY k.kind FOR UPDATE OF k`}
	insertKinds = &db.Statement{Head: "INSERT INTO job_kind (kind) VALUES ", Tuple: "(?)", Tail: " ON CONFLICT DO NOTHING"}
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

// skipLocked returns a statement whose CTE selects the rows to change. If the engine locks rows, it leaves out the rows that another
// transaction has locked.
func skipLocked(st *db.Statement) *db.Statement {
	st.Standard = strings.Replace(cmp.Or(st.Standard, st.Head), ") UPDATE", " FOR UPDATE SKIP LOCKED) UPDATE", 1)
	return st
}

// Queue keeps jobs in the database. It is safe for concurrent use.
type Queue struct {
	pool *db.Pool
	ends combiner[understudy.JobResult, understudy.JobState]
	adds combiner[understudy.Job, understudy.Job]
	news atomic.Pointer[func()]

	swept atomic.Int64 // when a claim has last looked for lost leases
	ended atomic.Int64 // the number of runs that ended since the table was last cleaned
}

// NewQueue returns the job queue of a database.
func NewQueue(pool *db.Pool) *Queue {
	q := &Queue{pool: pool}
	q.ends.run, q.adds.run = q.endJobs, q.addUnique
	pool.SetLoader(db.Jobs, q.loadNews)
	return q
}

// SetNews makes the queue call news after another process has added jobs. news must not wait.
func (q *Queue) SetNews(news func()) { q.news.Store(&news) }

func (q *Queue) loadNews(context.Context, db.Conn) error {
	if news := q.news.Load(); news != nil {
		(*news)()
	}
	return nil
}

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
		q.pool.MarkChanged(db.Jobs)
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

// addJob stores a job unless a live one has its Kind and Key, and returns the number of the live job.
func addJob(c db.Conn, now time.Time, j *understudy.Job) (number int64, err error) {
	after := j.RunAfter
	if after.Before(now) {
		after = now // so that jobs whose time has passed begin in the order in which they were added
	}
	args := []driver.Value{j.Kind, j.Key, blob(j.Payload), int64(j.Priority), flag(j.AtMostOnce), int64(j.MaxAttempts), j.Weight, nanos(after),
		nanos(j.ExpiresAt), nanos(now), blob(j.Checkpoint)}
	keep := func(r []driver.Value) { number = r[0].(int64) }
	added, err := db.QueryRow(c, insertJob, args, keep)
	if err == nil && !added && j.Hurry {
		err = c.Execute(hurryJob, 0, j.Kind, j.Key, nanos(after))
	}
	if err == nil && !added {
		_, err = db.QueryRow(c, selectLiveJob, []driver.Value{j.Kind, j.Key}, keep)
	}
	return number, err
}

// AddUnique stores a job, unless there is or was another one with its Kind and Key. It returns the stored job, whatever its state. When it
// returns, the job is on the disk. Errors: ErrInvalid, ErrNotStored.
func (q *Queue) AddUnique(ctx context.Context, j understudy.Job) (stored understudy.Job, err error) {
	if err = checkJob(&j); err == nil {
		stored, err = q.adds.join(ctx, j)
	}
	return stored, db.WrapError(true, err, "add a job")
}

// addUnique adds jobs in one transaction. Other processes add none meanwhile, so a job that is not found does not exist.
func (q *Queue) addUnique(ctx context.Context, jobs []understudy.Job) (all []understudy.Job, err error) {
	now := q.Now()
	err = q.pool.ChangeDurably(ctx, func(c db.Conn) error {
		q.pool.MarkChanged(db.Jobs)
		all = make([]understudy.Job, len(jobs))
		for _, j := range jobs {
			if err := c.Expect(selectKeyed, 0, j.Kind, j.Key, j.Kind, j.Key); err != nil {
				return err
			}
		}
		for i := range jobs {
			j := &jobs[i]
			all[i], err = findJob(c, j.Kind, j.Key)
			if errors.Is(err, understudy.ErrNotFound) {
				if _, err = addJob(c, now, j); err == nil {
					all[i], err = findJob(c, j.Kind, j.Key)
				}
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	return all, err
}

// FindJob returns the newest job with a kind and a key, whatever its state. Errors: ErrNotFound.
func (q *Queue) FindJob(ctx context.Context, kind, key string) (j understudy.Job, err error) {
	err = q.pool.Read(ctx, func(c db.Conn) error {
		j, err = findJob(c, kind, key)
		return err
	})
	return j, db.WrapError(false, err, "find a job")
}

func findJob(c db.Conn, kind, key string) (j understudy.Job, err error) {
	found, err := db.QueryRow(c, selectKeyed, []driver.Value{kind, key, kind, key}, func(r []driver.Value) { j = jobOf(r) })
	if err == nil && !found {
		err = understudy.ErrNotFound
	}
	return j, err
}

// ClaimJobs claims jobs that may begin: the most urgent lane first, then by due time, then by number. First it
// takes back expired leases and archives expired jobs. All happens in one transaction, and one statement claims
// each job. Errors: ErrInvalid, ErrNotStored.
func (q *Queue) ClaimJobs(ctx context.Context, want understudy.Claim) (understudy.Claimed, error) {
	if want.Worker == "" || len(want.Kinds) == 0 || len(want.Kinds) > maxKinds {
		err := fmt.Errorf("%w: a claim has a worker and 1 to %d kinds", understudy.ErrInvalid, maxKinds)
		return understudy.Claimed{}, db.WrapError(true, err, "claim jobs")
	}
	var got understudy.Claimed
	synced := q.pool.Engine.CanLockRows() // whether the transaction can become durable, or is
	work := func(c db.Conn) error {
		got = understudy.Claimed{}
		durable, err := q.claimJobs(c, &want, &got)
		if once := slices.ContainsFunc(got.Jobs, isAtMostOnce); once && !synced {
			return errNotDurable
		} else if err == nil {
			err = c.SetDurable(durable || once)
		}
		return err
	}
	err := q.change(ctx, want.Ends, work)
	if errors.Is(err, errNotDurable) {
		synced = true
		err = q.pool.ReleaseDurably(ctx, work)
	}
	if err != nil {
		return understudy.Claimed{}, db.WrapError(true, err, "claim jobs")
	}
	return got, nil
}

// errNotDurable ends a transaction that has claimed a job which runs at most once, if its commit would not be durable. After a crash of the
// machine such a job could run again. Other jobs may run again.
var errNotDurable = errors.New("not durable")

func isAtMostOnce(j understudy.Job) bool { return j.AtMostOnce }

// lockKinds returns the kinds of which jobs may be claimed. If the engine locks rows, it leaves out
// kinds with a limit that have no due job.
func (q *Queue) lockKinds(c db.Conn, want *understudy.Claim) ([]understudy.ClaimKind, error) {
	limited := map[string]bool{} // and whether the kind is locked
	var args []driver.Value
	for _, k := range want.Kinds {
		if k.MaxRunning < math.MaxInt32 && q.pool.Engine.CanLockRows() {
			limited[k.Name] = false
			args = append(args, k.Name)
		}
	}
	if len(args) == 0 {
		return want.Kinds, nil
	}
	if err := c.Execute(insertKinds, len(args), args...); err != nil {
		return nil, err
	}
	err := c.Query(lockKinds, len(args), append(args, nanos(want.Now)), func(r []driver.Value) error {
		limited[r[0].(string)] = true
		return nil
	})
	return slices.DeleteFunc(slices.Clone(want.Kinds), func(k understudy.ClaimKind) bool {
		locked, isLimited := limited[k.Name]
		return isLimited && !locked
	}), err
}

// maxKinds is the maximum number of kinds in a claim, because each kind is a tuple of one statement.
const maxKinds = 2048

// claimJobs ends runs, takes back expired leases, archives expired jobs, claims jobs, up to the limit of the claim, and reads what is next.
// A distant engine does all of this in one round trip if no kind has a limit and the first statement claims enough jobs. durable says
// whether the commit must be durable because of the ends.
func (q *Queue) claimJobs(c db.Conn, want *understudy.Claim, got *understudy.Claimed) (durable bool, err error) {
	now := nanos(want.Now)
	var ends []driver.Value
	if len(want.Ends) > 0 {
		ends = endArgs(want.Ends)
		err = c.Expect(endJob, len(ends)/endWidth, ends...)
	}
	lost, late := []driver.Value{now, flag(want.OnlyProcess), want.Worker, int64(sweepLimit)}, []driver.Value{now, int64(sweepLimit)}
	since := now - q.swept.Load()
	sweep := len(ends) == 0 || since < 0 || since > int64(sweepPause) // while short jobs end, not every claim looks at all that run
	if sweep {
		err = errors.Join(err, c.Expect(loseLeases, 0, lost...))
	}
	err = errors.Join(err, c.Expect(expireJobs, 0, late...))
	kinds, kerr := q.lockKinds(c, want)
	more := len(kinds) > 0 && want.Limit > 0
	var args []driver.Value
	announce := func() error {
		args = nil
		for _, k := range kinds {
			args = append(args, k.Name, int64(k.MaxRunning), int64(k.Lease))
		}
		now := nanos(want.Now)
		args = append(args, int64(want.Priority), now, want.Weight, want.Worker, now, now, now, want.Weight, int64(want.Limit-len(got.Jobs)))
		return c.Expect(claimJob, len(kinds), args...)
	}
	if err = errors.Join(err, kerr); err == nil && more {
		err = announce()
	}
	if err == nil && len(ends) > 0 {
		got.Ended, durable, err = q.storeEnds(c, want.Ends, ends)
	}
	if err == nil && sweep {
		err = db.VisitRows(c, loseLeases, lost, func(r []driver.Value) { got.Count(understudy.JobState(r[0].(int64))) })
		q.swept.Store(now)
	}
	if err == nil {
		err = db.VisitRows(c, expireJobs, late, func([]driver.Value) { got.Expired++ })
	}
	for more && err == nil {
		before := len(got.Jobs)
		err = c.Query(claimJob, len(kinds), args, func(r []driver.Value) error {
			got.Jobs = append(got.Jobs, jobOf(r))
			return nil
		})
		if more = len(got.Jobs) > before && len(got.Jobs) < want.Limit; more && err == nil {
			err = errors.Join(announce(), c.Expect(nextJob, len(want.Kinds), nextArgs(want)...))
		}
	}
	slices.SortFunc(got.Jobs, func(a, b understudy.Job) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), a.RunAfter.Compare(b.RunAfter), cmp.Compare(a.Number, b.Number))
	})
	if err != nil || len(got.Jobs) == want.Limit {
		return durable, err
	}
	return durable, c.Query(nextJob, len(want.Kinds), nextArgs(want), func(r []driver.Value) error {
		next, _ := r[0].(int64)
		got.Next, got.Blocked = db.Time(next), r[1].(int64) != 0
		return nil
	})
}

func nextArgs(want *understudy.Claim) (args []driver.Value) {
	for _, k := range want.Kinds {
		args = append(args, k.Name)
	}
	return append(args, nanos(want.Now), nanos(want.Now))
}
