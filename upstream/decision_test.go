// Decision: limits that are waited for, and refusals that are about one path.

package upstream

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/sample"
	"understudy/kit/retry"
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
limits: {statuses: [403], words: [secondary rate limit], concurrent: Concurrent-Requests}
kinds:
  - name: issues
    id: [number]
    lists: [{path: /issues}]
    instances: [{path: "/issues/{n}", id: [n]}]
    fields: [{name: number, type: int}]
  - name: finds
    id: [number]
    lists: [{path: /search}]
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
	t.Parallel()
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
					checktest.MustNoError(t, err, "page %+v", page)
					checktest.MustEqual(t, page.Status, c.answer.StatusCode, "page.Status")
					checktest.MustEqual(t, client.Health().State, "ok", "client.Health().State; page %+v", page)
					if _, err := get(t, client, "/issues/2"); err != nil {
						t.Fatalf("another path: %v", err)
					}
					return
				}
				{
					e := failure(t, err)
					checktest.MustEqual(t, e.Why, understudy.FailLimited, "e.Why")
					checktest.MustEqual(t, e.RetryAfter, c.wait, "e.RetryAfter")
					checktest.MustTrue(t, e.Page != nil, "e.Page is nil")
				}
				// Nothing goes out before its time: reads, writes and background work.
				for at := time.Duration(0); at < c.wait; at += c.wait / 8 {
					e := failure(t, second(get(t, client, fmt.Sprintf("/issues/%d", 2+at))))
					if left := c.wait - at; e.RetryAfter != left {
						t.Fatalf("after %v a reader is told to wait %v", at, e.RetryAfter)
					}
					_, err := client.Write(t.Context(), request.Write{Method: "POST", Target: target(t, client, "/issues")})
					_ = failure(t, err)
					_, err = client.Fetch(t.Context(), request.Fetch{Target: target(t, client, "/issues"), Reason: request.ReasonSync})
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
	t.Parallel()
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

// A good answer after which nothing remains is the last one until the window ends, of those
// that count for the same limit.
func TestTheLastRequestOfAWindow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		header := []string{"X-RateLimit-Limit", "60", "X-RateLimit-Remaining", "1", "X-RateLimit-Reset", "30", "X-RateLimit-Resource", "core"}
		s := &script{do: func(int, *http.Request) (*http.Response, error) { return reply(200, `{"number":1}`, header...), nil }}
		c := forged(t, s)
		ask := func() error { return second(get(t, c, "/issues/1")) }
		if err := ask(); err != nil || c.Health().State != "ok" {
			t.Fatal(err, c.Health())
		}
		header = []string{"X-RateLimit-Limit", "10", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "9", "X-RateLimit-Resource", "search"}
		if err := second(get(t, c, "/issues")); err != nil || c.Health().State != "ok" {
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

// resourceful is an upstream with a limit for searches and another for all else, each of so
// many requests a minute.
type resourceful struct {
	mu     sync.Mutex
	limits map[string]int
	left   map[string]int // by limit and secret
	end    time.Time
	over   map[string]int // refused
	used   string         // this limit is used up by others
}

func (q *resourceful) do(_ int, r *http.Request) (*http.Response, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if now := time.Now(); !now.Before(q.end) {
		q.left, q.end = map[string]int{}, now.Add(time.Minute)
	}
	of := "core"
	if strings.HasPrefix(r.URL.Path, "/search") || strings.HasPrefix(r.URL.Path, "/nobody/names") {
		of = "search"
	}
	key := of + r.Header.Get("Authorization")
	if q.used == of {
		q.left[key] = 0
	} else if _, known := q.left[key]; !known {
		q.left[key] = q.limits[of]
	}
	status, body := 200, `{"number":1}`
	if q.left[key]--; q.left[key] < 0 {
		q.left[key], status, body = 0, 403, `{"message":"API rate limit exceeded"}`
		q.over[of]++
	}
	return reply(status, body, "X-RateLimit-Limit", strconv.Itoa(q.limits[of]), "X-RateLimit-Remaining", strconv.Itoa(q.left[key]),
		"X-RateLimit-Reset", strconv.FormatInt(q.end.Unix(), 10), "X-RateLimit-Resource", of), nil
}

// TestTheOnlyKnownLimitHoldsItsOwnPlace uses up the only limit that answers have told of. A list that was not asked
// yet may count for another one, so its first request goes out.
func TestTheOnlyKnownLimitHoldsItsOwnPlace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		up := &resourceful{limits: map[string]int{"core": 500, "search": 1}, over: map[string]int{}}
		c := forged(t, &script{do: up.do})
		if _, err := get(t, c, "/search?q=1"); err != nil {
			t.Fatal(err)
		}
		if e := failure(t, second(get(t, c, "/search?q=2"))); e.LimitName != "search" || e.Why != understudy.FailLimited {
			t.Fatalf("%+v", e)
		}
		if h := c.Health(); h.State != "ok" {
			t.Errorf("health: %+v", h)
		}
		if _, err := get(t, c, "/issues/1"); err != nil {
			t.Error("a place that has not been asked:", err)
		}
		if up.over["search"]+up.over["core"] != 0 {
			t.Errorf("%v were sent in vain", up.over)
		}
	})
}

// A limit that is used up holds the requests that count for it, which answers have told, and
// no others: not of readers, writes or background work. So it is with a pool of secrets.
func TestLimitsOfResources(t *testing.T) {
	t.Parallel()
	for _, pool := range []int{1, 3} {
		t.Run(strconv.Itoa(pool), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const searches = 10
				up := &resourceful{limits: map[string]int{"core": 500, "search": searches}, over: map[string]int{}}
				s := &script{do: up.do}
				c := forged(t, s, func(o *Options) {
					for i := 1; i < pool; i++ {
						o.Pool = append(o.Pool, understudy.NewSecret(fmt.Sprint("another-secret-", i)))
					}
					o.Rate = 1000
				})
				if _, err := get(t, c, "/issues/1"); err != nil {
					t.Fatal(err)
				}
				for i := range pool * searches { // of paths that the spec names and that it does not
					if _, err := get(t, c, []string{"/search?q=1", "/nobody/names"}[i%2]); err != nil {
						t.Fatalf("search %d: %v", i, err)
					}
				}
				time.Sleep(20 * time.Second)
				sent := s.count()
				for _, path := range []string{"/search?q=2", "/nobody/names"} {
					e := failure(t, second(get(t, c, path)))
					checktest.MustEqual(t, e.Why, understudy.FailLimited, "%s: e.Why", path)
					checktest.MustEqual(t, e.RetryAfter, 40*time.Second, "%s: e.RetryAfter", path)
					checktest.MustEqual(t, e.LimitName, "search", "%s: e.LimitName", path)
					checktest.MustEqual(t, s.count(), sent, "%s: s.count()", path)
					_, err := c.Fetch(t.Context(), request.Fetch{Target: target(t, c, path), Reason: request.ReasonPoll})
					_ = failure(t, err)
				}
				for i := range 50 {
					if _, err := get(t, c, fmt.Sprint("/issues/", i)); err != nil {
						t.Fatalf("issue %d: %v", i, err)
					}
					if _, err := c.Fetch(t.Context(), request.Fetch{Target: target(t, c, "/issues"), Reason: request.ReasonPoll}); err != nil {
						t.Fatalf("poll %d: %v", i, err)
					}
				}
				if _, err := c.Write(t.Context(), request.Write{Method: "POST", Target: target(t, c, "/issues")}); err != nil {
					t.Fatal(err)
				}
				q, h := c.Queue().Windows, c.Health()
				checktest.MustEqual(t, len(q), 2, "len(q)")
				checktest.Equal(t, q[0].LimitName, "core", "q[0].Of")
				checktest.Equal(t, q[1].LimitName, "search", "q[1].Of")
				checktest.Equal(t, q[1].Left, 0, "q[1].Left")
				checktest.Equal(t, q[0].Limit, int64(500*pool), "q[0].Limit")
				checktest.Equal(t, h.State, "ok", "h.State")
				time.Sleep(40 * time.Second)
				if _, err := get(t, c, "/search?q=3"); err != nil {
					t.Error("in the next minute:", err)
				}
				if up.over["search"]+up.over["core"] != 0 {
					t.Errorf("%v were sent in vain", up.over)
				}
				// The other way round: with core used up, searches go on, and health says it.
				up.mu.Lock()
				up.used = "core"
				up.mu.Unlock()
				for range pool {
					_ = failure(t, second(get(t, c, "/issues/1")))
					time.Sleep(time.Second)
				}
				if _, err := get(t, c, "/search?q=4"); err != nil || c.Health().State != "limited" {
					t.Error(err, c.Health())
				}
				if e := failure(t, second(get(t, c, "/issues/2"))); e.Why != understudy.FailDown || e.LimitName != "" {
					t.Errorf("%+v", e)
				}
			})
		})
	}
}

// Background work of a limit of which little remains waits, and that of others goes past it.
func TestSharesOfResources(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		up := &resourceful{limits: map[string]int{"core": 500, "search": 30}, over: map[string]int{}}
		c := forged(t, &script{do: up.do}, func(o *Options) { o.Rate = 5 })
		poll := func(path string) error {
			_, err := c.Fetch(t.Context(), request.Fetch{Target: target(t, c, path), Reason: request.ReasonPoll})
			return err
		}
		var wg sync.WaitGroup
		var searched, listed int
		began := time.Now()
		wg.Go(func() {
			for time.Since(began) < time.Minute-time.Second {
				if err := poll("/search?q=1"); err != nil {
					t.Error(err)
				}
				searched++
			}
		})
		wg.Go(func() {
			for time.Since(began) < time.Minute-time.Second {
				if err := poll("/issues"); err != nil {
					t.Error(err)
				}
				listed++
			}
		})
		wg.Wait()
		// At 5 a second 290 go out, and searches get 27 of 30.
		checktest.True(t, searched >= 24, "searched is %v, want >= 24", searched)
		checktest.True(t, searched <= 28, "searched is %v, want <= 28", searched)
		checktest.True(t, listed >= 230, "listed is %v, want >= 230", listed)
		checktest.True(t, up.over["search"]+up.over["core"] <= 0,
			`up.over["search"]+up.over["core"] is %v, want <= 0`, up.over["search"]+up.over["core"])
	})
}

// An upstream that tells of ever new limits is no burden, and each of them is heeded.
func TestManyResources(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{do: func(n int, _ *http.Request) (*http.Response, error) {
			return reply(200, `{"number":1}`, "X-RateLimit-Limit", "10", "X-RateLimit-Remaining", "5", "X-RateLimit-Reset", "9",
				"X-RateLimit-Resource", fmt.Sprint("limit-", n)), nil
		}}
		c := forged(t, s, func(o *Options) { o.Rate = 1e6 })
		for i := range 3000 {
			if _, err := get(t, c, fmt.Sprint("/nobody/names/", i)); err != nil {
				t.Fatal(err)
			}
		}
		if windows, places := len(c.Queue().Windows), len(c.resources.places); windows > throttle.MaxLimits+1 || places > maxPlaces {
			t.Errorf("%d limits of %d places are kept", windows, places)
		}
	})
}

// The upstream of this test takes so many requests at once and refuses more. Nobody has told
// us how many; soon nearly as many are sent, and few more. Where it counts them, it gets as
// many as it takes. Where it lets more wait, latency shows it.
func TestConcurrencyFindsTheKnee(t *testing.T) {
	for name, least := range map[string]int{"untold": 80, "Concurrent-Requests": 97, queues: 90} { // percent of what it takes
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testKnee(t, name, least)
		})
	}
}

// queues is an upstream that lets requests wait.
const queues = "queues"

func testKnee(t *testing.T, field string, least int) {
	synctest.Test(t, func(t *testing.T) {
		const took = 100 * time.Millisecond
		var mu sync.Mutex
		var now, knee, good, refused int
		knees := []int{7, 15, 4}
		knee = knees[0]
		find, above := 20*time.Second, func(int) int { return 1 }
		if field == queues { // most of the requests; package throttle has tests of a queue whose length changes
			knees = knees[:sample.Count(1, 3)]
			find, above = 2*time.Minute, func(takes int) int { return takes / 2 }
		}
		var waiting []chan struct{}
		next := func() { // the lock is held
			for ; now < knee && len(waiting) > 0; now++ {
				close(waiting[0])
				waiting = waiting[1:]
			}
		}
		s := &script{do: func(int, *http.Request) (*http.Response, error) {
			mu.Lock()
			over := now >= knee
			turn := make(chan struct{})
			switch {
			case !over:
				now++
				close(turn)
			case field == queues:
				waiting, over = append(waiting, turn), false
			default:
				refused++
				close(turn)
			}
			counted := strconv.Itoa(now + 1)
			mu.Unlock()
			<-turn
			if over {
				return reply(429, `{}`, field, counted), nil
			}
			time.Sleep(took)
			mu.Lock()
			now--
			good++
			next()
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
					if _, err := c.Fetch(ctx, request.Fetch{Target: at, RetryWindow: time.Second}); err != nil {
						_ = retry.Wait(ctx, throttle.KeyPause)
					}
				}
			})
		}
		for _, takes := range knees {
			mu.Lock()
			knee = takes
			next()
			mu.Unlock()
			time.Sleep(find)
			mu.Lock()
			good, refused = 0, 0
			mu.Unlock()
			time.Sleep(20 * time.Second)
			mu.Lock()
			most := int(20*time.Second/took) * takes
			if good < most*least/100 || refused > good/10 {
				t.Errorf("of %d answers at most %d came, with %d refusals; %d at once", most, good, refused, c.Queue().AtOnce)
			}
			mu.Unlock()
			if n := c.Queue().AtOnce; n < takes/2 || n > takes+above(takes) {
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
	q, h := c.Queue(), c.Health()
	checktest.Equal(t, h.State, "limited", "h.State")
	checktest.MustEqual(t, len(q.Windows), 1, "len(q.Windows)")
	checktest.Equal(t, q.Windows[0].Limit, 60, "q.Windows[0].Limit")
	checktest.Equal(t, q.Windows[0].Left, 0, "q.Windows[0].Left")
}
