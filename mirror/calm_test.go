// Calm: a minute without upstream, with the real client between mirror and
// wire. Readers notice as little as may be, upstream is asked as seldom as may
// be, and its return is no stampede.

package mirror

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"understudy"
	"understudy/request"
	"understudy/spec"
	"understudy/upstream"
)

// wire answers every list with no records, or 503, and notes when it was asked.
type wire struct {
	mu   sync.Mutex
	down bool
	at   []time.Time
}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	w.at = append(w.at, time.Now())
	down := w.down
	w.mu.Unlock()
	select {
	case <-time.After(200 * time.Millisecond):
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	status, body := http.StatusOK, `{"calls":[]}`
	if strings.Contains(r.URL.Path, "/Messages.json") {
		body = `{"messages":[]}`
	}
	if down {
		status, body = http.StatusServiceUnavailable, `{"code":20500,"message":"down","status":503}`
	}
	return &http.Response{
		StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: r,
	}, nil
}

func (w *wire) set(down bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = down
}

// since are the requests since then, as times after it.
func (w *wire) since(then time.Time) (after []time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, at := range w.at {
		if !at.Before(then) {
			after = append(after, at.Sub(then))
		}
	}
	return after
}

// wired is a stage whose upstream is the real client over w.
func wired(t *testing.T, w *wire, settings ...setting) *stage {
	t.Helper()
	return open(t, 0, append(settings, func(o *Options) {
		src := o.Sources[0].Source
		c, err := upstream.New(upstream.Options{Source: src, Secret: understudy.NewSecret("token"), Transport: w})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = c.Run(ctx)
		}()
		t.Cleanup(func() { cancel(); <-done; _ = c.Close() })
		o.Sources[0].Upstream = c
	})...)
}

const users = 16

// reloading lets the users reload their pages, each twice a second, for so
// long, and returns the longest any answer took.
func (s *stage) reloading(t *testing.T, targets []*spec.Target, long time.Duration) (slowest time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	var mu sync.Mutex
	var wg sync.WaitGroup
	for user := range users {
		wg.Go(func() {
			time.Sleep(time.Duration(user) * 31 * time.Millisecond)
			for i := user; ctx.Err() == nil; i++ {
				begin := time.Now()
				if _, err := s.Answer(t.Context(), request.Request{Target: targets[i%len(targets)], Flow: uint64(user)}); err != nil {
					t.Errorf("user %d: %v", user, err)
				}
				took := time.Since(begin)
				mu.Lock()
				slowest = max(slowest, took)
				mu.Unlock()
				time.Sleep(500 * time.Millisecond)
			}
		})
	}
	wg.Wait()
	return slowest
}

// TestAMinuteOfOutage: sixteen users reload held pages for a minute while
// upstream answers nothing but 503.
func TestAMinuteOfOutage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ages  Ages
		pages int
		wait  time.Duration // the longest an answer may take: none, or one try
		most  int           // upstream requests in the minute
	}{
		// Five keys fail, or ten tries (and what was under way then); from then
		// on one request a step: after 1, 2, 4, 8, 16 and 32 s.
		"many pages":            {Ages{Newest: 5 * time.Second}, 40, 0, 5 + 7},
		"many, past stale":      {Ages{Newest: time.Second, Stale: time.Second}, 40, 250 * time.Millisecond, 20 + 7},
		"one page":              {Ages{Newest: 5 * time.Second}, 1, 0, 10 + 7},
		"one page, past stale":  {Ages{Newest: time.Second, Stale: time.Second}, 1, 250 * time.Millisecond, 11 + 7},
		"two pages, past stale": {Ages{Newest: time.Second, Stale: time.Second}, 2, 250 * time.Millisecond, 12 + 7},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &wire{}
				s := wired(t, w, polls("calls", "messages"), func(o *Options) { o.Ages = c.ages })
				targets := []*spec.Target{s.newest(t), s.target(t, "Messages.json", "")}
				for n := len(targets); n < c.pages; n++ {
					targets = append(targets, s.target(t, "Calls.json", fmt.Sprintf("From=%d", n)))
				}
				targets = targets[:c.pages]
				for _, target := range targets {
					s.get(t, target)
				}
				usual := s.reloading(t, targets, 20*time.Second)

				w.set(true)
				time.Sleep(300 * time.Millisecond) // what was under way has come
				began := time.Now()
				slowest := s.reloading(t, targets, time.Minute)
				asked := w.since(began)
				t.Logf("usual answers take %v, in the outage %v; %d upstream requests after %v", usual, slowest, len(asked), asked)
				if slowest > c.wait {
					t.Errorf("an answer took %v, want at most %v", slowest, c.wait)
				}
				if len(asked) > c.most {
					t.Errorf("%d upstream requests, want at most %d", len(asked), c.most)
				}
				if len(asked) < 5 {
					t.Errorf("upstream was hardly asked whether it is back: %v", asked)
				}

				w.set(false)
				back := time.Now()
				s.reloading(t, targets, 100*time.Second) // the last probe may be a minute off
				asked = w.since(back)
				t.Logf("after it: %d upstream requests, the first ones after %v", len(asked), asked[:min(len(asked), 30)])
				for i := range asked { // a burst of 10, and 10 a second
					within := 0
					for _, at := range asked[i:] {
						if at < asked[i]+time.Second {
							within++
						}
					}
					if within > 21 {
						t.Fatalf("%d upstream requests within a second of %v after the outage", within, asked[i])
					}
				}
				for _, target := range targets {
					if a := s.get(t, target); a.Age > 25*time.Second {
						t.Errorf("%s is %v old long after the outage", target.Key.URI, a.Age)
					}
				}
			})
		})
	}
}
