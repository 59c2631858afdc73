// Share: background work while upstream's own allowance shrinks.

package throttle

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"understudy/internal/checktest"
	"understudy/request"
)

// An upstream takes 600 requests a window of ten minutes. A crawl takes what it gets, and
// a reader comes every ten seconds.
func TestOtherWorkIsSlowedWhileLittleRemains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit, window = 600, 10 * time.Minute
		b := NewBudget(Options{Rate: 10, Concurrency: 20, Queue: 100, Now: time.Now, Logger: slog.New(slog.DiscardHandler)})
		var mu sync.Mutex // of left and end
		left, end := limit, time.Now().Add(window)
		ask := func(ctx context.Context, r request.Reason) error {
			if _, err := b.Take(ctx, Claim{Reason: r}); err != nil {
				return err
			}
			defer b.Release()
			mu.Lock()
			defer mu.Unlock()
			for !time.Now().Before(end) {
				left, end = limit, end.Add(window)
			}
			if left--; left < 0 {
				return errors.New("refused")
			}
			b.RecordAllowance(Allowance{Limit: limit, Remaining: int64(left), Reset: time.Until(end)})
			return nil
		}
		var spans [6]int // of the crawl, for each 100 s of a window
		ctx, stop := context.WithTimeout(t.Context(), 2*window-time.Second)
		defer stop()
		ended := make(chan struct{})
		began := time.Now()
		go func() {
			defer close(ended)
			for ctx.Err() == nil {
				if err := ask(ctx, request.ReasonSync); err != nil && ctx.Err() == nil {
					t.Error("the crawl was", err)
					return
				}
				spans[int(time.Since(began)%window/(100*time.Second))]++
			}
		}()
		for ctx.Err() == nil {
			at := time.Now()
			if err := ask(ctx, request.ReasonWaiting); err != nil && ctx.Err() == nil {
				t.Fatalf("a reader was %v after %v", err, time.Since(began))
			}
			if waited := time.Since(at); waited > 0 {
				t.Errorf("a reader waited %v after %v", waited, time.Since(began))
			}
			time.Sleep(10 * time.Second)
		}
		stop()
		<-ended
		all := 0
		for _, n := range spans {
			all += n
		}
		// Half at once, most of the rest evenly; a tenth and what readers need is left.
		checktest.True(t, spans[0] >= 2*limit/2, "the crawl sent: spans[0] is %v", spans[0])
		checktest.True(t, spans[5] >= 20, "the crawl sent: spans[5] is %v, want >= 20", spans[5])
		checktest.True(t, spans[5] <= 2*60, "the crawl sent: spans[5] is %v", spans[5])
		checktest.True(t, all >= 2*limit*7/10, "the crawl sent: all is %v", all)
		checktest.True(t, all <= 2*limit*9/10, "the crawl sent: all is %v", all)
	})
}

func TestSharesOfOddAnswers(t *testing.T) {
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	five := share{weight: 5 * decayTime.Seconds(), at: now} // readers a second
	s := five
	if got := s.waitTime(now); got != 0 {
		t.Errorf("nothing told: %v", got)
	}
	// Answers overtake each other: within a window less counts, unless nothing is under way.
	s = share{}
	s.recordAllowance(Allowance{Limit: 100, Remaining: 40, Reset: time.Minute}, now, false)
	s.recordAllowance(Allowance{Limit: 100, Remaining: 41, Reset: time.Minute - time.Second}, now.Add(time.Second), false)
	if s.left != 40 {
		t.Errorf("%v left", s.left)
	}
	s.recordAllowance(Allowance{Limit: 100, Remaining: 41, Reset: time.Minute}, now, true)
	if s.left != 41 {
		t.Errorf("%v left when nothing is under way", s.left)
	}
	// A new window.
	s.recordAllowance(Allowance{Limit: 100, Remaining: 99, Reset: time.Minute}, now.Add(time.Minute), false)
	if s.left != 99 || s.waitTime(now.Add(time.Minute)) != 0 {
		t.Errorf("%+v", s)
	}
	// Neither limit nor end are told: a bucket that leaks.
	s = share{}
	s.recordAllowance(Allowance{Remaining: 30}, now, true)
	s.recordAllowance(Allowance{Remaining: 3}, now, true)
	if rate, ok := s.rate(now); !ok || rate > 30.0/60 {
		t.Errorf("%v, %v", rate, ok)
	}
	// Readers need all that is left: other work waits for the end.
	s = five
	s.recordAllowance(Allowance{Limit: 100, Remaining: 40, Reset: time.Minute}, now, true)
	if got := s.waitTime(now); got != time.Minute {
		t.Errorf("%v", got)
	}
	if got := s.waitTime(now.Add(time.Minute)); got != 0 {
		t.Errorf("after the end: %v", got)
	}
}

// The less upstream's window still has, the longer a poll waits for its turn, and the more so
// while readers come. A poll a second is due here.
func TestPollsGetDearerAsTheWindowShrinks(t *testing.T) {
	const limit, window = 600, 10 * time.Minute
	polls := func(left int64, readersEach time.Duration) (n int) {
		synctest.Test(t, func(t *testing.T) {
			b := NewBudget(Options{Rate: 100, Concurrency: 20, Queue: 100, Now: time.Now, Logger: slog.New(slog.DiscardHandler)})
			defer b.Close()
			take := func(r request.Reason) {
				if _, err := b.Take(t.Context(), Claim{Reason: r}); err != nil {
					t.Error(err)
				}
				b.Release()
			}
			end := time.Now().Add(20 * time.Minute) // readers are known by then
			for ; readersEach > 0 && time.Now().Before(end); time.Sleep(readersEach) {
				take(request.ReasonWaiting)
			}
			b.RecordAllowance(Allowance{Limit: limit, Remaining: left, Reset: window})
			began := time.Now()
			for due := began; due.Sub(began) < window-time.Second; due = due.Add(time.Second) {
				time.Sleep(time.Until(due))
				if readersEach > 0 && due.Sub(began)%readersEach == 0 {
					take(request.ReasonWaiting)
				}
				if b.TryTake(Claim{Reason: request.ReasonPoll}) {
					b.Release()
					n++
				}
			}
		})
		return n
	}
	last := limit
	for _, c := range []struct {
		left          int64
		readersEach   time.Duration
		least, atMost int
	}{
		{420, 0, 300, 362}, // to a half as they come, and most of the rest evenly
		{300, 0, 230, 242},
		{180, 0, 110, 122},
		{180, 6 * time.Second, 20, 80}, // readers ask for a hundred of them
		{90, 0, 25, 32},
		{90, 6 * time.Second, 0, 1},
		{60, 0, 0, 1},
	} {
		n := polls(c.left, c.readersEach)
		checktest.True(t, n >= c.least, "with: n is %v", n)
		checktest.True(t, n <= c.atMost, "with: n is %v", n)
		checktest.True(t, n <= last, "with: n is %v", n)
		last = n
	}
}
