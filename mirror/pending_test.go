// What is owed to the store: nothing a write's answer said is lost.

package mirror

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/mirror/writes"
	"understudy/request"
	"understudy/spec"
)

// records are the calls the store holds, by id.
func (s *stage) records(t testing.TB, n int) map[string]string {
	t.Helper()
	held := map[string]string{}
	for i := range n {
		rec, err := s.memory.Record(t.Context(), "twilio", "calls", "calls", sid(i+1))
		if err == nil {
			held[sid(i+1)] = string(rec.Body)
		} else if !errors.Is(err, understudy.ErrNotFound) {
			t.Fatal(err)
		}
	}
	return held
}

// H1: deletions and redactions of many clients at once, answered in one moment.
func TestOverlappingWritesKeepDeletions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const n = 40
		s := open(t, n)
		if _, err := s.Fill(t.Context(), request.Fill{Target: s.newest(t)}); err != nil {
			t.Fatal(err)
		}
		for i := range n {
			s.get(t, s.call(t, sid(i+1)))
		}
		s.script(func() {
			s.write = func(w request.Write) (*understudy.Page, error) {
				time.Sleep(time.Second)
				if w.Method == http.MethodDelete {
					s.remove(w.Target.ID)
					return page(w.Target, http.StatusNoContent, ""), nil
				}
				s.set(w.Target.ID, "redacted", true)
				return instance(w.Target, http.StatusOK, call{w.Target.ID, "redacted", true}), nil
			}
		})
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() {
				method := []string{http.MethodDelete, http.MethodPost}[i%2]
				if a, err := s.post(t, method, s.call(t, sid(i+1))); err != nil || !a.Stored {
					t.Errorf("%s %d: %+v, %v", method, i+1, a, err)
				}
			})
		}
		wg.Wait()
		held := s.records(t, n)
		for i := range n {
			body, there := held[sid(i+1)]
			if there != (i%2 == 1) || there && !strings.Contains(body, "redacted") {
				t.Errorf("record %d after the writes: %v, %s", i+1, there, body)
			}
		}
	})
}

// H1: what the store refuses is owed, and repaid by itself once it can be, though
// nothing else is saved.
func TestRefusedDeletionsAreRepaid(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var locked atomic.Bool
		refuse := func() error {
			if locked.Load() {
				return errors.New("store: locked")
			}
			return nil
		}
		s := open(t, 3, over(func(inner Store) Store { return &oddStore{Store: inner, touch: refuse, save: refuse} }))
		s.get(t, s.newest(t))
		locked.Store(true)
		s.remove(sid(2))
		s.answers(t, http.StatusNoContent, nil, nil)
		{
			a, err := s.post(t, http.MethodDelete, s.call(t, sid(2)))
			checktest.MustNoError(t, err, "")
			checktest.MustTrue(t, !a.Stored, "a.Stored is true")
			checktest.MustEqual(t, a.Detail, "not stored: locked", "a.Detail")
		}
		s.set(sid(1), "redacted", true)
		s.answers(t, http.StatusOK, &call{sid(1), "redacted", true}, nil)
		if _, err := s.post(t, http.MethodPost, s.call(t, sid(1))); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if held := s.records(t, 3); len(held) != 3 {
			t.Fatalf("a locked store: %v", held)
		}
		locked.Store(false)
		time.Sleep(maxFlushDelay + time.Second)
		held := s.records(t, 3)
		if _, there := held[sid(2)]; there || !strings.Contains(held[sid(1)], "redacted") {
			t.Errorf("after it can be written again: %v", held)
		}
		if trouble := s.Stats("twilio").Trouble; trouble != "" {
			t.Error(trouble)
		}
	})
}

// H1: more writes than are remembered are not passed on: none would be lost.
func TestNoWriteIsPassedOnThatCannotBeRemembered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		refuse := func() error { return errors.New("store: locked") }
		s := open(t, 3, over(func(inner Store) Store { return &oddStore{Store: inner, touch: refuse} }))
		k := s.env.sources["twilio"].kinds["calls"]
		for i := range writes.MaxPending {
			k.writes.Restore(time.Now(), sid(i), 0)
		}
		var busy *understudy.UpstreamError
		_, err := s.post(t, http.MethodDelete, s.call(t, sid(2)))
		checktest.MustTrue(t, errors.As(err, &busy), "errors.As(err, &busy) is false")
		checktest.Equal(t, busy.Why, understudy.FailBusy, "busy.Why; %v", err)
		checktest.Equal(t, len(s.writes), 0, "len(s.writes); %v", err)
	})
}

// A write whose outcome is not known, and two at once to one record: upstream is
// asked what became of it, until it says so.
func TestDoubtfulWritesAreLookedUp(t *testing.T) {
	t.Parallel()
	for _, overlap := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := open(t, 3)
			s.get(t, s.newest(t))
			s.script(func() {
				s.fail = func(n int, f request.Fetch) error {
					if n < 5 {
						return down(503)
					}
					return nil
				}
				s.write = func(w request.Write) (*understudy.Page, error) {
					time.Sleep(time.Second)
					s.remove(w.Target.ID)
					if !overlap {
						return nil, understudy.ErrUnknownOutcome
					}
					if w.Method == http.MethodDelete {
						return page(w.Target, http.StatusNoContent, ""), nil
					}
					time.Sleep(time.Second) // its answer was made before
					return instance(w.Target, http.StatusOK, call{w.Target.ID, "busy", true}), nil
				}
			})
			var wg sync.WaitGroup
			wg.Go(func() { _, _ = s.post(t, http.MethodDelete, s.call(t, sid(2))) })
			if overlap {
				wg.Go(func() { _, _ = s.post(t, http.MethodPost, s.call(t, sid(2))) })
			}
			wg.Wait()
			time.Sleep(time.Minute)
			if held := s.records(t, 3); held[sid(2)] != "" {
				t.Errorf("overlapping %v: upstream has no such record; held: %s", overlap, held[sid(2)])
			}
		})
	}
}

// While writes keep coming, what they do not touch is saved all the same.
func TestWritesToOthersDoNotKeepAFetchFromBeingSaved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 3)
		s.answers(t, http.StatusOK, &call{sid(1), "busy", true}, nil)
		for _, target := range []*spec.Target{s.call(t, sid(2)), s.newest(t)} {
			time.AfterFunc(time.Second/2, func() { _, _ = s.post(t, http.MethodPost, s.call(t, sid(1))) })
			s.get(t, target)
			synctest.Wait()
		}
		held := s.records(t, 3)
		if len(held) != 3 || !strings.Contains(held[sid(1)], "busy") {
			t.Errorf("held: %v", held)
		}
	})
}

// intents are kept by a file in the product.
type intents struct {
	mu   sync.Mutex
	open map[int64]request.Invalidation
}

func (in *intents) Begin(t request.Invalidation) (int64, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	n := int64(len(in.open) + 1)
	in.open[n] = t
	return n, nil
}

func (in *intents) End(n int64) {
	in.mu.Lock()
	defer in.mu.Unlock()
	delete(in.open, n)
}

func (in *intents) count() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return len(in.open)
}

func (in *intents) UnendedWrites() (numbers []int64, touched []request.Invalidation) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for n, t := range in.open {
		numbers, touched = append(numbers, n), append(touched, t)
	}
	return numbers, touched
}

// A process that was killed while it passed writes on: the next one looks at
// their records by itself, and answers nothing from before.
func TestWhatAKilledProcessWroteIsLookedUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		in := &intents{open: map[int64]request.Invalidation{}}
		remember := func(o *Options) { o.Intents = in }
		s := open(t, 3, polls(), remember)
		s.get(t, s.newest(t))
		s.answers(t, http.StatusOK, &call{sid(1), "busy", true}, nil)
		if _, err := s.post(t, http.MethodPost, s.call(t, sid(1))); err != nil || in.count() != 0 {
			t.Fatalf("after a write: %d open, %v", in.count(), err)
		}
		s.stop()
		for _, left := range []request.Invalidation{{Source: "twilio", Kind: "calls", ID: sid(2)}, {Source: "twilio", Kind: "calls"},
			{Source: "gone", Kind: "x", ID: "y"}} {
			_, _ = in.Begin(left)
		}
		s.remove(sid(2))
		s.start(t, Options{Store: s.store, Intents: in, Sources: []Source{{Source: s.env.sources["twilio"].config, Upstream: s.world}}})
		if a := s.get(t, s.call(t, sid(2))); a.Outcome != request.Cold {
			t.Errorf("the record came %s", a.Outcome)
		}
		time.Sleep(time.Minute)
		if held := s.records(t, 3); held[sid(2)] != "" || in.count() != 0 {
			t.Errorf("a minute later: %v, %d open", held, in.count())
		}
	})
}
