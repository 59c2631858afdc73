// The store against the suite of jobs.

package jobs_test

import (
	"errors"
	"io"
	"testing"
	"time"

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
