// The store against the suite of jobs.

package jobs_test

import (
	"context"
	"errors"
	"io"
	"math"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/store/jobs"
	"understudy/internal/store/kv"
	"understudy/internal/store/nodes"
	"understudy/internal/store/storetest"
)

func TestJobsInDB(t *testing.T) {
	storetest.RunJobs(t, func(t testing.TB) storetest.Jobs { return openJobs(t) })
}

// openJobs returns what a store keeps for a runner of jobs.
func openJobs(t testing.TB) storetest.Jobs {
	db := storetest.OpenAt(t, storetest.File(t))
	return struct {
		*jobs.Queue
		*kv.Table
		io.Closer
	}{db.Jobs, db.KV, db}
}

// TestJobsOfDeadNodeAreTakenOver: the jobs of a process whose lease in the table of nodes has ended run elsewhere at once,
// although the leases of the jobs are long. A job that runs at most once waits for the end of its own lease.
func TestJobsOfDeadNodeAreTakenOver(t *testing.T) {
	for name, path := range map[string]func(testing.TB) string{"SQLite": storetest.File, "PostgreSQL": storetest.Database} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := path(t)
			a, b := storetest.OpenAt(t, at), storetest.OpenAt(t, at)
			_, err := a.Nodes.Renew(t.Context(), nodes.Node{ID: "a"})
			checktest.MustNoError(t, err, "renew")
			for _, once := range []bool{false, true} {
				_, err := a.Jobs.AddJobs(t.Context(), time.Now(), understudy.Job{Kind: "work", MaxAttempts: 3, AtMostOnce: once})
				checktest.MustNoError(t, err, "add")
			}
			kind := understudy.ClaimKind{Name: "work", MaxRunning: 9, Lease: time.Hour}
			claim := understudy.Claim{Worker: "a", Now: time.Now(), Limit: 9, Kinds: []understudy.ClaimKind{kind},
				Priority: understudy.PriorityBulk, Weight: 1}
			first, err := a.Jobs.ClaimJobs(t.Context(), claim)
			checktest.MustNoError(t, err, "claim at a")
			checktest.MustEqual(t, len(first.Jobs), 2, "jobs at a")
			claim.Worker = "b"
			began := time.Now()
			for time.Since(began) < 10*time.Second {
				got, err := b.Jobs.ClaimJobs(t.Context(), claim)
				checktest.MustNoError(t, err, "claim at b")
				if len(got.Jobs) == 0 {
					continue
				}
				checktest.Equal(t, len(got.Jobs), 1, "jobs at b")
				checktest.Equal(t, got.Jobs[0].Number, first.Jobs[0].Number, "job at b")
				err = a.Jobs.MarkJob(t.Context(), first.Jobs[0].Number, first.Jobs[0].Fence, []byte("mark"))
				checktest.True(t, errors.Is(err, understudy.ErrLeaseLost), "a mark of the former process: %v", err)
				return
			}
			t.Error("b did not take over the job")
		})
	}
}

// workClaim claims jobs of the kind work, of which at most so many run at once.
func workClaim(places int) understudy.Claim {
	return understudy.Claim{Worker: "a", Now: time.Now(), Limit: 9, Priority: understudy.PriorityBulk, Weight: 1,
		Kinds: []understudy.ClaimKind{{Name: "work", MaxRunning: places, Lease: time.Hour}}}
}

func doneResult(j understudy.Job) understudy.JobResult {
	return understudy.JobResult{Number: j.Number, Fence: j.Fence, At: time.Now(), State: understudy.JobDone}
}

// TestClaimsOfTwoNodesDoNotWait: while a transaction of one process has the lock of all writers, and another one has claimed the first
// job, a third process claims the next job.
func TestClaimsOfTwoNodesDoNotWait(t *testing.T) {
	at := storetest.Database(t)
	s := storetest.OpenAt(t, at)
	two := slices.Repeat([]understudy.Job{{Kind: "work", MaxAttempts: 3}}, 2)
	numbers, err := s.Jobs.AddJobs(t.Context(), time.Now(), two...)
	checktest.MustNoError(t, err, "add")
	c, err := pgx.Connect(t.Context(), at)
	checktest.MustNoError(t, err, "connect")
	t.Cleanup(func() { checktest.NoError(t, c.Close(context.Background()), "close") })
	_, err = c.Exec(t.Context(), "BEGIN; SELECT * FROM counter FOR UPDATE; SELECT * FROM job WHERE number = "+
		strconv.FormatInt(numbers[0], 10)+" FOR UPDATE")
	checktest.MustNoError(t, err, "lock")
	got, err := s.Jobs.ClaimJobs(t.Context(), workClaim(math.MaxInt32))
	checktest.MustNoError(t, err, "claim")
	checktest.MustEqual(t, len(got.Jobs), 1, "jobs")
	checktest.Equal(t, got.Jobs[0].Number, numbers[1], "job")
	state, err := s.Jobs.EndJob(t.Context(), doneResult(got.Jobs[0]))
	checktest.MustNoError(t, err, "end")
	checktest.Equal(t, state, understudy.JobDone, "state")
}

// TestPlacesHoldAcrossNodes: two processes that claim at once never run more jobs of a kind than its limit.
func TestPlacesHoldAcrossNodes(t *testing.T) {
	const places, jobs = 2, 60
	at := storetest.Database(t)
	var running, ended atomic.Int64
	_, err := storetest.OpenAt(t, at).Jobs.AddJobs(t.Context(), time.Now(),
		slices.Repeat([]understudy.Job{{Kind: "work", MaxAttempts: 3}}, jobs)...)
	checktest.MustNoError(t, err, "add")
	var all sync.WaitGroup
	for range 2 {
		s := storetest.OpenAt(t, at)
		for range 2 {
			all.Go(func() {
				for deadline := time.Now().Add(storetest.Patience); ended.Load() < jobs && time.Now().Before(deadline); {
					got, err := s.Jobs.ClaimJobs(t.Context(), workClaim(places))
					checktest.NoError(t, err, "claim")
					if n := running.Add(int64(len(got.Jobs))); n > places {
						t.Errorf("%d jobs run, more than %d", n, places)
					}
					for _, j := range got.Jobs {
						running.Add(-1) // before the store counts it as ended
						_, err := s.Jobs.EndJob(t.Context(), doneResult(j))
						checktest.NoError(t, err, "end")
						ended.Add(1)
					}
				}
			})
		}
	}
	all.Wait()
	checktest.Equal(t, ended.Load(), jobs, "ended jobs")
}
