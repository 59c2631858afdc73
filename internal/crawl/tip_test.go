// What the newest page showed, and what came alone.

package crawl

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"understudy/internal/checktest"
	"understudy/request"
	"understudy/spec"
)

// M3: of two newest pages of one second the later one counts.
func TestTwoNewestPagesOfOneSecond(t *testing.T) {
	m := kindState{Keep: true, NewestIDs: []string{"2", "1"}, CaughtUp: 100}
	for _, c := range []struct {
		name, want string
		ids        []string
	}{{"later", "3", []string{"3", "2", "1"}}, {"earlier", "2", []string{"1"}}, {"the same", "2", []string{"2", "1"}}, {"empty", "2", nil}} {
		x := &kindCrawl{}
		x.joinedTip.Store(&tipPage{ids: c.ids, at: 100})
		if tip, at := x.newestPage(&m, 100); tip[0] != c.want || at != 100 {
			t.Errorf("%s: it ends at %v of %d", c.name, tip, at)
		}
	}
}

// A record that a small page brought stands above others that were never seen: the
// newest page is still the one before, until another joins it.
func TestOneThatCameAloneIsNoNewestPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, x := synced(t, 20, Settings{})
		letters := x.walks["post/letters"]
		land := func(target *spec.Target, err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
			landed, err := w.Fill(t.Context(), request.Fill{Target: target})
			if err != nil {
				t.Fatal(err)
			}
			_ = x.HandlePageSaved(t.Context(), landed)
		}
		ends := func(at time.Time, ids ...string) {
			t.Helper()
			{
				c, ok := x.Coverage("post", "letters", "", "", 0, 0)
				checktest.MustTrue(t, ok, "ok is false")
				checktest.True(t, slices.Equal(c.Head, ids), "c.Head is %v, want %v", c.Head, ids)
				checktest.True(t, c.Newest.Equal(at), "c.Newest.Equal(at) is false")
			}
		}
		began := time.Now().Truncate(time.Second)
		ends(began, "L000020", "L000019", "L000018")
		time.Sleep(time.Minute)
		w.arrive(3)
		land(letters.plan.buildTarget(0, "", interval{minClock, maxClock, 0}, 1))
		if err := x.look(t.Context()); err != nil {
			t.Fatal(err)
		}
		ends(began, "L000020", "L000019", "L000018")
		if c, ok := x.Coverage("post", "letters", "", "", 1, began.Add(-25*time.Hour).Unix()); !ok || c.Head != nil {
			t.Errorf("what does not reach the newest page ends at %v, %v", c.Head, ok)
		}
		all := w.things["letters"]
		land(letters.plan.buildNewestTarget()) // and it was not read yet
		ends(began.Add(time.Minute), all[0].id, all[1].id, all[2].id)
		w.arrive(7)
		land(letters.plan.buildNewestTarget())
		if c, ok := x.Coverage("post", "letters", "", "", 0, 0); ok {
			t.Errorf("it leaves a gap, and all is covered: %+v", c)
		}
		if err := errors.Join(x.look(t.Context()), w.work(t.Context(), x)); err != nil {
			t.Fatal(err)
		}
		all = w.things["letters"]
		ends(began.Add(time.Minute), all[0].id, all[1].id, all[2].id)

		w.things["boxes"] = nil
		if err := errors.Join(x.Keep(t.Context(), "post", "boxes"), w.work(t.Context(), x)); err != nil {
			t.Fatal(err)
		}
		{
			c, ok := x.Coverage("post", "boxes", "", "", 0, 0)
			checktest.MustTrue(t, ok, "an empty list: ok is false")
			checktest.MustTrue(t, c.Head != nil, "an empty list: c.Head is nil")
			checktest.True(t, len(c.Head) <= 0, "an empty list: len(c.Head) is %v, want <= 0", len(c.Head))
		}
	})
}

// A page that a write overtook is saved without the record written, which the page before showed.
func TestTheTipStaysWhereAPageLacksARecordJustWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, x := synced(t, 20, Settings{})
		target, err := x.walks["post/letters"].plan.buildNewestTarget()
		if err != nil {
			t.Fatal(err)
		}
		w.arrive(1)
		landed, err := w.Fill(t.Context(), request.Fill{Target: target})
		if err != nil {
			t.Fatal(err)
		}
		_ = x.HandlePageSaved(t.Context(), landed)
		overtaken := *landed.Page
		overtaken.Rows = overtaken.Rows[1:]
		for range 2 {
			_ = x.HandlePageSaved(t.Context(), request.PageSaved{Page: &overtaken, Reason: landed.Reason})
			c, ok := x.Coverage("post", "letters", "", "", 0, 0)
			if first := w.things["letters"][0].id; !ok || !slices.Contains(c.Head, first) {
				t.Errorf("the list ends at %v, %v; %s was shown before", c.Head, ok, first)
			}
			if err := x.look(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// The same while an earlier page was not looked at yet, and once the state alone knows the record.
func TestTheTipStaysWhileAnEarlierPageWaits(t *testing.T) {
	for _, looked := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			w, x := synced(t, 20, Settings{})
			k := x.walks["post/letters"]
			target, err := k.plan.buildNewestTarget()
			if err != nil {
				t.Fatal(err)
			}
			k.gapTip.Store(&tipPage{}) // of the earlier page
			w.arrive(1)
			landed, err := w.Fill(t.Context(), request.Fill{Target: target})
			if err != nil {
				t.Fatal(err)
			}
			_ = x.HandlePageSaved(t.Context(), landed)
			look := func() {
				t.Helper()
				if err := x.look(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if looked {
				look()
				time.Sleep(time.Second)
			}
			overtaken := *landed.Page
			overtaken.At, overtaken.Rows = time.Now(), overtaken.Rows[1:]
			_ = x.HandlePageSaved(t.Context(), request.PageSaved{Page: &overtaken, Reason: landed.Reason})
			look()
			c, ok := x.Coverage("post", "letters", "", "", 0, 0)
			if first := w.things["letters"][0].id; !ok || !slices.Contains(c.Head, first) {
				t.Errorf("looked %v: the list ends at %v, %v; %s was shown before", looked, c.Head, ok, first)
			}
		})
	}
}

// What a walk over the whole lists has seen stands in the lists made from records,
// whether or not a newest page was saved since: its saving may have been given up.
func TestSweepIsCaughtUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, x := synced(t, 20, Settings{Sweep: time.Hour})
		time.Sleep(time.Hour)
		w.arrive(3)
		began := time.Now().Truncate(time.Second)
		if err := errors.Join(x.enqueueDue(t.Context()), w.work(t.Context(), x)); err != nil {
			t.Fatal(err)
		}
		all := w.things["letters"]
		c, ok := x.Coverage("post", "letters", "", "", 0, 0)
		checktest.MustTrue(t, ok, "%+v, %v: ok is false", c, ok)
		checktest.True(t, slices.Equal(c.Head, []string{all[0].id, all[1].id, all[2].id}), "%+v, %v: c.Head is %v",
			c, ok, c.Head)
		checktest.True(t, !c.Newest.Before(began), "%+v, %v: c.Newest.Before(began) is true", c, ok)
		checktest.True(t, !c.At.Before(began), "%+v, %v: c.At.Before(began) is true", c, ok)
	})
}

// A newest page that shows nothing new does not write the state, but for once in
// five minutes; one that shows something new does.
func TestATickThatFindsNothingNewIsNotWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, x := synced(t, 20, Settings{})
		tick := func() {
			t.Helper()
			time.Sleep(6 * time.Second)
			target, err := x.walks["post/letters"].plan.buildNewestTarget()
			if err != nil {
				t.Fatal(err)
			}
			landed, err := w.Fill(t.Context(), request.Fill{Target: target})
			if err != nil {
				t.Fatal(err)
			}
			_ = x.HandlePageSaved(t.Context(), landed)
			if err := x.look(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		began := w.writes
		for range 100 { // ten minutes
			tick()
		}
		if n := w.writes - began; n > 3 {
			t.Errorf("100 ticks that found nothing new wrote %d times", n)
		}
		if s, err := x.ReadState(t.Context(), "post", "letters"); err != nil || time.Since(s.CaughtUp) > time.Second {
			t.Errorf("it is caught up to %v of %v, %v", s.CaughtUp, time.Now(), err)
		}
		began = w.writes
		w.arrive(1)
		if tick(); w.writes != began+1 {
			t.Errorf("a tick that found a record wrote %d times", w.writes-began)
		}
	})
}

// A record that was written while the newest page was on its way may be missing in it.
func TestANewestPageIsOfWhenItWasAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, x := synced(t, 20, Settings{})
		time.Sleep(time.Minute)
		w.arrive(1)
		target, err := x.walks["post/letters"].plan.buildNewestTarget()
		if err != nil {
			t.Fatal(err)
		}
		landed, err := w.Fill(t.Context(), request.Fill{Target: target})
		if err != nil {
			t.Fatal(err)
		}
		landed.Page.Took, landed.Page.InitialAge = 3*time.Second, 2*time.Second
		_ = x.HandlePageSaved(t.Context(), landed)
		want := landed.Page.At.Add(-5 * time.Second).Truncate(time.Second)
		if c, ok := x.Coverage("post", "letters", "", "", 0, 0); !ok || !c.Newest.Equal(want) {
			t.Errorf("the newest page counts as of %v, %v; want %v", c.Newest, ok, want)
		}
	})
}
