// This file runs the work of several callers in one transaction.

package jobs

import (
	"context"
	"slices"
	"time"

	"understudy/internal/store/db"
	"understudy/kit/lockwatch"
)

// batchTimeout is the longest time of a transaction for several callers.
const batchTimeout = 10 * time.Second

// combiner runs the work of several callers together. While one batch is being run, the next one is collected. The first caller of a
// batch runs it. A single caller waits for nobody.
type combiner[In, Out any] struct {
	run     func(ctx context.Context, all []In) ([]Out, error) // returns one result for each value, in order
	mu      lockwatch.Mutex
	running bool
	waiting []*call[In, Out]
}

// call is the work of one caller. done receives a value when result is set, or when the caller has to run the next batch.
type call[In, Out any] struct {
	in     In
	done   chan struct{}
	lead   bool
	result Out
	err    error
}

// join runs the work of one caller. If ctx ends, join returns its error, and the work may still be done.
func (b *combiner[In, Out]) join(ctx context.Context, in In) (out Out, err error) {
	own := &call[In, Out]{in: in, done: make(chan struct{}, 1)}
	b.mu.Lock()
	b.waiting = append(b.waiting, own)
	if own.lead = !b.running; own.lead {
		b.running = true
		own.done <- struct{}{}
	}
	b.mu.Unlock()
	select {
	case <-own.done:
	case <-ctx.Done():
		if !b.leave(own) {
			return out, ctx.Err()
		}
		<-own.done
	}
	if own.lead {
		b.runBatch(ctx)
	}
	return own.result, own.err
}

// leave withdraws a call whose caller waits no longer. It returns false if the call has to run the next batch.
func (b *combiner[In, Out]) leave(own *call[In, Out]) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if own.lead {
		return false
	}
	b.waiting = slices.DeleteFunc(b.waiting, func(c *call[In, Out]) bool { return c == own })
	return true
}

// runBatch runs the next batch, whose first call is that of the caller, and appoints the call that runs the batch after it.
func (b *combiner[In, Out]) runBatch(ctx context.Context) {
	b.mu.Lock()
	n := min(len(b.waiting), db.MaxTuples)
	batch := b.waiting[:n:n]
	b.waiting = b.waiting[n:]
	b.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), batchTimeout)
	defer cancel()
	all := make([]In, n)
	for i, c := range batch {
		all[i] = c.in
	}
	var results []Out
	err := db.Guard(func() (err error) { results, err = b.run(ctx, all); return err })
	for i, c := range batch {
		if c.err = err; err == nil {
			c.result = results[i]
		}
		if i > 0 {
			c.done <- struct{}{}
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.running = len(b.waiting) > 0; b.running {
		b.waiting[0].lead = true
		b.waiting[0].done <- struct{}{}
	}
}
