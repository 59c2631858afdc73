// What was walked in the future, by another spec or for another user.

package crawl

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/spec"
)

// The clock was a day ahead while all was walked, and is right again: what lies in
// the future covers nothing, pages are looked at, and all is walked again.
func TestNothingIsCoveredFromTheFuture(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, x := synced(t, 100, Settings{})
		const day = 24 * 60 * 60
		back := func() {
			err := x.states.change(t.Context(), x.walks["post/letters"], func(m *kindState) {
				m.ListsWalkedAt, m.CaughtUp, m.Spans = m.ListsWalkedAt+day, m.CaughtUp+day, slices.Clone(m.Spans)
				for i := range m.Spans {
					m.Spans[i].At += day
				}
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		for name, from := range map[string]int64{"all": 0, "the newest": time.Now().Unix(), "an old stretch": 1} {
			back()
			to := int64(0)
			if from == 1 {
				to = time.Now().Unix() - 50*60*60
			}
			if c, ok := x.Coverage("post", "letters", "", "", from, to); ok {
				t.Errorf("%s is covered since tomorrow: %+v", name, c)
			}
			w.arrive(7)
			w.poll(x, "letters")
			if c, ok := x.Coverage("post", "letters", "", "", 0, 0); ok {
				t.Errorf("a page that leaves a gap was not looked at: %+v", c)
			}
			if err := x.enqueueDue(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := w.work(t.Context(), x); err != nil {
				t.Fatal(err)
			}
			{
				c, ok := x.Coverage("post", "letters", "", "", 0, 0)
				checktest.MustTrue(t, ok, "walked again: ok is false")
				checktest.True(t, !c.At.After(time.Now()), "walked again: c.At.After(time.Now()) is true")
				checktest.True(t, time.Since(c.At) <= time.Minute, "walked again: time.Since(c.At) is %v",
					time.Since(c.At))
			}
			complete(t, x, "letters")
			time.Sleep(time.Hour)
		}
	})
}

// The clock is set back while the server runs, or while it does not: what was
// walked is no younger than it is, and what lay in the future is not alone in
// being older.
func TestAClockSetBackMakesNothingYounger(t *testing.T) {
	const back = 10 * time.Minute
	for name, running := range map[string]bool{"running": true, "stopped": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, x := synced(t, 100, Settings{})
				begun, off := time.Now(), time.Duration(0)
				if running {
					x.steps.elapsed = func() time.Duration { return time.Since(begun) }
				}
				x.bounds.now = func() time.Time { return time.Now().Add(-off) }
				if err := x.enqueueDue(t.Context()); err != nil {
					t.Fatal(err)
				}
				time.Sleep(20 * time.Minute)
				w.poll(x, "letters")
				if !running {
					time.Sleep(time.Second)
					if c, _ := x.Coverage("post", "letters", "", "", 0, 0); c.Newest.Unix() != time.Now().Unix()-1 {
						t.Fatalf("%+v", c)
					}
				}
				time.Sleep(time.Minute)
				off = back
				if err := x.enqueueDue(t.Context()); err != nil {
					t.Fatal(err)
				}
				m, err := x.states.read(t.Context(), x.walks["post/letters"])
				if err != nil {
					t.Fatal(err)
				}
				least := time.Since(begun)
				if !running {
					least -= time.Minute + time.Second // since the newest page nothing tells
				}
				for _, at := range []int64{m.ListsWalkedAt, m.Spans.oldestWalk(begun.Unix()-60*60, maxClock)} {
					if age := x.bounds.now().Sub(time.Unix(at, 0)); age < least {
						t.Errorf("walked %v ago, it says %v", time.Since(begun), age)
					}
				}
				c, ok := x.Coverage("post", "letters", "", "", 0, 0)
				if age := x.bounds.now().Sub(c.At); ok && age < least {
					t.Errorf("covered: %v, walked %v ago", age, time.Since(begun))
				}
				if age := x.bounds.now().Sub(c.Newest); running && (!ok || age < time.Minute || age > 2*time.Minute) {
					t.Errorf("the newest page came a minute ago, it says %v, %v, %s", age, ok, c.Missing)
				}
			})
		})
	}
}

// What was walked by another spec, or of another user, is walked anew, and a sync
// under way begins anew.
func TestAnotherSpecIsWalkedAnew(t *testing.T) {
	for name, change := range map[string]func(w *world){
		"a shape":  func(w *world) { w.spec.Kind("letters").Lists[0].Shape = "others" },
		"a filter": func(w *world) { x := w.spec.Kind("letters").Lists[0]; x.Filters[len(x.Filters)-1].WholePeriod = true },
		"the way":  func(w *world) { w.spec.Paging.Next = "further" },
		"the user": func(w *world) { w.src = &spec.Source{Name: "post", Spec: w.spec, User: "you"} },
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, x := synced(t, 100, Settings{})
				begun := mark{Began: time.Now().Unix(), Plan: x.walks["post/letters"].plan.fingerprint(), Ended: true}
				x = w.walker(Settings{})
				if err := x.Load(t.Context(), nil); err != nil {
					t.Fatal(err)
				}
				if c, ok := x.Coverage("post", "letters", "", "", 0, 0); !ok {
					t.Fatalf("after a restart: %+v", c)
				}
				change(w)
				x = w.walker(Settings{})
				if err := x.Load(t.Context(), nil); err != nil {
					t.Fatal(err)
				}
				if c, ok := x.Coverage("post", "letters", "", "", 0, 0); ok {
					t.Errorf("what was walked otherwise is covered: %+v", c)
				}
				if err := x.enqueueDue(t.Context()); err != nil || w.jobNames() != "sync letters" {
					t.Errorf("promised %q, %v", w.jobNames(), err)
				}
				if begun.Plan == x.walks["post/letters"].plan.fingerprint() {
					t.Error("a sync of before goes on")
				}
			})
		})
	}
}

// What is known of a kind that does not say how it was walked is unproven: it covers
// nothing until the kind is walked anew, and is kept up as before.
func TestUnprintedMemosAreDoubted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := synced(t, 100, Settings{})
		w.take()
		note := kvPrefix + "post/letters"
		var m kindState
		if err := json.Unmarshal(w.kv[note], &m); err != nil || m.Plan == "" {
			t.Fatalf("%s, %v", w.kv[note], err)
		}
		m.Plan = ""
		raw, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		w.kv[note] = raw
		x := w.walker(Settings{})
		if err := x.Load(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if c, ok := x.Coverage("post", "letters", "", "", 0, 0); ok {
			t.Errorf("it covers %+v", c)
		}
		{
			s, err := x.ReadState(t.Context(), "post", "letters")
			checktest.MustNoError(t, err, "")
			checktest.True(t, s.Kept, "s.Kept is false")
			checktest.True(t, !s.Complete, "s.Complete is true")
		}
		if err := x.enqueueDue(t.Context()); err != nil || w.jobNames() != "sync letters" {
			t.Fatalf("promised %q, %v", w.jobNames(), err)
		}
		if err := w.work(t.Context(), x); err != nil {
			t.Fatal(err)
		}
		complete(t, x, "letters")
		if c, ok := x.Coverage("post", "letters", "", "", 0, 0); !ok {
			t.Errorf("walked anew: %+v", c)
		}
		asked := len(w.take())
		x = w.walker(Settings{})
		{
			err := errors.Join(x.Load(t.Context(), nil), x.enqueueDue(t.Context()), w.work(t.Context(), x))
			checktest.MustNoError(t, err, "it was walked by %d requests, and is again", asked)
			checktest.True(t, asked >= 3, "it was walked by %d requests, and is again: asked is %v, want >= 3",
				asked, asked)
			checktest.True(t, len(w.take()) <= 0, "it was walked by %d requests, and is again: len(w.take()) > 0",
				asked)
		}
	})
}

// So is where a sync under way stands, when that does not say it.
func TestUnprintedMarksAreDoubted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.things["letters"] = letters(100, time.Hour, time.Now())
		x := w.walker(Settings{})
		if err := x.Keep(t.Context(), "post", "letters"); err != nil || w.jobNames() != "sync letters" {
			t.Fatalf("promised %q, %v", w.jobNames(), err)
		}
		print := x.walks["post/letters"].plan.fingerprint()
		through := func(plan string) int { // of a sync that had nothing left to do
			raw, err := json.Marshal(mark{Began: time.Now().Unix(), Plan: plan, NewestDone: true, OldestKnown: true, Ended: true})
			if err != nil {
				t.Fatal(err)
			}
			w.jobs[0].Checkpoint = raw
			job := w.jobs[0]
			w.take()
			if err := w.work(t.Context(), x); err != nil {
				t.Fatal(err)
			}
			w.jobs = []understudy.Job{job}
			return len(w.take())
		}
		if all, rest := through(""), through(print); rest >= all || all < 3 {
			t.Errorf("%d requests without a print, %d with it", all, rest)
		}
	})
}
