// Budget: what a request through it costs.

package throttle

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"understudy/request"
)

// BenchmarkTake is a reader's request, and one of a crawl, that find enough budget.
func BenchmarkTake(b *testing.B) {
	for _, reason := range []request.Reason{request.ReasonWaiting, request.ReasonSync} {
		b.Run(reason.String(), func(b *testing.B) {
			budget := NewBudget(Options{Rate: 1e9, Concurrency: 4, Queue: 5, Now: time.Now, Logger: slog.New(slog.DiscardHandler)})
			defer budget.Close()
			for b.Loop() {
				if _, err := budget.Take(context.Background(), Claim{Reason: reason, MaxWait: time.Second}); err != nil {
					b.Fatal(err)
				}
				budget.Release()
			}
		})
	}
	b.Run("observed", func(b *testing.B) { // the same, and what its answer shows
		budget := NewBudget(Options{Rate: 1e9, Concurrency: 1, Queue: 5, Now: time.Now, Logger: slog.New(slog.DiscardHandler)})
		defer budget.Close()
		budget.SetRate(1e9, 2)
		for n := 0; b.Loop(); n++ {
			if _, err := budget.Take(context.Background(), Claim{Reason: request.ReasonWaiting, MaxWait: time.Second}); err != nil {
				b.Fatal(err)
			}
			budget.TryTake(Claim{})
			budget.Observe(Observation{Sort: Sort{"GET", "/a/{id}", n % 3}, Began: time.Now(), Took: time.Duration(90+n%7) * time.Millisecond})
			budget.Release()
			budget.Release()
		}
	})
}
