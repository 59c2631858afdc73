// Limits: who is turned away, who gets what is held, and what may be changed
// while the mirror runs.

package mirror

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/request"
)

func limits(l Limits) setting { return func(o *Options) { o.Limits = l } }

// busy reports whether an error turns a reader away, and is complete.
func busy(t testing.TB, err error) bool {
	t.Helper()
	var e *understudy.UpstreamError
	if !errors.As(err, &e) || e.Why != understudy.FailBusy {
		return false
	}
	if e.RetryAfter < time.Second || !errors.Is(err, understudy.ErrUnavailable) {
		t.Errorf("turned away with %+v", e)
	}
	return true
}

// TestReadersAreTurnedAway: beyond each limit a cold reader is told at once,
// one for whom something is held gets that, and warm ones notice nothing.
func TestReadersAreTurnedAway(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limits Limits
		load   func(Loads) request.Load
		same   bool // all readers ask for one key
	}{
		"waiters": {Limits{Waiters: 5}, func(l Loads) request.Load { return l.Waiters }, true},
		"each":    {Limits{PerFlow: 5}, func(l Loads) request.Load { return l.PerFlow }, true},
		"flights": {Limits{Flights: 5}, func(l Loads) request.Load { return l.Flights }, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := open(t, 3, limits(c.limits))
				warm, old := s.newest(t), s.target(t, "Calls.json", "From=old")
				s.get(t, old)
				time.Sleep(time.Hour) // past fresh and stale
				s.get(t, warm)
				synctest.Wait()
				begin := time.Now()
				var refused atomic.Int64
				var wg sync.WaitGroup
				for n := range 20 {
					target := s.target(t, "Calls.json", "From=1")
					if !c.same {
						target = s.target(t, "Calls.json", fmt.Sprintf("From=%d", n))
					}
					wg.Go(func() {
						_, err := s.Answer(t.Context(), request.Request{Target: target, Flow: 7})
						switch {
						case busy(t, err):
							refused.Add(1)
							if time.Since(begin) != 0 {
								t.Errorf("turned away after %v", time.Since(begin))
							}
						case err != nil:
							t.Error(err)
						}
					})
				}
				synctest.Wait()
				{
					l := c.load(s.Loads())
					checktest.Equal(t, l.Limit, 5, "l.Limit")
					checktest.Equal(t, l.Now, 5, "l.Now")
					checktest.Equal(t, l.Refused, 15, "l.Refused")
					checktest.Equal(t, refused.Load(), 15, "refused.Load()")
				}
				want(t, s.get(t, warm), request.Warm, "")
				a, err := s.Answer(t.Context(), request.Request{Target: old, Flow: 7})
				if err != nil {
					t.Fatal(err)
				}
				want(t, a, request.Stale, "stale: too many requests wait for upstream")
				if name == "each" { // another one's turn is not touched
					if _, err := s.Answer(t.Context(), request.Request{Target: s.target(t, "Calls.json", "From=2"), Flow: 8}); err != nil {
						t.Error(err)
					}
				}
				wg.Wait()
				synctest.Wait()
				l := s.Loads()
				checktest.Equal(t, l.Waiters.Now, 0, "left over: l.Waiters.Now")
				checktest.Equal(t, l.PerFlow.Now, 0, "left over: l.PerTurn.Now")
				checktest.Equal(t, l.Flights.Now, 0, "left over: l.Flights.Now")
				checktest.Equal(t, len(s.flights.flows), 0, "left over: len(s.flights.flows)")
				if st := s.Stats("twilio"); st.Failed != 15 {
					t.Errorf("%d counted as failed", st.Failed)
				}
			})
		})
	}
}

// TestErrandOfAReader: upstream learns whose turn it is and how long it may
// queue, and no more of the reader.
func TestErrandOfAReader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 3)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if _, err := s.Answer(ctx, request.Request{Target: s.newest(t), Flow: 7}); err != nil {
			t.Fatal(err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		f := s.asked[0]
		checktest.Equal(t, f.Flow, 7, "f.Flow")
		checktest.Equal(t, f.MaxQueueWait, 8*time.Second, "f.MaxQueueWait")
		checktest.Equal(t, time.Until(f.Deadline), 2*time.Second, "time.Until(f.Deadline)")
	})
}

// TestPatienceIsOnesOwn: a flight that was refused because its first reader
// would not have stayed long enough is begun again for the one who would.
func TestPatienceIsOnesOwn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 3)
		s.fail = func(_ int, f request.Fetch) error {
			if !f.Deadline.IsZero() {
				return &understudy.UpstreamError{Why: understudy.FailBusy, RetryAfter: time.Second}
			}
			return nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		short := make(chan error)
		go func() {
			_, err := s.Answer(ctx, request.Request{Target: s.newest(t)})
			short <- err
		}()
		time.Sleep(100 * time.Millisecond)
		if a := s.get(t, s.newest(t)); a.Outcome != request.Cold {
			t.Errorf("came %s", a.Outcome)
		}
		if err := <-short; !busy(t, err) {
			t.Errorf("the one who would have left: %v", err)
		}
	})
}

// TestAgesAreReplaced: other ages hold for what is in memory too.
func TestAgesAreReplaced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 3)
		s.get(t, s.newest(t))
		time.Sleep(10 * time.Second)
		want(t, s.get(t, s.newest(t)), request.Warm, "")
		s.SetAges(Ages{Newest: 5 * time.Second})
		want(t, s.get(t, s.newest(t)), request.Stale, "")
		s.SetAges(Ages{})
		want(t, s.get(t, s.newest(t)), request.Warm, "")
	})
}

// TestPollsKeepToNewAges: a poll that was far off comes sooner.
func TestPollsKeepToNewAges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 3, polls("calls"), func(o *Options) { o.Ages.Newest = 24 * time.Hour })
		time.Sleep(time.Minute)
		s.SetAges(Ages{Newest: 2 * time.Minute})
		before, _ := s.fetches("Calls.json")
		time.Sleep(time.Minute)
		if n, _ := s.fetches("Calls.json"); n != before+1 {
			t.Errorf("%d fetches in the minute in which one was due", n-before)
		}
	})
}

// TestPollsAreReplaced: a kind begins to be kept warm, and ends, while the
// mirror runs; one that stays is not disturbed.
func TestPollsAreReplaced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 3, polls("calls"))
		time.Sleep(time.Minute)
		calls, _ := s.fetches("Calls.json")
		if err := s.SetPolls("twilio", []string{"calls", "messages"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		want(t, s.get(t, s.target(t, "Messages.json", "")), request.Warm, "")
		if n, _ := s.fetches("Calls.json"); n > calls+1 {
			t.Errorf("calls were asked for %d times more", n-calls)
		}
		if err := s.SetPolls("twilio", []string{"messages", "cals"}); err == nil {
			t.Error("an unknown kind is polled")
		}
		if err := s.SetPolls("twilio", nil); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		before, _ := s.fetches("")
		time.Sleep(10 * time.Minute)
		if after, _ := s.fetches(""); after != before {
			t.Errorf("%d fetches by polls that have ended", after-before)
		}
		if err := s.SetPolls("forge", nil); err == nil {
			t.Error("a source that is not there was given polls")
		}
	})
}
