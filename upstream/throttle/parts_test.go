package throttle

import (
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"understudy/internal/checktest"
	"understudy/request"
)

// newParts returns a budget of 10 requests a second and 20 at the same time.
func newParts() *Budget {
	return NewBudget(Options{Rate: 10, Concurrency: 20, Queue: 1000, Now: time.Now, Logger: slog.New(slog.DiscardHandler)})
}

// crowdOf sends n requests that each take some time, and returns a function that returns how many have been sent.
func crowdOf(t *testing.T, b *Budget, n int, took time.Duration) (sent func() int) {
	var mu sync.Mutex
	count := 0
	for range n {
		go func() {
			if _, err := b.Take(t.Context(), Claim{Reason: request.ReasonWaiting, MaxWait: time.Hour}); err == nil {
				mu.Lock()
				count++
				mu.Unlock()
				time.Sleep(took)
				b.Release()
			}
		}()
	}
	synctest.Wait()
	return func() int {
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		return count
	}
}

// TestPartsLimitRateAndSlots: a process sends as many requests as its parts allow, and fewer after its lease has ended.
func TestPartsLimitRateAndSlots(t *testing.T) {
	for _, c := range []struct {
		name          string
		count, nodes  int
		ended         bool
		slots, sent   int // at the same time, and in 100 s
		together, max int // the number of nodes that may do the same, and what they may send together
	}{
		{"all", 20, 1, false, 20, 1010, 1, 1010},
		{"a quarter", 5, 4, false, 5, 253, 4, 1012},
		{"none", 0, 4, false, 0, 0, 4, 0},
		{"alone, without a lease", 20, 1, true, 10, 505, 1, 505},
		{"a quarter, without a lease", 5, 4, true, 2, 101, 4, 505},
		{"most, without a lease", 17, 4, true, 2, 101, 4, 505},
		{"none, without a lease", 0, 4, true, 1, 51, 4, 505},
		{"one of fewer than nodes, without a lease", 1, 30, true, 1, 18, 20, 505},
		{"none of fewer than nodes, without a lease", 0, 30, true, 0, 0, 10, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			isValid := func() bool { return !c.ended }
			b := newParts()
			b.SetParts(c.count, c.nodes, isValid)
			b.SetRate(1e6, 20)
			sent := crowdOf(t, b, 100, time.Hour)
			time.Sleep(time.Second)
			checktest.Equal(t, sent(), c.slots, "%s: requests at the same time", c.name)
			b.Close()
			b = newParts()
			b.SetParts(c.count, c.nodes, isValid)
			sent = crowdOf(t, b, 2000, 0)
			time.Sleep(100 * time.Second)
			n := sent()
			checktest.True(t, c.sent-1 <= n && n <= c.sent+1, "%s: %d requests in 100 s, want %d", c.name, n, c.sent)
			checktest.True(t, n*c.together <= c.max+c.together, "%s: %d nodes send %d each, more than %d", c.name, c.together, n, c.max)
			b.Close()
			time.Sleep(time.Hour)
		})
	}
}

// TestPartsEndWithTheLease: a request after the end of the lease finds what every process may use then, not more.
func TestPartsEndWithTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, end := newParts(), time.Now().Add(time.Minute)
		b.SetParts(20, 2, func() bool { return time.Now().Before(end) })
		time.Sleep(time.Hour) // the bucket is full, and nobody has looked since
		n := 0
		for b.TryTake(Claim{Reason: request.ReasonWaiting}) {
			n++
		}
		checktest.Equal(t, n, 2, "requests at once, of 2.5 a second")
		b.Close()
	})
}

// TestReaderWaitsForParts: a reader is not refused because the process has no parts now. Others leave it some soon.
func TestReaderWaitsForParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, isValid := newParts(), func() bool { return true }
		b.SetParts(0, 3, isValid)
		var all sync.WaitGroup
		for range 6 {
			all.Go(func() {
				_, err := b.Take(t.Context(), Claim{Reason: request.ReasonWaiting, MaxWait: 3 * time.Second})
				checktest.NoError(t, err, "take")
			})
		}
		synctest.Wait()
		_, needed := b.Demand()
		checktest.Equal(t, needed, 20, "parts that are needed")
		b.SetParts(7, 3, isValid)
		all.Wait()
		checktest.Equal(t, b.SetParts(0, 3, isValid), 6, "parts in use")
		b.Release()
		checktest.True(t, !b.TryTake(Claim{Reason: request.ReasonWaiting}), "a part that was given away is used again")
		b.Close()
	})
}

func TestDemand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newParts()
		measure := func() int {
			time.Sleep(250 * time.Millisecond)
			all, needed := b.Demand()
			checktest.Equal(t, all, 20, "parts")
			return needed
		}
		checktest.Equal(t, measure(), 0, "parts that nobody needs")
		take := func() {
			_, err := b.Take(t.Context(), Claim{Reason: request.ReasonWaiting})
			checktest.NoError(t, err, "take")
		}
		for range 3 {
			take()
		}
		time.Sleep(20 * time.Second)
		measure()
		checktest.Equal(t, measure(), 8, "parts for three long requests")
		for range 3 {
			b.Release()
		}
		measure()
		time.Sleep(20 * time.Second)
		checktest.Equal(t, measure(), 0, "parts a while later")
		waiting := crowdOf(t, b, 30, 0)
		checktest.Equal(t, waiting(), 10, "requests that are sent at once")
		_, n := b.Demand()
		checktest.Equal(t, n, 20, "parts if requests wait")
		b.Close()
	})
}
