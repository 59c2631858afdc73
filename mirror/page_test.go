// How old an answer may be, and what a reader waits for.

package mirror

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/request"
	"understudy/spec"
)

const older = "PageSize=50&Page=1&PageToken=PACA1"

func TestColdThenWarm(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 3)
		begin := time.Now()
		a := s.get(t, s.newest(t))
		want(t, a, request.Cold, "")
		checktest.Equal(t, a.ForwardReason, "uri-miss", "cold answer: a.ForwardReason")
		checktest.True(t, a.Stored, "cold answer: a.Stored is false")
		checktest.True(t, !a.Joined, "cold answer: a.Joined is true")
		checktest.Equal(t, a.UpstreamTime, time.Second, "cold answer: a.UpstreamTime")
		checktest.Equal(t, time.Since(begin), time.Second, "cold answer: time.Since(begin)")
		cold := a.Page
		time.Sleep(19 * time.Second)
		a = s.get(t, s.newest(t))
		want(t, a, request.Warm, "")
		checktest.Equal(t, a.Age, 19*time.Second, "warm answer: a.Age")
		checktest.Equal(t, a.TTL, 11*time.Second, "warm answer: a.TTL")
		checktest.Equal(t, a.ForwardReason, "", "warm answer: a.ForwardReason")
		checktest.True(t, bytes.Equal(a.Page.Body, cold.Body), "warm answer: a.Page.Body is %q, want %q",
			a.Page.Body, cold.Body)
		checktest.Equal(t, a.Page.Key, cold.Key, "warm answer: a.Page.Key")
		stats := s.Stats("twilio")
		checktest.Equal(t, stats.Requests, 2, "stats: stats.Requests")
		checktest.Equal(t, stats.Cold, 1, "stats: stats.Cold")
		checktest.Equal(t, stats.Warm, 1, "stats: stats.Warm")
	})
}

// Until the answer is there, upstream says 202: each reader asks again, and what was held
// before is not replaced by it.
func TestNotYetIsNotKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 3)
		asked := 0
		s.script(func() {
			s.page = func(f request.Fetch) *understudy.Page {
				asked++
				if asked > 2 {
					return nil // as it is
				}
				p := page(f.Target, http.StatusAccepted, `{}`)
				p.NotStored = "status 202"
				return p
			}
		})
		for _, status := range []int{http.StatusAccepted, http.StatusAccepted, http.StatusOK, http.StatusOK} {
			if a := s.get(t, s.call(t, sid(1))); a.Page.Status != status {
				t.Errorf("%d, want %d", a.Page.Status, status)
			}
			synctest.Wait() // a reader who comes before the flight has ended shares it
		}
		if asked != 3 {
			t.Errorf("upstream was asked %d times", asked)
		}
	})
}

// What upstream confirms is as new as what came, and has the body that is held.
func TestHeldPagesAreConfirmed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 3)
		var held []*understudy.Page
		s.script(func() {
			s.page = func(f request.Fetch) *understudy.Page {
				held = append(held, f.Stored)
				if f.Stored != nil {
					return f.Stored.ConfirmedCopy(time.Now(), time.Second)
				}
				p := s.list(f.Target)
				p.Header = "Etag=v1"
				return p
			}
		})
		first := s.get(t, s.newest(t))
		for range 2 {
			time.Sleep(time.Hour)
			a := s.get(t, s.newest(t))
			checktest.Equal(t, a.Outcome, request.Cold, "confirmed: a.Outcome")
			checktest.Equal(t, a.Age, 0, "confirmed: a.Age")
			checktest.True(t, a.Stored, "confirmed: a.Stored is false")
			checktest.True(t, bytes.Equal(a.Page.Body, first.Page.Body), "confirmed: a.Page.Body is %q, want %q",
				a.Page.Body, first.Page.Body)
			checktest.Equal(t, a.Page.Header, "Etag=v1", "confirmed: a.Page.Header")
			synctest.Wait() // until it is in memory
			want(t, s.get(t, s.newest(t)), request.Warm, "")
		}
		checktest.MustEqual(t, len(held), 3, "upstream was asked with: len(held)")
		checktest.MustTrue(t, held[0] == nil, "upstream was asked with: held[0] is %v", held[0])
		checktest.MustTrue(t, held[1] != nil, "upstream was asked with: held[1] is nil")
		checktest.True(t, held[2] != nil, "upstream was asked with: held[2] is nil")
	})
}

// TestAges: the fresh and stale times, as docs/explanation/mirror.md has them.
func TestAges(t *testing.T) {
	t.Parallel()
	open400 := func(w *world) {
		w.page = func(f request.Fetch) *understudy.Page {
			return page(f.Target, http.StatusBadRequest, `{"code":20001,"status":400}`)
		}
	}
	for _, c := range []struct {
		name, path, query string
		status            string
		final             bool
		fresh             time.Duration
		script            func(*world)
	}{
		{name: "newest page", path: "Calls.json", fresh: 30 * time.Second},
		{name: "filtered newest page", path: "Calls.json", query: "Status=busy", fresh: 30 * time.Second},
		{name: "older page", path: "Calls.json", query: older, fresh: 5 * time.Minute},
		{name: "final record", path: "Calls/" + sid(2) + ".json", final: true, fresh: 24 * time.Hour},
		{name: "other record", path: "Calls/" + sid(2) + ".json", status: "ringing", fresh: 30 * time.Second},
		{name: "not found", path: "Calls/" + sid(99) + ".json", fresh: 10 * time.Second},
		{name: "bad request", path: "Calls.json", query: "PageSize=x", fresh: 10 * time.Second, script: open400},
	} {
		for _, then := range []struct {
			name string
			at   time.Duration
			how  request.Outcome
		}{
			{"fresh", c.fresh - time.Millisecond, request.Warm},
			{"past fresh", c.fresh, request.Stale},
			{"last stale", c.fresh + 5*time.Minute - time.Millisecond, request.Stale},
			{"past stale", c.fresh + 5*time.Minute, request.Cold},
		} {
			t.Run(c.name+"/"+then.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := open(t, 3)
					if c.status != "" {
						s.set(sid(2), c.status, c.final)
					}
					if c.script != nil {
						c.script(s.world)
					}
					target := s.target(t, c.path, c.query)
					want(t, s.get(t, target), request.Cold, "")
					time.Sleep(then.at)
					begin := time.Now()
					a := s.get(t, target)
					want(t, a, then.how, "")
					took := time.Since(begin)
					switch then.how {
					case request.Cold:
						checktest.Equal(t, took, time.Second, "took: took")
						checktest.Equal(t, a.ForwardReason, "stale", "took: a.ForwardReason")
						checktest.Equal(t, a.Age, 0, "took: a.Age")
						return
					case request.Warm, request.Stale:
						checktest.Equal(t, took, 0, "took: took")
						checktest.Equal(t, a.Age, then.at, "took: a.Age")
						checktest.Equal(t, a.TTL, c.fresh-then.at, "took: a.TTL")
						checktest.Equal(t, a.ForwardReason, "", "took: a.ForwardReason")
					}
					if then.how == request.Stale { // refilled behind
						time.Sleep(1001 * time.Millisecond)
						a = s.get(t, target)
						want(t, a, request.Warm, "")
						if _, by := s.fetches(target.Key.Path()); by[request.ReasonRefresh] != 1 || by[request.ReasonWaiting] != 1 {
							t.Errorf("fetches by reason %v", by)
						}
					}
				})
			})
		}
	}
}

func TestAgesSurviveTheWayThroughTheStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 3)
		s.get(t, s.newest(t))
		s.stop()
		time.Sleep(100 * time.Second)
		s.start(t, Options{Sources: []Source{{Source: &spec.Source{Name: "twilio", Spec: s.spec, User: account}, Upstream: s.world}},
			Store: s.memory})
		a := s.get(t, s.newest(t))
		want(t, a, request.Stale, "")
		if a.Age != 100*time.Second || !a.Stored {
			t.Errorf("age after a restart %v, stored %v", a.Age, a.Stored)
		}
	})
}

func TestOutage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		age   time.Duration
		fail  func(context.Context, request.Fetch) (*understudy.Page, error)
		limit time.Duration // of the caller; 0 = none

		how    request.Outcome
		detail string
		took   time.Duration
		err    error
	}{
		{name: "first try fails, retries go on", age: time.Hour, how: request.Stale, detail: "stale: upstream 503", took: time.Second,
			fail: func(ctx context.Context, f request.Fetch) (*understudy.Page, error) {
				time.Sleep(time.Second)
				f.OnRetry(&understudy.UpstreamError{Why: understudy.FailServer, Status: 503})
				<-ctx.Done()
				return nil, ctx.Err()
			}},
		{name: "fails for good", age: time.Hour, how: request.Stale, detail: "stale: upstream unreachable", took: time.Second,
			fail: func(ctx context.Context, f request.Fetch) (*understudy.Page, error) {
				time.Sleep(time.Second)
				return nil, &understudy.UpstreamError{Why: understudy.FailUnreachable}
			}},
		{name: "no answer", age: time.Hour, how: request.Stale, detail: "stale: upstream slow", took: 8 * time.Second, fail: never},
		{name: "no answer, caller in a hurry", age: time.Hour, limit: 2 * time.Second, how: request.Stale, detail: "stale: upstream slow",
			took: 2 * time.Second, fail: never},
		{name: "just under the hard limit", age: shortHard - 2*time.Second, how: request.Stale, detail: "stale: upstream 500", took: time.Second,
			fail: func(ctx context.Context, f request.Fetch) (*understudy.Page, error) {
				time.Sleep(time.Second)
				return nil, down(500)
			}},
		{name: "hard limit", age: shortHard, took: time.Second, err: understudy.ErrUnavailable,
			fail: func(ctx context.Context, f request.Fetch) (*understudy.Page, error) {
				if !f.CanWaitForProbe() {
					t.Error("nothing is held, yet the fetch has no patience")
				}
				time.Sleep(time.Second)
				return nil, down(500)
			}},
		{name: "hard limit, caller in a hurry", age: shortHard, limit: 2 * time.Second, took: 2 * time.Second, err: context.DeadlineExceeded,
			fail: never},
		{name: "no answer at all", age: shortHard, took: 38 * time.Second, err: understudy.ErrUnavailable, fail: never},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := open(t, 3, hard(shortHard))
				held := s.get(t, s.newest(t)).Page
				time.Sleep(c.age)
				s.script(func() { s.fetch = c.fail })
				ctx := t.Context()
				if c.limit > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, c.limit)
					defer cancel()
				}
				begin := time.Now()
				a, err := s.Answer(ctx, request.Request{Target: s.newest(t)})
				if took := time.Since(begin); took != c.took {
					t.Errorf("took %v, want %v", took, c.took)
				}
				if !errors.Is(err, c.err) || (err == nil) != (c.err == nil) {
					t.Fatalf("error %v, want %v", err, c.err)
				}
				if err != nil {
					return
				}
				want(t, a, c.how, c.detail)
				checktest.True(t, bytes.Equal(a.Page.Body, held.Body),
					"not the held page: a.Page.Body is %q, want %q", a.Page.Body, held.Body)
				checktest.True(t, a.TTL < 0, "not the held page: a.TTL is %v, want < 0", a.TTL)
				checktest.Equal(t, a.ForwardReason, "", "not the held page: a.ForwardReason")
			})
		})
	}
}

// never answers until it is cancelled.
func never(ctx context.Context, _ request.Fetch) (*understudy.Page, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestRetriesGoOnBehind: the reader of an outage has its held answer; the
// flight goes on and its answer is held for the next reader.
func TestRetriesGoOnBehind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 3)
		s.get(t, s.newest(t))
		time.Sleep(time.Hour)
		s.script(func() {
			s.fetch = func(ctx context.Context, f request.Fetch) (*understudy.Page, error) {
				if f.RetryWindow != 8*time.Second || f.CanWaitForProbe() {
					t.Errorf("retry %v, patient %v", f.RetryWindow, f.CanWaitForProbe())
				}
				f.OnRetry(&understudy.UpstreamError{Why: understudy.FailServer, Status: 502})
				f.OnRetry(&understudy.UpstreamError{Why: understudy.FailServer, Status: 503})
				select {
				case <-time.After(5 * time.Second):
				case <-ctx.Done():
					return nil, ctx.Err()
				}
				p := page(f.Target, http.StatusOK, `{"calls":[]}`)
				p.At, p.Generation = time.Now(), f.Generation
				return p, nil
			}
		})
		want(t, s.get(t, s.newest(t)), request.Stale, "stale: upstream 502")
		time.Sleep(5*time.Second + time.Millisecond)
		want(t, s.get(t, s.newest(t)), request.Warm, "")
		if n, _ := s.fetches("Calls.json"); n != 2 {
			t.Errorf("%d fetches, want the first and one more", n)
		}
	})
}

func TestMaxStaleCutsFreshAndStaleTime(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		age, within time.Duration
		how         request.Outcome
	}{
		{5 * time.Second, 0, request.Cold},
		{5 * time.Second, 5 * time.Second, request.Cold},
		{5 * time.Second, 6 * time.Second, request.Warm},
		{40 * time.Second, 39 * time.Second, request.Cold},
		{40 * time.Second, 41 * time.Second, request.Stale},
		{6 * time.Minute, time.Hour, request.Cold}, // it never lengthens
	} {
		synctest.Test(t, func(t *testing.T) {
			s := open(t, 3)
			s.get(t, s.newest(t))
			time.Sleep(c.age)
			a, err := s.Answer(t.Context(), request.Request{Target: s.newest(t), AgeLimit: &c.within})
			if err != nil {
				t.Fatal(err)
			}
			if a.Outcome != c.how {
				t.Errorf("age %v, within %v: %s, want %s", c.age, c.within, a.Outcome, c.how)
			}
			if c.within == 0 && a.ForwardReason != "request" {
				t.Errorf("fwd %q, want request", a.ForwardReason)
			}
			time.Sleep(2 * time.Second) // what goes on behind completes
			s.script(func() { s.fail = func(int, request.Fetch) error { return down(503) } })
			zero := time.Duration(0)
			a, err = s.Answer(t.Context(), request.Request{Target: s.newest(t), AgeLimit: &zero})
			if err != nil {
				t.Fatal(err)
			}
			want(t, a, request.Stale, "stale: upstream 503") // the outage rules still hold
		})
	}
}

func TestNoCacheJoinsOrBegins(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 3)
		s.get(t, s.newest(t))
		first := make(chan *request.Response)
		ask := func() *request.Response {
			a, err := s.Answer(t.Context(), request.Request{Target: s.newest(t), NoCache: true})
			if err != nil {
				t.Error(err)
			}
			return a
		}
		go func() { first <- ask() }()
		time.Sleep(500 * time.Millisecond)
		second := ask()
		{
			a := <-first
			checktest.Equal(t, a.Outcome, request.Cold, "first: a.Outcome")
			checktest.True(t, !a.Joined, "first: a.Joined is true")
			checktest.Equal(t, a.ForwardReason, "request", "first: a.ForwardReason")
		}
		if second.Outcome != request.Cold || !second.Joined {
			t.Errorf("second %+v", second)
		}
		if n, _ := s.fetches("Calls.json"); n != 2 {
			t.Errorf("%d fetches, want 2", n)
		}
	})
}

func TestUnknownPathsAreNeverHeld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 3)
		odd := s.target(t, "Odd/Thing.json", "")
		for range 2 {
			a := s.get(t, odd)
			want(t, a, request.Cold, "")
			if a.Stored {
				t.Error("stored")
			}
		}
		if n, _ := s.fetches("Odd"); n != 2 {
			t.Errorf("%d fetches, want 2", n)
		}
		// Nor by a reader that comes while a completed flight is still on the list.
		f := &flight{
			origin:  origin{target: odd, kind: s.env.sources["twilio"].kinds[""]},
			signals: signals{done: make(chan struct{})},
		}
		close(f.signals.done)
		s.flights.Lock()
		s.flights.running[odd.Key] = f
		s.flights.Unlock()
		s.get(t, odd)
		if n, _ := s.fetches("Odd"); n != 3 {
			t.Errorf("%d fetches, want 3", n)
		}
	})
}

func TestClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 3)
		s.script(func() { s.fetch = never })
		go func() {
			time.Sleep(3 * time.Second)
			s.stop()
		}()
		if _, err := s.Answer(t.Context(), request.Request{Target: s.newest(t)}); !errors.Is(err, understudy.ErrClosed) {
			t.Errorf("a waiter of a mirror that closes: %v, want ErrClosed", err)
		}
		synctest.Wait()
		if _, err := s.Answer(t.Context(), request.Request{Target: s.newest(t)}); !errors.Is(err, understudy.ErrClosed) {
			t.Errorf("Page: %v, want ErrClosed", err)
		}
		if _, err := s.Mirror.Write(t.Context(), request.Write{Target: s.newest(t)}); !errors.Is(err, understudy.ErrClosed) {
			t.Errorf("Write: %v, want ErrClosed", err)
		}
		if err := s.Run(t.Context()); err == nil {
			t.Error("ran twice")
		}
	})
}

// Part 2, no. 4: in an outage a held page says why from the first stale second,
// and no more once upstream is well.
func TestAnOutageIsSaidFromTheFirstStaleSecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 3, polls("calls"))
		held := s.target(t, "Calls.json", "Status=completed")
		s.get(t, held)
		s.script(func() { s.fail = func(int, request.Fetch) error { return down(503) } })
		time.Sleep(31 * time.Second) // the polls have failed meanwhile
		want(t, s.get(t, held), request.Stale, "stale: upstream 503")
		s.script(func() { s.fail = nil })
		time.Sleep(time.Minute)
		want(t, s.get(t, s.target(t, "Calls.json", "Status=busy")), request.Cold, "")
		time.Sleep(31 * time.Second)
		want(t, s.get(t, s.target(t, "Calls.json", "Status=busy")), request.Stale, "")
	})
}
