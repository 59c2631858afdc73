// Syncs: everything comes, once; a kill costs the page under way.

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

// synced is a world of letters that was synced.
func synced(t *testing.T, n int, s Settings) (*world, *Crawler) {
	w := newWorld(t)
	w.things["letters"] = letters(n, time.Hour, time.Now())
	x := w.walker(s)
	if err := x.Keep(t.Context(), "post", "letters"); err != nil {
		t.Fatal(err)
	}
	if err := w.work(t.Context(), x); err != nil {
		t.Fatal(err)
	}
	return w, x
}

func complete(t *testing.T, x *Crawler, kind string) {
	t.Helper()
	if s, err := x.ReadState(context.Background(), "post", kind); err != nil || !s.Complete {
		t.Errorf("%s: not complete: %q, %v", kind, s.Why, err)
	}
}

func incomplete(t *testing.T, x *Crawler, kind, why string) {
	t.Helper()
	s, err := x.ReadState(context.Background(), "post", kind)
	checktest.MustNoError(t, err, "%s", kind)
	checktest.True(t, !s.Complete, "%s: s.Complete is true", kind)
	checktest.Contains(t, s.Why, why, "%s: s.Why", kind)
}

func TestSyncBringsEverythingOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, x := synced(t, 503, Settings{Slice: 7 * 24 * time.Hour})
		if got, want := w.has("letters"), ids(w.things["letters"]); !slices.Equal(got, want) {
			t.Errorf("%d letters held, want %d", len(got), len(want))
		}
		complete(t, x, "letters")
		asked := w.take()
		if twice := repeated(asked); twice != nil {
			t.Errorf("asked twice: %v", twice)
		}
		// 51 pages of the whole list, and as many by intervals and a few more
		// where they overlap.
		if len(asked) > 51+51+20 {
			t.Errorf("%d requests", len(asked))
		}
		if !slices.Equal(w.polls, []string{"letters"}) {
			t.Errorf("polled: %v", w.polls)
		}
		s, _ := x.ReadState(t.Context(), "post", "letters")
		checktest.Equal(t, s.Done, 503, "state: s.Done")
		checktest.Equal(t, s.Total, 503, "state: s.Total")
		checktest.True(t, !s.CaughtUp.IsZero(), "state: s.CaughtUp.IsZero() is true")
		checktest.True(t, !s.Swept.IsZero(), "state: s.Swept.IsZero() is true")
	})
}

func TestNothingIsCompleteBeforeTheWholeListWasWalked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.things["letters"] = letters(300, time.Hour, time.Now())
		x := w.walker(Settings{Slice: 7 * 24 * time.Hour})
		sliced := 0
		w.before = func(target *spec.Target) error {
			if _, ok := target.Query.Get("to"); ok {
				sliced++
			}
			if _, after := target.Query.Get("after"); after && sliced > 0 && !strings.Contains(target.Key.URI, "from=") &&
				!strings.Contains(target.Key.URI, "to=") {
				return errKilled
			}
			return nil
		}
		if err := x.Keep(t.Context(), "post", "letters"); err != nil {
			t.Fatal(err)
		}
		if err := w.work(t.Context(), x); !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		incomplete(t, x, "letters", "killed")
	})
}

var errKilled = errors.New("killed")

// A kill at any request: the next run goes on, nothing is asked twice but what
// was under way (at most one page of each stretch), and everything is there.
func TestSyncGoesOnAfterAKill(t *testing.T) {
	for at := 1; at < 110; at += 6 {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.things["letters"] = letters(503, time.Hour, time.Now())
				s := Settings{Slice: 7 * 24 * time.Hour}
				x := w.walker(s)
				if err := x.Keep(t.Context(), "post", "letters"); err != nil {
					t.Fatal(err)
				}
				ctx, kill := context.WithCancel(t.Context())
				n := 0
				w.before = func(*spec.Target) error {
					if n++; n == at {
						kill()
					}
					return nil
				}
				if err := w.work(ctx, x); err == nil && n >= at {
					t.Fatal("it was not killed")
				}
				w.before = nil
				x = w.walker(s)
				if err := w.work(t.Context(), x); err != nil {
					t.Fatal(err)
				}
				if got, want := w.has("letters"), ids(w.things["letters"]); !slices.Equal(got, want) {
					t.Errorf("%d letters held, want %d", len(got), len(want))
				}
				complete(t, x, "letters")
				if twice := repeated(w.take()); len(twice) > 4 {
					t.Errorf("asked twice: %v", twice)
				}
			})
		})
	}
}

func TestRetentionEndsASync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.things["letters"] = letters(503, time.Hour, time.Now())
		w.keeps = time.Now().Add(-10 * 24 * time.Hour).Unix()
		x := w.walker(Settings{Slice: 7 * 24 * time.Hour})
		if err := x.Keep(t.Context(), "post", "letters"); err != nil {
			t.Fatal(err)
		}
		if err := w.work(t.Context(), x); err != nil {
			t.Fatal(err)
		}
		complete(t, x, "letters")
		if s, _ := x.ReadState(t.Context(), "post", "letters"); !strings.Contains(s.Ended, "keeps nothing older than") {
			t.Errorf("ended: %q", s.Ended)
		}
	})
}

func TestHorizonEndsASync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, x := synced(t, 503, Settings{Slice: 2 * 24 * time.Hour, Horizon: 5 * 24 * time.Hour})
		complete(t, x, "letters")
		n := len(w.has("letters"))
		if n < 5*24 || n > 9*24 {
			t.Errorf("%d letters held", n)
		}
	})
}

func TestUnderEveryRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.things["letters"] = letters(60, time.Hour, time.Now())
		for i := range w.things["letters"] {
			l := &w.things["letters"][i]
			for n := range i % 3 {
				l.stamps++
				w.things["stamps"] = append(w.things["stamps"], thing{id: fmt.Sprintf("S%d-%d", i, n), parent: l.id, clock: l.clock})
			}
		}
		x := w.walker(Settings{})
		if err := x.Keep(t.Context(), "post", "stamps"); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			if err := w.work(t.Context(), x); err != nil {
				var later *understudy.Snooze
				if !errors.As(err, &later) {
					t.Fatal(err)
				}
				w.jobs = append(w.jobs[1:], w.jobs[0])
			}
		}
		if got, want := w.has("stamps"), ids(w.things["stamps"]); !slices.Equal(got, want) {
			t.Errorf("%d stamps held, want %d", len(got), len(want))
		}
		complete(t, x, "stamps")
		for _, uri := range w.take() {
			if strings.Contains(uri, "/L000060/stamps") {
				t.Errorf("asked for what the letter says is empty: %s", uri)
			}
		}
		// A letter that gets a stamp is asked for.
		w.things["letters"][0].stamps = 1
		w.things["stamps"] = append(w.things["stamps"], thing{id: "late", parent: "L000060"})
		w.poll(x, "letters")
		if err := w.work(t.Context(), x); err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(w.has("stamps"), "late") {
			t.Error("a late stamp was missed")
		}
	})
}

func TestWhatCannotBeSynced(t *testing.T) {
	w := newWorld(t)
	x := w.walker(Settings{})
	if err := x.Keep(t.Context(), "post", "totals"); !IsNeverSynced(err) || !strings.Contains(err.Error(), "no ids") {
		t.Errorf("totals: %v", err)
	}
	if err := x.Keep(t.Context(), "post", "lettres"); !errors.Is(err, understudy.ErrInvalid) {
		t.Errorf("lettres: %v", err)
	}
}

// repeated returns the requests that were made more than once.
func repeated(asked []string) []string {
	slices.Sort(asked)
	var out []string
	for i := 1; i < len(asked); i++ {
		if asked[i] == asked[i-1] {
			out = append(out, asked[i])
		}
	}
	return out
}
