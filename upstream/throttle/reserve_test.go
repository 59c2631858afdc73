// Reserve: readers in bursts beside a crawl, in bubbles.

package throttle

import (
	"context"
	"log/slog"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"understudy/internal/checktest"
	"understudy/internal/sample"
	"understudy/request"
)

// fixed makes a reserve stay as it is.
func fixed(tokens float64) func(*Budget) {
	return func(b *Budget) { b.reserve.tokens, b.reserve.next = tokens, time.Now().Add(math.MaxInt64) }
}

// outcome is what became of the requests of a simulation.
type outcome struct {
	readers, late, refused int // late: they waited, or were refused and came again
	crawled                int
	reserve                float64 // at the end
}

// simulate runs readers for a time, at a rate of 10 beside a crawl that takes all that is left. burst says how many readers
// come together, and how long after those before.
func simulate(t *testing.T, span time.Duration, setUp func(*Budget), burst func() (time.Duration, int)) (v outcome) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(Options{Rate: 10, Concurrency: 100, Queue: 1000, Now: time.Now, Logger: slog.New(slog.DiscardHandler)})
		setUp(b)
		ctx, cancel := context.WithTimeout(t.Context(), span)
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() {
			for {
				if _, err := b.Take(ctx, Claim{Reason: request.ReasonSync}); err != nil {
					return
				}
				b.Release()
				v.crawled++
			}
		})
		var late, refused atomic.Int64
		reader := func() {
			start := time.Now()
			for {
				if _, err := b.Take(t.Context(), Claim{Reason: request.ReasonWaiting, MaxWait: 400 * time.Millisecond}); err == nil {
					break
				}
				refused.Add(1)
				time.Sleep(MinRetry)
			}
			b.Release()
			if time.Since(start) > 0 {
				late.Add(1)
			}
		}
		for after, n := burst(); ; after, n = burst() {
			select {
			case <-time.After(after):
			case <-ctx.Done():
				wg.Wait()
				v.late, v.refused, v.reserve = int(late.Load()), int(refused.Load()), b.Stats().Reserve
				return
			}
			v.readers += n
			for range n {
				wg.Go(reader)
				synctest.Wait()
			}
		}
	})
	return v
}

// bursts are up to so many readers at once, every 12 s on average.
func bursts(seed uint64, most int) func() (time.Duration, int) {
	rnd := rand.New(rand.NewPCG(seed, 1))
	return func() (time.Duration, int) {
		return time.Duration((2 + 10*rnd.ExpFloat64()) * float64(time.Second)), 1 + rnd.IntN(most)
	}
}

// random is a seed that is printed when the test fails.
func random(t *testing.T) uint64 {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return seed
}

// Bursts want up to the whole bucket. The fixed shares are of the former rule: others pause while less than a quarter, or
// less than a half, is left, so that they leave a token less than that. No reserve of half of the burst at most can do
// better than half that is always left whole; this one hardly does worse. The crawl pays nothing: it only goes later.
func TestFewerReadersAreLate(t *testing.T) {
	seed := random(t)
	run := func(setUp func(*Budget)) outcome { return simulate(t, time.Hour, setUp, bursts(seed, 10)) }
	sized, quarter, half, whole := run(func(*Budget) {}), run(fixed(1.5)), run(fixed(4)), run(fixed(5))
	t.Logf("sized %+v, a quarter %+v, a half %+v, a whole half %+v", sized, quarter, half, whole)
	for name, fixed := range map[string]outcome{"a quarter": quarter, "a half": half} {
		if sized.late >= fixed.late || sized.refused >= fixed.refused {
			t.Errorf("more are late than with %s", name)
		}
	}
	if float64(sized.late) > 1.1*float64(whole.late) {
		t.Error("many more are late than while half is always left")
	}
	if sized.crawled < half.crawled-2 { // it ends with a token more in the bucket
		t.Error("the crawl pays for it")
	}
}

// Where half of the bucket is enough, one reader in twenty is late, and no more than chance brings beyond that.
func TestOneReaderInTwenty(t *testing.T) {
	chosen := sample.OneIn(t, 3)
	for most := range 4 {
		if !chosen() {
			continue
		}
		v := simulate(t, 4*time.Hour, func(*Budget) {}, bursts(random(t), most+1))
		t.Logf("up to %d together: %+v", most+1, v)
		if float64(v.late) > (emptyChance+0.015)*float64(v.readers) {
			t.Errorf("%d of %d are late", v.late, v.readers)
		}
	}
}

// A reader now and then finds a token, and other work has the rest of the bucket and of the rate.
func TestQuietSource(t *testing.T) {
	v := simulate(t, time.Hour, func(*Budget) {}, func() (time.Duration, int) { return time.Minute, 1 })
	checktest.Equal(t, v.late, 0, "late")
	checktest.True(t, v.crawled >= 35_900, "the crawl took %v of 36,000, 60 of which are readers'", v.crawled)
	checktest.True(t, math.Abs(v.reserve-minReserve) <= 1e-6, "the reserve is %v, want %v", v.reserve, minReserve)
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(Options{Rate: 10, Concurrency: 100, Now: time.Now, Logger: slog.New(slog.DiscardHandler)})
		take := func() (n int) {
			for b.TryTake(Claim{Reason: request.ReasonRefresh}) {
				n++
			}
			return n
		}
		for range 1000 {
			_, _ = b.Take(t.Context(), Claim{Reason: request.ReasonWaiting})
			b.Release()
			time.Sleep(50 * time.Millisecond)
		}
		time.Sleep(learnTime)
		if n := take(); n != 5 {
			t.Errorf("%d went out at once after many readers, want 5", n)
		}
		time.Sleep(time.Hour)
		if n := take(); n < 8 {
			t.Errorf("%d went out at once after an hour without readers, want 8 or 9", n)
		}
	})
}

// However readers come, the reserve is between a token and half of the burst.
func TestReserveIsBounded(t *testing.T) {
	rnd := rand.New(rand.NewPCG(random(t), 1))
	for range 200 {
		rate := math.Exp(8*rnd.Float64() - 2)
		now, bucket := time.Now(), bucket{rate: rate, burst: max(1, rate)}
		r := reserve{since: now.Add(-learnTime)}
		pace := math.Exp(10*rnd.Float64()-7) / rate
		for range 500 {
			now = now.Add(time.Duration(pace * rnd.ExpFloat64() * float64(time.Second)))
			for range 1 + rnd.IntN(20)*rnd.IntN(2) {
				r.addReader(now, bucket)
			}
			r.next = time.Time{}
			if r.update(now, bucket); !(r.tokens <= maxReservePart*bucket.burst && r.tokens >= min(minReserve, maxReservePart*bucket.burst)) {
				t.Fatalf("at a rate of %v a reserve of %v", rate, r.tokens)
			}
		}
	}
}

func TestShortHistoryIsAQuarter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(Options{Rate: 40, Concurrency: 100, Queue: 100, Now: time.Now, Logger: slog.New(slog.DiscardHandler)})
		for range 59 {
			for range 8 {
				_, _ = b.Take(t.Context(), Claim{Reason: request.ReasonWaiting})
				b.Release()
			}
			if got := b.Stats().Reserve; got != 10 {
				t.Fatalf("%v of 40", got)
			}
			time.Sleep(time.Second)
		}
		b.SetRate(20, 100)
		if got := b.Stats().Reserve; got != 5 {
			t.Errorf("%v of 20", got)
		}
		time.Sleep(time.Second)
		if got := b.Stats().Reserve; got < 8 || got > 10 {
			t.Errorf("%v of 20 after bursts of 8", got)
		}
	})
}
