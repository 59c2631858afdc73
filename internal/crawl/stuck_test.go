// What keeps a kind from being complete is told, and what is known of a kind
// does not grow with time.

package crawl

import (
	"encoding/json"
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

func state(t *testing.T, x *Crawler, kind string) State {
	t.Helper()
	s, err := x.ReadState(t.Context(), "post", kind)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func keepKind(t *testing.T, x *Crawler, kind string) {
	t.Helper()
	if err := x.Keep(t.Context(), "post", kind); err != nil {
		t.Fatal(err)
	}
}

// A page that can never have the room it needs is a reason, for the kind and
// for what lies under it; a person who raises the limit and asks again is heard.
func TestWhatIsTooHeavyIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.things["letters"] = letters(20, time.Hour, time.Now())
		w.heavy = room
		x := w.walker(Settings{})
		keepKind(t, x, "stamps")
		if err := w.work(t.Context(), x); !errors.Is(err, understudy.ErrInvalid) {
			t.Fatalf("error %v", err)
		}
		for _, kind := range []string{"letters", "stamps"} {
			if s := state(t, x, kind); !s.Failed || !strings.Contains(s.Why, "more than there are") {
				t.Errorf("%s: %+v", kind, s)
			}
		}
		w.jobs = nil // the runner has given up
		if err := x.enqueueDue(t.Context()); err != nil || strings.Contains(w.jobNames(), "sync letters") {
			t.Errorf("promised again at once: %s, %v", w.jobNames(), err)
		}
		time.Sleep(failurePause)
		if err := x.enqueueDue(t.Context()); err != nil || !strings.Contains(w.jobNames(), "sync letters") {
			t.Errorf("not promised again: %s, %v", w.jobNames(), err)
		}
		w.jobs, w.heavy = nil, 0
		keepKind(t, x, "letters")
		if err := w.work(t.Context(), x); err != nil {
			t.Fatal(err)
		}
		complete(t, x, "letters")
	})
}

// A walk that comes back again and again is told with the reason; one that
// gets on is not.
func TestAWalkThatComesNoFurtherIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.things["letters"] = letters(100, time.Hour, time.Now())
		x := w.walker(Settings{})
		bad := ""
		w.before = func(target *spec.Target) error {
			if strings.Contains(target.Key.URI, "after") && (bad == "" || bad == target.Key.URI) {
				bad = target.Key.URI
				return &understudy.UpstreamError{Why: understudy.FailServer, Status: 500}
			}
			return nil
		}
		keepKind(t, x, "letters")
		var since time.Time
		for i := range 20 {
			if err := w.work(t.Context(), x); err == nil {
				t.Fatal("it has ended")
			}
			s := state(t, x, "letters")
			checktest.MustTrue(t, !s.Failed, "state: s.Failed is true")
			checktest.MustTrue(t, !s.Stuck.IsZero(), "state: s.Stuck.IsZero() is true")
			checktest.MustContains(t, s.Why, "500", "state: s.Why")
			if i > 10 && !since.Equal(s.Stuck) {
				t.Errorf("stuck since %v, before that since %v", s.Stuck, since)
			}
			since = s.Stuck
			time.Sleep(5 * time.Second)
		}
		w.before = nil
		if err := w.work(t.Context(), x); err != nil {
			t.Fatal(err)
		}
		if s := state(t, x, "letters"); !s.Complete || !s.Stuck.IsZero() {
			t.Errorf("state %+v", s)
		}
	})
}

// A part that failed makes the kind incomplete until that part was walked well,
// whatever other parts do; asking again changes nothing about that.
func TestAPartThatFailedIsNotForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, x := synced(t, 300, Settings{Slice: 2 * 24 * time.Hour})
		time.Sleep(20 * time.Hour)
		if err := x.enqueueDue(t.Context()); err != nil {
			t.Fatal(err)
		}
		hide := func(is bool) {
			for _, l := range w.things["letters"][100:150] {
				w.hidden[l.id] = is
			}
		}
		hide(true)
		failed := 0
		for len(w.jobs) > 0 {
			if err := w.work(t.Context(), x); err != nil {
				failed++
				w.jobs = w.jobs[1:]
			}
		}
		if failed == 0 {
			t.Fatal("no sweep has failed")
		}
		incomplete(t, x, "letters", "still exists")
		keepKind(t, x, "letters")
		incomplete(t, x, "letters", "still exists")
		hide(false)
		if err := w.work(t.Context(), x); err != nil {
			t.Fatal(err)
		}
		complete(t, x, "letters")
	})
}

// With a horizon that moves on, what is known stays as short as it was, and a
// stretch is promised once however long its sweep has to wait.
func TestWhatIsKnownDoesNotGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, x := synced(t, 503, Settings{Slice: 2 * 24 * time.Hour, Horizon: 9 * 24 * time.Hour})
		for day := range 40 {
			w.things["letters"] = slices.Concat([]thing{{id: fmt.Sprintf("M%06d", day), clock: time.Now().Unix()}}, w.things["letters"])
			for range 4 {
				time.Sleep(6 * time.Hour)
				w.poll(x, "letters")
				for range 20 { // the jobs wait for their turn
					if err := x.enqueueDue(t.Context()); err != nil {
						t.Fatal(err)
					}
					time.Sleep(30 * time.Second)
				}
				if n := strings.Count(w.jobNames(), "sweep letters"); n > 8 {
					t.Fatalf("%d sweeps are promised: %s", n, w.jobNames())
				}
				if err := w.work(t.Context(), x); err != nil {
					t.Fatal(err)
				}
			}
		}
		var m kindState
		if err := json.Unmarshal(w.kv[kvPrefix+"post/letters"], &m); err != nil {
			t.Fatal(err)
		}
		if len(m.Spans) > 8 {
			t.Errorf("%d spans: %v", len(m.Spans), m.Spans)
		}
		complete(t, x, "letters")
	})
}

// watched is a run whose progress is looked at.
type watched struct {
	*run
	see func(done, total int64, note string)
}

func (r *watched) SetProgress(done, total int64, note string) { r.see(done, total, note) }

// How many there are is guessed from what was walked to its end, and never
// wildly; how many are done only rises, in each of the two walks. Neither is cut
// to fit the other, and the end says what was done.
func TestTheGuessIsNotWild(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 2000
		w := newWorld(t)
		w.things["letters"] = letters(n, time.Hour, time.Now())
		x := w.walker(Settings{Slice: 2 * 24 * time.Hour})
		keepKind(t, x, "letters")
		done, guessed, walk := int64(0), 0, ""
		see := func(is, total int64, note string) {
			if is < done && note == walk {
				t.Errorf("%d are done, and were %d", is, done)
			}
			if s := state(t, x, "letters"); note == "walk 1 of 2" && (s.Done != is || s.Walk != "1 of 2" || (s.Total < 0) != (total == 0)) {
				t.Errorf("%d of %d, and the state is %+v", is, total, s)
			}
			if done, walk = is, note; total == 0 {
				return
			}
			if total < is {
				t.Errorf("%d of %d", is, total)
			}
			if guessed++; total < n/2 || total > n*3/2 {
				t.Errorf("%d of %d, and there are %d", is, total, n)
			}
		}
		if err := x.Work()["sync letters"](t.Context(), &watched{&run{job: w.jobs[0]}, see}); err != nil {
			t.Fatal(err)
		}
		if guessed == 0 {
			t.Error("nothing was ever guessed")
		}
		if want := "2000 records read, all lists complete"; walk != want || done != n {
			t.Errorf("it ended with %d and %q", done, walk)
		}
		{
			s := state(t, x, "letters")
			checktest.Equal(t, s.Done, n, "the state is: s.Done")
			checktest.Equal(t, s.Total, n, "the state is: s.Total")
			checktest.Equal(t, s.Walk, "", "the state is: s.Walk")
		}
	})
}

// What came during a long sync is known at its end, or that there is more.
func TestABurstDuringASyncLeavesNoGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.things["letters"] = letters(100, time.Hour, time.Now())
		x := w.walker(Settings{Slices: 1})
		n := 0
		w.before = func(*spec.Target) error {
			if n++; n == 5 {
				time.Sleep(time.Hour)
				w.things["letters"] = slices.Concat(burst("M", 50), w.things["letters"])
			}
			return nil
		}
		keepKind(t, x, "letters")
		for len(w.jobs) > 0 {
			left := len(w.jobs)
			r := &run{job: w.jobs[0]}
			if err := x.Work()[r.job.Kind](t.Context(), r); err != nil {
				t.Fatal(err)
			}
			w.jobs = w.jobs[1:]
			if s := state(t, x, "letters"); s.Complete && len(w.has("letters")) != 150 {
				t.Errorf("complete with %d of 150, %d jobs left", len(w.has("letters")), left)
			}
		}
		complete(t, x, "letters")
	})
}

// A page that lands while a gap is filled may leave another one.
func TestABurstOnABurstLeavesNoGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, x := synced(t, 30, Settings{})
		for _, name := range []string{"M", "N"} {
			time.Sleep(time.Minute)
			w.things["letters"] = slices.Concat(burst(name, 50), w.things["letters"])
			w.poll(x, "letters")
		}
		if err := w.work(t.Context(), x); err != nil {
			t.Fatal(err)
		}
		if n := len(w.has("letters")); n == 130 {
			t.Fatal("the second gap was filled, too; the test shows nothing")
		}
		incomplete(t, x, "letters", "catching up")
		time.Sleep(time.Minute)
		w.poll(x, "letters")
		if err := w.work(t.Context(), x); err != nil {
			t.Fatal(err)
		}
		if n := len(w.has("letters")); n != 130 {
			t.Errorf("%d held", n)
		}
		complete(t, x, "letters")
	})
}

// burst are n new letters.
func burst(name string, n int) []thing {
	out := letters(n, time.Second, time.Now())
	for i := range out {
		out[i].id = name + out[i].id
	}
	return out
}

// TestSyncThatRunsTwice: if the lease of a job ends while the job goes on, the job runs a second time. The end of one run does not
// disturb the other.
func TestSyncThatRunsTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.things["letters"] = letters(500, time.Hour, time.Now())
		x := w.walker(Settings{Slice: 2 * 24 * time.Hour})
		keepKind(t, x, "letters")
		sync := x.Work()["sync letters"]
		steps := 0
		see := func(int64, int64, string) {
			if steps++; steps == 40 { // in the middle of a walk
				checktest.NoError(t, sync(t.Context(), &run{job: w.jobs[0]}), "the second run")
			}
		}
		checktest.NoError(t, sync(t.Context(), &watched{&run{job: w.jobs[0]}, see}), "the first run")
		checktest.True(t, steps > 40, "the first run has ended after %d steps", steps)
		complete(t, x, "letters")
	})
}
