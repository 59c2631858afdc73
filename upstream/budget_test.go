// Budget: rate, slots, lanes and shares, in bubbles.

package upstream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/request"
	"understudy/upstream/throttle"
)

// crowd runs fetches and notes when each was done.
type crowd struct {
	t    *testing.T
	c    *Client
	wg   sync.WaitGroup
	mu   sync.Mutex
	done []string // reasons, in the order they came back
	errs []error
}

func (w *crowd) send(n int, f request.Fetch) {
	if f.Target == nil {
		f.Target = target(w.t, w.c, callsPath)
	}
	for range n {
		w.wg.Go(func() {
			_, err := w.c.Fetch(context.Background(), f)
			w.mu.Lock()
			defer w.mu.Unlock()
			if err != nil {
				w.errs = append(w.errs, err)
				return
			}
			w.done = append(w.done, f.Reason.String())
		})
		synctest.Wait()
	}
}

func (w *crowd) count(reason request.Reason) int {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, r := range w.done {
		if r == reason.String() {
			n++
		}
	}
	return n
}

// failed is what went wrong so far.
func (w *crowd) failed() []error {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.errs)
}

func TestRateIsKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{do: well}
		w := &crowd{t: t, c: scripted(t, s)}
		w.send(35, request.Fetch{})
		w.wg.Wait()
		for i, at := range s.at {
			// A burst of 10, then one every 100 ms.
			want := time.Duration(max(0, i-9)) * 100 * time.Millisecond
			if at < want-time.Millisecond || at > want+time.Millisecond {
				t.Errorf("request %d went out after %v, want %v", i, at, want)
			}
		}
		if len(w.failed()) > 0 {
			t.Error(w.failed())
		}
	})
}

func TestSlotsAreKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{do: slow(10*time.Second, well)}
		w := &crowd{t: t, c: scripted(t, s, func(o *Options) { o.Rate = 1000 })}
		start := time.Now()
		w.send(45, request.Fetch{})
		w.wg.Wait()
		if s.most != 20 {
			t.Errorf("%d at once, want 20", s.most)
		}
		if d := time.Since(start); d != 30*time.Second {
			t.Errorf("45 fetches of 10 s took %v, want 30 s", d)
		}
	})
}

// Each reason stops at its share: of 20 slots Prefetch leaves half, the others
// a quarter, and a waiting reader gets in all the same.
func TestSharesOfSlots(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{do: slow(time.Second, well)}
		w := &crowd{t: t, c: scripted(t, s, func(o *Options) { o.Rate = 1000 })}
		w.send(20, request.Fetch{Reason: request.ReasonPrefetch})
		if n := s.count(); n != 11 {
			t.Errorf("prefetches under way: %d, want 11 (while half of 20 slots or more are left)", n)
		}
		w.send(20, request.Fetch{Reason: request.ReasonPoll})
		if n := s.count(); n != 16 {
			t.Errorf("with polls: %d, want 16 (while a quarter or more is left)", n)
		}
		w.send(6, request.Fetch{})
		if n := s.count(); n != 20 {
			t.Errorf("with readers: %d, want 20", n)
		}
		w.wg.Wait()
		// What queued went out in the order of its claim.
		if first := slices.Index(w.done[16:], "poll"); first < 0 {
			t.Errorf("%v", w.done)
		}
	})
}

func TestSharesOfTokens(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{do: well}
		w := &crowd{t: t, c: scripted(t, s)}
		w.send(8, request.Fetch{Reason: request.ReasonPrefetch})
		if n := w.count(request.ReasonPrefetch); n != 5 {
			t.Errorf("%d prefetches went out at once, want 5 (which leaves 5 tokens)", n)
		}
		w.send(8, request.Fetch{Reason: request.ReasonSync})
		if n := w.count(request.ReasonSync); n != 2 {
			t.Errorf("%d syncs went out at once, want 2 (which leaves 3 tokens, 2.5 at least)", n)
		}
		w.send(2, request.Fetch{})
		if n := w.count(request.ReasonWaiting); n != 2 {
			t.Errorf("%d readers went out at once, want 2", n)
		}
		w.wg.Wait()
	})
}

// Readers that want more than all of the budget leave nothing for other reasons.
func TestWaitingGoesFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{do: well}
		w := &crowd{t: t, c: scripted(t, s)}
		w.send(10, request.Fetch{})
		w.send(3, request.Fetch{Reason: request.ReasonRefresh})
		w.send(5, request.Fetch{Reason: request.ReasonPrefetch})
		w.send(30, request.Fetch{})
		w.wg.Wait()
		for i, r := range w.done[:40] {
			if r != "waiting" {
				t.Fatalf("%s went out as number %d of %v", r, i, w.done)
			}
		}
		if got := fmt.Sprint(w.done[40:]); got != "[refresh refresh refresh]" {
			t.Errorf("then %s", got)
		}
		if len(w.failed()) != 5 { // the prefetches gave up after 2 s
			t.Errorf("%d errors: %v", len(w.failed()), w.failed())
		}
	})
}

func TestPromoteChangesLanes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{do: well}
		c := scripted(t, s)
		w := &crowd{t: t, c: c}
		w.send(10, request.Fetch{})
		promote := make(chan struct{})
		w.send(1, request.Fetch{Reason: request.ReasonPrefetch, Promote: promote})
		start := time.Now()
		close(promote)
		w.wg.Wait()
		if d := time.Since(start); d > 101*time.Millisecond {
			t.Errorf("the promoted prefetch took %v, want 100 ms", d)
		}
		if got := c.Stats().ByReason; got[request.ReasonWaiting] != 11 || got[request.ReasonPrefetch] != 0 {
			t.Errorf("counted as %v", got)
		}
		if len(w.failed()) > 0 {
			t.Error(w.failed())
		}
	})
}

func TestHopesAreDropped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{do: slow(time.Minute, well)}
		w := &crowd{t: t, c: scripted(t, s, func(o *Options) { o.Concurrency = 4; o.Total = 2 * time.Minute; o.FirstByte = 2 * time.Minute })}
		w.send(4, request.Fetch{})
		w.send(4, request.Fetch{Reason: request.ReasonPrefetch})
		if len(w.failed()) != 0 {
			t.Fatalf("dropped too early: %v", w.failed())
		}
		w.send(2, request.Fetch{Reason: request.ReasonPrefetch})
		if len(w.failed()) != 2 {
			t.Errorf("%d of 6 hopes were dropped for newer ones, want 2", len(w.failed()))
		}
		time.Sleep(2 * time.Second)
		if len(w.failed()) != 6 {
			t.Errorf("%d hopes were dropped after 2 s, want 6", len(w.failed()))
		}
		for _, err := range w.failed() {
			if e := failure(t, err); e.Why != understudy.FailLimited || !errors.Is(err, throttle.ErrPrefetchDropped) {
				t.Errorf("error %v", err)
			}
		}
		if st := w.c.Stats(); st.Requests != 4 || st.Errors != 0 {
			t.Errorf("%+v", st)
		}
		w.wg.Wait()
	})
}

func TestChecksTakeOnePercent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{do: well}
		w := &crowd{t: t, c: scripted(t, s)}
		w.send(12, request.Fetch{Reason: request.ReasonCheck})
		time.Sleep(100 * time.Second)
		if n := w.count(request.ReasonCheck); n != 11 {
			t.Errorf("%d checks in 100 s at 10/s, want 11", n)
		}
		w.wg.Wait()
	})
}

func TestQueueIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{do: slow(time.Second, well)}
		w := &crowd{t: t, c: scripted(t, s, func(o *Options) { o.Concurrency = 1; o.Queue = 3 })}
		w.send(6, request.Fetch{})
		checktest.MustEqual(t, len(w.failed()), 2, "errors: len(w.failed())")
		checktest.True(t, errors.Is(w.failed()[0], throttle.ErrQueueFull),
			"errors: errors.Is(w.failed()[0], throttle.ErrQueueFull) is false")
		checktest.Equal(t, failure(t, w.failed()[0]).Why, understudy.FailBusy,
			"errors: failure(t, w.failed()[0]).Why")
		w.wg.Wait()
		if s.count() != 4 {
			t.Errorf("%d requests", s.count())
		}
	})
}

// Three times as many readers as can be served in time: those that would come too late
// get an error at once, and no reader waits longer.
func TestWhoComesTooLateIsToldAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{do: slow(time.Second, well)}
		w := &crowd{t: t, c: scripted(t, s)}
		start := time.Now()
		w.send(300, request.Fetch{MaxQueueWait: 8 * time.Second})
		if time.Since(start) != 0 {
			t.Fatal("the crowd did not come at once")
		}
		refused := len(w.failed())
		if refused < 200 || refused > 215 { // a burst of 10 and 8 s at 10/s are served
			t.Errorf("%d of 300 were turned away at once", refused)
		}
		for _, err := range w.failed() {
			e := failure(t, err)
			checktest.MustEqual(t, e.Why, understudy.FailBusy, "%+v: e.Why; %v", e, err)
			checktest.MustTrue(t, e.RetryAfter >= time.Second, "%+v: e.RetryAfter is %v; %v", e, e.RetryAfter, err)
			checktest.MustTrue(t, contains(err, "too many requests wait"), `%+v: contains(err, "too many requests wait") is false`, e)
		}
		w.wg.Wait()
		if len(w.failed()) != refused {
			t.Errorf("%d gave up later", len(w.failed())-refused)
		}
		q := w.c.Queue()
		checktest.True(t, q.Longest <= 8*time.Second, "q.Longest is %v", q.Longest)
		checktest.True(t, q.Longest >= 7*time.Second, "q.Longest is %v", q.Longest)
		checktest.Equal(t, q.Refused, int64(refused), "q.Refused")
		checktest.Equal(t, q.Now, 0, "q.Now")
		checktest.Equal(t, q.Limit, defaultQueue, "q.Limit")
	})
}

// How long slots are held counts too: here they, not the rate, are what lacks.
func TestSlowAnswersMakeTheQueueShort(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{do: slow(4*time.Second, well)}
		w := &crowd{t: t, c: scripted(t, s, func(o *Options) { o.Rate, o.Concurrency = 1000, 2 })}
		w.send(20, request.Fetch{}) // teach it; they have all the time they want
		w.wg.Wait()
		w.send(20, request.Fetch{MaxQueueWait: 8 * time.Second})
		if n := len(w.failed()); n < 12 || n > 15 { // 2 at once, 2 after 4 s, 2 after 8 s
			t.Errorf("%d of 20 were turned away", n)
		}
		w.wg.Wait()
		if q := w.c.Queue(); q.Longest > 40*time.Second {
			t.Errorf("%+v", q)
		}
	})
}

// No reader waits longer than its limit, also when upstream became slow meanwhile, and
// a reader that will have left by its turn is not queued.
func TestNobodyQueuesPastHisPatience(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{do: slow(25*time.Second, well)}
		w := &crowd{t: t, c: scripted(t, s, func(o *Options) { o.Concurrency = 2 })}
		w.send(10, request.Fetch{MaxQueueWait: 8 * time.Second})
		time.Sleep(8 * time.Second)
		if n := len(w.failed()); n != 8 {
			t.Errorf("%d of 8 gave up after 8 s", n)
		}
		w.send(1, request.Fetch{MaxQueueWait: 8 * time.Second, Deadline: time.Now().Add(time.Millisecond)})
		if n := len(w.failed()); n != 9 {
			t.Error("one was queued who will have left before its turn")
		}
		w.wg.Wait()
		if q := w.c.Queue(); q.Longest > 8*time.Second {
			t.Errorf("%+v", q)
		}
	})
}

// A write that would go out too late is not sent.
func TestAWriteDoesNotQueueForLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{do: well}
		w := &crowd{t: t, c: scripted(t, s)}
		w.send(200, request.Fetch{})
		_, err := w.c.Write(t.Context(), request.Write{Target: target(t, w.c, callsPath), Method: http.MethodPost})
		if e := failure(t, err); e.Why != understudy.FailBusy || e.RetryAfter < time.Second {
			t.Errorf("%+v", e)
		}
		w.wg.Wait()
		if s.count() != 200 {
			t.Errorf("%d requests went out", s.count())
		}
	})
}

// A flood of one turn does not hold up another's few.
func TestTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{do: well}
		w := &crowd{t: t, c: scripted(t, s)}
		w.send(200, request.Fetch{Flow: 1, MaxQueueWait: 8 * time.Second})
		refused := len(w.failed())
		start := time.Now()
		var late atomic.Int64
		for range 5 {
			w.wg.Go(func() {
				if _, err := w.c.Fetch(t.Context(), request.Fetch{Target: target(t, w.c, callsPath), Flow: 2,
					MaxQueueWait: 8 * time.Second}); err != nil {
					t.Error(err)
				}
				late.Store(max(late.Load(), int64(time.Since(start))))
			})
		}
		w.wg.Wait()
		if d := time.Duration(late.Load()); d > 1100*time.Millisecond {
			t.Errorf("five of another turn took %v, want every other place: 1 s", d)
		}
		// The last five of the flood are pushed beyond their patience.
		if n := len(w.failed()) - refused; n > 6 {
			t.Errorf("%d of the flood gave up for them", n)
		}
	})
}

func TestBudgetIsChanged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{do: slow(time.Second, well)}
		w := &crowd{t: t, c: scripted(t, s)}
		w.send(40, request.Fetch{})
		w.c.SetBudget(100, 40)
		synctest.Wait()
		if n := s.count(); n < 10 {
			t.Errorf("%d went out", n)
		}
		time.Sleep(time.Second)
		if n := s.count(); n != 40 {
			t.Errorf("%d of 40 went out within a second at 100/s", n)
		}
		w.c.SetBudget(1, 2)
		w.wg.Wait()
		before := s.count()
		w.send(5, request.Fetch{})
		if n := s.count() - before; n > 1 {
			t.Errorf("%d went out at once at 1/s", n)
		}
		w.wg.Wait()
		if n := freeSlots(w.c); n != 2 {
			t.Errorf("%d slots are left of 2", n)
		}
		w.c.SetQueue(1)
		w.send(6, request.Fetch{})
		if len(w.failed()) == 0 {
			t.Error("nobody was turned away by a queue of 1")
		}
		w.wg.Wait()
	})
}

// aReader is what a reader's request wants.
var aReader = throttle.Claim{Reason: request.ReasonWaiting}

// freeSlots is how many slots are free at a rate of one a second: it takes them all, and gives them back.
func freeSlots(c *Client) (n int) {
	for time.Sleep(time.Second); c.budget.TryTake(aReader); time.Sleep(time.Second) {
		n++
	}
	for range n {
		c.budget.Refund(aReader)
	}
	return n
}
