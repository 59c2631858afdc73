// Coverage against a set of seconds, and against a world in which anything
// happens in any order.

package crawl

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"understudy"
	"understudy/internal/checktest"
	"understudy/request"
	"understudy/spec"
)

// oneDay is how long the made-up upstream of this test remembers.
const oneDay = 24 * 60 * 60

// TestCoverageAgreesWithASetOfSeconds draws what was walked when, and asks for
// any window; every second of it has to have been walked.
func TestCoverageAgreesWithASetOfSeconds(t *testing.T) {
	world := newWorld(t)
	world.spec.Kind("letters").Retention.Days = 1
	world.src = &spec.Source{Name: "post", Spec: world.spec, User: "me"}
	rapid.Check(t, func(t *rapid.T) {
		now := int64(oneDay + rapid.IntRange(0, clocks).Draw(t, "forgotten"))
		horizon := time.Duration(rapid.SampledFrom([]int64{0, 0, now - 6, now - 12}).Draw(t, "horizon")) * time.Second
		w := world.walker(Settings{Horizon: horizon, Overlap: 3 * time.Second})
		w.bounds.now = func() time.Time { return time.Unix(now, 0) }
		x := w.walks["post/letters"]
		m := kindState{V: stateVersion, Keep: true,
			ListsWalkedAt: rapid.Int64Range(0, 9).Draw(t, "rest"), CaughtUp: rapid.Int64Range(0, 12).Draw(t, "caught up"),
			GapAt: rapid.SampledFrom([]int64{0, 0, 0, 5}).Draw(t, "behind"), LostAt: rapid.SampledFrom([]int64{0, 0, 0, 4}).Draw(t, "lost")}
		walked := map[int64]int64{} // second -> when; -1 stands for all before, clocks for all after
		for range rapid.IntRange(0, 8).Draw(t, "walks") {
			from, to := rapid.Int64Range(-1, clocks).Draw(t, "from"), rapid.Int64Range(0, clocks+1).Draw(t, "to")
			at := rapid.Int64Range(1, 9).Draw(t, "at")
			for s := from; s < to; s++ {
				walked[s] = max(walked[s], at)
			}
			a, b := from, to
			if a == -1 {
				a = minClock
			}
			if b == clocks+1 {
				b = maxClock
			}
			m.Spans = m.Spans.add(a, b, at)
		}
		x.state.Store(&m)
		if rapid.IntRange(0, 4).Draw(t, "gap") == 0 {
			x.gapTip.Store(&tipPage{})
		}
		from, to := rapid.Int64Range(0, clocks).Draw(t, "ask from"), rapid.Int64Range(0, clocks).Draw(t, "ask to")

		ok, at := m.ListsWalkedAt != 0, int64(math.MaxInt64)
		none, kept := now-oneDay, now-int64(horizon/time.Second)
		for s := int64(-1); s <= clocks; s++ {
			inside := (s >= from || from == 0) && (s < to || to == 0) && s >= none
			if !inside {
				continue
			}
			if horizon > 0 && s < kept {
				ok = false
				continue
			}
			if walked[s] == 0 {
				ok = false
			}
			at = min(at, walked[s])
		}
		if from == 0 && to == 0 || at == math.MaxInt64 {
			at = min(at, m.ListsWalkedAt)
		}
		if horizon > 0 && max(from, none) < kept {
			ok = false
		}
		if to == 0 || to > m.CaughtUp-3 {
			ok = ok && m.CaughtUp != 0 && m.GapAt == 0 && x.gapTip.Load() == nil
			at = min(at, m.CaughtUp)
		}
		ok = ok && at > m.LostAt

		c, covered := w.Coverage("post", "letters", "", "", from, to)
		if covered != ok || ok && c.At.Unix() != at {
			t.Fatalf("[%d,%d) at %d with horizon %v of %+v: %v since %d (%s); want %v since %d", from, to, now, horizon, m, covered, c.At.Unix(),
				c.Missing, ok, at)
		}
		if !covered && c.Missing == "" {
			t.Fatal("nobody is told why")
		}
	})
}

// history is a world that is driven at random, and when each record was there.
type history struct {
	*world
	x    *Crawler
	born map[string]time.Time
	n    int

	covered int // windows that were
}

// Fill tells the crawler of what was saved, as the mirror does.
func (h *history) Fill(ctx context.Context, f request.Fill) (request.PageSaved, error) {
	landed, err := h.world.Fill(ctx, f)
	if err == nil {
		_ = h.x.HandlePageSaved(ctx, landed)
	}
	return landed, err
}

// start makes a crawler that knows what the values say.
func (h *history) start(ctx context.Context) error {
	h.x = h.walker(Settings{Sweep: 2 * time.Hour, Slice: time.Hour, Overlap: 10 * time.Minute})
	h.x.o.Mirror = h
	return h.x.Load(ctx, nil)
}

// make puts records before all others; parent "" = letters.
func (h *history) make(kind, parent string, n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for range n {
		h.n++
		x := thing{id: fmt.Sprintf("%s%05d", kind[:1], h.n), parent: parent, clock: time.Now().Unix(), stamps: 1, made: time.Now().Unix()}
		if h.n%7 == 0 && kind == "letters" {
			x.clock = 0
		}
		h.born[x.id] = time.Now()
		h.things[kind] = append([]thing{x}, h.things[kind]...)
	}
}

// truth finds out whether what is said to be covered is held; nil when it is,
// or when nothing is said.
func (h *history) truth(kind, parent string, from, to int64) error {
	c, ok := h.x.Coverage("post", kind, "", parent, from, to)
	if !ok {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	since := c.At
	if c.Newest.After(since) {
		since = c.Newest // there is no gap up to it
	}
	if parent != "" {
		if since = c.At; h.held["letters"][parent] == nil {
			return nil // not held: what lies under it has no answer
		}
		if own := h.held["letters"][parent].since; own.After(since) {
			since = own
		}
	}
	h.covered++
	below := false // all that stands below the newest page's first is held, whenever it came
	for _, x := range h.things[kind] {
		inside := (from == 0 || x.clock >= from) && (to == 0 || x.clock < to) && (x.clock != 0 || from == 0 && to == 0)
		below = below || len(c.Head) > 0 && c.Head[0] == x.id
		if !inside || h.hidden[x.id] || parent != "" && x.parent != parent || !below && !h.born[x.id].Before(since.Truncate(time.Second)) {
			continue
		}
		if h.held[kind][x.id] == nil {
			return fmt.Errorf("%s of %q in [%d,%d) are covered since %v, and %s of %v is not held", kind, parent, from, to, since, x.id,
				h.born[x.id])
		}
	}
	if len(c.Head) > 0 && !below {
		return fmt.Errorf("the newest page showed %v, which is not in the list", c.Head)
	}
	return nil
}

// step is something that happens, and a window that is asked for afterwards.
type step struct {
	What, Wait, Many, Which int
	From, To                int64 // before now; 0 = open
}

func steps(t *rapid.T) []step {
	open := func(most int64) *rapid.Generator[int64] {
		return rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(-10, most))
	}
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
		return step{rapid.IntRange(0, 12).Draw(t, "what"), rapid.IntRange(1, 600).Draw(t, "seconds"), rapid.IntRange(1, 14).Draw(t, "many"),
			rapid.IntRange(0, 9).Draw(t, "which"), open(20_000).Draw(t, "from"), open(10_000).Draw(t, "to")}
	}), 5, 60).Draw(t, "steps")
}

// TestWhatIsCoveredIsHeld lets records come, pages land, walks run, break off
// and begin again, and the process start anew, in any order.
func TestWhatIsCoveredIsHeld(t *testing.T) {
	covered := 0
	rapid.Check(t, func(rt *rapid.T) {
		begin, plan := rapid.IntRange(0, 12).Draw(rt, "begin with"), steps(rt)
		var err error
		synctest.Test(t, func(t *testing.T) {
			h := &history{world: newWorld(t), born: map[string]time.Time{}}
			err = h.drive(t.Context(), begin, plan)
			covered += h.covered
		})
		if err != nil {
			rt.Fatal(err)
		}
	})
	if covered < 100 {
		t.Errorf("only %d windows were covered: this proves nothing", covered)
	}
}

func (h *history) drive(ctx context.Context, begin int, plan []step) error {
	if err := h.start(ctx); err != nil {
		return err
	}
	h.make("letters", "", begin)
	for _, kind := range []string{"letters", "stamps"} {
		if err := h.x.Keep(ctx, "post", kind); err != nil {
			return err
		}
	}
	for i, st := range plan {
		time.Sleep(time.Duration(st.Wait) * time.Second)
		if err := h.happen(ctx, st); err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
		now := time.Now().Unix()
		from, to := st.From, st.To
		if from != 0 {
			from = now - from
		}
		if to != 0 {
			to = now - to
		}
		err := errors.Join(h.truth("letters", "", from, to), h.truth("letters", "", 0, 0))
		for _, x := range h.things["letters"] {
			err = errors.Join(err, h.truth("stamps", x.id, 0, 0))
		}
		if err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
	}
	return nil
}

func (h *history) happen(ctx context.Context, st step) error {
	switch st.What {
	case 0, 1:
		h.make("letters", "", st.Many)
	case 2:
		if n := len(h.things["letters"]); n > 0 {
			h.make("stamps", h.things["letters"][st.Which%n].id, 1)
		}
	case 3, 4: // a newest page is saved; whether it is read yet is another step
		tip, err := h.x.walks["post/letters"].plan.buildNewestTarget()
		if err != nil {
			return err
		}
		_, err = h.Fill(ctx, request.Fill{Target: tip})
		return err
	case 5, 6:
		return h.x.look(ctx)
	case 7:
		return h.x.enqueueDue(ctx)
	case 8, 9:
		_ = h.work(ctx, h.x) // a sync of what lies under waits for the kind above
	case 10: // one walk breaks off
		left := st.Many
		h.before = func(*spec.Target) error {
			if left--; left < 0 {
				return understudy.ErrInvalid
			}
			return nil
		}
		_ = h.work(ctx, h.x)
		h.before, h.jobs = nil, nil
	case 11:
		return h.start(ctx)
	case 12: // a reader's page, too small to reach down to what is known
		small, err := h.x.walks["post/letters"].plan.buildTarget(0, "", interval{minClock, maxClock, 0}, 1)
		if err != nil {
			return err
		}
		_, err = h.Fill(ctx, request.Fill{Target: small})
		return err
	}
	return nil
}

func TestCoverageIsOfTheOldestWalkAndTheNewestPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		w, x := synced(t, 100, Settings{})
		began := time.Now().Truncate(time.Second)
		c, ok := x.Coverage("post", "letters", "", "", 0, 0)
		checktest.MustTrue(t, ok, "after a sync at %v: ok is false", began)
		checktest.MustTrue(t, c.At.Equal(began), "after a sync at %v: c.At.Equal(began) is false", began)
		checktest.MustTrue(t, c.Newest.Equal(began), "after a sync at %v: c.Newest.Equal(began) is false", began)
		checktest.MustTrue(t, slices.Equal(c.Shapes, []string{"letters"}), "after a sync at %v: c.Shapes is %v",
			began, c.Shapes)
		time.Sleep(time.Minute)
		w.arrive(2)
		w.poll(x, "letters")
		c, ok = x.Coverage("post", "letters", "", "", 0, 0)
		checktest.MustTrue(t, ok, "after a page: ok is false")
		checktest.True(t, c.At.Equal(began), "after a page: c.At.Equal(began) is false")
		checktest.True(t, c.Newest.Equal(began.Add(time.Minute)),
			"after a page: c.Newest.Equal(began.Add(time.Minute)) is false")
		w.arrive(7)
		target, err := x.walks["post/letters"].plan.buildNewestTarget()
		if err != nil {
			t.Fatal(err)
		}
		landed, err := w.Fill(ctx, request.Fill{Target: target})
		if err != nil {
			t.Fatal(err)
		}
		_ = x.HandlePageSaved(t.Context(), landed)
		if c, ok = x.Coverage("post", "letters", "", "", 0, 0); ok {
			t.Errorf("a page that leaves a gap has landed, and all is covered: %+v", c)
		}
		if _, ok = x.Coverage("post", "letters", "", "", 1, began.Add(-25*time.Hour).Unix()); !ok {
			t.Error("a window that does not reach the gap is not covered")
		}
		if err := x.NoteLost(ctx, "post", "letters"); err != nil {
			t.Fatal(err)
		}
		if c, ok = x.Coverage("post", "letters", "", "", 1, began.Add(-25*time.Hour).Unix()); ok {
			t.Errorf("records were forgotten, and it is covered: %+v", c)
		}
		time.Sleep(time.Second)
		if err := x.enqueueDue(ctx); err != nil {
			t.Fatal(err)
		}
		if err := x.look(ctx); err != nil {
			t.Fatal(err)
		}
		if err := w.work(ctx, x); err != nil {
			t.Fatal(err)
		}
		if c, ok = x.Coverage("post", "letters", "", "", 0, 0); !ok || !c.Newest.After(began.Add(time.Minute)) {
			t.Errorf("a sweep since the loss went down from the newest page: %+v, %v", c, ok)
		}
		w.poll(x, "letters")
		if c, ok = x.Coverage("post", "letters", "", "", 0, 0); !ok || c.At.Before(began.Add(time.Minute)) {
			t.Errorf("walked again: %+v, %v", c, ok)
		}
		if err := x.Drop(ctx, "post", "letters"); err != nil {
			t.Fatal(err)
		}
		if _, ok = x.Coverage("post", "letters", "", "", 0, 0); ok {
			t.Error("covered though nobody keeps it up")
		}
		if err := x.Keep(ctx, "post", "letters"); err != nil {
			t.Fatal(err)
		}
		if c, ok = x.Coverage("post", "letters", "", "", 0, 0); ok {
			t.Errorf("nobody looked for a while, and all is covered: %+v", c)
		}
		time.Sleep(time.Second)
		w.poll(x, "letters")
		if c, ok = x.Coverage("post", "letters", "", "", 0, 0); !ok {
			t.Errorf("looked at again: %+v", c)
		}
	})
}

func TestBeforeTheHorizonNothingIsCovered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, x := synced(t, 100, Settings{Horizon: 48 * time.Hour})
		edge := time.Now().Add(-48 * time.Hour).Unix()
		c, ok := x.Coverage("post", "letters", "", "", 0, 0)
		checktest.MustTrue(t, !ok, "ok is true")
		checktest.Equal(t, c.From, edge, "c.From")
		checktest.True(t, !c.At.IsZero(), "c.At.IsZero() is true")
		if c, ok = x.Coverage("post", "letters", "", "", edge, 0); !ok {
			t.Errorf("from the horizon on: %+v", c)
		}
	})
}

func TestWhatIsDoubtedIsWalkedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, x := synced(t, 1000, Settings{})
		old := time.Now().Add(-900 * time.Hour).Unix()
		x.Recheck("post", "letters", old, old+1)
		if err := x.look(t.Context()); err != nil || w.jobNames() != "" {
			t.Errorf("walked a moment ago: %q, %v", w.jobNames(), err)
		}
		time.Sleep(time.Hour)
		x.Recheck("post", "nothing", 0, 0)
		x.Recheck("post", "letters", old, old+1)
		x.Recheck("post", "letters", old-5, old+5)
		if err := x.look(t.Context()); err != nil || w.jobNames() != "sweep letters" {
			t.Fatalf("promised %q, %v; want one sweep", w.jobNames(), err)
		}
		gone := w.things["letters"][900]
		w.things["letters"] = slices.Delete(w.things["letters"], 900, 901)
		if err := w.work(t.Context(), x); err != nil {
			t.Fatal(err)
		}
		if slices.Contains(w.has("letters"), gone.id) {
			t.Error("what went is still there")
		}
		if c, ok := x.Coverage("post", "letters", "", "", 0, 0); !ok {
			t.Errorf("what is unproven stays covered: %+v", c)
		}
		x.Recheck("post", "letters", 0, 0)
		if err := x.look(t.Context()); err != nil || w.jobNames() != "sweep letters" {
			t.Errorf("one without a clock: %q, %v", w.jobNames(), err)
		}
	})
}

// A page that was saved before the process ended is looked at by the next one.
func TestAGapIsKnownAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, x := synced(t, 100, Settings{})
		time.Sleep(time.Minute)
		w.arrive(7)
		tip, err := x.walks["post/letters"].plan.buildNewestTarget()
		if err != nil {
			t.Fatal(err)
		}
		landed, err := w.Fill(t.Context(), request.Fill{Target: tip})
		if err != nil {
			t.Fatal(err)
		}
		x = w.walker(Settings{})
		x.o.Store = paged{w, landed.Page}
		if err := x.Load(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if c, ok := x.Coverage("post", "letters", "", "", 0, 0); ok {
			t.Errorf("a page that leaves a gap is held, and all is covered: %+v", c)
		}
		if err := x.look(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := w.work(t.Context(), x); err != nil {
			t.Fatal(err)
		}
		if c, ok := x.Coverage("post", "letters", "", "", 0, 0); !ok {
			t.Errorf("caught up: %+v", c)
		}
	})
}

// paged is a world that holds a page.
type paged struct {
	*world
	page *understudy.Page
}

func (p paged) ReadPage(context.Context, understudy.Key) (*understudy.Page, error) {
	return p.page, nil
}
