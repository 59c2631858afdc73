package limiter

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"understudy/internal/checktest"
)

// Requests at the same time are counted once each.
func TestPaceAtOnce(t *testing.T) {
	p, now := NewPace(50, 0), time.Now()
	var wg sync.WaitGroup
	var through atomic.Int64
	for range 20 {
		wg.Go(func() {
			for range 20 {
				if p.Take(now) == 0 {
					through.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if n := through.Load(); n != 50 {
		t.Errorf("%d went through at once, of 50 a second", n)
	}
	if (*Pace)(nil).Take(now) != 0 || NewPace(0, 0) != nil {
		t.Error("no bound is one")
	}
	slow := NewPace(0.5, 0)
	checktest.Equal(t, slow.Take(now), 0, "one in two seconds is another pace: slow.Take(now)")
	checktest.True(t, slow.Take(now.Add(time.Second)) != 0,
		"one in two seconds is another pace: slow.Take(now.Add(time.Second)) is 0")
	checktest.Equal(t, slow.Take(now.Add(2*time.Second)), 0,
		"one in two seconds is another pace: slow.Take(now.Add(2*time.Second))")
}

// A rate is told exactly: what is left, when all is left again, and when the next may come.
func TestRatesAreTold(t *testing.T) {
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		rate float64
		per  time.Duration
	}{{5000, time.Hour}, {60, time.Minute}, {3, 0}, {7, time.Hour}, {1, time.Second}} {
		p := NewPace(c.rate, c.per)
		limit := int64(c.rate)
		for i := range limit {
			if all, left, _ := p.Quota(now); all != limit || left != limit-i {
				t.Fatalf("%+v: after %d requests %d of %d are left", c, i, left, all)
			}
			if wait := p.Take(now); wait != 0 {
				t.Fatalf("%+v: request %d waits %v", c, i, wait)
			}
		}
		wait := p.Take(now)
		{
			_, left, _ := p.Quota(now)
			checktest.MustEqual(t, left, 0, "%+v: left", c)
			checktest.MustTrue(t, wait > 0, "%+v: wait is %v, want > 0", c, wait)
			checktest.MustTrue(t, wait <= p.interval, "%+v: wait is %v", c, wait)
		}
		if p.Take(now.Add(wait-1)) == 0 {
			t.Errorf("%+v: it may come before", c)
		}
		if late := p.Take(now.Add(wait)); late != 0 {
			t.Errorf("%+v: after the wait: %v", c, late)
		}
		_, _, reset := p.Quota(now)
		if _, left, _ := p.Quota(now.Add(reset)); left != limit {
			t.Errorf("%+v: %d are left", c, left)
		}
	}
}
