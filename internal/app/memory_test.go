// Tests of the collector's pace.

package app

import (
	"context"
	"runtime/debug"
	"testing"
)

func TestPercentLeavesTheSameRoom(t *testing.T) {
	for live, want := range map[uint64]int{0: 400, 1 << 20: 400, 6 << 20: 300, 12 << 20: 150, 18 << 20: 100, 36 << 20: 50, 1 << 30: 40} {
		if got := percentFor(live); got != want {
			t.Errorf("percentFor(%d MiB) = %d, want %d", live>>20, got, want)
		}
	}
}

func TestPaceLeavesGOGCAlone(t *testing.T) {
	before := debug.SetGCPercent(77)
	defer debug.SetGCPercent(before)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := TuneGC(func(string) (string, bool) { return "77", true }, 0)(ctx); err != nil {
		t.Fatal(err)
	}
	if got := debug.SetGCPercent(77); got != 77 {
		t.Errorf("the percent is %d though GOGC was set", got)
	}
	if err := TuneGC(noEnv, 0)(ctx); err != nil {
		t.Fatal(err)
	}
	if got := debug.SetGCPercent(77); got == 77 {
		t.Error("the percent is as before")
	}
}

func noEnv(string) (string, bool) { return "", false }
