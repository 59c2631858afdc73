// Walks below records.

package crawl

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"understudy"
	"understudy/internal/checktest"
)

// TestRecordsAreWalkedUnderBesideEachOther: of 2,000 letters every tenth has
// stamps, and an answer takes a second. The fill, and the sweep later, have as
// many answers under way as they may, not one of every few records.
func TestRecordsAreWalkedUnderBesideEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.things["letters"] = letters(2000, time.Minute, time.Now())
		for i := range w.things["letters"] {
			l := &w.things["letters"][i]
			if l.stamps = 0; i%10 == 0 {
				l.stamps = 1
				w.things["stamps"] = append(w.things["stamps"], thing{id: fmt.Sprint("s", i), parent: l.id, clock: l.clock})
			}
		}
		x := w.walker(Settings{})
		keepKind(t, x, "letters")
		if err := w.work(t.Context(), x); err != nil {
			t.Fatal(err)
		}
		w.delay = time.Second
		for _, what := range []string{"sync", "sweep"} {
			begin := time.Now()
			if what == "sync" {
				keepKind(t, x, "stamps")
				if err := w.work(t.Context(), x); err != nil {
					t.Fatal(err)
				}
			} else if err := x.Work()["sweep stamps"](t.Context(),
				&run{job: understudy.Job{Kind: "sweep stamps", Payload: []byte(`{"source":"post","kind":"stamps"}`)}}); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(begin); took > 200*time.Second/maxParallel+5*time.Second {
				t.Errorf("%s: 200 answers of a second took %v", what, took)
			}
			if n := len(w.has("stamps")); n != 200 {
				t.Errorf("%s: %d stamps of 200", what, n)
			}
		}
		complete(t, x, "stamps")
	})
}

// The mark goes only as far as everything before it has been walked.
func TestPrefix(t *testing.T) {
	g := &progressPrefix{rows: make([]int64, 4)}
	checktest.True(t, !g.noteEnd(2, 1, 5), "a mark with a gap before it: g.noteEnd(2, 1, 5) is true")
	checktest.True(t, !g.noteEnd(1, 0, 0), "a mark with a gap before it: g.noteEnd(1, 0, 0) is true")
	checktest.Equal(t, g.done, 0, "a mark with a gap before it: g.done")
	checktest.True(t, g.noteEnd(0, 1, 7), "g.noteEnd(0, 1, 7) is false")
	checktest.Equal(t, g.done, 3, "g.done")
	checktest.Equal(t, g.take(), 12, "g.take()")
	if g.noteEnd(3, 0, 0) || g.done != 4 {
		t.Errorf("a mark for nothing: %+v", g)
	}
}
