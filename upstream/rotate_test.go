// Credentials that are refused and replaced, and a key that fails alone.

package upstream

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"understudy"
	"understudy/upstream/throttle"
)

func TestWrongCredential(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log, out := loud()
		f := &faulty{}
		f.status.Store(401)
		s := &script{do: f.do}
		c := scripted(t, s, func(o *Options) { o.Logger = log })
		var wg sync.WaitGroup
		ctx, cancel := context.WithCancel(t.Context())
		defer wg.Wait()
		defer cancel()
		wg.Go(func() { _ = c.Run(ctx) })
		if _, err := get(t, c, callsPath); failure(t, err).Why != understudy.FailCredential {
			t.Fatal(err)
		}
		if h := c.Health(); h.State != "credential" || !strings.Contains(h.Why, "401") {
			t.Errorf("%+v", h)
		}
		n := s.count()
		if _, err := get(t, c, call(1)); failure(t, err).Why != understudy.FailCredential || s.count() != n {
			t.Errorf("%v, %d requests", err, s.count()-n)
		}
		for range 30 {
			before := s.count()
			time.Sleep(time.Minute)
			if synctest.Wait(); s.count() == before {
				t.Fatal("a minute without a probe")
			}
		}
		if s.count() > 50 {
			t.Errorf("%d requests in half an hour", s.count())
		}
		// A new credential is tried at once.
		f.status.Store(200)
		before := s.count()
		c.SetCredential("", understudy.NewSecret("a-new-token"))
		if synctest.Wait(); s.count() != before+1 {
			t.Errorf("%d requests as soon as there is a new credential, want the one probe", s.count()-before)
		}
		if h := c.Health(); h.State != "ok" {
			t.Errorf("%+v", h)
		}
		if _, err := get(t, c, callsPath); err != nil {
			t.Error(err)
		}
		if strings.Count(out.String(), "upstream is failing; requests pause") != 1 {
			t.Errorf("logged: %s", out)
		}
	})
}

// A refusal of the former credential that arrives after the new one is no failure: the
// request is sent again.
func TestCredentialReplacedUnderWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{do: slow(time.Second, func(_ int, r *http.Request) (*http.Response, error) {
			if _, password, _ := r.BasicAuth(); password != "a-new-token" {
				return reply(401, `{}`), nil
			}
			return reply(200, emptyCalls), nil
		})}
		c := scripted(t, s)
		time.AfterFunc(500*time.Millisecond, func() { c.SetCredential("", understudy.NewSecret("a-new-token")) })
		if _, err := get(t, c, callsPath); err != nil {
			t.Error(err)
		}
		if h := c.Health(); h.State != "ok" || s.count() != 2 {
			t.Errorf("%+v after %d requests", h, s.count())
		}
	})
}

// One key that fails all the time, while nothing else is asked, makes the
// source look down; the probe that finds it well is never that key's, and a
// reader of another key is let in when one is due.
func TestOneBadKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{do: func(_ int, r *http.Request) (*http.Response, error) {
			if strings.Contains(r.URL.Path, "CA1") {
				return reply(500, `{}`), nil
			}
			return reply(200, emptyCalls), nil
		}}
		c := scripted(t, s)
		if _, err := get(t, c, callsPath); err != nil {
			t.Fatal(err)
		}
		for range throttle.TriesDown {
			_, _ = get(t, c, call(1))
			time.Sleep(throttle.KeyPause)
		}
		if h := c.Health(); h.State != "down" {
			t.Fatalf("%+v", h)
		}
		time.Sleep(2 * throttle.ProbeMin)
		n := s.count()
		if _, err := get(t, c, call(1)); failure(t, err).Why != understudy.FailDown || s.count() != n {
			t.Errorf("the bad key was the probe: %v", err)
		}
		if _, err := get(t, c, callsPath); err != nil {
			t.Errorf("another key: %v", err)
		}
		if h := c.Health(); h.State != "ok" {
			t.Errorf("%+v", h)
		}
		// The same without a reader, with Run alone.
		for range throttle.TriesDown {
			_, _ = get(t, c, call(1))
			time.Sleep(throttle.KeyPause)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { _ = c.Run(ctx) })
		time.Sleep(2 * throttle.ProbeMin)
		if h := c.Health(); h.State != "ok" {
			t.Errorf("%+v", h)
		}
		cancel()
		wg.Wait()
	})
}
