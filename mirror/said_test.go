// Said: what upstream says of the age of an answer, where its source goes by that, against
// our own ages.

package mirror

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/request"
	"understudy/spec"
)

// byUpstream has every answer carry fields that say how long it holds, as Name: value.
func byUpstream(fields ...string) setting {
	return func(o *Options) {
		o.Sources[0].Source.UpstreamAges = true
		w := o.Sources[0].Upstream.(*world)
		w.page = func(f request.Fetch) *understudy.Page { return w.saying(f, fields...) }
	}
}

// saying is the world's answer with such fields; the lock is held.
func (w *world) saying(f request.Fetch, fields ...string) *understudy.Page {
	again := w.page
	w.page = nil
	p := w.answer(f)
	w.page = again
	var q understudy.Query
	for _, field := range fields {
		name, value, _ := strings.Cut(field, ": ")
		q = append(q, understudy.Param{Name: understudy.AgeField(name), Value: value})
	}
	p.Header = q.String()
	return p
}

// A record that is in no final state, which is fresh for 30 s by our own ages, answered at
// once for 5 min more, and in an outage for three hours.
func TestTheShorterOfUpstreamsAgesAndOursHolds(t *testing.T) {
	t.Parallel()
	const s, m = time.Second, time.Minute
	for _, c := range []struct {
		said string
		age  time.Duration
		ask  request.Request
		up   string // while upstream is well
		down string // in an outage
	}{
		{"", 29 * s, request.Request{}, "warm", "warm"},
		{"", 31 * s, request.Request{}, "stale", "stale"},
		{"", 6 * m, request.Request{}, "cold", "stale"},
		{"Cache-Control: private", 31 * s, request.Request{}, "stale", "stale"},
		{"Cache-Control: max-age=10", 8 * s, request.Request{}, "warm", "warm"}, // its way took a second
		{"Cache-Control: max-age=10", 9 * s, request.Request{}, "cold", "stale"},
		{"Cache-Control: max-age=10, max-age=100", 11 * s, request.Request{}, "cold", "stale"},
		{"Cache-Control: max-age=10, private", 11 * s, request.Request{}, "cold", "stale"},
		{"Cache-Control: max-age=0", s, request.Request{}, "cold", "stale"},
		{"Cache-Control: max-age=x", s, request.Request{}, "cold", "stale"},
		{"Cache-Control: max-age=3600", 29 * s, request.Request{}, "warm", "warm"},
		{"Cache-Control: max-age=3600", 31 * s, request.Request{}, "stale", "stale"},
		{"Cache-Control: max-age=3600", 6 * m, request.Request{}, "cold", "stale"},
		{"Cache-Control: max-age=100", 98 * s, request.Request{}, "stale", "stale"},
		{"Cache-Control: max-age=100", 99 * s, request.Request{}, "cold", "stale"},
		{"Expires: Thu, 01 Jan 1970 00:00:00 GMT", s, request.Request{}, "cold", "stale"},
		{"Expires: 0", s, request.Request{}, "cold", "stale"},
		{"Cache-Control: max-age=20\nExpires: 0", s, request.Request{}, "warm", "warm"},
		// The second that the answer took counts (RFC 9111, 4.2.3).
		{"Cache-Control: max-age=20\nAge: 15", 3 * s, request.Request{}, "warm", "warm"},
		{"Cache-Control: max-age=20\nAge: 15", 4 * s, request.Request{}, "cold", "stale"},
		{"Cdn-Cache-Control: max-age=10\nCache-Control: max-age=3600", 11 * s, request.Request{}, "cold", "stale"},

		{"Cache-Control: max-age=10, stale-while-revalidate=20", 29 * s, request.Request{}, "stale", "stale"},
		{"Cache-Control: max-age=10, stale-while-revalidate=20", 30 * s, request.Request{}, "cold", "stale"},
		{"Cache-Control: max-age=10, stale-while-revalidate=3600", 6 * m, request.Request{}, "cold", "stale"},
		{"Cache-Control: max-age=10, stale-if-error=20", 29 * s, request.Request{}, "cold", "stale"},
		{"Cache-Control: max-age=10, stale-if-error=20", 30 * s, request.Request{}, "cold", "503"},
		{"Cache-Control: stale-if-error=20", 31 * s, request.Request{}, "stale", "stale"},

		{"Cache-Control: max-age=10, must-revalidate", 8 * s, request.Request{}, "warm", "warm"},
		{"Cache-Control: max-age=10, must-revalidate", 9 * s, request.Request{}, "cold", "503"},
		{"Cache-Control: max-age=10, proxy-revalidate", 9 * s, request.Request{}, "cold", "503"},
		{"Cache-Control: private, max-age=60, s-maxage=10", 9 * s, request.Request{}, "cold", "503"},
		{"Cache-Control: must-revalidate", 29 * s, request.Request{}, "warm", "warm"},
		{"Cache-Control: must-revalidate", 30 * s, request.Request{}, "cold", "503"},
		{"Cache-Control: max-age=3600, must-revalidate", 31 * s, request.Request{}, "stale", "stale"},
		{"Cache-Control: no-cache", s, request.Request{}, "cold", "503"},
		{"Cache-Control: no-cache, max-age=60", s, request.Request{}, "cold", "503"},
		{"Cache-Control: no-cache=\"set-cookie\"", s, request.Request{}, "warm", "warm"},
		{"Cache-Control: no-store", 1, request.Request{}, "cold", "503"},
		{"Cache-Control: no-store, max-age=60", 1, request.Request{}, "cold", "503"},

		// What the request says narrows this, and permits more where upstream forbids nothing.
		{"Cache-Control: max-age=20", 15 * s, request.Request{MaxAge: ptr(10 * s)}, "cold", "stale"},
		{"Cache-Control: max-age=20", 15 * s, request.Request{MinFresh: ptr(5 * s)}, "cold", "stale"},
		{"Cache-Control: max-age=20", 15 * s, request.Request{MinFresh: ptr(4 * s)}, "warm", "warm"},
		{"Cache-Control: max-age=10", 31 * s, request.Request{MaxStale: ptr(m)}, "stale", "stale"},
		{"Cache-Control: max-age=10", 71 * s, request.Request{MaxStale: ptr(m)}, "cold", "stale"},
		{"Cache-Control: max-age=10, must-revalidate", 11 * s, request.Request{MaxStale: ptr(m)}, "cold", "503"},
		{"Cache-Control: max-age=10", 11 * s, request.Request{OnlyIfCached: true}, "not held", "not held"},
	} {
		name := strings.ReplaceAll(c.said, "\n", ", ") + " " + c.age.String()
		for state, wanted := range map[string]string{"well": c.up, "down": c.down} {
			synctest.Test(t, func(t *testing.T) {
				st := open(t, 0, hard(shortHard), byUpstream(strings.Split(c.said, "\n")...))
				st.world.set(sid(1), "ringing", false)
				st.get(t, st.call(t, sid(1)))
				synctest.Wait()
				time.Sleep(c.age)
				if state == "down" {
					st.world.script(func() {
						st.world.fail = func(int, request.Fetch) error { return down(http.StatusServiceUnavailable) }
					})
				}
				ask := c.ask
				ask.Target = st.call(t, sid(1))
				a, err := st.Mirror.Answer(t.Context(), ask)
				got := "503"
				switch {
				case errors.Is(err, understudy.ErrNoStoredAnswer):
					got = "not held"
				case err == nil:
					got = a.Outcome.String()
				case !errors.Is(err, understudy.ErrUnavailable):
					t.Fatal(err)
				}
				if got != wanted {
					t.Errorf("%s, upstream is %s: %s, want %s", name, state, got, wanted)
				}
			})
		}
	}
}

// What upstream lets nobody store is not in the store, not in memory, and makes no record.
func TestNoStoreLeavesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 7, byUpstream("Cache-Control: no-store"))
		for _, target := range []*spec.Target{s.newest(t), s.call(t, sid(1))} {
			for range 3 {
				a := s.get(t, target)
				want(t, a, request.Cold, "not stored: "+understudy.NotStoredNoStore)
				if a.Stored || a.TTL > 0 {
					t.Errorf("%s: stored %v, fresh for %v", target.Key, a.Stored, a.TTL)
				}
				synctest.Wait()
			}
			if p, err := s.store.ReadPage(t.Context(), target.Key); !errors.Is(err, understudy.ErrNotFound) {
				t.Errorf("the store has %v, %v", p, err)
			}
			if s.entries.hot.Find(target.Key) != nil {
				t.Errorf("%s is in memory", target.Key)
			}
		}
		for n := range 7 {
			rec, err := s.store.Record(t.Context(), "twilio", "calls", "", sid(n+1))
			if !errors.Is(err, understudy.ErrNotFound) {
				t.Errorf("the store has the record %v, %v", rec, err)
			}
		}
		if n, by := s.fetches(""); n != 6 || by[request.ReasonPrefetch] != 0 {
			t.Errorf("%d fetches, %v", n, by)
		}
		s.script(func() {
			s.write = func(w request.Write) (*understudy.Page, error) {
				p := instance(w.Target, http.StatusOK, call{sid(1), "completed", true})
				p.Key, p.Header = understudy.Key{}, understudy.Query{{Name: understudy.AgeField("Cache-Control"), Value: "no-store"}}.String()
				return p, nil
			}
		})
		a, err := s.Mirror.Write(t.Context(), request.Write{Target: s.call(t, sid(1)), Method: http.MethodPost})
		checktest.MustNoError(t, err, "a write")
		checktest.True(t, !a.Stored, "a write: a.Stored is true")
		checktest.True(t, len(a.Page.Body) != 0, "a write: len(a.Page.Body) is 0")
	})
}

// All who wait for an answer that must not be stored share it, and nobody after them.
func TestNoStoreIsSharedByThoseWhoWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 3, byUpstream("Cache-Control: no-store"))
		done := make(chan bool, 5)
		for range cap(done) {
			go func() { done <- s.get(t, s.newest(t)).Joined }()
		}
		joined := 0
		for range cap(done) {
			if <-done {
				joined++
			}
		}
		if n, _ := s.fetches(""); n != 1 || joined != 4 {
			t.Errorf("%d fetches, %d joined", n, joined)
		}
		s.get(t, s.newest(t))
		if n, _ := s.fetches(""); n != 2 {
			t.Errorf("%d fetches", n)
		}
	})
}

// Upstream's word holds for what comes from the store, too, and a record that a
// list shows is no answer for the record's own address, of which upstream has said nothing.
func TestUpstreamsAgesOfWhatIsStored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 3, byUpstream("Cache-Control: max-age=10, must-revalidate"))
		s.get(t, s.newest(t))
		synctest.Wait()
		want(t, s.get(t, s.call(t, sid(2))), request.Cold, "")
		time.Sleep(5 * time.Second)
		for _, target := range []*spec.Target{s.newest(t), s.call(t, sid(2))} {
			s.entries.hot.Forget(s.entries.hot.Hash(target.Key))
		}
		want(t, s.get(t, s.newest(t)), request.Warm, "")
		want(t, s.get(t, s.call(t, sid(2))), request.Warm, "")
		time.Sleep(6 * time.Second)
		want(t, s.get(t, s.newest(t)), request.Cold, "")
		want(t, s.get(t, s.call(t, sid(2))), request.Cold, "")
	})
}

// A fetch that has completed stays on the list until its page is saved. Who asks then for what
// upstream wants to be asked for each time gets nothing of it.
func TestACompletedFetchIsNotSharedWhereUpstreamIsToBeAsked(t *testing.T) {
	t.Parallel()
	for says, fetches := range map[string]int{
		"no-cache": 2, "no-store": 2, "max-age=0": 2, "max-age=0, must-revalidate": 2, "max-age=10": 1, "private": 1,
	} {
		synctest.Test(t, func(t *testing.T) {
			s := open(t, 3, byUpstream("Cache-Control: "+says))
			target := s.newest(t)
			first := s.get(t, target)
			synctest.Wait()
			src := s.env.sources[target.Key.Source]
			k := src.kindOf(target)
			f := &flight{
				origin:  origin{target: target, source: src, kind: k, began: k.writes.Now()},
				signals: signals{done: make(chan struct{}), cancel: func() {}}, result: result{page: first.Page},
			}
			close(f.signals.done)
			s.flights.Lock()
			s.flights.running[target.Key] = f
			s.flights.Unlock()
			s.get(t, target)
			if n, _ := s.fetches(""); n != fetches {
				t.Errorf("%s: %d fetches, want %d", says, n, fetches)
			}
			s.flights.Lock()
			s.flights.remove(f)
			s.flights.Unlock()
		})
	}
}
