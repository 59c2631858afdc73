// The store against the suite of jobs.

package store_test

import (
	"testing"

	"understudy/internal/store/storetest"
)

func TestJobsInDB(t *testing.T) {
	storetest.RunJobs(t, func(t testing.TB) storetest.Jobs { return openDB(t, storetest.File(t)) })
}
