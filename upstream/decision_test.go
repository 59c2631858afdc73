// Decision: limits that are waited for, and refusals that are about one path.

package upstream

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"understudy"
	"understudy/request"
	"understudy/spec"
	"understudy/upstream/throttle"
)

// forge is an API that tells of its limits as GitHub does.
func forge(t testing.TB) *spec.Spec {
	t.Helper()
	s, err := ReadSpec("forge.yaml", []byte(`name: forge
hosts: [{url: "https://forge.example"}]
auth: {style: bearer, callers: [bearer, token]}
limits: {statuses: [403], words: [secondary rate limit]}
kinds:
  - name: issues
    id: [number]
    lists: [{path: /issues}]
    instances: [{path: "/issues/{n}", id: [n]}]
    fields: [{name: number, type: int}]
`))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func forged(t testing.TB, s *script, change ...func(*Options)) *Client {
	return scripted(t, s, append(change, func(o *Options) { o.Source = &spec.Source{Name: "forge", Spec: forge(t)} })...)
}

func TestLimitsAreWaitedFor(t *testing.T) {
	const primary = `{"message":"API rate limit exceeded"}`
	for name, c := range map[string]struct {
		answer *http.Response
		wait   time.Duration // 0: it is no limit
	}{
		"secondary":    {reply(403, `{"message":"slow down"}`, "Retry-After", "7"), 7 * time.Second},
		"primary, 403": {reply(403, primary, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "946684812"), 12 * time.Second},
		"primary, 429": {reply(429, primary, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "946684812"), 12 * time.Second},
		"both, the later counts": {reply(403, primary, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "5", "Retry-After", "9"),
			9 * time.Second},
		"by words alone":       {reply(403, `{"message":"You have exceeded a Secondary Rate Limit."}`), time.Minute},
		"until nobody knows":   {reply(403, primary, "X-RateLimit-Remaining", "0"), time.Minute},
		"for ever":             {reply(403, primary, "Retry-After", "99999999"), time.Hour},
		"a draft's field":      {reply(429, primary, "RateLimit", `"core";r=0;t=3`), 3 * time.Second},
		"a refusal":            {reply(403, `{"message":"Must have admin rights"}`, "X-RateLimit-Remaining", "50", "X-RateLimit-Reset", "60"), 0},
		"a refusal, no JSON":   {reply(403, `no`, "Content-Type", "text/plain"), 0},
		"another kind of fail": {reply(404, `{"message":"Not Found"}`, "X-RateLimit-Remaining", "7", "X-RateLimit-Reset", "60"), 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // it begins at 2000-01-01, 946684800
				s := &script{do: func(n int, r *http.Request) (*http.Response, error) {
					if n == 0 {
						return c.answer, nil
					}
					return reply(200, `{"number":1}`), nil
				}}
				client := forged(t, s)
				page, err := get(t, client, "/issues/1")
				if c.wait == 0 {
					if err != nil || page.Status != c.answer.StatusCode || client.Health().State != "ok" {
						t.Fatalf("%+v, %v, %+v", page, err, client.Health())
					}
					if _, err := get(t, client, "/issues/2"); err != nil {
						t.Fatalf("another path: %v", err)
					}
					return
				}
				if e := failure(t, err); e.Why != understudy.FailLimited || e.RetryAfter != c.wait || e.Page == nil {
					t.Fatalf("%+v", e)
				}
				// Nothing goes out before its time: reads, writes and background work.
				for at := time.Duration(0); at < c.wait; at += c.wait / 8 {
					e := failure(t, second(get(t, client, fmt.Sprintf("/issues/%d", 2+at))))
					if left := c.wait - at; e.RetryAfter != left {
						t.Fatalf("after %v a reader is told to wait %v", at, e.RetryAfter)
					}
					_, err := client.Write(t.Context(), request.Write{Method: "POST", Target: target(t, client, "/issues")})
					_ = failure(t, err)
					_, err = client.Fetch(t.Context(), request.Fetch{Target: target(t, client, "/issues"), Reason: request.Sync})
					_ = failure(t, err)
					if h := client.Health(); h.State != "limited" || s.count() != 1 {
						t.Fatalf("after %v: %d requests, %+v", at, s.count(), h)
					}
					time.Sleep(c.wait / 8)
				}
				if _, err := get(t, client, "/issues/1"); err != nil || client.Health().State != "ok" {
					t.Fatalf("after the wait: %v, %+v", err, client.Health())
				}
			})
		})
	}
}

func second(_ *understudy.Page, err error) error { return err }

// A write that is refused is its caller's to read; one that met a limit holds all others.
func TestRefusedWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := []*http.Response{reply(403, `{"message":"Must have push access"}`), reply(403, `{}`, "Retry-After", "5")}
		s := &script{do: func(n int, r *http.Request) (*http.Response, error) { return answers[n], nil }}
		c := forged(t, s)
		w := request.Write{Method: "POST", Target: target(t, c, "/issues")}
		for i := range answers {
			page, err := c.Write(t.Context(), w)
			if err != nil || page.Status != 403 {
				t.Fatalf("write %d: %+v, %v", i, page, err)
			}
		}
		if h := c.Health(); h.State != "limited" {
			t.Errorf("%+v", h)
		}
		if e := failure(t, second(c.Write(t.Context(), w))); e.RetryAfter != 5*time.Second || s.count() != 2 {
			t.Errorf("%+v after %d requests", e, s.count())
		}
	})
}

// A good answer after which nothing remains is the last one until the window ends, unless it
// is of a lesser limit.
func TestTheLastRequestOfAWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		header := []string{"X-RateLimit-Limit", "60", "X-RateLimit-Remaining", "1", "X-RateLimit-Reset", "30", "X-RateLimit-Resource", "core"}
		s := &script{do: func(int, *http.Request) (*http.Response, error) { return reply(200, `{"number":1}`, header...), nil }}
		c := forged(t, s)
		ask := func() error { return second(get(t, c, "/issues/1")) }
		if err := ask(); err != nil || c.Health().State != "ok" {
			t.Fatal(err, c.Health())
		}
		header = []string{"X-RateLimit-Limit", "10", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "9", "X-RateLimit-Resource", "search"}
		if err := ask(); err != nil || c.Health().State != "ok" {
			t.Fatal(err, c.Health())
		}
		header = []string{"X-RateLimit-Limit", "60", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "30", "X-RateLimit-Resource", "core"}
		if err := ask(); err != nil || c.Health().State != "limited" {
			t.Fatal(err, c.Health())
		}
		if e := failure(t, ask()); e.RetryAfter != 30*time.Second || s.count() != 3 {
			t.Errorf("%+v after %d requests", e, s.count())
		}
		header[3] = "59"
		time.Sleep(30 * time.Second)
		if err := ask(); err != nil || c.Health().State != "ok" {
			t.Error(err, c.Health())
		}
	})
}

// The upstream of this test takes so many requests at once and refuses more. Nobody has told
// us how many; soon nearly as many are sent, and few more.
func TestConcurrencyFindsTheKnee(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const took = 100 * time.Millisecond
		var mu sync.Mutex
		var now, knee, good, refused int
		knee = 7
		s := &script{do: func(_ int, r *http.Request) (*http.Response, error) {
			mu.Lock()
			over := now >= knee
			if over {
				refused++
			} else {
				now++
			}
			mu.Unlock()
			if over {
				return reply(429, `{}`), nil
			}
			if err := sleep(r.Context(), took); err != nil {
				return nil, err
			}
			mu.Lock()
			now--
			good++
			mu.Unlock()
			return reply(200, `{"number":1}`), nil
		}}
		c := forged(t, s, func(o *Options) { o.Rate, o.Concurrency = 10000, 40 })
		ctx, end := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for i := range 60 {
			at := target(t, c, fmt.Sprintf("/issues/%d", i))
			wg.Go(func() {
				for ctx.Err() == nil {
					if _, err := c.Fetch(ctx, request.Fetch{Target: at, Retry: time.Second}); err != nil {
						_ = sleep(ctx, throttle.KeyPause)
					}
				}
			})
		}
		for _, takes := range []int{7, 15, 4} {
			mu.Lock()
			knee = takes
			mu.Unlock()
			time.Sleep(20 * time.Second) // to find it
			mu.Lock()
			good, refused = 0, 0
			mu.Unlock()
			time.Sleep(20 * time.Second)
			mu.Lock()
			most := int(20*time.Second/took) * takes
			if good < most*8/10 || refused > good/10 {
				t.Errorf("of %d answers at most %d came, with %d refusals; %d at once", most, good, refused, c.Queue().AtOnce)
			}
			mu.Unlock()
			if n := c.Queue().AtOnce; n < takes/2 || n > takes+1 {
				t.Errorf("%d at once where upstream takes %d", n, takes)
			}
		}
		end()
		wg.Wait()
	})
}

// A content costs of the limit what a page does.
func TestContentsTellOfLimits(t *testing.T) {
	var s seen
	srv := s.serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "audio/x-wav")
		w.Header().Set("X-RateLimit-Limit", "60")
		w.Header().Set("X-RateLimit-Remaining", "0")
		w.Header().Set("X-RateLimit-Reset", "30")
	})
	c := scripted(t, nil, at(srv.URL))
	m, err := openAudio(t, c)
	if err != nil {
		t.Fatal(err)
	}
	_ = m.Close()
	if q, h := c.Queue(), c.Health(); h.State != "limited" || q.Window != 60 || q.Left != 0 {
		t.Errorf("%+v, %+v", h, q)
	}
}
