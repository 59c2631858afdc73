// Queue: what callers leave behind that leave the queue of the budget, or are ended in it.

package upstream

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"understudy"
	"understudy/request"
)

// A reader that leaves the queue takes nothing with it, even at the moment of its turn.
func TestLeavingTheQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{do: well}
		c := scripted(t, s, func(o *Options) { o.Rate = 1; o.Concurrency = 2 })
		if _, err := get(t, c, callsPath); err != nil {
			t.Fatal(err)
		}
		for _, after := range []time.Duration{0, 500 * time.Millisecond, time.Second, time.Second} {
			ctx, cancel := context.WithTimeout(t.Context(), after)
			_, err := c.Fetch(ctx, request.Fetch{Target: target(t, c, callsPath)})
			cancel()
			if err != nil && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("after %v: %v", after, err)
			}
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if !c.budget.TryTake(aReader) {
			t.Error("no token is left")
		} else if c.budget.TryTake(aReader) {
			t.Error("more than one token is left")
		}
		c.budget.Refund(aReader)
		if slots, queued := freeSlots(c), c.Queue().Now; slots != 2 || queued != 0 {
			t.Errorf("left: %d slots, %d queued", slots, queued)
		}
	})
}

func TestCloseEndsEverything(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{do: slow(time.Hour, well)}
		w := &crowd{t: t, c: scripted(t, s, func(o *Options) { o.Concurrency = 1 })}
		w.send(3, request.Fetch{})
		go func() { _ = w.c.Run(context.Background()) }()
		synctest.Wait()
		w.c.Close()
		w.wg.Wait()
		for _, err := range w.failed() {
			if !errors.Is(err, understudy.ErrClosed) {
				t.Errorf("error %v", err)
			}
		}
		if len(w.failed()) != 3 {
			t.Errorf("%d errors", len(w.failed()))
		}
		if _, err := get(t, w.c, callsPath); !errors.Is(err, understudy.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	})
}

// A panic of the reader's does not keep a slot.
func TestPanicGivesTheSlotBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{do: func(n int, r *http.Request) (*http.Response, error) {
			if n == 0 {
				panic("boom")
			}
			return well(n, r)
		}}
		c := scripted(t, s, func(o *Options) { o.Concurrency = 1 })
		func() {
			defer func() { _ = recover() }()
			_, _ = get(t, c, callsPath)
		}()
		if _, err := get(t, c, callsPath); err != nil {
			t.Error(err)
		}
	})
}
