// Lists without an end: their links go in a circle, or the same page comes under
// ever new ones (M6).

package crawl

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/spec"
)

func TestLinksInACircleAreTold(t *testing.T) {
	for name, link := range map[string]func(n int) string{
		"a circle":       func(n int) string { return fmt.Sprint("t", 10*(n%9)) },
		"ever new links": func(n int) string { return fmt.Sprint("t0&new=", n) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				for n := range 100 {
					w.things["tags"] = append(w.things["tags"], thing{id: fmt.Sprint("t", n)})
				}
				pages := 0
				w.change = func(p *understudy.Page) {
					pages++
					p.Next.Source, p.Next.URI = "post", "/me/tags?size=10&after="+link(pages)
				}
				x := w.walker(Settings{})
				keepKind(t, x, "tags")
				err := w.work(t.Context(), x)
				if err == nil || !strings.Contains(err.Error(), "form a circle") {
					t.Fatalf("error %v", err)
				}
				if pages > 40 {
					t.Errorf("%d pages of a circle of 9", pages)
				}
				s := state(t, x, "tags")
				checktest.True(t, s.Failed, "state: s.Failed is false")
				checktest.True(t, !s.Complete, "state: s.Complete is true")
				checktest.Contains(t, s.Why, "form a circle", "state: s.Why")
				// It rests, and is complete once the list ends.
				w.jobs, pages, w.change = nil, 0, nil
				if err := x.enqueueDue(t.Context()); err != nil || w.jobNames() != "" {
					t.Errorf("promised again at once: %s, %v", w.jobNames(), err)
				}
				time.Sleep(failurePause)
				if err := x.enqueueDue(t.Context()); err != nil {
					t.Fatal(err)
				}
				if err := w.work(t.Context(), x); err != nil {
					t.Fatal(err)
				}
				complete(t, x, "tags")
			})
		})
	}
}

// A walk that is killed after every page still finds out.
func TestACircleOverManyRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for n := range 100 {
			w.things["tags"] = append(w.things["tags"], thing{id: fmt.Sprint("t", n)})
		}
		pages, stop := 0, false
		w.change = func(p *understudy.Page) {
			pages++
			p.Next.Source, p.Next.URI = "post", fmt.Sprint("/me/tags?size=10&after=t", 10*(pages%9))
		}
		w.before = func(*spec.Target) error {
			if stop = !stop; stop {
				return nil
			}
			return &understudy.UpstreamError{Why: understudy.FailDown}
		}
		x := w.walker(Settings{})
		keepKind(t, x, "tags")
		for range 100 {
			err := w.work(t.Context(), x)
			if err != nil && strings.Contains(err.Error(), "form a circle") {
				return
			}
			time.Sleep(5 * time.Second)
		}
		t.Errorf("%d pages, and nobody noticed", pages)
	})
}

// A list of ever new records without an end is walked as far as sync.pages, also over many
// runs, and then left alone for twice as long each time: in a month it costs what a
// healthy list of that length does.
func TestAListWithoutAnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 30
		w := newWorld(t)
		w.things["tags"] = []thing{{id: "t"}}
		pages, broken := 0, 0
		w.change = func(p *understudy.Page) {
			pages++
			p.Rows = []understudy.Row{{ID: fmt.Sprint("new", pages)}}
			p.Next.Source, p.Next.URI = "post", fmt.Sprint("/me/tags?size=10&after=new", pages)
		}
		w.before = func(*spec.Target) error {
			if broken++; broken%7 == 0 {
				return &understudy.UpstreamError{Why: understudy.FailDown}
			}
			return nil
		}
		x := w.walker(Settings{Pages: most})
		keepKind(t, x, "tags")
		begun := time.Now()
		walks, rests := 0, []time.Duration{}
		for ended := begun; time.Since(begun) < 30*24*time.Hour; {
			err := w.work(t.Context(), x)
			switch {
			case err != nil && strings.Contains(err.Error(), "raise sync.pages"):
				if !errors.Is(err, understudy.ErrInvalid) {
					t.Fatalf("the job is tried again: %v", err)
				}
				walks++
				w.jobs = nil                // the runner has given up
				if pages > walks*(most+1) { // the newest page comes before the walk
					t.Fatalf("%d pages in %d walks", pages, walks)
				}
				s := state(t, x, "tags")
				checktest.MustTrue(t, s.Failed, "state: s.Failed is false")
				checktest.MustTrue(t, !s.Complete, "state: s.Complete is true")
				checktest.MustContains(t, s.Why, "/me/tags", "state: s.Why")
				ended = time.Now()
			case err != nil:
				time.Sleep(5 * time.Second)
				continue
			}
			for len(w.jobs) == 0 {
				time.Sleep(time.Minute)
				if err := x.enqueueDue(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			rests = append(rests, time.Since(ended).Truncate(time.Minute))
		}
		want := []time.Duration{15 * time.Minute, 30 * time.Minute, time.Hour}
		checktest.MustTrue(t, len(rests) >= 10, "len(rests) is %v, want >= 10", len(rests))
		checktest.True(t, slices.Equal(rests[:3], want), "rests[:3] is %v, want %v", rests[:3], want)
		checktest.Equal(t, rests[len(rests)-1], 24*time.Hour, "rests[len(rests)-1]")
		checktest.True(t, walks <= 40, "walks is %v, want <= 40", walks)
	})
}

// A page that can never be kept, as one whose next link leads elsewhere, is asked for less
// and less often, and is told meanwhile.
func TestAPageThatIsNeverKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.things["tags"] = []thing{{id: "t"}}
		w.before = func(*spec.Target) error {
			return fmt.Errorf("%w: it leads to no list of tags", understudy.ErrNotStored)
		}
		x := w.walker(Settings{})
		keepKind(t, x, "tags")
		for begun := time.Now(); time.Since(begun) < 24*time.Hour; {
			var later *understudy.Snooze
			if err := w.work(t.Context(), x); !errors.As(err, &later) || later.Wait > failurePause {
				t.Fatalf("error %v", err)
			}
			s := state(t, x, "tags")
			checktest.MustTrue(t, !s.Stuck.IsZero(), "state: s.Stuck.IsZero() is true")
			checktest.MustTrue(t, !s.Complete, "state: s.Complete is true")
			checktest.MustContains(t, s.Why, "leads to no list", "state: s.Why")
			time.Sleep(later.Wait)
		}
		if n := len(w.asked); n > 400 {
			t.Errorf("asked %d times in a day", n)
		}
	})
}

// TestAnEndNobodyKnowsIsNotComplete (invariant 15): where the last page does not prove the
// end of its list, nor the spec says that lists are whole, nothing is complete, whatever the
// list shows, nor what lies below. What was shown is held.
func TestAnEndNobodyKnowsIsNotComplete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.things["letters"] = letters(20, time.Hour, time.Now())
		open := understudy.OpenEnd{Kind: understudy.OpenRefuted, Why: "the answer says that there is more (has_more: true)"}
		w.change = func(p *understudy.Page) {
			if p.Kind == "letters" && p.Next.IsZero() {
				p.Header = understudy.EndFields(open, 0, 0, "").String()
			}
		}
		x := w.walker(Settings{})
		keepKind(t, x, "stamps")
		var later *understudy.Snooze
		if err := w.work(t.Context(), x); err == nil || errors.As(err, &later) {
			t.Fatalf("the job is tried again: %v", err)
		}
		if held := len(w.held["letters"]); held != 20 {
			t.Errorf("%d of 20 are held", held)
		}
		for _, kind := range []string{"letters", "stamps"} {
			s := state(t, x, kind)
			checktest.True(t, !s.Complete, "%s: s.Complete is true", kind)
			checktest.True(t, s.Failed, "%s: s.Failed is false", kind)
			checktest.True(t, s.Total < 0, "%s: s.Total is %v, want < 0", kind, s.Total)
			checktest.Contains(t, s.Why, "has_more: true", "%s: s.Why", kind)
		}
		if c, ok := x.Coverage("post", "letters", "", "", 0, 0); ok {
			t.Errorf("lists are made from records: %+v", c)
		}
		w.change, w.jobs = nil, nil
		time.Sleep(failurePause)
		for range 2 {
			if err := x.enqueueDue(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := w.work(t.Context(), x); err != nil {
				t.Fatal(err)
			}
		}
		complete(t, x, "letters")
		complete(t, x, "stamps")
	})
}

// Where the spec says that a list leaves records out, its kind is not complete.
func TestAListThatHidesRecordsIsNotComplete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.things["letters"] = letters(20, time.Hour, time.Now())
		w.spec.Kind("letters").Lists[0].Complete = new(false)
		x := w.walker(Settings{})
		keepKind(t, x, "letters")
		if err := w.work(t.Context(), x); err != nil {
			t.Fatal(err)
		}
		s := state(t, x, "letters")
		checktest.True(t, !s.Complete, "s.Complete is true")
		checktest.True(t, s.Failed, "s.Failed is false")
		checktest.Contains(t, s.Why, "leaves out some letters", "s.Why")
		w.spec.Kind("letters").Lists[0].Complete = nil
		complete(t, x, "letters")
	})
}

// jobNames are the promised jobs.
func (w *world) jobNames() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var names []string
	for _, j := range w.jobs {
		names = append(names, j.Kind)
	}
	return strings.Join(names, ", ")
}
