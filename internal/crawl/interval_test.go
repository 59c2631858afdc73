// Spans against a model that knows every clock by itself.

package crawl

import (
	"testing"

	"pgregory.net/rapid"
)

const clocks = 24

func TestSpansAgreeWithAModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s intervals
		model := map[int64]int64{} // clock -> walked at; missing: never
		for range rapid.IntRange(0, 12).Draw(t, "steps") {
			from := rapid.Int64Range(0, clocks).Draw(t, "from")
			to := rapid.Int64Range(0, clocks).Draw(t, "to")
			at := rapid.Int64Range(1, 9).Draw(t, "at")
			if rapid.IntRange(0, 5).Draw(t, "what") == 0 {
				s = s.dropBefore(from)
				for c := range from {
					delete(model, c)
				}
				continue
			}
			s = s.add(from, to, at)
			for c := from; c < to; c++ {
				model[c] = max(model[c], at)
			}
		}
		for i, x := range s {
			if x.From >= x.To || i > 0 && (s[i-1].To > x.From || s[i-1].To == x.From && s[i-1].At == x.At) {
				t.Fatalf("not in order, empty, or two where one would do: %v", s)
			}
		}
		agree(t, s, model)
	})
}

func agree(t *rapid.T, s intervals, model map[int64]int64) {
	from := rapid.Int64Range(0, clocks).Draw(t, "ask from")
	to := rapid.Int64Range(0, clocks).Draw(t, "ask to")
	since := rapid.Int64Range(0, 10).Draw(t, "since")
	covered, oldest := true, int64(maxClock)
	missing := map[int64]int64{}
	for c := from; c < to; c++ {
		at, walked := model[c]
		if !walked {
			at = minClock
		}
		oldest = min(oldest, at)
		if at < since {
			covered = false
			missing[c] = at
		}
	}
	if got := s.hasAll(from, to, since); got != covered {
		t.Fatalf("%v covers [%d,%d) since %d: %v, want %v", s, from, to, since, got, covered)
	}
	if got := s.oldestWalk(from, to); got != oldest {
		t.Fatalf("%v oldest of [%d,%d): %d, want %d", s, from, to, got, oldest)
	}
	for _, gap := range s.gaps(from, to, since) {
		for c := gap.From; c < gap.To; c++ {
			if at, ok := missing[c]; !ok || at != gap.At {
				t.Fatalf("%v: gaps of [%d,%d) since %d hold %d as %d, want %d, %v", s, from, to, since, c, gap.At, at, ok)
			}
			delete(missing, c)
		}
	}
	if len(missing) > 0 {
		t.Fatalf("%v: gaps of [%d,%d) since %d lack %v", s, from, to, since, missing)
	}
}
