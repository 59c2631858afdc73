// Forgetting: nothing held is answered again, nothing under way brings it back.

package mirror

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/request"
	"understudy/spec"
)

// after forgets and then reads: upstream is asked, once, for nothing is held.
func after(t *testing.T, s *stage, target *spec.Target, pages, versions int, forget func() (Forgotten, error)) {
	t.Helper()
	found, err := forget()
	if want := (Forgotten{pages, versions}); err != nil || found != want {
		t.Fatalf("forgot %+v, %v, want %+v", found, err, want)
	}
	before, _ := s.fetches("")
	a := s.get(t, target)
	{
		n, _ := s.fetches("")
		checktest.Equal(t, n, before+1, "the next answer came: n")
		checktest.Equal(t, a.Outcome, request.Cold, "the next answer came: a.Outcome")
		checktest.Equal(t, a.ForwardReason, "uri-miss", "the next answer came: a.ForwardReason")
	}
}

func TestAKeyIsForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 3)
		list := s.newest(t)
		want(t, s.get(t, list), request.Cold, "")
		want(t, s.get(t, list), request.Warm, "")
		after(t, s, list, 1, 0, func() (Forgotten, error) { return s.Forget(t.Context(), list) })
		// Its records stay: an instance needs no upstream.
		want(t, s.get(t, s.call(t, sid(1))), request.Composed, "composed")
		if found, err := s.Forget(t.Context(), s.target(t, "Calls.json", "PageSize=7")); err != nil || found != (Forgotten{}) {
			t.Errorf("what is not held: %+v, %v", found, err)
		}
	})
}

// An instance would be composed again if its record stayed.
func TestAnInstanceIsForgottenWithItsRecord(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 3)
		one := s.call(t, sid(1))
		s.get(t, s.newest(t))
		want(t, s.get(t, one), request.Composed, "composed")
		after(t, s, one, 2, 1, func() (Forgotten, error) { return s.Forget(t.Context(), one) })
	})
}

// A record goes with the lists that show it, and other records stay.
func TestARecordIsForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 3)
		s.get(t, s.newest(t))
		one := s.call(t, sid(1))
		after(t, s, one, 1, 1, func() (Forgotten, error) { return s.ForgetRecord(t.Context(), "twilio", "calls", sid(1)) })
		want(t, s.get(t, s.call(t, sid(2))), request.Composed, "composed")
		if a := s.get(t, s.newest(t)); a.Outcome != request.Cold {
			t.Errorf("the list came %s", a.Outcome)
		}
	})
}

// Also word that something is not there is forgotten, and that it failed.
func TestRefusalsAreForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 3)
		missing := s.call(t, sid(99))
		if a := s.get(t, missing); a.Page.Status != 404 {
			t.Fatalf("status %d", a.Page.Status)
		}
		s.script(func() { s.calls = append(s.calls, call{sid(99), "completed", true}) })
		after(t, s, missing, 2, 0, func() (Forgotten, error) {
			f, err := s.ForgetRecord(t.Context(), "twilio", "calls", sid(99))
			f.Pages++ // the page of the other tests
			return f, err
		})
	})
}

// What was fetched before is answered to who waited for it, and not kept.
func TestNothingUnderWayIsKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 3)
		list := s.newest(t)
		got := make(chan *request.Response, 1)
		go func() {
			a, _ := s.Answer(t.Context(), request.Request{Target: list})
			got <- a
		}()
		time.Sleep(500 * time.Millisecond)
		after(t, s, list, 0, 0, func() (Forgotten, error) { return s.Forget(t.Context(), list) })
		if a := <-got; a == nil || a.Stored {
			t.Errorf("who waited got %+v", a)
		}
		if n, _ := s.fetches(""); n != 2 {
			t.Errorf("%d fetches, want 2", n)
		}
		want(t, s.get(t, list), request.Warm, "")
	})
}

// A page that is kept warm is fetched again at once.
func TestAForgottenPolledPageComesBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 3, polls("calls"))
		time.Sleep(2 * time.Second)
		if _, err := s.Forget(t.Context(), s.newest(t)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		if n, _ := s.fetches(""); n != 2 {
			t.Errorf("%d fetches, want 2", n)
		}
		want(t, s.get(t, s.newest(t)), request.Warm, "")
	})
}

func TestForgetErrors(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 3)
		for _, name := range [][2]string{{"nobody", "calls"}, {"twilio", "nothing"}, {"twilio", ""}} {
			if _, err := s.ForgetRecord(t.Context(), name[0], name[1], "x"); !errors.Is(err, understudy.ErrInvalid) {
				t.Errorf("%v: %v", name, err)
			}
		}
		if _, err := s.Forget(t.Context(), &spec.Target{Key: understudy.Key{Source: "nobody", URI: "/"}}); !errors.Is(err,
			understudy.ErrInvalid) {
			t.Errorf("target: %v", err)
		}
		odd := s.target(t, "Odd.json", "")
		if found, err := s.Forget(t.Context(), odd); err != nil || found != (Forgotten{}) {
			t.Errorf("unknown path: %+v, %v", found, err)
		}
	})
}
