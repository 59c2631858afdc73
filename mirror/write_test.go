// Writes: what they touch is answered by upstream alone.

package mirror

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/request"
	"understudy/spec"
)

// answers scripts the answer of writes to calls.
func (s *stage) answers(t *testing.T, status int, c *call, err error) {
	s.script(func() {
		s.write = func(w request.Write) (*understudy.Page, error) {
			if err != nil {
				return nil, err
			}
			if c == nil {
				return page(w.Target, status, ""), nil
			}
			p := instance(w.Target, status, *c)
			p.List = false
			return p, nil
		}
	})
}

func (s *stage) post(t *testing.T, method string, target *spec.Target) (*request.Response, error) {
	t.Helper()
	return s.Mirror.Write(t.Context(), request.Write{Target: target, Method: method})
}

// TestWriteIsNotSentWithoutTheDatabase: other processes could not learn of the write, and would go on with what was before.
func TestWriteIsNotSentWithoutTheDatabase(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 6)
		current, sent := false, 0
		s.env.memory = func() bool { return current }
		s.script(func() {
			s.write = func(w request.Write) (*understudy.Page, error) {
				sent++
				return page(w.Target, http.StatusOK, ""), nil
			}
		})
		_, err := s.post(t, http.MethodPost, s.call(t, sid(6)))
		checktest.True(t, errors.Is(err, understudy.ErrDatabaseAway), "without the database a write returns %v", err)
		checktest.Equal(t, understudy.Status(err), http.StatusServiceUnavailable, "status without the database")
		checktest.Equal(t, sent, 0, "writes sent without the database")
		current = true
		_, err = s.post(t, http.MethodPost, s.call(t, sid(6)))
		checktest.NoError(t, err, "write after the database is back")
		checktest.Equal(t, sent, 1, "writes sent")
	})
}

func TestWriteInvalidatesListsAndRecord(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 6)
		s.get(t, s.newest(t))
		s.get(t, s.target(t, "Calls.json", "Status=completed"))
		want(t, s.get(t, s.call(t, sid(6))), request.Composed, "composed")
		want(t, s.get(t, s.call(t, sid(5))), request.Composed, "composed")
		time.Sleep(2 * time.Second)

		s.set(sid(6), "canceled", true)
		s.answers(t, http.StatusOK, &call{sid(6), "canceled", true}, nil)
		a, err := s.post(t, http.MethodPost, s.call(t, sid(6)))
		if err != nil {
			t.Fatal(err)
		}
		checktest.Equal(t, a.Outcome, request.Cold, "write's answer: a.Outcome")
		checktest.Equal(t, a.ForwardReason, "method", "write's answer: a.ForwardReason")
		checktest.True(t, a.Stored, "write's answer: a.Stored is false")
		checktest.Equal(t, a.Page.Status, 200, "write's answer: a.Page.Status")
		// The answer's body is a version, and the next read waits for upstream all the same.
		{
			rec, err := s.memory.Record(t.Context(), "twilio", "calls", "calls", sid(6))
			checktest.MustNoError(t, err, "the record after the write")
			checktest.Contains(t, string(rec.Body), "canceled", "the record after the write: string(rec.Body)")
			checktest.True(t, rec.Invalidated, "the record after the write: rec.Invalidated is false")
		}
		got := s.get(t, s.call(t, sid(6)))
		want(t, got, request.Cold, "")
		if !strings.Contains(string(got.Page.Body), "canceled") {
			t.Errorf("body after the write: %s", got.Page.Body)
		}
		// Another record of the kind is as good as before.
		want(t, s.get(t, s.call(t, sid(5))), request.Composed, "composed")
		// Every list of the kind waits for upstream, in every filter.
		for _, query := range []string{"", "Status=completed"} {
			begin := time.Now()
			a := s.get(t, s.target(t, "Calls.json", query))
			want(t, a, request.Cold, "")
			if a.ForwardReason != "stale" || time.Since(begin) != time.Second {
				t.Errorf("list %q: fwd %q after %v", query, a.ForwardReason, time.Since(begin))
			}
		}
		changes, err := s.memory.ReadChanges(t.Context(), "twilio", 0, 100)
		if err != nil {
			t.Fatal(err)
		}
		if last := changes[len(changes)-1]; last.Type != understudy.Changed || last.ID != sid(6) {
			t.Errorf("last change %+v", last)
		}
	})
}

func TestWhichWritesInvalidate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		status  int
		err     error
		invalid bool
	}{
		{"ok", 200, nil, true},
		{"created", 201, nil, true},
		{"bad request", 400, nil, false},
		{"refused", 403, nil, false},
		{"limited", 429, nil, false},
		{"not found", 404, nil, true},
		{"timeout", 408, nil, true},
		{"conflict", 409, nil, true},
		{"gone", 410, nil, true},
		{"server error", 500, nil, true},
		{"never sent", 0, &understudy.UpstreamError{Why: understudy.FailCredential, Status: 401}, false},
		{"unknown outcome", 0, understudy.ErrUnknownOutcome, true},
		{"sent, then cut", 0, &understudy.UpstreamError{Why: understudy.FailUnreachable, Err: understudy.ErrUnknownOutcome}, true},
		{"caller left", 0, context.Canceled, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := open(t, 3)
				s.get(t, s.newest(t))
				s.get(t, s.call(t, sid(2)))
				s.answers(t, c.status, nil, c.err)
				_, err := s.post(t, http.MethodPost, s.call(t, sid(2)))
				if !errors.Is(err, c.err) {
					t.Fatalf("error %v, want %v", err, c.err)
				}
				// The record first: a list fetched after the write shows it anew.
				for _, target := range []*spec.Target{s.call(t, sid(2)), s.newest(t)} {
					if a := s.get(t, target); (a.Outcome == request.Cold) != c.invalid {
						t.Errorf("%s came %s", target.Key, a.Outcome)
					}
				}
			})
		})
	}
}

// TestWriteAcrossARefreshInFlight: a refresh that began before the write's
// answer may finish for those who wait for it; it fills nothing, and a reader that
// asks after the write has a fetch of its own.
func TestWriteAcrossARefreshInFlight(t *testing.T) {
	t.Parallel()
	for _, list := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			s := open(t, 3)
			s.set(sid(3), "ringing", false)
			target := s.call(t, sid(3))
			if list {
				target = s.newest(t)
			}
			s.get(t, target)
			time.Sleep(40 * time.Second)
			s.script(func() { // upstream reads its world before the write and answers 3 s later
				s.fetch = func(ctx context.Context, f request.Fetch) (*understudy.Page, error) {
					s.mu.Lock()
					p := s.answer(f)
					s.mu.Unlock()
					time.Sleep(3 * time.Second)
					p.At, p.Generation = time.Now(), f.Generation
					return p, nil
				}
			})
			want(t, s.get(t, target), request.Stale, "") // its refresh is in flight
			zero := time.Duration(0)
			joined := make(chan *request.Response)
			go func() {
				a, err := s.Answer(t.Context(), request.Request{Target: target, AgeLimit: &zero})
				if err != nil {
					t.Error(err)
				}
				joined <- a
			}()
			time.Sleep(time.Second)

			s.set(sid(3), "completed", true)
			s.answers(t, http.StatusNoContent, nil, nil) // shows no record
			if _, err := s.post(t, http.MethodPost, s.call(t, sid(3))); err != nil {
				t.Fatal(err)
			}
			s.script(func() { s.fetch = nil })
			begin := time.Now()
			after := s.get(t, target)
			took := time.Since(begin)
			checktest.Equal(t, after.Outcome, request.Cold, "list %v: after.Outcome", list)
			checktest.True(t, !after.Joined, "list %v: after.Joined is true", list)
			checktest.Equal(t, took, time.Second, "list %v: took", list)
			if !strings.Contains(string(after.Page.Body), sid(3)+`","account_sid":"`+account+`","status":"completed"`) {
				t.Errorf("list %v: after the write: %s", list, after.Page.Body)
			}
			{
				a := <-joined
				checktest.True(t, a.Joined, "list %v: a.Joined is false", list)
				checktest.True(t, !a.Stored, "list %v: a.Stored is true", list)
				checktest.Contains(t, string(a.Page.Body), "ringing", "list %v: string(a.Page.Body)", list)
			}
			time.Sleep(time.Second)
			{
				a := s.get(t, target)
				checktest.True(t, a.Outcome != request.Cold, "list %v: a.Outcome is %v", list, a.Outcome)
				checktest.Contains(t, string(a.Page.Body), `"completed"`, "list %v: string(a.Page.Body)", list)
				checktest.Lacks(t, string(a.Page.Body), "ringing", "list %v: string(a.Page.Body)", list)
			}
		})
	}
}

func TestDeleteRemovesTheRecord(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 3)
		s.get(t, s.newest(t))
		s.get(t, s.call(t, sid(2)))
		s.remove(sid(2))
		s.answers(t, http.StatusNoContent, nil, nil)
		a, err := s.post(t, http.MethodDelete, s.call(t, sid(2)))
		if err != nil || !a.Stored {
			t.Fatal(a, err)
		}
		a = s.get(t, s.call(t, sid(2)))
		want(t, a, request.Cold, "")
		if a.Page.Status != http.StatusNotFound {
			t.Errorf("status %d", a.Page.Status)
		}
		changes, _ := s.memory.ReadChanges(t.Context(), "twilio", 0, 100)
		if last := changes[len(changes)-1]; last.Type != understudy.Deleted {
			t.Errorf("last change %+v", last)
		}
	})
}

func TestInvalidIsAnsweredInAnOutageOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 3)
		s.get(t, s.newest(t))
		s.get(t, s.call(t, sid(2)))
		s.answers(t, 500, nil, nil)
		if _, err := s.post(t, http.MethodPost, s.call(t, sid(2))); err != nil {
			t.Fatal(err)
		}
		s.script(func() { s.fail = func(int, request.Fetch) error { return down(503) } })
		for _, target := range []*spec.Target{s.newest(t), s.call(t, sid(2))} {
			begin := time.Now()
			want(t, s.get(t, target), request.Stale, "stale: upstream 503")
			if time.Since(begin) != time.Second {
				t.Error("did not wait for upstream")
			}
		}
	})
}

// TestStoreRefusesTheTouch: the mirror itself knows what is invalid until the
// store can be told, and nothing is kept before that.
func TestStoreRefusesTheTouch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var full atomic.Bool
		disk := func() error {
			if full.Load() {
				return errors.New("store: touch: disk full")
			}
			return nil
		}
		s := open(t, 3, over(func(inner Store) Store { return &oddStore{Store: inner, touch: disk, save: disk} }))
		s.get(t, s.newest(t))
		s.get(t, s.call(t, sid(2)))
		full.Store(true)
		s.set(sid(2), "canceled", true)
		s.answers(t, 200, &call{sid(2), "canceled", true}, nil)
		a, err := s.post(t, http.MethodPost, s.call(t, sid(2)))
		checktest.MustNoError(t, err, "")
		checktest.MustEqual(t, a.Detail, "not stored: disk full", "a.Detail")
		checktest.MustTrue(t, !a.Stored, "a.Stored is true")
		for _, target := range []*spec.Target{s.newest(t), s.call(t, sid(2))} {
			want(t, s.get(t, target), request.Cold, "not stored: disk full")
			synctest.Wait()
			want(t, s.get(t, target), request.Warm, "") // memory holds it all the same
		}
		full.Store(false)
		want(t, s.get(t, s.target(t, "Calls.json", "Status=busy")), request.Cold, "")
		kinds, err := s.memory.ReadKinds(t.Context(), "twilio")
		if err != nil || kinds[0].Generation != 1 {
			t.Errorf("the store was not told: %+v %v", kinds, err)
		}
		if s.Stats("twilio").Trouble != "" {
			t.Error("still in trouble")
		}
	})
}

// TestTheStoreIsToldOfEveryGeneration writes a record twice, which raises the generation of its kind twice, and lets
// the store refuse the second: the mirror tells it again.
func TestTheStoreIsToldOfEveryGeneration(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var left atomic.Int32
		s := open(t, 3, over(func(inner Store) Store {
			return &oddStore{Store: inner, touch: func() error {
				if left.Add(-1) < 0 {
					return errors.New("store: touch: disk full")
				}
				return nil
			}}
		}))
		s.answers(t, 200, &call{sid(2), "canceled", true}, nil)
		for range 2 {
			if _, err := s.post(t, http.MethodPost, s.call(t, sid(2))); err != nil {
				t.Fatal(err)
			}
		}
		for _, touches := range []int32{1, 100} {
			left.Store(touches)
			time.Sleep(time.Minute)
		}
		if kinds, err := s.memory.ReadKinds(t.Context(), "twilio"); err != nil || kinds[0].Generation < 2 {
			t.Errorf("the store was told of less than two writes: %+v %v", kinds, err)
		}
	})
}

// D8: a path of a kind without an id, read, written and read again.
func TestAWriteMakesAPageWithoutAnIDOld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 3)
		text := "1"
		s.script(func() {
			s.page = func(f request.Fetch) *understudy.Page {
				return page(f.Target, http.StatusOK, `{"balance":"`+text+`"}`)
			}
		})
		target := s.target(t, "Balance.json", "")
		want(t, s.get(t, target), request.Cold, "")
		synctest.Wait()
		want(t, s.get(t, target), request.Warm, "")
		s.script(func() { text = "2" })
		s.answers(t, http.StatusOK, nil, nil)
		if _, err := s.post(t, http.MethodPost, target); err != nil {
			t.Fatal(err)
		}
		if a := s.get(t, target); a.Outcome != request.Cold || !strings.Contains(string(a.Page.Body), `"2"`) {
			t.Errorf("after the write: %s, %s", a.Outcome, a.Page.Body)
		}
	})
}

func TestWriteToAnUnknownPathJustPasses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 3)
		s.get(t, s.newest(t))
		s.answers(t, 200, nil, nil)
		a, err := s.post(t, http.MethodPost, s.target(t, "Odd.json", ""))
		if err != nil || a.Page.Status != 200 {
			t.Fatal(a, err)
		}
		want(t, s.get(t, s.newest(t)), request.Warm, "")
	})
}
