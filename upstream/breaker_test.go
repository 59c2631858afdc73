// Gate: what happens after failures, in bubbles.

package upstream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/request"
	"understudy/spec"
	"understudy/upstream/throttle"
)

func contains(err error, text string) bool { return err != nil && strings.Contains(err.Error(), text) }

// call is the path of one call, so of a key of its own.
func call(i int) string { return strings.Replace(callsPath, ".json", fmt.Sprintf("/CA%d.json", i), 1) }

// faulty answers with status (0: refuses) while it is not 200.
type faulty struct{ status atomic.Int64 }

func (f *faulty) do(_ int, r *http.Request) (*http.Response, error) {
	switch status := int(f.status.Load()); status {
	case 0:
		return nil, errRefused
	case 200:
		if strings.HasSuffix(r.URL.Path, "/Calls.json") {
			return reply(200, emptyCalls), nil
		}
		return reply(200, `{"sid":"CA1","accounts":[]}`), nil
	default:
		return reply(status, `{}`), nil
	}
}

// down makes a source down: five keys fail.
func down(t *testing.T, c *Client) {
	t.Helper()
	for i := range throttle.DownAfter {
		if _, err := get(t, c, call(i)); failure(t, err).Why == understudy.FailDown {
			t.Fatalf("down after %d failures", i)
		}
	}
	if h := c.Health(); h.State != "down" {
		t.Fatalf("not down: %+v", h)
	}
}

func TestFailedKeyWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &faulty{}
		f.status.Store(200)
		s := &script{do: f.do}
		c := scripted(t, s)
		if _, err := get(t, c, call(9)); err != nil {
			t.Fatal(err)
		}
		f.status.Store(502)
		if _, err := get(t, c, call(1)); failure(t, err).Status != 502 {
			t.Fatal(err)
		}
		f.status.Store(200)
		// The key fails at once, another does not, a patient reader waits it out.
		_, err := get(t, c, call(1))
		{
			e := failure(t, err)
			checktest.Equal(t, e.Why, understudy.FailDown, "%+v: e.Why; %v", e, err)
			checktest.Equal(t, e.Status, 502, "%+v: e.Status; %v", e, err)
			checktest.True(t, contains(err, "server error (status 502)"),
				`%+v: contains(err, "server error (status 502)") is false`, e)
			checktest.Equal(t, e.RetryAfter, time.Second, "%+v: e.RetryAfter; %v", e, err)
		}
		if _, err := get(t, c, call(2)); err != nil {
			t.Errorf("another key: %v", err)
		}
		start := time.Now()
		var told *understudy.UpstreamError
		_, err = c.Fetch(t.Context(), request.Fetch{Target: target(t, c, call(1)), CanWaitForProbe: always,
			OnRetry: func(e *understudy.UpstreamError) { told = e }})
		if err != nil || time.Since(start) != time.Second {
			t.Errorf("patient: %v after %v", err, time.Since(start))
		}
		if told == nil || told.RetryAfter != time.Second {
			t.Errorf("what a patient reader waits for was told as %+v", told)
		}
		if n := s.count(); n != 4 {
			t.Errorf("%d requests", n)
		}
	})
}

func TestFiveKeysMakeItDown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &faulty{}
		f.status.Store(200)
		s := &script{do: f.do}
		c := scripted(t, s)
		if _, err := get(t, c, call(9)); err != nil {
			t.Fatal(err)
		}
		// The same key, as often as one likes, shuts nothing.
		f.status.Store(503)
		for range 4 {
			_, _ = get(t, c, call(9))
			time.Sleep(time.Second)
		}
		if h := c.Health(); h.State != "ok" {
			t.Errorf("after four failures of one key: %+v", h)
		}
		// A good answer ends the row.
		for i := range 3 {
			_, _ = get(t, c, call(i))
		}
		f.status.Store(200)
		if _, err := get(t, c, call(7)); err != nil {
			t.Fatal(err)
		}
		f.status.Store(0)
		down(t, c)
		n := s.count()
		for _, reason := range []request.Reason{request.ReasonWaiting, request.ReasonPoll, request.ReasonPrefetch} {
			_, err := c.Fetch(t.Context(), request.Fetch{Target: target(t, c, call(100)), Reason: reason})
			e := failure(t, err)
			checktest.Equal(t, e.Why, understudy.FailDown, "%v: e.Why; %v", reason, err)
			checktest.True(t, contains(err, "connection refused"),
				`%v: contains(err, "connection refused") is false`, reason)
			checktest.True(t, e.RetryAfter > 0, "%v: e.RetryAfter is %v, want > 0; %v", reason, e.RetryAfter, err)
		}
		if s.count() != n {
			t.Error("a source that is down was asked")
		}
		// When a probe is due, a reader's fetch is the probe; no other fetch goes.
		time.Sleep(time.Second)
		if _, err := c.Fetch(t.Context(), request.Fetch{Target: target(t, c, call(100)), Reason: request.ReasonPoll}); failure(t,
			err).Why != understudy.FailDown {
			t.Error("a poll was the probe")
		}
		f.status.Store(200)
		if _, err := get(t, c, call(100)); err != nil {
			t.Errorf("the probe: %v", err)
		}
		// That ends it for all keys.
		{
			_, err := get(t, c, call(0))
			checktest.MustNoError(t, err, "")
			checktest.Equal(t, c.Health().State, "ok", "c.Health().State")
			checktest.Equal(t, c.Health().Why, "", "c.Health().Why")
		}
	})
}

// What a wrong answer is, not a failure of upstream's, does not make it down.
func TestUnusableAnswersDoNotMakeItDown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{do: func(int, *http.Request) (*http.Response, error) { return reply(200, "<html>"), nil }}
		c := scripted(t, s, func(o *Options) { o.Rate = 100 })
		for i := range 20 {
			if _, err := get(t, c, call(i)); failure(t, err).Why != understudy.FailUnusable {
				t.Fatal(err)
			}
		}
		if h := c.Health(); h.State != "ok" {
			t.Errorf("%+v", h)
		}
	})
}

// Patient readers wait for the probe, and one of them is it.
func TestPatientReadersWaitForTheProbe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &faulty{}
		s := &script{do: slow(100*time.Millisecond, f.do)}
		c := scripted(t, s)
		down(t, c)
		f.status.Store(200)
		n := s.count()
		start := time.Now()
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				_, err := c.Fetch(t.Context(), request.Fetch{Target: target(t, c, call(50+i)), CanWaitForProbe: always})
				d := time.Since(start)
				checktest.NoError(t, err, "reader %d after %v", i, d)
				checktest.True(t, d >= 700*time.Millisecond && d <= 1300*time.Millisecond, "reader %d waited %v", i, d)
			})
		}
		time.Sleep(1050 * time.Millisecond)
		if synctest.Wait(); s.count() > n+8 {
			t.Errorf("%d requests", s.count()-n)
		}
		wg.Wait()
		if s.count() != n+8 {
			t.Errorf("%d requests for 8 readers", s.count()-n)
		}
	})
}

// While a probe is under way no other fetch goes out. A failed probe makes them wait
// for the next; fetches without the time for that fail at once.
func TestOneProbeAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &faulty{}
		s := &script{do: f.do}
		c := scripted(t, s)
		down(t, c)
		s.do = slow(300*time.Millisecond, f.do)
		time.Sleep(time.Second)
		n := s.count()
		var wg sync.WaitGroup
		for i := range 5 {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
				defer cancel()
				_, err := c.Fetch(ctx, request.Fetch{Target: target(t, c, call(60+i)), CanWaitForProbe: always})
				failure(t, err)
			})
			synctest.Wait()
		}
		if s.count() != n+1 {
			t.Errorf("%d probes at once", s.count()-n)
		}
		start := time.Now()
		wg.Wait()
		if d := time.Since(start); d != 300*time.Millisecond || s.count() != n+1 {
			t.Errorf("told after %v and %d probes", d, s.count()-n)
		}
	})
}

// After a probe whose reader leaves another may go.
func TestAbandonedProbe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &faulty{}
		s := &script{do: f.do}
		c := scripted(t, s)
		down(t, c)
		s.do = slow(time.Hour, f.do)
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Fetch(ctx, request.Fetch{Target: target(t, c, call(1))}); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		s.do = f.do
		f.status.Store(200)
		time.Sleep(time.Second)
		if _, err := get(t, c, call(1)); err != nil {
			t.Errorf("after an abandoned probe: %v", err)
		}
	})
}

// Run probes by itself: after 1, 2, 4 … 60 s, up to a fifth earlier, with the
// cheapest list, and stops when upstream is back.
func TestRunProbes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &faulty{}
		s := &script{do: f.do}
		c := scripted(t, s)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := c.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(time.Hour)
		if s.count() != 0 {
			t.Fatalf("a source that is well was asked: %v", s.asked)
		}
		down(t, c)
		n := s.count()
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		probes := s.at[n:]
		if len(probes) < 10 {
			t.Fatalf("%d probes in five minutes", len(probes))
		}
		last := s.at[n-1]
		for i, at := range probes {
			want := min(time.Second<<i, time.Minute)
			if gap := at - last; gap < want*8/10-time.Millisecond || gap > want+time.Millisecond {
				t.Errorf("probe %d came after %v, want %v or up to a fifth less", i, gap, want)
			}
			last = at
		}
		for _, uri := range s.asked[n:] {
			if uri != "/2010-04-01/Accounts.json?PageSize=1" {
				t.Errorf("probed %s", uri)
			}
		}
		{
			h := c.Health()
			checktest.Equal(t, h.State, "down", "h.State")
			checktest.Contains(t, h.Why, "refused", "h.Why")
			checktest.True(t, time.Until(h.NextProbe) <= time.Minute, "time.Until(h.NextProbe) is %v",
				time.Until(h.NextProbe))
			checktest.True(t, !h.NextProbe.Before(time.Now()), "h.NextProbe.Before(time.Now()) is true")
		}
		f.status.Store(200)
		time.Sleep(time.Minute)
		synctest.Wait()
		n = s.count()
		{
			h := c.Health()
			checktest.Equal(t, h.State, "ok", "h.State")
			checktest.True(t, h.NextProbe.IsZero(), "h.NextProbe.IsZero() is false")
			checktest.True(t, time.Since(h.Since) <= time.Minute, "time.Since(h.Since) is %v", time.Since(h.Since))
		}
		time.Sleep(time.Hour)
		if s.count() != n {
			t.Error("probes go on")
		}
		if got := c.Stats(); got.ByReason[request.ReasonCheck] != int64(len(probes)+1) {
			t.Errorf("%+v", got)
		}
		cancel()
		wg.Wait()
	})
}

// A source that never answered shows in health from its first failure, though it is not
// shut; so does one with too few keys for five.
func TestUnwellBeforeFiveKeys(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &faulty{}
		s := &script{do: f.do}
		c := scripted(t, s)
		_, _ = get(t, c, callsPath)
		if h := c.Health(); h.State != "down" {
			t.Errorf("never answered: %+v", h)
		}
		if _, err := get(t, c, call(1)); failure(t, err).Why != understudy.FailUnreachable {
			t.Errorf("shut too early: %v", err)
		}
		f.status.Store(200)
		if _, err := get(t, c, call(2)); err != nil || c.Health().State != "ok" {
			t.Errorf("%v %+v", err, c.Health())
		}
		f.status.Store(500)
		for range throttle.DownAfter {
			time.Sleep(time.Second)
			_, _ = get(t, c, callsPath)
		}
		if h := c.Health(); h.State != "down" {
			t.Errorf("one key that keeps failing: %+v", h)
		}
	})
}

func TestRetryAfterHoldsTheSource(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{do: func(n int, r *http.Request) (*http.Response, error) {
			if n == 1 {
				return reply(429, `{}`, "Retry-After", "12"), nil
			}
			return reply(200, emptyCalls), nil
		}}
		c := scripted(t, s)
		if _, err := get(t, c, callsPath); err != nil {
			t.Fatal(err)
		}
		_, _ = get(t, c, callsPath+"?To=1")
		{
			h := c.Health()
			checktest.Equal(t, h.State, "limited", "h.State")
			checktest.Equal(t, time.Until(h.NextProbe), 12*time.Second, "time.Until(h.NextProbe)")
			checktest.Equal(t, h.Since, time.Now(), "h.Since")
		}
		_, err := get(t, c, callsPath)
		e := failure(t, err)
		checktest.Equal(t, e.Why, understudy.FailDown, "e.Why")
		checktest.Equal(t, e.Status, 429, "e.Status")
		checktest.Equal(t, e.RetryAfter, 12*time.Second, "e.RetryAfter")
		checktest.Equal(t, e.ShortText(), "upstream 429", "e.ShortText()")
		start := time.Now()
		if _, err := c.Fetch(t.Context(), request.Fetch{Target: target(t, c, callsPath), CanWaitForProbe: always}); err != nil ||
			time.Since(start) != 12*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		if h := c.Health(); h.State != "ok" {
			t.Errorf("%+v", h)
		}
	})
}

// Errands that queue when the source is held do not go out.
func TestHeldWhileQueued(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{do: slow(time.Second, func(n int, r *http.Request) (*http.Response, error) {
			if n == 0 {
				return reply(503, `{}`, "Retry-After", "30"), nil
			}
			return well(n, r)
		})}
		w := &crowd{t: t, c: scripted(t, s, func(o *Options) { o.Concurrency = 1 })}
		w.send(1, request.Fetch{})
		for i := range 4 {
			w.send(1, request.Fetch{Target: target(t, w.c, callsPath+fmt.Sprint("?To=", i))})
		}
		w.wg.Wait()
		if s.count() != 1 || len(w.failed()) != 5 {
			t.Errorf("%d requests, errors %v", s.count(), w.failed())
		}
	})
}

// 403 may be about the path alone: others still go out, and a good answer
// ends the state.
func TestForbiddenPath(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{do: func(_ int, r *http.Request) (*http.Response, error) {
			if strings.Contains(r.URL.Path, "CA1") {
				return reply(403, `{}`), nil
			}
			return reply(200, emptyCalls), nil
		}}
		c := scripted(t, s)
		_, _ = get(t, c, call(1))
		if h := c.Health(); h.State != "credential" {
			t.Errorf("%+v", h)
		}
		if _, err := get(t, c, callsPath); err != nil || c.Health().State != "ok" {
			t.Errorf("%v %+v", err, c.Health())
		}
	})
}

func TestCheapest(t *testing.T) {
	for name, want := range map[string]string{"shelf": "/v3/a%20b/books?limit=1", "links": "/events?per_page=1"} {
		got, err := chooseProbeTarget(&spec.Source{Name: "s", Spec: specFile(t, name), User: "a b"})
		if err != nil || got.Key.URI != want {
			t.Errorf("%s: %v %v", name, got, err)
		}
	}
	// Without a user for {library} no list can be asked for.
	got, err := chooseProbeTarget(&spec.Source{Name: "s", Spec: specFile(t, "shelf")})
	if err != nil || got.Key.URI != "/" {
		t.Errorf("%v %v", got, err)
	}
}

// A reader with nothing held and little time gets the error in that time, even when the
// next probe is due much later.
func TestPatienceEndsWithRetry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := scripted(t, &script{do: refused})
		down(t, c)
		for i := range 7 { // each one a probe; they grow rarer
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			_, _ = c.Fetch(ctx, request.Fetch{Target: target(t, c, call(100+i)), CanWaitForProbe: always})
			cancel()
		}
		if wait := time.Until(c.Health().NextProbe); wait < 10*time.Second {
			t.Fatalf("the next probe is due in %v: too soon to show anything", wait)
		}
		start := time.Now()
		_, err := c.Fetch(t.Context(), request.Fetch{Target: target(t, c, call(90)), CanWaitForProbe: always, RetryWindow: 8 * time.Second})
		if took := time.Since(start); failure(t, err).RetryAfter == 0 || took > 8*time.Second {
			t.Errorf("after %v: %v", took, err)
		}
	})
}

func always() bool { return true }
