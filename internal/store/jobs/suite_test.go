// The store against the suite of jobs.

package jobs_test

import (
	"io"
	"testing"

	"understudy/internal/store/jobs"
	"understudy/internal/store/kv"
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
