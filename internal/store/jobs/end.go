// This file changes running jobs: heartbeats, marks and the end. Each needs the fence of the job's lease.

package jobs

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"understudy"
	"understudy/internal/store/db"
)

var (
	beatJob = &db.Statement{Head: `UPDATE job SET lease_end = ?, done = ?, total = ?, note = ? WHERE number = ?
		AND fence = ? AND state = 2 RETURNING stop`}
	markJob = &db.Statement{Head: `UPDATE job SET mark = ? WHERE number = ? AND fence = ? AND state = 2 RETURNING number`}
	// endJob ends runs. A job that was to run again is cancelled if that was requested meanwhile.
	endJob = &db.Statement{Head: `WITH e (state, at, error, run_after, uncounted, weight, done, total, note, number, fence)
		AS (VALUES `, Tuple: `(CAST(? AS BIGINT), CAST(? AS BIGINT), ?, CAST(? AS BIGINT), CAST(? AS BIGINT), CAST(? AS BIGINT),
		CAST(? AS BIGINT), CAST(? AS BIGINT), ?, CAST(? AS BIGINT), CAST(? AS BIGINT))`, Tail: `)
		UPDATE job SET state = CASE WHEN e.state = 1 AND job.stop = 1 THEN 5 ELSE e.state END,
		ended = CASE WHEN e.state = 1 AND job.stop = 0 THEN 0 ELSE e.at END, error = e.error,
		run_after = CASE WHEN e.state = 1 THEN e.run_after ELSE job.run_after END,
		attempt = job.attempt - e.uncounted, again = job.again + e.uncounted,
		weight = CASE WHEN e.weight > 0 THEN e.weight ELSE job.weight END, lease_end = 0, done = e.done, total = e.total, note = e.note
		FROM e WHERE job.number = e.number AND job.fence = e.fence AND job.state = 2 RETURNING job.number, job.state, job.once`}
	cancelJob = &db.Statement{Head: `UPDATE job SET stop = 1, ended = CASE state WHEN 1 THEN CAST(?1 AS BIGINT) ELSE 0 END,
		error = CASE state WHEN 1 THEN 'cancelled' ELSE error END,
		state = CASE state WHEN 1 THEN 5 ELSE 2 END WHERE number = ?2 AND state <= 2 RETURNING ` + jobColumns}
	selectPlan = &db.Statement{Head: "SELECT last FROM job_plan WHERE kind = ?"}
	putPlan    = &db.Statement{Head: `INSERT INTO job_plan (kind, last) VALUES (?, ?)
		ON CONFLICT (kind) DO UPDATE SET last = excluded.last`}
)

// clip shortens a text to at most the given number of bytes without splitting a character.
func clip(s string, most int) string {
	s = strings.ToValidUTF8(s, "?")
	return strings.ToValidUTF8(s[:min(len(s), most)], "")
}

// RenewLeases writes heartbeats and returns a reply to each, in order. It also renews an expired lease if no other
// process has taken the job back.
func (q *Queue) RenewLeases(ctx context.Context, beats ...understudy.Heartbeat) ([]understudy.HeartbeatReply, error) {
	var all []understudy.HeartbeatReply
	err := q.pool.ChangeRows(ctx, func(c db.Conn) error {
		all = make([]understudy.HeartbeatReply, len(beats))
		for i, b := range beats {
			found, err := db.QueryRow(c, beatJob, []driver.Value{nanos(b.LeaseEnd), b.Progress.Done, b.Progress.Total, clip(b.Progress.Note,
				maxJobError), b.Number, b.Fence},
				func(r []driver.Value) { all[i].StopRequested = r[0].(int64) != 0 })
			if err != nil {
				return err
			}
			all[i].Lost = !found
		}
		return c.SetDurable(false)
	})
	return all, db.WrapError(true, err, "keep leases")
}

// MarkJob stores where the next run of a job continues. A crash of the machine may lose the last marks; then that run
// continues from an earlier mark. Errors: ErrLeaseLost, ErrInvalid for a mark above MaxJobPayload, ErrNotStored.
func (q *Queue) MarkJob(ctx context.Context, number, fence int64, mark []byte) error {
	found := false
	err := q.pool.ChangeRows(ctx, func(c db.Conn) (err error) {
		if len(mark) > understudy.MaxJobPayload {
			return fmt.Errorf("%w: a mark has at most %d bytes", understudy.ErrInvalid, understudy.MaxJobPayload)
		}
		found, err = db.QueryRow(c, markJob, []driver.Value{blob(mark), number, fence}, func([]driver.Value) {})
		return errors.Join(err, c.SetDurable(false))
	})
	if err == nil && !found {
		err = understudy.ErrLeaseLost
	}
	return db.WrapError(true, err, "mark job %d", number)
}

// EndJob stores how a run ended and returns the new state: the state in e, or JobCancelled if the job was to
// run again but was cancelled. Errors: ErrLeaseLost, ErrInvalid, ErrNotStored.
func (q *Queue) EndJob(ctx context.Context, e understudy.JobResult) (state understudy.JobState, err error) {
	if e.State == understudy.JobRunning || e.State < understudy.JobWaiting || e.State > understudy.JobExpired {
		err := fmt.Errorf("%w: a run does not end as %v", understudy.ErrInvalid, e.State)
		return 0, db.WrapError(true, err, "end job %d", e.Number)
	}
	got, err := q.ends.join(ctx, e)
	if err == nil && got == 0 {
		err = understudy.ErrLeaseLost
	}
	return got, db.WrapError(true, err, "end job %d", e.Number)
}

// endJobs ends runs in one transaction and returns the new states. A state is 0 if the run had lost its lease.
func (q *Queue) endJobs(ctx context.Context, ends []understudy.JobResult) (all []understudy.JobState, err error) {
	err = q.change(ctx, ends, func(c db.Conn) error {
		var durable bool
		all, durable, err = q.storeEnds(c, ends, endArgs(ends))
		return errors.Join(err, c.SetDurable(durable))
	})
	return all, err
}

// change runs a transaction that ends runs.
func (q *Queue) change(ctx context.Context, ends []understudy.JobResult, work func(c db.Conn) error) error {
	if slices.ContainsFunc(ends, isRepeated) {
		return q.pool.ReleaseChange(ctx, work) // because it changes a topic
	}
	return q.pool.ChangeRows(ctx, work)
}

func isRepeated(e understudy.JobResult) bool { return e.State == understudy.JobWaiting }

// endArgs returns the arguments of endJob. It repeats the last result until their number is a power of two, so that few variants of the
// statement are prepared and planned.
func endArgs(ends []understudy.JobResult) (args []driver.Value) {
	tuples := 1
	for tuples < len(ends) {
		tuples *= 2
	}
	for i := range tuples {
		e := &ends[min(i, len(ends)-1)]
		args = append(args, int64(e.State), nanos(e.At), clip(e.Error, maxJobError), nanos(e.RunAfter), flag(e.Uncounted), e.Weight,
			e.Progress.Done, e.Progress.Total, clip(e.Progress.Note, maxJobError), e.Number, e.Fence)
	}
	return args
}

// endWidth is the number of arguments of one result.
const endWidth = 11

// storeEnds ends runs. It returns their new states, and whether the commit must be durable.
func (q *Queue) storeEnds(c db.Conn, ends []understudy.JobResult, args []driver.Value) (all []understudy.JobState, durable bool, _ error) {
	q.ended.Add(int64(len(ends)))
	if durable = slices.ContainsFunc(ends, isRepeated); durable {
		q.pool.MarkChanged(db.Jobs)
	}
	all = make([]understudy.JobState, len(ends))
	err := c.Query(endJob, len(args)/endWidth, args, func(r []driver.Value) error {
		durable = durable || r[2].(int64) != 0
		i := slices.IndexFunc(ends, func(e understudy.JobResult) bool { return e.Number == r[0].(int64) })
		all[i] = understudy.JobState(r[1].(int64))
		return nil
	})
	return all, durable, err
}

// CancelJob archives a waiting job, or asks a running job to stop. It returns the new state of the job when
// that is on the disk. Errors: ErrNotFound; ErrInvalid for an archived job.
func (q *Queue) CancelJob(ctx context.Context, number int64, now time.Time) (j understudy.Job, err error) {
	err = q.pool.ReleaseDurably(ctx, func(c db.Conn) error {
		found, err := db.QueryRow(c, cancelJob, []driver.Value{nanos(now), number}, func(r []driver.Value) { j = jobOf(r) })
		if err != nil || found {
			return err
		}
		found, err = db.QueryRow(c, selectJob, []driver.Value{number}, func(r []driver.Value) { j = jobOf(r) })
		if err == nil && !found {
			err = understudy.ErrNotFound
		} else if err == nil {
			err = fmt.Errorf("%w: it is %s already", understudy.ErrInvalid, j.State)
		}
		return err
	})
	return j, db.WrapError(true, err, "cancel job %d", number)
}

// PlanJob adds a job of a periodic kind for slot, unless the kind was planned after since. So of several
// processes with the same since only one adds the job. If a live job has the same Key, nothing is added, but
// the slot counts as planned. last is the slot that was planned last, for use as since in the next call; it is
// zero if none was. A zero slot plans nothing and only returns last.
func (q *Queue) PlanJob(ctx context.Context, now, since, slot time.Time, job understudy.Job) (number int64, last time.Time, err error) {
	if err := checkJob(&job); err != nil {
		return 0, time.Time{}, db.WrapError(true, err, "plan job")
	}
	err = q.pool.Change(ctx, func(c db.Conn) error {
		number, last = 0, time.Time{}
		if _, err := db.QueryRow(c, selectPlan, []driver.Value{job.Kind}, func(r []driver.Value) { last = db.Time(r[0].(int64)) }); err != nil {
			return err
		}
		next, add := nextSlot(last, now, since, slot)
		if !next.Equal(last) {
			last = next
			if err := c.Execute(putPlan, 0, job.Kind, nanos(next)); err != nil {
				return err
			}
		}
		if add {
			number, err = addJob(c, now, &job)
		}
		return err
	})
	if err != nil {
		return 0, time.Time{}, db.WrapError(true, err, "plan job")
	}
	return number, last, nil
}

// nextSlot returns the slot to store as the last planned slot, and whether to add the job. A last slot in the future
// means that the clock was set back. Then the next job must not wait for the clock to catch up.
func nextSlot(last, now, since, slot time.Time) (next time.Time, add bool) {
	switch {
	case last.After(now):
		return now, false
	case slot.IsZero() || last.After(since):
		return last, false
	}
	return slot, true
}
