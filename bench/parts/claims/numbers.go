package claims

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"

	"understudy/bench/rig"
	"understudy/kit/onlinestat"
)

var channelStatistics = claim{
	name: "channel-or-mutex", systems: "22",
	says:    "A mutex is faster than a channel and a goroutine, also with a large buffer",
	figure:  "mutex 81.1 ns, channel 140 ns, with a buffer of ten million 116 ns",
	measure: measureStatistics,
}

// sums keeps what the article keeps: count, sum, sum of squares, least and most.
type sums struct {
	mu                              sync.Mutex
	n                               uint64
	total, squares, least, greatest float64
}

func (s *sums) add(x float64) {
	s.n++
	s.total += x
	s.squares += x * x
	if s.n == 1 || x < s.least {
		s.least = x
	}
	if s.n == 1 || x > s.greatest {
		s.greatest = x
	}
}

// measureStatistics gives random numbers to each kind of statistics, from one goroutine and from eight.
func measureStatistics(_ context.Context, r *rig.Run) (finding, error) {
	xs := make([]float64, 1<<16)
	for i := range xs {
		xs[i] = rand.NormFloat64()
	}
	large := r.Size(10_000_000, 1000)
	direct := func(goroutines int, add func(float64)) func(int) error {
		return func(n int) error {
			var all sync.WaitGroup
			for g := range goroutines {
				all.Go(func() {
					for i := g; i < n; i += goroutines {
						add(xs[i&(len(xs)-1)])
					}
				})
			}
			all.Wait()
			return nil
		}
	}
	byMutex := func(goroutines int) func(int) error {
		var s sums
		return direct(goroutines, func(x float64) {
			s.mu.Lock()
			s.add(x)
			s.mu.Unlock()
		})
	}
	byChannel := func(goroutines, size int) func(int) error {
		return func(n int) error {
			var s sums
			in, done := make(chan float64, min(size, max(n, 1))), make(chan struct{})
			go func() {
				for x := range in {
					s.add(x)
				}
				close(done)
			}()
			err := direct(goroutines, func(x float64) { in <- x })(n)
			close(in)
			<-done
			if s.n != uint64(n) {
				return fmt.Errorf("%d numbers of %d", s.n, n)
			}
			return err
		}
	}
	sharded := onlinestat.NewSharded()
	got, err := turn(r, []way{
		{"mutex", byMutex(1)}, {"channel of 1,000", byChannel(1, 1000)}, {"channel, large buffer", byChannel(1, large)},
		{"kit/onlinestat", direct(1, sharded.Add)},
		{"mutex, 8 goroutines", byMutex(8)}, {"channel of 1,000, 8 goroutines", byChannel(8, 1000)},
		{"kit/onlinestat, 8 goroutines", direct(8, sharded.Add)},
	})
	if err != nil {
		return finding{}, err
	}
	table, bars := tabulate("one number", got)
	return finding{
		ours: fmt.Sprintf("mutex %s ns, channel %s, large buffer %s; from 8 goroutines %s and %s; sharded %s, with quantiles",
			rig.Figure(got[0].median()), rig.Figure(got[1].median()), rig.Figure(got[2].median()), rig.Figure(got[4].median()),
			rig.Figure(got[5].median()), rig.Figure(got[6].median())),
		verdict: judge(got[1].ratio(got[0]) > 1 && got[2].ratio(got[0]) > 1, heldThen),
		title:   "Nanoseconds for each number",
		bars:    append([]rig.Bar{article("article: mutex", 81.1), article("article: channel", 140)}, bars...),
		table:   table,
		text: "A time ends when every number is counted, not when it is in the channel. The large buffer has room for all numbers of a round. " +
			"The sharded statistics of kit/onlinestat also keep quantiles and an exact variance; the article's sum of squares loses the variance of large numbers.",
	}, nil
}
