package retry

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestBackoffIsAtMostTheLongest(t *testing.T) {
	t.Parallel()
	if got := Backoff(time.Second, time.Hour, 1<<40); got != time.Hour {
		t.Errorf("after very many failures: %v", got)
	}
	if got := Backoff(time.Minute, time.Second, 0); got != time.Second {
		t.Errorf("a first wait above the longest: %v", got)
	}
}

func TestSleepEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if err := Wait(t.Context(), time.Minute); err != nil || time.Since(began) != time.Minute {
			t.Errorf("slept %v: %v", time.Since(began), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := Wait(ctx, time.Minute); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a context that ended: %v", err)
		}
		if d := time.Since(began); d != time.Minute+time.Second {
			t.Errorf("both took %v", d)
		}
	})
}
