// What the statements of jobs cost does not grow with the number of jobs.

package jobs_test

import (
	"database/sql/driver"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/store"
	"understudy/internal/store/jobs"
	"understudy/internal/store/sqlite"
)

// One statement claims, and none of those a runner repeats walks the table.
func TestOneStatementClaims(t *testing.T) {
	{
		text := jobs.Statements["claim"].Head + jobs.Statements["claim"].Tail
		checktest.Equal(t, strings.Count(text, "UPDATE job"), 1,
			`a claim is no longer one UPDATE over a sub-select of candidates: strings.Count(text, "UPDATE job")`)
		checktest.Contains(t, text, "RETURNING",
			"a claim is no longer one UPDATE over a sub-select of candidates: text")
		checktest.Contains(t, text, "WHERE number = (SELECT j.number FROM first JOIN job j",
			"a claim is no longer one UPDATE over a sub-select of candidates: text")
	}
	path := filepath.Join(t.TempDir(), "understudy.db")
	d, err := store.Open(t.Context(), store.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	c, err := sqlite.Dial(t.Context(), path, 1000)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for name, st := range jobs.Statements {
		text := st.Head + st.Tuple + st.Tail
		args := make([]driver.Value, 24)
		for i := range args {
			args[i] = int64(1)
		}
		var plan []string
		err := c.QueryOnce("EXPLAIN QUERY PLAN "+text, args[:placeholders(text)], func(r []driver.Value) error {
			plan = append(plan, r[3].(string))
			return nil
		})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, step := range plan {
			walks := strings.HasPrefix(step, "SCAN job") || strings.HasPrefix(step, "SCAN j") || step == "SCAN r"
			if walks && !strings.Contains(step, "job_running") && !strings.Contains(step, "job_expires") { // which hold few
				t.Errorf("%s walks the table: %s", name, strings.Join(plan, "; "))
			}
		}
	}
}

// placeholders counts what a text wants: the ? of a statement without numbers,
// or its highest number.
func placeholders(text string) (n int) {
	for i := 1; i < 24; i++ {
		if strings.Contains(text, fmt.Sprint("?", i)) {
			n = i
		}
	}
	if n == 0 {
		n = strings.Count(text, "?")
	}
	return n
}

// A claim among 20,000 jobs that wait, most of them of a kind that is full or
// not due, takes about as long as among few.
func TestClaimsAmongMany(t *testing.T) {
	db, err := store.Open(t.Context(), store.Options{Path: filepath.Join(t.TempDir(), "understudy.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	fill := func(n int) {
		for range n / 500 {
			var all []understudy.Job
			for i := range 500 {
				j := understudy.Job{Kind: "full", MaxAttempts: 3}
				if i%2 == 0 {
					j.Kind, j.RunAfter = "open", now.Add(time.Hour)
				}
				all = append(all, j)
			}
			if _, err := db.Jobs.AddJobs(t.Context(), now, all...); err != nil {
				t.Fatal(err)
			}
		}
	}
	claim := func() time.Duration {
		least := time.Hour
		for range 20 {
			if _, err := db.Jobs.AddJobs(t.Context(), now, understudy.Job{Kind: "open", MaxAttempts: 1}); err != nil {
				t.Fatal(err)
			}
			begin := time.Now()
			got, err := db.Jobs.ClaimJobs(t.Context(), understudy.Claim{Worker: "w", Now: now, Limit: 1,
				Priority: understudy.PriorityBulk, Weight: 1,
				Kinds: []understudy.ClaimKind{{Name: "full", MaxRunning: 0, Lease: time.Minute}, {Name: "open", MaxRunning: 1000, Lease: time.Minute}}})
			checktest.MustNoError(t, err, "got %v", got)
			checktest.MustEqual(t, len(got.Jobs), 1, "len(got.Jobs)")
			checktest.MustEqual(t, got.Jobs[0].Kind, "open", "got.Jobs[0].Kind")
			least = min(least, time.Since(begin))
		}
		return least
	}
	fill(500)
	few := claim()
	fill(19_500)
	many := claim()
	t.Logf("%v among 500, %v among 20,000", few, many)
	if many > 5*few+2*time.Millisecond {
		t.Errorf("%v among 500, %v among 20,000", few, many)
	}
}
