// What a job costs in a real file, and how soon it starts.

package jobs_test

import (
	"context"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"understudy"
	"understudy/internal/jobs"
	"understudy/internal/store"
)

// real is a runner over a file.
func real(b *testing.B, run func(*jobs.Run)) *jobs.Runner {
	b.Helper()
	db, err := store.Open(b.Context(), store.Options{Path: filepath.Join(b.TempDir(), "understudy.db")})
	if err != nil {
		b.Fatal(err)
	}
	r, err := jobs.New(jobs.Options{Store: db.Jobs, Kinds: []jobs.Kind{{Name: "work",
		Run: func(_ context.Context, u *jobs.Run) error { run(u); return nil }}}})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	b.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			b.Error(err)
		}
		if err := db.Close(); err != nil {
			b.Error(err)
		}
	})
	return r
}

// BenchmarkStart is from Enqueue to the first line of the run, one at a time;
// p99-ms is promised to stay below 20.
func BenchmarkStart(b *testing.B) {
	begun := make(chan time.Time, 1)
	r := real(b, func(*jobs.Run) { begun <- time.Now() })
	var took []time.Duration
	for b.Loop() {
		at := time.Now()
		if _, err := r.Enqueue(b.Context(), understudy.Job{Kind: "work"}); err != nil {
			b.Fatal(err)
		}
		took = append(took, (<-begun).Sub(at))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2])/1e6, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100])/1e6, "p99-ms")
}

// BenchmarkThrough is a hundred jobs from promise to end.
func BenchmarkThrough(b *testing.B) {
	done := make(chan struct{}, 100)
	r := real(b, func(*jobs.Run) { done <- struct{}{} })
	batch := slices.Repeat([]understudy.Job{{Kind: "work"}}, 100)
	for b.Loop() {
		if _, err := r.Enqueue(b.Context(), batch...); err != nil {
			b.Fatal(err)
		}
		for range batch {
			<-done
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(100*b.N), "µs/job")
}
