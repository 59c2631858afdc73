// Tests of the collector's pace.

package gctune

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

// 1000 is more than is ever chosen.
func TestPaceLeavesGOGCAlone(t *testing.T) {
	before := debug.SetGCPercent(1000)
	defer debug.SetGCPercent(before)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Task(func(string) (string, bool) { return "1000", true }, 0)(ctx); err != nil {
		t.Fatal(err)
	}
	if got := debug.SetGCPercent(1000); got != 1000 {
		t.Errorf("the percent is %d though GOGC was set", got)
	}
	if err := Task(noEnv, 0)(ctx); err != nil {
		t.Fatal(err)
	}
	if got := debug.SetGCPercent(1000); got == 1000 {
		t.Error("the percent is as before")
	}
}

func noEnv(string) (string, bool) { return "", false }

func TestLimitLeavesRoomForWhatGoDoesNotCount(t *testing.T) {
	const mib = 1 << 20
	for name, c := range map[string]struct{ limit, resident, counted, want int64 }{
		"nothing beside Go":        {256, 100, 100, 256},
		"SQLite's caches":          {256, 180, 120, 196},
		"more than half is others": {256, 400, 100, 128},
		"nothing can be read":      {256, 0, 100, 256},
	} {
		if got := limitFor(c.limit*mib, c.resident*mib, c.counted*mib); got != c.want*mib {
			t.Errorf("%s: %d MiB, want %d", name, got/mib, c.want)
		}
	}
	if resident, counted := readMemory(); resident < mib || counted < mib {
		t.Errorf("resident %d, counted %d", resident, counted)
	}
}
