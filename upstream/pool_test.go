// Pool: several secrets whose limits add up, and tokens that end.

package upstream

import (
	"context"
	"errors"
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
	"understudy/kit/retry"
	"understudy/request"
	"understudy/upstream/tokens"
)

// quotas is an upstream that takes so many requests of each token in a minute, as GitHub
// counts them.
type quotas struct {
	limit int
	mu    sync.Mutex
	left  map[string]int
	end   time.Time
	void  map[string]bool // tokens that are refused
	used  map[string]int
}

func (q *quotas) do(_ int, r *http.Request) (*http.Response, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	token, now := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), time.Now()
	if !now.Before(q.end) {
		q.left, q.end = map[string]int{}, now.Add(time.Minute)
	}
	if q.void[token] {
		return reply(401, `{}`), nil
	}
	if _, ok := q.left[token]; !ok {
		q.left[token] = q.limit
	}
	if q.used == nil {
		q.used = map[string]int{}
	}
	q.used[token]++
	header := func() []string {
		return []string{"X-RateLimit-Limit", strconv.Itoa(q.limit), "X-RateLimit-Remaining", strconv.Itoa(max(0, q.left[token])),
			"X-RateLimit-Reset", strconv.FormatInt(q.end.Unix(), 10)}
	}
	if q.left[token]--; q.left[token] < 0 {
		return reply(403, `{"message":"API rate limit exceeded"}`, header()...), nil
	}
	return reply(200, `{"number":1}`, header()...), nil
}

func TestLimitsOfAPoolAddUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := &quotas{limit: 20, void: map[string]bool{}}
		s := &script{do: q.do}
		c := forged(t, s, func(o *Options) {
			o.Rate, o.Secret = 1000, understudy.NewSecret("token-number-0")
			o.Pool = []understudy.Secret{understudy.NewSecret("token-number-1"), understudy.NewSecret("token-number-2")}
		})
		for i := range 60 {
			if _, err := get(t, c, fmt.Sprintf("/issues/%d", i)); err != nil {
				t.Fatalf("request %d of 60: %v", i, err)
			}
		}
		got := q.used
		checktest.Equal(t, got["token-number-0"], 20, `got["token-number-0"]`)
		checktest.Equal(t, got["token-number-1"], 20, `got["token-number-1"]`)
		checktest.Equal(t, got["token-number-2"], 20, `got["token-number-2"]`)
		// Now all are at their limit, and nothing goes out until a window ends.
		e := failure(t, second(get(t, c, "/issues/60")))
		checktest.True(t, e.RetryAfter >= 55*time.Second, "e.RetryAfter is %v", e.RetryAfter)
		checktest.Equal(t, s.count(), 60, "s.count()")
		checktest.Equal(t, c.Health().State, "limited", "c.Health().State")
		time.Sleep(time.Minute)
		// One token is revoked. No request is lost, reads or writes.
		q.void["token-number-1"] = true
		for i := range 30 {
			if _, err := get(t, c, fmt.Sprintf("/issues/%d", i)); err != nil {
				t.Fatalf("request %d: %v", i, err)
			}
			if i%5 == 0 {
				w := request.Write{Method: "POST", Target: target(t, c, "/issues")}
				if page, err := c.Write(t.Context(), w); err != nil || page.Status != 200 {
					t.Fatalf("write %d: %v", i, err)
				}
			}
		}
		if h := c.Health(); h.State != "ok" || s.count() != 60+36+1 {
			t.Errorf("%+v, %d requests", h, s.count())
		}
		// When all are refused the source is.
		q.void["token-number-0"], q.void["token-number-2"] = true, true
		if e := failure(t, second(get(t, c, "/issues/1"))); e.Why != understudy.FailCredential || c.Health().State != "credential" {
			t.Errorf("%+v, %+v", e, c.Health())
		}
	})
}

// One token's limit was reached by others; the next token answers the same request.
func TestALimitOfOneTokenIsNoFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{do: func(_ int, r *http.Request) (*http.Response, error) {
			if strings.HasSuffix(r.Header.Get("Authorization"), "token-number-0") {
				return reply(403, `{}`, "Retry-After", "30"), nil
			}
			return reply(200, `{"number":1}`), nil
		}}
		c := forged(t, s, func(o *Options) {
			o.Secret, o.Pool = understudy.NewSecret("token-number-0"), []understudy.Secret{understudy.NewSecret("token-number-1")}
		})
		for i := range 10 {
			if _, err := get(t, c, fmt.Sprintf("/issues/%d", i)); err != nil || c.Health().State != "ok" {
				t.Fatal(err, c.Health())
			}
		}
		if s.count() != 11 {
			t.Errorf("%d requests", s.count())
		}
	})
}

// mint makes tokens that live an hour.
type mint struct {
	mu   sync.Mutex
	n    int
	err  error
	took time.Duration
}

func (m *mint) Issue(ctx context.Context, secret understudy.Secret) (understudy.Secret, time.Time, error) {
	if err := retry.Wait(ctx, m.took); err != nil {
		return understudy.Secret{}, time.Time{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return understudy.Secret{}, time.Time{}, m.err
	}
	m.n++
	return understudy.NewSecret(fmt.Sprintf("%s-minted-%d", secret.Reveal(), m.n)), time.Now().Add(time.Hour), nil
}

func (m *mint) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.n
}

// An upstream takes only tokens that have not ended. In five hours no request fails, each
// token is made once, and none waits for one but the first.
func TestTokensAreReplacedBeforeTheyEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		born, void := map[string]time.Time{}, ""
		s := &script{do: func(_ int, r *http.Request) (*http.Response, error) {
			mu.Lock()
			defer mu.Unlock()
			token := r.Header.Get("Authorization")
			if _, ok := born[token]; !ok {
				born[token] = time.Now()
			}
			if token == void || time.Since(born[token]) > time.Hour || !strings.HasPrefix(token, "Bearer appsecret-minted-") {
				return reply(401, `{}`), nil
			}
			return reply(200, `{"number":1}`), nil
		}}
		m := &mint{took: 2 * time.Second}
		c := forged(t, s, func(o *Options) { o.Secret, o.Tokens = understudy.NewSecret("appsecret"), m })
		var wg sync.WaitGroup
		for i := range 5 { // together
			wg.Go(func() {
				if _, err := get(t, c, fmt.Sprintf("/issues/%d", i)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if m.count() != 1 {
			t.Errorf("%d tokens for five requests", m.count())
		}
		began := time.Now()
		for i := 0; time.Since(began) < 5*time.Hour; i++ {
			at := time.Now()
			if _, err := get(t, c, fmt.Sprintf("/issues/%d", i%100)); err != nil {
				t.Fatalf("after %v: %v", time.Since(began), err)
			}
			if waited := time.Since(at); waited > 0 {
				t.Errorf("after %v a request waited %v", time.Since(began), waited)
			}
			time.Sleep(7 * time.Second)
		}
		if n := m.count(); n != 6 {
			t.Errorf("%d tokens in five hours", n)
		}
		// One that is revoked before its end costs no request, neither a read nor a write.
		for i := range 2 {
			mu.Lock()
			void = fmt.Sprintf("Bearer appsecret-minted-%d", m.count())
			mu.Unlock()
			var err error
			if i == 0 {
				_, err = get(t, c, "/issues/1")
			} else {
				_, err = c.Write(t.Context(), request.Write{Method: "POST", Target: target(t, c, "/issues")})
			}
			if err != nil || c.Health().State != "ok" {
				t.Errorf("revoked: %v, %+v", err, c.Health())
			}
			time.Sleep(time.Minute)
		}
	})
}

// While no token can be made the one that is there is used to its end. Then readers are told
// why, and the endpoint is not asked for each of them.
func TestNoToken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{do: func(int, *http.Request) (*http.Response, error) { return reply(200, `{"number":1}`), nil }}
		m := &mint{}
		c := forged(t, s, func(o *Options) { o.Secret, o.Tokens = understudy.NewSecret("appsecret"), m })
		if _, err := get(t, c, "/issues/1"); err != nil {
			t.Fatal(err)
		}
		m.err = errors.New("no token: status 503")
		time.Sleep(59 * time.Minute)
		if _, err := get(t, c, "/issues/1"); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		n := s.count()
		if e := failure(t, second(get(t, c, "/issues/1"))); e.Why != understudy.FailUnreachable || !strings.Contains(e.Error(), "503") {
			t.Errorf("%+v", e)
		}
		m.err = &tokens.RefusedError{Status: 400, Code: "invalid_grant"}
		time.Sleep(2 * time.Second)
		{
			e := failure(t, second(get(t, c, "/issues/2")))
			checktest.Equal(t, e.Why, understudy.FailCredential, "e.Why")
			checktest.Contains(t, e.Error(), "invalid_grant", "e.Error()")
			checktest.Equal(t, c.Health().State, "credential", "c.Health().State")
			checktest.Equal(t, s.count(), n, "s.count()")
		}
		m.err = nil
		c.SetCredential("", understudy.NewSecret("newsecret"))
		if _, err := get(t, c, "/issues/2"); err != nil || c.Health().State != "ok" {
			t.Errorf("%v, %+v", err, c.Health())
		}
	})
}
