// Keeping up: bursts, late changes, what goes, what is not final.

package crawl

import (
	"context"
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

// arrive puts new letters before all others.
func (w *world) arrive(n int) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var fresh []thing
	for i := range n {
		fresh = append(fresh, thing{id: fmt.Sprintf("N%d-%05d", time.Now().Unix(), n-i), clock: time.Now().Unix() - int64(i)})
	}
	w.things["letters"] = append(fresh, w.things["letters"]...)
	return ids(fresh)
}

func lacks(w *world, want []string) (out []string) {
	has := w.has("letters")
	for _, id := range want {
		if _, ok := slices.BinarySearch(has, id); !ok {
			out = append(out, id)
		}
	}
	return out
}

func TestABurstLeavesNoGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, x := synced(t, 100, Settings{})
		time.Sleep(time.Minute)
		burst := w.arrive(500)
		w.take()
		w.poll(x, "letters")
		incomplete(t, x, "letters", "catching up")
		if err := w.work(t.Context(), x); err != nil {
			t.Fatal(err)
		}
		if l := lacks(w, burst); l != nil {
			t.Errorf("%d of the burst are missing", len(l))
		}
		complete(t, x, "letters")
		if n := len(w.take()); n > 101 {
			t.Errorf("%d requests for 500 letters in pages of 5", n)
		}
		if s, _ := x.ReadState(t.Context(), "post", "letters"); !s.CaughtUp.Equal(time.Now().Truncate(time.Second)) {
			t.Errorf("caught up to %v at %v", s.CaughtUp, time.Now())
		}
	})
}

// Killed in the middle of the catch-up, and the job lost with it: the next poll
// finds the same gap, though its own page overlaps what was held.
func TestAKillInABurstLeavesNoGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, x := synced(t, 100, Settings{})
		time.Sleep(time.Minute)
		burst := w.arrive(200)
		w.poll(x, "letters")
		ctx, kill := context.WithCancel(t.Context())
		n := 0
		w.before = func(*spec.Target) error {
			if n++; n == 5 {
				kill()
			}
			return nil
		}
		if err := w.work(ctx, x); err == nil {
			t.Fatal("not killed")
		}
		w.before, w.jobs = nil, nil
		x = w.walker(Settings{})
		incomplete(t, x, "letters", "catching up")
		w.poll(x, "letters")
		if err := w.work(t.Context(), x); err != nil {
			t.Fatal(err)
		}
		if l := lacks(w, burst); l != nil {
			t.Errorf("%d of the burst are missing", len(l))
		}
		complete(t, x, "letters")
	})
}

// sweepAll runs all sweeps that come due in a day.
func sweepAll(t *testing.T, w *world, x *Crawler) {
	t.Helper()
	for range 2 * 24 {
		time.Sleep(30 * time.Minute)
		if err := x.enqueueDue(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.poll(x, "letters")
		if err := w.work(t.Context(), x); err != nil {
			t.Fatal(err)
		}
	}
}

// The checker: what is deleted, changed and put among old ones, without a hint,
// is in the change log exactly once after a sweep, and nothing else is.
func TestASweepFindsEveryLateChangeOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		all := letters(1000, time.Hour, time.Now())
		var later []thing
		for i := 5; i < 1000; i += 97 {
			later = append(later, all[i])
		}
		w.things["letters"] = slices.DeleteFunc(slices.Clone(all), func(x thing) bool { return slices.Contains(later, x) })
		x := w.walker(Settings{Slice: 7 * 24 * time.Hour})
		if err := x.Keep(t.Context(), "post", "letters"); err != nil {
			t.Fatal(err)
		}
		if err := w.work(t.Context(), x); err != nil {
			t.Fatal(err)
		}
		from := len(w.changes)
		var want []string
		w.things["letters"] = nil
		for i, l := range all {
			switch {
			case slices.Contains(later, l):
				want = append(want, "letters "+l.id+" came")
			case i%50 == 7: // some of them without a clock
				want = append(want, "letters "+l.id+" went")
				continue
			case i%50 == 21 || i%100 == 13:
				l.version++
				want = append(want, "letters "+l.id+" changed")
			}
			w.things["letters"] = append(w.things["letters"], l)
		}
		slices.Sort(want)
		w.take()
		sweepAll(t, w, x)
		if got := w.log(from); !slices.Equal(got, want) {
			t.Errorf("changes\n%v\nwant\n%v", got, want)
		}
		complete(t, x, "letters")
		if n := len(w.take()); n > 3*100 {
			t.Errorf("%d requests for a sweep of 1000 letters in pages of 10", n)
		}
	})
}

func TestWhatIsNotSweptIsNotComplete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, x := synced(t, 100, Settings{})
		time.Sleep(25 * time.Hour)
		incomplete(t, x, "letters", "was last read on")
		w.down = "upstream 503"
		complete(t, x, "letters")
	})
}

// What comes while a sweep runs is not missing.
func TestWhatComesDuringASweepIsNotMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, x := synced(t, 100, Settings{})
		time.Sleep(20 * time.Hour)
		if err := x.enqueueDue(t.Context()); err != nil {
			t.Fatal(err)
		}
		from, came := len(w.changes), false
		w.before = func(target *spec.Target) error {
			if _, ok := target.Query.Get("after"); ok && !came {
				came = true
				l := thing{id: "during", clock: time.Now().Unix()}
				w.things["letters"] = append([]thing{l}, w.things["letters"]...)
				w.keep(&understudy.Page{Kind: "letters"}, l)
			}
			if target.ID != "" {
				t.Errorf("asked for %s", target.ID)
			}
			return nil
		}
		if err := w.work(t.Context(), x); err != nil {
			t.Fatal(err)
		}
		if got := w.log(from); !slices.Equal(got, []string{"letters during came"}) {
			t.Errorf("changes %v", got)
		}
	})
}

// A list that hides half of what is there does not empty the mirror.
func TestAListThatHidesIsNotBelieved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, x := synced(t, 200, Settings{})
		for i, l := range w.things["letters"] {
			w.hidden[l.id] = i > 100
		}
		time.Sleep(20 * time.Hour)
		if err := x.enqueueDue(t.Context()); err != nil {
			t.Fatal(err)
		}
		from := len(w.changes)
		err := w.work(t.Context(), x)
		if err == nil || !strings.Contains(err.Error(), "still exists; nothing was removed") {
			t.Errorf("error %v", err)
		}
		if got := w.log(from); got != nil {
			t.Errorf("changes %v", got)
		}
		incomplete(t, x, "letters", "still exists")
	})
}

// When a mass really went, it goes.
func TestAMassThatWentGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, x := synced(t, 200, Settings{})
		w.things["letters"] = w.things["letters"][:100]
		sweepAll(t, w, x)
		if n := len(w.has("letters")); n != 100 {
			t.Errorf("%d letters held", n)
		}
	})
}

// Without a path of its own a record goes when two sweeps in a row miss it.
func TestWithoutAPathTwoSweepsDecide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.things["tags"] = []thing{{id: "a"}, {id: "b"}, {id: "c"}}
		x := w.walker(Settings{})
		if err := x.Keep(t.Context(), "post", "tags"); err != nil {
			t.Fatal(err)
		}
		sweep := func() {
			if err := x.enqueueDue(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := w.work(t.Context(), x); err != nil {
				t.Fatal(err)
			}
			time.Sleep(23 * time.Hour)
		}
		sweep()
		w.things["tags"] = w.things["tags"][:2]
		sweep()
		if got := w.has("tags"); len(got) != 3 {
			t.Errorf("after one sweep: %v", got)
		}
		sweep()
		if got := w.has("tags"); !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("after two sweeps: %v", got)
		}
	})
}

// Very many that cannot be asked for one by one are believed to be gone later.
func TestAListThatShowsNothingIsNotBelievedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for i := range 50 {
			w.things["tags"] = append(w.things["tags"], thing{id: fmt.Sprint("t", i)})
		}
		all := w.things["tags"]
		x := w.walker(Settings{})
		if err := x.Keep(t.Context(), "post", "tags"); err != nil {
			t.Fatal(err)
		}
		sweep := func() int {
			if err := x.enqueueDue(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := w.work(t.Context(), x); err != nil {
				t.Fatal(err)
			}
			time.Sleep(23 * time.Hour)
			return len(w.has("tags"))
		}
		sweep()
		w.things["tags"] = nil
		for n := range 3 {
			if held := sweep(); held != 50 {
				t.Fatalf("after %d empty lists %d tags are held", n+1, held)
			}
		}
		w.things["tags"] = all
		sweep()
		w.things["tags"] = nil
		for n, want := range []int{50, 50, 50, 50, 0} {
			if held := sweep(); held != want {
				t.Errorf("after %d empty lists in a row %d tags are held, want %d", n+1, held, want)
			}
		}
	})
}

func TestOpenRecordsAreLookedAtAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.things["letters"] = letters(1000, time.Minute, time.Now())
		for _, i := range []int{2, 4, 6, 8, 30, 31, 700} { // ten hours back, and one without a neighbour
			w.things["letters"][i].open = true
		}
		x := w.walker(Settings{})
		if err := x.Keep(t.Context(), "post", "letters"); err != nil {
			t.Fatal(err)
		}
		if err := w.work(t.Context(), x); err != nil {
			t.Fatal(err)
		}
		w.take()
		if w.looks > 0 {
			t.Errorf("%d pages of the walk are said to be fetched for records that are not final", w.looks)
		}
		time.Sleep(2 * time.Minute)
		if err := x.enqueueDue(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := w.jobNames(); got != "check letters" {
			t.Fatalf("promised: %s", got)
		}
		for _, i := range []int{2, 4, 6, 8} {
			w.things["letters"][i].open = false
		}
		if err := w.work(t.Context(), x); err != nil {
			t.Fatal(err)
		}
		asked := w.take()
		if len(asked) != 1 || !strings.Contains(asked[0], "from=") {
			t.Errorf("four young ones beside each other cost %v", asked)
		}
		time.Sleep(time.Hour)
		if err := x.enqueueDue(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := w.work(t.Context(), x); err != nil {
			t.Fatal(err)
		}
		if asked := w.take(); len(asked) != 2 || !strings.Contains(strings.Join(asked, " "), "/letters/L000300") {
			t.Errorf("two beside each other and one alone cost %v", asked)
		}
		if w.looks != 3 {
			t.Errorf("%d of 3 pages are said to be fetched for records that are not final", w.looks)
		}
		time.Sleep(8 * 24 * time.Hour)
		rows, err := x.checks.findDue(t.Context(), x.walks["post/letters"], "letters")
		if err != nil || len(rows) != 0 {
			t.Errorf("beyond the window: %v, %v", rows, err)
		}
	})
}

func TestHowOftenARecordIsLookedAt(t *testing.T) {
	for age, want := range map[time.Duration]time.Duration{
		time.Second: time.Minute, 5 * time.Minute: time.Minute, time.Hour: 6 * time.Minute, 10 * time.Hour: time.Hour,
		6 * 24 * time.Hour: time.Hour,
	} {
		if got := lookInterval(age); got != want {
			t.Errorf("of age %v: after %v, want %v", age, got, want)
		}
	}
}

// While upstream fails a walk comes back to the same place.
func TestAnOutageIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.things["letters"] = letters(100, time.Hour, time.Now())
		x := w.walker(Settings{})
		n := 0
		w.before = func(*spec.Target) error {
			if n++; n > 4 {
				return &understudy.UpstreamError{Why: understudy.FailServer, Status: 503}
			}
			return nil
		}
		if err := x.Keep(t.Context(), "post", "letters"); err != nil {
			t.Fatal(err)
		}
		err := w.work(t.Context(), x)
		var later *understudy.Snooze
		if !errors.As(err, &later) {
			t.Fatalf("error %v", err)
		}
		first := w.take()
		w.before = nil
		if err := w.work(t.Context(), x); err != nil {
			t.Fatal(err)
		}
		for _, uri := range w.take() {
			if slices.Contains(first[:4], uri) {
				t.Errorf("asked again: %s", uri)
			}
		}
		complete(t, x, "letters")
	})
}

func TestDropEndsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, x := synced(t, 20, Settings{})
		if err := x.Drop(t.Context(), "post", "letters"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(48 * time.Hour)
		if err := x.enqueueDue(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := w.jobNames(); got != "" || len(w.polls) != 0 {
			t.Errorf("promised %q, polled %v", got, w.polls)
		}
		{
			s, err := x.ReadState(t.Context(), "post", "letters")
			checktest.MustNoError(t, err, "state")
			checktest.True(t, !s.Kept, "state: s.Kept is true")
			checktest.True(t, !s.Complete, "state: s.Complete is true")
		}
	})
}
