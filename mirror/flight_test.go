// Flights: one fetch for all, and a reader that leaves harms no other.

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
	"understudy/spec"
)

func TestHundredReadersShareOneFetch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 3)
		var joined atomic.Int64
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				a, err := s.Answer(t.Context(), request.Request{Target: s.newest(t)})
				if err != nil {
					t.Error(err)
					return
				}
				if a.Joined {
					joined.Add(1)
				}
			})
		}
		wg.Wait()
		n, _ := s.fetches("Calls.json")
		if n != 1 || joined.Load() != 99 {
			t.Errorf("%d fetches, %d joined; want 1 and 99", n, joined.Load())
		}
		if st := s.Stats("twilio"); st.Coalesced != 99 || st.Cold != 100 {
			t.Errorf("stats %+v", st)
		}
		synctest.Wait()
		if st := s.Stats("twilio"); st.ReadyEntries != 1 {
			t.Errorf("a page a hundred waited for is not ready: %+v", st)
		}
	})
}

func TestLeaderLeavesAndHarmsNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 3)
		leader, leave := context.WithCancel(t.Context())
		gone := make(chan error)
		go func() {
			_, err := s.Answer(leader, request.Request{Target: s.newest(t)})
			gone <- err
		}()
		time.Sleep(100 * time.Millisecond)
		others := make(chan error, 99)
		for range 99 {
			go func() {
				_, err := s.Answer(t.Context(), request.Request{Target: s.newest(t)})
				others <- err
			}()
		}
		time.Sleep(100 * time.Millisecond)
		leave()
		if err := <-gone; !errors.Is(err, context.Canceled) {
			t.Errorf("leader: %v", err)
		}
		for range 99 {
			if err := <-others; err != nil {
				t.Error(err)
			}
		}
		if n, _ := s.fetches("Calls.json"); n != 1 {
			t.Errorf("%d fetches, want 1", n)
		}
	})
}

func TestWaiterLeavesAtItsOwnDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 3)
		s.delay = func(request.Fetch) time.Duration { return 5 * time.Second }
		patient := make(chan error)
		go func() {
			_, err := s.Answer(t.Context(), request.Request{Target: s.newest(t)})
			patient <- err
		}()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		begin := time.Now()
		_, err := s.Answer(ctx, request.Request{Target: s.newest(t)})
		if took := time.Since(begin); took != 2*time.Second || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v after %v, want its deadline after 2 s", err, took)
		}
		if err := <-patient; err != nil {
			t.Error(err)
		}
	})
}

func TestLastOneOutCancelsUpstream(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 3)
		var cancelled atomic.Bool
		s.fetch = func(ctx context.Context, _ request.Fetch) (*understudy.Page, error) {
			<-ctx.Done()
			cancelled.Store(true)
			return nil, ctx.Err()
		}
		var wg sync.WaitGroup
		for i := range 3 {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i+1)*time.Second)
				defer cancel()
				_, _ = s.Answer(ctx, request.Request{Target: s.newest(t)})
			})
		}
		time.Sleep(2900 * time.Millisecond)
		if cancelled.Load() {
			t.Error("cancelled while somebody waited")
		}
		wg.Wait()
		synctest.Wait()
		if !cancelled.Load() {
			t.Error("not cancelled when the last waiter had left")
		}
		s.script(func() { s.fetch = nil })
		want(t, s.get(t, s.newest(t)), request.Cold, "") // what is cancelled is not joined
	})
}

func TestPanicIsContained(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"fetch", "save"} {
		t.Run(where, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var broken atomic.Bool
				broken.Store(true)
				s := open(t, 3, over(func(inner Store) Store {
					return &oddStore{Store: inner, save: func() error {
						if where == "save" && broken.Load() {
							panic("save broke")
						}
						return nil
					}}
				}))
				s.script(func() {
					s.fail = func(int, request.Fetch) error {
						if where == "fetch" && broken.Load() {
							panic("fetch broke")
						}
						return nil
					}
				})
				errs := make(chan error, 2)
				for range 2 {
					go func() {
						_, err := s.Answer(t.Context(), request.Request{Target: s.newest(t)})
						errs <- err
					}()
				}
				for range 2 {
					if err := <-errs; err == nil {
						t.Error("no error")
					}
				}
				broken.Store(false)
				want(t, s.get(t, s.newest(t)), request.Cold, "") // the key is not stuck
			})
		})
	}
}

// TestReaderPromotesWhatWasBegunForNobody: a reader joins a prefetch, which
// goes over to the queue of waiting readers.
func TestReaderPromotesWhatWasBegunForNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 9)
		next := s.get(t, s.newest(t)).Page.Next
		synctest.Wait() // the prefetch is under way
		target, err := s.spec.ResolveLink("twilio", next.URI)
		if err != nil {
			t.Fatal(err)
		}
		var f request.Fetch
		s.script(func() { f = s.asked[1] })
		if f.Reason != request.ReasonPrefetch || f.Target.Key != next {
			t.Fatalf("fetch of %s for %s", f.Target.Key, f.Reason)
		}
		select {
		case <-f.Promote:
			t.Fatal("promoted though nobody joined")
		default:
		}
		time.Sleep(400 * time.Millisecond)
		begin := time.Now()
		a := s.get(t, target)
		took := time.Since(begin)
		checktest.Equal(t, a.Outcome, request.Cold, "a.Outcome")
		checktest.True(t, a.Joined, "a.Joined is false")
		checktest.Equal(t, took, 600*time.Millisecond, "took")
		<-f.Promote
	})
}

// TestJoinedWithLessPatience: a prefetch fails at once; the reader who joined
// it, with nothing held, has a patient fetch of its own.
func TestJoinedWithLessPatience(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 9)
		s.script(func() {
			s.fail = func(_ int, f request.Fetch) error {
				if f.Reason == request.ReasonPrefetch {
					return &understudy.UpstreamError{Why: understudy.FailDown}
				}
				return nil
			}
		})
		next := s.get(t, s.newest(t)).Page.Next
		synctest.Wait()
		target, err := s.spec.ResolveLink("twilio", next.URI)
		if err != nil {
			t.Fatal(err)
		}
		want(t, s.get(t, target), request.Cold, "")
		_, by := s.fetches(target.Key.URI) // the page after it may be under way already
		if by[request.ReasonPrefetch] != 1 || by[request.ReasonWaiting] != 1 {
			t.Errorf("fetches by reason %v", by)
		}
	})
}

// oddStore is a store whose saves and touches may fail.
type oddStore struct {
	Store
	save  func() error
	touch func() error
}

func (o *oddStore) Save(ctx context.Context, p *understudy.Page) (request.SaveResult, error) {
	if o.save != nil {
		if err := o.save(); err != nil {
			return request.SaveResult{}, err
		}
	}
	return o.Store.Save(ctx, p)
}

func (o *oddStore) Touch(ctx context.Context, t request.Invalidation) (int64, error) {
	if o.touch != nil {
		if err := o.touch(); err != nil {
			return 0, err
		}
	}
	return o.Store.Touch(ctx, t)
}

// TestWorkBehindIsBounded: more pages are past fresh than may be refilled at
// once; their readers are answered all the same.
func TestWorkBehindIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 3)
		s.delay = func(request.Fetch) time.Duration { return 0 }
		var targets []*spec.Target
		for n := range 300 {
			target := s.target(t, "Calls.json", fmt.Sprintf("From=%d", n))
			targets = append(targets, target)
			s.get(t, target)
		}
		synctest.Wait()
		time.Sleep(time.Minute)
		s.script(func() { s.delay = nil })
		before, _ := s.fetches("")
		for _, target := range targets {
			want(t, s.get(t, target), request.Stale, "")
		}
		synctest.Wait()
		most := s.flights.limits.Load().Background
		if after, _ := s.fetches(""); after-before != most {
			t.Errorf("%d refreshes at once, want %d", after-before, most)
		}
		l := s.Loads().Background
		checktest.Equal(t, l.Now, int64(most), "l.Now")
		checktest.Equal(t, l.Limit, int64(most), "l.Limit")
		checktest.Equal(t, l.Refused, int64(300-most), "l.Refused")
		time.Sleep(2 * time.Second)
		s.flights.Lock()
		defer s.flights.Unlock()
		if s.flights.background != 0 || len(s.flights.running) != 0 {
			t.Errorf("left over: %d behind, %d running", s.flights.background, len(s.flights.running))
		}
	})
}

// A page that completed between a reader's look and its joining is answered, not
// fetched again.
func TestLandedMeanwhileIsNotFetchedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 3)
		target := s.newest(t)
		s.get(t, target)
		synctest.Wait() // until the flight has left the list
		n, _ := s.fetches("")
		src := s.env.sources[target.Key.Source]
		r := &reading{request: request.Request{Target: target}, source: src, kind: src.kindOf(target), now: s.env.now()}
		// The look is over and found nothing; now it joins.
		a, err := s.reader.askUpstream(t.Context(), r)
		if err != nil || a.Outcome != request.Warm {
			t.Errorf("%+v, %v", a, err)
		}
		if after, _ := s.fetches(""); after != n {
			t.Errorf("upstream was asked %d times more", after-n)
		}
		if f := s.flights.startBackground(target, src, r.kind, fetchOptions{reason: request.ReasonPrefetch}); f != nil {
			t.Error("it was prefetched again")
		}
	})
}

// The last waiter of a flight that has completed leaves it on the list: its page
// may not be in the hot tier yet, and a reader that found neither would fetch again.
func TestALandedFlightStaysOnTheListUntilItArrives(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 3)
		f := &flight{
			origin:  origin{target: s.newest(t)},
			signals: signals{done: make(chan struct{}), cancel: func() {}}, waiting: waiting{waiters: 1},
		}
		s.flights.running[f.origin.target.Key] = f
		close(f.signals.done)
		s.flights.release(f, false)
		if s.flights.running[f.origin.target.Key] != f {
			t.Error("it was taken off the list")
		}
		s.flights.remove(f)
	})
}

// TestWhatReadyFoundIsNotLookedUpAgain: Page answers with what Ready has found in memory, also when it has left there since.
func TestWhatReadyFoundIsNotLookedUpAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 3)
		target := s.target(t, "Calls.json", older)
		for s.Stats("twilio").ReadyEntries == 0 {
			s.get(t, target)
		}
		found, ok := s.FindReady(target)
		if !ok {
			t.Fatal("it is not ready")
		}
		s.entries.hot.Forget(s.entries.hot.Hash(target.Key))
		if _, ok := s.FindReady(target); ok {
			t.Fatal("it is ready after it was forgotten")
		}
		a, err := s.Answer(t.Context(), request.Request{Target: target, ReadyResult: found})
		checktest.MustNoError(t, err, "")
		checktest.Equal(t, a.Outcome, request.Warm, "a.Outcome")
		checktest.True(t, a.StoreTime <= 0, "a.StoreTime is %v, want <= 0", a.StoreTime)
	})
}
