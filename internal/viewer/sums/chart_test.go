// Chart: the grid of a chart, its times and lengths of time in words.

package sums

import (
	"math"
	"testing"
	"time"
)

func TestGridHasRoundSteps(t *testing.T) {
	for highest, want := range map[float64]float64{0: 1, -3: 1, 4: 1, 5: 1.5, 7: 2, 37: 10, 330: 100, 0.019: 0.005, 12_345: 4000} {
		step := stepOf(highest)
		if math.Abs(step-want) > 1e-9*want {
			t.Errorf("the steps up to %v are %v, want %v", highest, step, want)
		}
		if step*gridLines < highest {
			t.Errorf("a grid of steps of %v does not reach %v", step, highest)
		}
	}
}

func TestTimesOfAChartFollowEachOther(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	start := time.Date(2026, 3, 29, 0, 0, 0, 0, berlin) // a day of 23 hours
	for by, want := range map[string]time.Time{
		"hour": start.Add(time.Hour), "day": start.Add(23 * time.Hour), "week": time.Date(2026, 4, 5, 0, 0, 0, 0, berlin),
		"month": time.Date(2026, 4, 29, 0, 0, 0, 0, berlin),
	} {
		if got := nextTime(by, start); !got.Equal(want) {
			t.Errorf("the %s after %v is %v, want %v", by, start, got, want)
		}
	}
	for by, key := range map[string]string{"day": "2026-03-29", "week": "2026-03-29", "hour": "2026-03-29T00:00+01:00"} {
		at, ok := parseKey(by, key, berlin)
		if !ok || !at.Equal(start) {
			t.Errorf("the %s %s begins %v, %t", by, key, at, ok)
		}
		if written := layoutOf(by, at); written != key {
			t.Errorf("the %s %s is written %s", by, key, written)
		}
	}
	for by, key := range map[string]string{"status": "2026-03-29", "month": "March", "day": ""} {
		if at, ok := parseKey(by, key, berlin); ok {
			t.Errorf("the %s %q begins %v", by, key, at)
		}
	}
}

func TestTimeThatPassedIsSaidInTwoUnitsAtMost(t *testing.T) {
	for seconds, want := range map[float64]string{0.44: "0.4 s", 3: "3 s", 61.4: "61 s", 125: "2 min 5 s", 7260: "2 h 1 min",
		90_000: "25 h 0 min"} {
		if got := durationText(seconds); got != want {
			t.Errorf("%v seconds are %q, want %q", seconds, got, want)
		}
	}
}
