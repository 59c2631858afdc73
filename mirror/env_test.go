// The wall clock steps while the mirror runs, and no time has a second reading.

package mirror

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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

// steps are how the clock may be set while everything runs.
var steps = []time.Duration{-20 * 365 * 24 * time.Hour, -90 * 24 * time.Hour, -3 * time.Hour, -time.Minute, time.Minute, 3 * time.Hour,
	90 * 24 * time.Hour, 20 * 365 * 24 * time.Hour}

// stepping opens a stage whose clock can be set.
func stepping(t *testing.T, n int, settings ...setting) (s *stage, step func(time.Duration)) {
	var by atomic.Int64
	clock := func() time.Time { return time.Now().Round(0).Add(time.Duration(by.Load())) }
	s = open(t, n, append(settings, func(o *Options) { o.Now = clock })...)
	s.script(func() { s.now = clock })
	return s, func(d time.Duration) { by.Add(int64(d)) }
}

func eachStep(t *testing.T, test func(t *testing.T, d time.Duration)) {
	for _, d := range steps {
		t.Run(fmt.Sprint(d), func(t *testing.T) { synctest.Test(t, func(t *testing.T) { test(t, d) }) })
	}
}

// However it steps: no age is negative or beyond the limit, nothing from the
// future counts as fresh, and a moment later everything is fresh and stored.
func TestClockStepsWhileReading(t *testing.T) {
	t.Parallel()
	eachStep(t, func(t *testing.T, d time.Duration) {
		s, step := stepping(t, 7)
		list, one, missing := s.newest(t), s.call(t, sid(1)), s.call(t, sid(99))
		for _, target := range []*spec.Target{list, one, missing} {
			s.get(t, target)
		}
		time.Sleep(5 * time.Second)
		step(d)
		for _, target := range []*spec.Target{list, one, missing} {
			a := s.get(t, target)
			checktest.True(t, a.Age >= 0, "%s: a.Age is %v, want >= 0", target.Key, a.Age)
			checktest.True(t, a.Age <= s.env.ages().Hard, "%s: a.Age is %v", target.Key, a.Age)
			checktest.True(t, !(d < 0 && (a.Outcome == request.Warm || a.Age != 0 && a.Outcome == request.Stale)),
				"%s: d is %v", target.Key, d)
		}
		s.script(func() { s.calls = append([]call{{sid(99), "completed", true}}, s.calls...) })
		time.Sleep(35 * time.Second) // past the fresh time of a 404 and of the list
		for _, target := range []*spec.Target{list, one, missing} {
			s.get(t, target)
		}
		time.Sleep(2 * time.Second)
		for _, target := range []*spec.Target{list, one, missing} {
			a := s.get(t, target)
			// Set back by less than five minutes, the clock cannot be told from an
			// answer that lost a race to a newer one: memory alone keeps it.
			kept := a.Stored || d < 0 && d > -5*time.Minute
			checktest.True(t, !(a.Outcome != request.Warm && a.Outcome != request.Composed),
				"later %s: a.Outcome != request.Warm && a.Outcome != request.Composed; a.Outcome is %v", target.Key,
				a.Outcome)
			checktest.Equal(t, a.Page.Status, 200, "later %s: a.Page.Status", target.Key)
			checktest.True(t, a.Age >= 0, "later %s: a.Age is %v, want >= 0", target.Key, a.Age)
			checktest.True(t, a.TTL > 0, "later %s: a.TTL is %v, want > 0", target.Key, a.TTL)
			checktest.True(t, kept, "later %s: kept is false", target.Key)
		}
	})
}

// Who reads steadily is refreshed as steadily as before.
func TestClockStepsUnderASteadyReader(t *testing.T) {
	t.Parallel()
	eachStep(t, func(t *testing.T, d time.Duration) {
		s, step := stepping(t, 7)
		list := s.newest(t)
		for range 60 {
			s.get(t, list)
			time.Sleep(time.Second)
		}
		step(d)
		s.get(t, list)
		time.Sleep(2 * time.Second)
		before, _ := s.fetches("")
		for range 300 {
			if a := s.get(t, list); a.Outcome != request.Warm {
				t.Fatalf("%s (%s), age %v", a.Outcome, a.Detail, a.Age)
			}
			time.Sleep(time.Second)
		}
		if after, _ := s.fetches(""); after-before < 10 || after-before > 40 {
			t.Errorf("%d fetches in five minutes of reading", after-before)
		}
	})
}

// Polls go on at their pace, also after a failure and after saving failed.
func TestClockStepsUnderPolls(t *testing.T) {
	t.Parallel()
	for _, trouble := range []string{"none", "upstream", "store"} {
		t.Run(trouble, func(t *testing.T) {
			eachStep(t, func(t *testing.T, d time.Duration) {
				var broken atomic.Bool
				s, step := stepping(t, 3, polls("calls"), over(func(st Store) Store { return &faulty{Store: st, broken: &broken} }))
				time.Sleep(40 * time.Second)
				s.script(func() {
					if trouble == "upstream" {
						s.fail = func(int, request.Fetch) error { return down(503) }
					}
				})
				broken.Store(trouble == "store")
				time.Sleep(40 * time.Second)
				step(d)
				s.script(func() { s.fail = nil })
				broken.Store(false)
				time.Sleep(90 * time.Second)
				s.get(t, s.newest(t))
				time.Sleep(5 * time.Second)
				before, _ := s.fetches("Calls.json")
				for range 300 {
					if a := s.get(t, s.newest(t)); a.Outcome != request.Warm {
						t.Fatalf("%s (%s), age %v", a.Outcome, a.Detail, a.Age)
					}
					time.Sleep(time.Second)
				}
				if after, _ := s.fetches("Calls.json"); after-before < 11 || after-before > 15 {
					t.Errorf("%d polls in five minutes", after-before)
				}
				if s.Stats("twilio").Trouble != "" {
					t.Error("saving is still thought to fail")
				}
			})
		})
	}
}

// A key that failed may be fetched again a second later, whatever the clock says.
func TestClockStepsAfterAFailure(t *testing.T) {
	t.Parallel()
	eachStep(t, func(t *testing.T, d time.Duration) {
		s, step := stepping(t, 3)
		list := s.newest(t)
		s.get(t, list)
		time.Sleep(time.Minute)
		s.script(func() { s.fail = func(int, request.Fetch) error { return down(503) } })
		s.get(t, list)
		time.Sleep(1500 * time.Millisecond)
		step(d)
		s.script(func() { s.fail = nil })
		time.Sleep(1500 * time.Millisecond)
		s.get(t, list)
		time.Sleep(2 * time.Second)
		want(t, s.get(t, list), request.Warm, "")
	})
}

// faulty is a store that fails while it is broken.
type faulty struct {
	Store
	broken, unreadable *atomic.Bool
}

var errBroken = errors.New("store: disk full")

func (f *faulty) Save(ctx context.Context, p *understudy.Page) (request.SaveResult, error) {
	if f.broken != nil && f.broken.Load() {
		return request.SaveResult{}, fmt.Errorf("%w: %w", understudy.ErrNotStored, errBroken)
	}
	return f.Store.Save(ctx, p)
}

func (f *faulty) ReadPage(ctx context.Context, key understudy.Key) (*understudy.Page, error) {
	if f.unreadable != nil && f.unreadable.Load() {
		return nil, errors.New("store: cannot open the database file")
	}
	return f.Store.ReadPage(ctx, key)
}

// A store that cannot be read costs its answers, and not a line for each.
func TestUnreadableStoreIsLoggedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var lines strings.Builder
		var unreadable atomic.Bool
		s := open(t, 3, func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(&lines, nil)) },
			over(func(st Store) Store { return &faulty{Store: st, unreadable: &unreadable} }))
		unreadable.Store(true)
		for n := range 20 {
			want(t, s.get(t, s.target(t, "Calls.json", fmt.Sprint("PageSize=", n+1))), request.Cold, "")
		}
		unreadable.Store(false)
		for n := range 20 {
			s.get(t, s.target(t, "Calls.json", fmt.Sprint("PageSize=", n+100)))
		}
		if text := lines.String(); strings.Count(text, "cannot be read") != 1 || strings.Count(text, "can be read again") != 1 {
			t.Errorf("log:\n%s", text)
		}
	})
}
