// Prefetch: one page ahead of who reads, once, and no further.

package mirror

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"understudy"
	"understudy/request"
	"understudy/spec"
)

func (s *stage) follow(t *testing.T, key understudy.Key) *spec.Target {
	t.Helper()
	target, err := s.spec.ResolveLink("twilio", key.URI)
	if err != nil {
		t.Fatal(err)
	}
	return target
}

func TestPrefetchOncePerPageNotPerViewer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 12) // four pages
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() { s.get(t, s.newest(t)) })
		}
		wg.Wait()
		for range 50 {
			s.get(t, s.newest(t))
		}
		time.Sleep(2 * time.Second)
		for range 50 {
			s.get(t, s.newest(t))
		}
		time.Sleep(2 * time.Second)
		n, by := s.fetches("Calls.json")
		if n != 2 || by[request.ReasonPrefetch] != 1 {
			t.Errorf("%d fetches, %v: want the page and one prefetch", n, by)
		}
		st := s.Stats("twilio")
		if st.Prefetched != 1 || st.Requests != 200 {
			t.Errorf("stats %+v", st)
		}
		// The next page is there, and only reading it fetches the one after.
		a := s.get(t, s.follow(t, s.get(t, s.newest(t)).Page.Next))
		want(t, a, request.Warm, "")
		time.Sleep(2 * time.Second)
		if n, _ := s.fetches("Calls.json"); n != 3 {
			t.Errorf("%d fetches after reading the second page, want 3", n)
		}
	})
}

func TestWalkFindsEveryNextPage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 30)
		target := s.newest(t)
		for n := 0; ; n++ {
			a := s.get(t, target)
			if (n == 0) != (a.Outcome == request.Cold) {
				t.Errorf("page %d came %s", n, a.Outcome)
			}
			if a.Page.Next.IsZero() {
				if n != 9 {
					t.Errorf("%d pages", n+1)
				}
				break
			}
			target = s.follow(t, a.Page.Next)
			time.Sleep(1001 * time.Millisecond)
		}
	})
}

// TestPrefetchAgainWhenTheNextPageIsOld: a page that is read on and on keeps
// its next page fresh.
func TestPrefetchAgainWhenTheNextPageIsOld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 6)
		a := s.get(t, s.newest(t))
		next := s.follow(t, a.Page.Next)
		for range 900 {
			s.get(t, s.newest(t))
			time.Sleep(time.Second)
		}
		_, by := s.fetches("PageToken")
		if by[request.ReasonPrefetch] < 2 || by[request.ReasonPrefetch] > 4 {
			t.Errorf("%d prefetches in fifteen minutes, want one for each five", by[request.ReasonPrefetch])
		}
		want(t, s.get(t, next), request.Warm, "")
	})
}

func TestFailedPrefetchIsTriedAgainLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 6)
		s.fail = func(_ int, f request.Fetch) error {
			if f.Reason == request.ReasonPrefetch {
				return down(503)
			}
			return nil
		}
		for range 20 {
			s.get(t, s.newest(t))
			time.Sleep(time.Second)
		}
		if _, by := s.fetches("PageToken"); by[request.ReasonPrefetch] < 2 || by[request.ReasonPrefetch] > 4 {
			t.Errorf("%d prefetches in twenty seconds", by[request.ReasonPrefetch])
		}
	})
}
