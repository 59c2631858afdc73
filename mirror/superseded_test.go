// Superseded pages, records shown by lists, and what both mean for a reader.

package mirror

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/request"
)

// TestSupersededPageMakesItsReaderWait: another page shows a newer version of
// a record in it.
func TestSupersededPageMakesItsReaderWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 6)
		s.set(sid(6), "ringing", false)
		filtered := s.target(t, "Calls.json", "From=1")
		other := s.target(t, "Calls.json", older)
		s.get(t, s.newest(t))
		s.get(t, other)
		s.set(sid(6), "completed", true)
		s.get(t, filtered)
		begin := time.Now()
		a := s.get(t, s.newest(t))
		want(t, a, request.Cold, "")
		checktest.Equal(t, time.Since(begin), time.Second, "superseded: time.Since(begin)")
		checktest.Equal(t, a.ForwardReason, "stale", "superseded: a.ForwardReason")
		checktest.Contains(t, string(a.Page.Body), "completed", "superseded: string(a.Page.Body)")
		want(t, s.get(t, filtered), request.Warm, "") // the page that brought the change
		want(t, s.get(t, other), request.Warm, "")    // shows other records
	})
}

func TestSupersededPageInAnOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 3)
		s.set(sid(3), "ringing", false)
		s.get(t, s.newest(t))
		s.set(sid(3), "completed", true)
		s.get(t, s.call(t, sid(3))) // composed from the list: nothing new
		time.Sleep(31 * time.Second)
		s.get(t, s.call(t, sid(3))) // stale, refilled behind
		time.Sleep(2 * time.Second)
		s.script(func() { s.fail = func(int, request.Fetch) error { return down(503) } })
		a := s.get(t, s.newest(t))
		want(t, a, request.Stale, "stale: upstream 503")
		if !strings.Contains(string(a.Page.Body), "ringing") {
			t.Error("not the held page")
		}
	})
}

// TestPolledPageHasItsGrace: a page that is kept warm is refilled at once and
// answered as stale until then, for thirty seconds.
func TestPolledPageHasItsGrace(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		after time.Duration
		how   request.Outcome
		took  time.Duration
	}{
		{0, request.Stale, 0},
		{29 * time.Second, request.Stale, 0},
		{30 * time.Second, request.Stale, 8 * time.Second}, // by the outage rules
	} {
		synctest.Test(t, func(t *testing.T) {
			s := open(t, 3, polls("calls"))
			s.set(sid(3), "ringing", false)
			time.Sleep(2 * time.Second)
			want(t, s.get(t, s.newest(t)), request.Warm, "")
			s.set(sid(3), "completed", true)
			s.script(func() {
				s.delay = func(f request.Fetch) time.Duration {
					if f.Target.Key == s.newest(t).Key {
						return time.Hour // its refill never completes
					}
					return time.Second
				}
			})
			s.get(t, s.target(t, "Calls.json", "From=1"))
			synctest.Wait()
			if _, by := s.fetches("Calls.json?PageSize"); by[request.ReasonPoll] != 2 {
				t.Errorf("not refilled at once: %v", by)
			}
			time.Sleep(c.after)
			begin := time.Now()
			a := s.get(t, s.newest(t))
			checktest.Equal(t, a.Outcome, c.how, "after %v: a.Outcome", c.after)
			checktest.True(t, a.TTL <= 0, "after %v: a.TTL is %v, want <= 0", c.after, a.TTL)
			checktest.Equal(t, time.Since(begin), c.took, "after %v: time.Since(begin)", c.after)
		})
	}
}

func TestPolledPageIsRefilledAtOnceAfterAWrite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 3, polls("calls"))
		time.Sleep(2 * time.Second)
		s.answers(t, 200, nil, nil)
		if _, err := s.post(t, http.MethodPost, s.newest(t)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(400 * time.Millisecond)
		begin := time.Now()
		a := s.get(t, s.newest(t))
		checktest.Equal(t, a.Outcome, request.Cold, "a.Outcome")
		checktest.True(t, a.Joined, "a.Joined is false")
		checktest.Equal(t, time.Since(begin), 600*time.Millisecond, "time.Since(begin)")
	})
}

// TestInstanceFollowsItsRecord: an instance is as new as the newest list row.
func TestInstanceFollowsItsRecord(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 3)
		s.set(sid(3), "ringing", false)
		s.get(t, s.newest(t))
		a := s.get(t, s.call(t, sid(3)))
		want(t, a, request.Composed, "composed")
		checktest.Equal(t, a.Page.Key, s.call(t, sid(3)).Key, "composed: a.Page.Key")
		checktest.Equal(t, a.Page.ID, sid(3), "composed: a.Page.ID")
		checktest.MustEqual(t, len(a.Page.Rows), 1, "composed: len(a.Page.Rows)")
		checktest.Equal(t, a.Page.Rows[0].End, len(a.Page.Body), "composed: a.Page.Rows[0].End")
		checktest.Equal(t, a.TTL, 30*time.Second, "composed: a.TTL")
		want(t, s.get(t, s.call(t, sid(3))), request.Composed, "composed") // from memory
		s.set(sid(3), "completed", true)
		s.get(t, s.target(t, "Calls.json", "From=1"))
		a = s.get(t, s.call(t, sid(3)))
		want(t, a, request.Composed, "composed")
		if !strings.Contains(string(a.Page.Body), "completed") || a.TTL != 24*time.Hour {
			t.Errorf("after a list showed it final: %s, ttl %v", a.Page.Body, a.TTL)
		}
		if n, _ := s.fetches("/Calls/"); n != 0 {
			t.Errorf("%d fetches of the instance", n)
		}
	})
}

// TestListKeepsInstanceFresh: the same body seen again in a list is no change,
// yet it makes the instance young.
func TestListKeepsInstanceFresh(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 3, polls("calls"))
		s.set(sid(3), "ringing", false)
		time.Sleep(2 * time.Second)
		for range 100 {
			want(t, s.get(t, s.call(t, sid(3))), request.Composed, "composed")
			time.Sleep(7 * time.Second)
		}
		if n, _ := s.fetches("/Calls/"); n != 0 {
			t.Errorf("%d fetches of the instance", n)
		}
	})
}

func TestNothingIsComposedUnderAnotherAccount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 3)
		s.get(t, s.newest(t))
		other, err := s.spec.Resolve("twilio", "/2010-04-01/Accounts/AC99/Calls/"+sid(3)+".json", "")
		if err != nil {
			t.Fatal(err)
		}
		s.script(func() {
			s.page = func(f request.Fetch) *understudy.Page {
				if f.Target.Key == other.Key {
					return page(f.Target, http.StatusNotFound, `{"status":404}`)
				}
				return nil
			}
		})
		a := s.get(t, other)
		checktest.Equal(t, a.Outcome, request.Cold, "a.Outcome")
		checktest.Equal(t, a.Page.Status, 404, "a.Page.Status")
		checktest.True(t, !a.Stored, "a.Stored is true")
		// It is not there, but it is not gone.
		want(t, s.get(t, s.call(t, sid(3))), request.Composed, "composed")
	})
}

func TestGoneRecordGoesFromItsLists(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 3)
		s.set(sid(3), "ringing", false)
		s.get(t, s.newest(t))
		s.get(t, s.call(t, sid(3)))
		s.remove(sid(3))
		time.Sleep(10 * time.Minute)
		if a := s.get(t, s.call(t, sid(3))); a.Page.Status != 404 || !a.Stored {
			t.Errorf("status %d", a.Page.Status)
		}
		s.script(func() { s.fail = func(int, request.Fetch) error { return down(503) } })
		want(t, s.get(t, s.newest(t)), request.Stale, "stale: upstream 503")
		// It comes back in a list: the 404 is no longer true.
		s.script(func() { s.fail = nil })
		s.set(sid(3), "ringing", false)
		s.get(t, s.target(t, "Calls.json", "From=1"))
		if a := s.get(t, s.call(t, sid(3))); a.Outcome != request.Composed || a.Page.Status != 200 {
			t.Errorf("%s, status %d", a.Outcome, a.Page.Status)
		}
	})
}

// TestNotStored: answers go out although nothing can be saved, polls pause,
// and everything resumes by itself.
func TestNotStored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var full atomic.Bool
		s := open(t, 3, polls("calls"), over(func(inner Store) Store {
			return &oddStore{Store: inner, save: func() error {
				if full.Load() {
					return errors.New("store: save page: disk full")
				}
				return nil
			}}
		}))
		time.Sleep(2 * time.Second)
		full.Store(true)
		a := s.get(t, s.target(t, "Calls.json", "From=1"))
		want(t, a, request.Cold, "not stored: disk full")
		checktest.True(t, !a.Stored, "stored: a.Stored is true")
		checktest.Equal(t, s.Stats("twilio").Trouble, "disk full", `stored: s.Stats("twilio").Trouble`)
		checktest.Equal(t, s.Stats("twilio").NotStored, 1, `stored: s.Stats("twilio").NotStored`)
		before, _ := s.fetches("Calls.json")
		time.Sleep(10 * time.Minute)
		after, by := s.fetches("Calls.json")
		if n := after - before; n < 8 || n > 11 {
			t.Errorf("%d polls in ten minutes of trouble, want about one a minute (%v)", n, by)
		}
		full.Store(false)
		time.Sleep(2 * time.Minute)
		if s.Stats("twilio").Trouble != "" {
			t.Error("saving did not resume by itself")
		}
		want(t, s.get(t, s.target(t, "Calls.json", "From=2")), request.Cold, "")
	})
}

func TestUnfaithfulPagePassesAndIsNotStored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 3)
		s.page = func(f request.Fetch) *understudy.Page {
			p := page(f.Target, 200, "{\"calls\":[\"\xff\"]}")
			p.NotStored = "invalid UTF-8 at 11"
			return p
		}
		a := s.get(t, s.newest(t))
		want(t, a, request.Cold, "not stored: invalid UTF-8 at 11")
		synctest.Wait()
		a = s.get(t, s.newest(t))
		want(t, a, request.Warm, "not stored: invalid UTF-8 at 11")
		if a.Stored || string(a.Page.Body) != "{\"calls\":[\"\xff\"]}" {
			t.Errorf("%+v", a)
		}
		if s.Stats("twilio").NotStored != 1 || s.Stats("twilio").Trouble != "" {
			t.Errorf("stats %+v", s.Stats("twilio"))
		}
	})
}

// M2: who is not shown what changed in a list gets it as one in which nothing
// did, by the same words; who is waits for upstream. A write makes it old for
// everybody.
func TestHiddenChangeDoesNotMakeAListOld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 6)
		s.set(sid(6), "ringing", false)
		hides := func(field string) func(string) bool { return func(name string) bool { return name != field } }
		ask := func(shown func(string) bool) *request.Response {
			t.Helper()
			a, err := s.Answer(t.Context(), request.Request{Target: s.newest(t), CanSee: shown})
			if err != nil {
				t.Fatal(err)
			}
			return a
		}
		changes := func() {
			t.Helper()
			s.get(t, s.newest(t))
			time.Sleep(10 * time.Second)
			s.set(sid(6), fmt.Sprint("completed", time.Now()), false)
			s.get(t, s.target(t, "Calls.json", "From=1&no="+fmt.Sprint(time.Now().Unix())))
		}
		changes()
		began := time.Now()
		a := ask(hides("status"))
		want(t, a, request.Warm, "")
		checktest.Equal(t, a.Age, 11*time.Second, "a list in which something hidden changed: a.Age")
		checktest.Equal(t, a.TTL, 19*time.Second, "a list in which something hidden changed: a.TTL")
		checktest.Contains(t, string(a.Page.Body), "ringing",
			"a list in which something hidden changed: string(a.Page.Body)")
		checktest.Equal(t, time.Since(began), 0, "a list in which something hidden changed: time.Since(began)")
		want(t, ask(hides("duration")), request.Cold, "")
		changes()
		s.entries.hot.Drop(s.entries.hot.Find(s.newest(t).Key))
		want(t, ask(hides("status")), request.Warm, "") // by the store
		want(t, s.get(t, s.newest(t)), request.Cold, "")
		changes()
		s.entries.hot.Drop(s.entries.hot.Find(s.newest(t).Key))
		want(t, ask(hides("duration")), request.Cold, "") // the store says what changed
		s.answers(t, 200, nil, nil)
		if _, err := s.post(t, http.MethodPost, s.newest(t)); err != nil {
			t.Fatal(err)
		}
		want(t, ask(hides("status")), request.Cold, "")
	})
}

// M2: that an instance is answered from what a list has shown of it is not said to
// who is not shown every field: it is so where something changed.
func TestHiddenChangeDoesNotMakeAnInstanceComposed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 3)
		ask := func(id string) *request.Response {
			t.Helper()
			a, err := s.Answer(t.Context(), request.Request{Target: s.call(t, id), CanSee: func(field string) bool { return field != "status" }})
			if err != nil {
				t.Fatal(err)
			}
			return a
		}
		ask(sid(1))
		ask(sid(2))
		s.set(sid(1), "canceled", true)
		s.get(t, s.newest(t)) // shows both, and the one has changed
		for range 2 {
			one, other := ask(sid(1)), ask(sid(2))
			checktest.Equal(t, one.Outcome, other.Outcome, "one that changed: one.Outcome")
			checktest.Equal(t, one.Detail, other.Detail, "one that changed: one.Detail")
			checktest.Equal(t, one.ForwardReason, other.ForwardReason, "one that changed: one.ForwardReason")
		}
		want(t, s.get(t, s.call(t, sid(1))), request.Composed, "composed")
	})
}
