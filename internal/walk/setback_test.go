// What was walked in the future, by another spec or for another user.

package walk

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy"
)

// The clock was a day ahead while all was walked, and is right again: what lies in
// the future covers nothing, pages are looked at, and all is walked again.
func TestNothingIsCoveredFromTheFuture(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, x := synced(t, 100, Settings{})
		const day = 24 * 60 * 60
		back := func() {
			err := x.change(t.Context(), x.walks["post/letters"], func(m *memo) {
				m.Rest, m.CaughtUp, m.Spans = m.Rest+day, m.CaughtUp+day, slices.Clone(m.Spans)
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
			if c, ok := x.Covered("post", "letters", "", from, to); ok {
				t.Errorf("%s is covered since tomorrow: %+v", name, c)
			}
			w.arrive(7)
			w.poll(x, "letters")
			if c, ok := x.Covered("post", "letters", "", 0, 0); ok {
				t.Errorf("a page that leaves a gap was not looked at: %+v", c)
			}
			if err := x.due(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := w.work(t.Context(), x); err != nil {
				t.Fatal(err)
			}
			if c, ok := x.Covered("post", "letters", "", 0, 0); !ok || c.At.After(time.Now()) || time.Since(c.At) > time.Minute {
				t.Errorf("walked again: %+v, %v", c, ok)
			}
			complete(t, x, "letters")
			time.Sleep(time.Hour)
		}
	})
}

// What was walked by another spec, or of another user, is walked anew, and a sync
// under way begins anew.
func TestAnotherSpecIsWalkedAnew(t *testing.T) {
	for name, change := range map[string]func(w *world){
		"a shape":  func(w *world) { w.spec.Kind("letters").Lists[0].Shape = "others" },
		"a filter": func(w *world) { x := w.spec.Kind("letters").Lists[0]; x.Filters[len(x.Filters)-1].Whole = true },
		"the user": func(w *world) { w.src = &understudy.Source{Name: "post", Spec: w.spec, User: "you"} },
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, x := synced(t, 100, Settings{})
				begun := mark{Began: time.Now().Unix(), Plan: x.walks["post/letters"].print(), Ended: true}
				x = w.walker(Settings{})
				if err := x.Load(t.Context(), nil); err != nil {
					t.Fatal(err)
				}
				if c, ok := x.Covered("post", "letters", "", 0, 0); !ok {
					t.Fatalf("after a restart: %+v", c)
				}
				change(w)
				x = w.walker(Settings{})
				if err := x.Load(t.Context(), nil); err != nil {
					t.Fatal(err)
				}
				if c, ok := x.Covered("post", "letters", "", 0, 0); ok {
					t.Errorf("what was walked otherwise is covered: %+v", c)
				}
				if err := x.due(t.Context()); err != nil || w.jobNames() != "sync letters" {
					t.Errorf("promised %q, %v", w.jobNames(), err)
				}
				if begun.Plan == x.walks["post/letters"].print() {
					t.Error("a sync of before goes on")
				}
			})
		})
	}
}
