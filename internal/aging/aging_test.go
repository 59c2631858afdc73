package aging

import (
	"testing"
	"time"
)

func TestAgeByEachClock(t *testing.T) {
	at := time.Now()
	for name, now := range map[string]time.Time{"both clocks": at.Add(time.Minute), "the wall clock": at.Round(0).Add(time.Minute)} {
		if got := Age(at, now); got != time.Minute {
			t.Errorf("by %s: %v", name, got)
		}
	}
	if got := Age(at.Add(time.Minute), at); got != -time.Minute {
		t.Errorf("before: %v", got)
	}
	if d := suspendedTime(); d > time.Second {
		t.Errorf("the machine was suspended for %v since the process began", d)
	}
}

// A time with only one clock stands for one whose clocks have moved apart: it has gained nothing, and the other has.
func TestTheSystemIsAskedOnlyAfterTheClocksHaveMovedApart(t *testing.T) {
	at := time.Now()
	last.Store(&reading{at, time.Hour})
	if got := suspensionTime(at.Add(time.Minute)); got != time.Hour {
		t.Errorf("the clocks go together: %v", got)
	}
	last.Store(nil)
	if got := suspensionTime(at); got > time.Second || last.Load() == nil {
		t.Errorf("nothing is known: %v, %v", got, last.Load())
	}
}

func BenchmarkAge(b *testing.B) {
	at := time.Now()
	now := at.Add(time.Minute)
	for b.Loop() {
		Age(at, now)
	}
}
