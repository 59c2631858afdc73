// Fetch: tries, waits and notifications, in bubbles.

package upstream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/request"
	"understudy/upstream/body"
)

// failing answers with each status in turn, then well; 0 is a refused
// connection.
func failing(statuses ...int) func(int, *http.Request) (*http.Response, error) {
	return func(n int, r *http.Request) (*http.Response, error) {
		switch {
		case n >= len(statuses):
			return well(n, r)
		case statuses[n] == 0:
			return refused(n, r)
		}
		return reply(statuses[n], `{"status":`+fmt.Sprint(statuses[n])+`}`), nil
	}
}

func TestRetries(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		statuses []int
		retry    time.Duration
		tries    int
		ok       bool
	}{
		{"one try", []int{503}, 0, 1, false},
		{"503", []int{503}, 8 * time.Second, 2, true},
		{"all that may be tried again", []int{0, 429, 500, 502, 503, 504}, 30 * time.Second, 7, true},
		{"401", []int{401}, 8 * time.Second, 1, false},
		{"403", []int{403}, 8 * time.Second, 1, false},
		{"302", []int{302}, 8 * time.Second, 1, false},
		{"404 is an answer", []int{404}, 8 * time.Second, 1, true},
		{"400 is an answer", []int{400}, 8 * time.Second, 1, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{do: failing(c.statuses...)}
				client := scripted(t, s)
				var told []*understudy.UpstreamError
				page, err := client.Fetch(t.Context(), request.Fetch{
					Target: target(t, client, callsPath), RetryWindow: c.retry, OnRetry: func(e *understudy.UpstreamError) { told = append(told, e) },
				})
				checktest.Equal(t, (err == nil), c.ok, "(err == nil)")
				checktest.True(t, (page == nil) != c.ok, "page == nil is %v; %v", page == nil, err)
				checktest.Equal(t, s.count(), c.tries, "s.count(); %v", err)
				checktest.Equal(t, len(told), c.tries-1, "len(told); %v", err)
				for i, e := range told {
					if e.Status != c.statuses[i] {
						t.Errorf("told %d: %v", i, e)
					}
				}
				failed := int64(c.tries)
				if c.ok {
					failed--
				}
				st := client.Stats()
				checktest.Equal(t, st.Requests, int64(c.tries), "st.Requests")
				checktest.Equal(t, st.Errors, failed, "st.Errors")
				checktest.Equal(t, st.ByReason[request.ReasonWaiting], st.Requests,
					"st.ByReason[request.ReasonWaiting]")
			})
		})
	}
}

// A final failure is an error at its time, with the last answer, never nil.
func TestRetriesEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{do: func(int, *http.Request) (*http.Response, error) { return reply(503, `{"status":503}`), nil }}
		c := scripted(t, s)
		start := time.Now()
		_, err := c.Fetch(t.Context(), request.Fetch{Target: target(t, c, callsPath), RetryWindow: 8 * time.Second})
		e := failure(t, err)
		d := time.Since(start)
		checktest.True(t, d <= 8*time.Second, "d is %v; %v", d, err)
		checktest.Equal(t, e.Status, 503, "e.Status; %v", err)
		checktest.MustTrue(t, e.Page != nil, "e.Page is nil; %v", err)
		checktest.True(t, s.count() >= 3, "s.count() < 3; %v", err)
		for i := 1; i < len(s.at); i++ {
			if gap := s.at[i] - s.at[i-1]; gap > min(minBackOff<<(i-1), maxBackOff)+time.Millisecond {
				t.Errorf("%v before try %d", gap, i)
			}
		}
	})
}

func TestRetryHonoursRetryAfter(t *testing.T) {
	t.Parallel()
	for _, status := range []int{429, 503} {
		synctest.Test(t, func(t *testing.T) {
			s := &script{do: func(n int, r *http.Request) (*http.Response, error) {
				if n == 0 {
					return reply(status, `{}`, "Retry-After", "3"), nil
				}
				return well(n, r)
			}}
			c := scripted(t, s)
			_, err := c.Fetch(t.Context(), request.Fetch{Target: target(t, c, callsPath), RetryWindow: 8 * time.Second})
			if err != nil || s.at[1] != 3*time.Second {
				t.Errorf("%v, tried at %v", err, s.at)
			}
		})
	}
	// Not inside the time for tries, or the caller's: no waiting for nothing.
	synctest.Test(t, func(t *testing.T) {
		s := &script{do: func(int, *http.Request) (*http.Response, error) {
			return reply(503, `{}`, "Retry-After", "9"), nil
		}}
		c := scripted(t, s)
		start := time.Now()
		_, err := c.Fetch(t.Context(), request.Fetch{Target: target(t, c, callsPath), RetryWindow: 8 * time.Second})
		if e := failure(t, err); e.RetryAfter != 9*time.Second || time.Since(start) != 0 {
			t.Errorf("%+v after %v", e, time.Since(start))
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s := &script{do: func(int, *http.Request) (*http.Response, error) {
			return reply(503, `{}`, "Retry-After", "5"), nil
		}}
		c := scripted(t, s)
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()
		start := time.Now()
		_, err := c.Fetch(ctx, request.Fetch{Target: target(t, c, callsPath), RetryWindow: 8 * time.Second})
		if e := failure(t, err); e.Status != 503 || time.Since(start) != 0 {
			t.Errorf("%+v after %v", e, time.Since(start))
		}
	})
}

func TestDeadlinesOfOurOwn(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		change func(*Options)
		want   time.Duration
		text   string
	}{
		{func(o *Options) { o.FirstByte = 2 * time.Second; o.Connect = time.Second }, 3 * time.Second,
			"upstream did not start to answer within 2s"},
		{func(o *Options) { o.Total = 4 * time.Second }, 4 * time.Second, "the answer was not complete within 4s"},
		{func(*Options) {}, 30 * time.Second, "within"},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &script{do: slow(time.Hour, well)}
			client := scripted(t, s, c.change)
			start := time.Now()
			_, err := get(t, client, callsPath)
			e := failure(t, err)
			checktest.Equal(t, e.Why, understudy.FailUnreachable, "e.Why; %v", err)
			checktest.Equal(t, time.Since(start), c.want, "time.Since(start); %v", err)
			checktest.True(t, contains(err, c.text), "contains(err, c.text) is false")
		})
	}
}

// The caller's deadline and departure are the caller's: no failure of the
// source.
func TestCallersDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{do: slow(10*time.Second, well)}
		c := scripted(t, s)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		start := time.Now()
		_, err := c.Fetch(ctx, request.Fetch{Target: target(t, c, callsPath), RetryWindow: 8 * time.Second})
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 2*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		h, st := c.Health(), c.Stats()
		checktest.Equal(t, h.State, "ok", "h.State")
		checktest.Equal(t, st.Errors, 0, "st.Errors")
		checktest.Equal(t, st.Requests, 1, "st.Requests")
		if _, err := get(t, c, callsPath); err != nil {
			t.Errorf("the key must not wait: %v", err)
		}
	})
}

func TestAgain(t *testing.T) {
	for _, c := range []struct {
		e    understudy.UpstreamError
		want bool
	}{
		{understudy.UpstreamError{Why: understudy.FailUnreachable, Err: syscall.ECONNRESET}, true},
		{understudy.UpstreamError{Why: understudy.FailUnusable, Err: fmt.Errorf("the body: %w", body.ErrCut)}, true},
		{understudy.UpstreamError{Why: understudy.FailUnusable, Err: body.ErrTooLarge}, false},
		{understudy.UpstreamError{Why: understudy.FailDown}, false},
		{understudy.UpstreamError{Why: understudy.FailCredential}, false},
	} {
		if isRetryable(&c.e) != c.want {
			t.Errorf("%v: not %v", &c.e, c.want)
		}
	}
}
