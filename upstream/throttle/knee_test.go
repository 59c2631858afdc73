// Knee: an upstream that serves so many requests at once and lets more wait, in bubbles.

package throttle

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"understudy/internal/checktest"
	"understudy/internal/sample"
	"understudy/request"
)

// serviceTime is the mean of what a server takes for a request that does not wait.
const serviceTime = 100 * time.Millisecond

// times are how service times are distributed, around a mean of 1.
var times = map[string]func(*rand.Rand) float64{
	"constant":    func(*rand.Rand) float64 { return 1 },
	"lognormal":   func(r *rand.Rand) float64 { return math.Exp(0.5*r.NormFloat64() - 0.125) },
	"exponential": (*rand.Rand).ExpFloat64,
}

// server serves as many requests at once as it has places, in the order in which they come.
type server struct {
	mu      sync.Mutex
	places  int
	busy    int
	queue   []chan struct{}
	rng     *rand.Rand
	service func(*rand.Rand) float64
	slower  float64 // times
}

func newServer(places int, dist string, seed uint64) *server {
	return &server{places: places, rng: rand.New(rand.NewPCG(seed, 7)), service: times[dist], slower: 1}
}

// serve takes as long as a request that needs so many times the usual.
func (s *server) serve(times float64) {
	s.mu.Lock()
	if s.busy >= s.places {
		turn := make(chan struct{})
		s.queue = append(s.queue, turn)
		s.mu.Unlock()
		<-turn
		s.mu.Lock()
	} else {
		s.busy++
	}
	d := time.Duration(s.service(s.rng) * times * s.slower * float64(serviceTime))
	s.mu.Unlock()
	time.Sleep(d)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy--
	s.next()
}

// next serves who waits; the lock is held.
func (s *server) next() {
	for s.busy < s.places && len(s.queue) > 0 {
		close(s.queue[0])
		s.queue = s.queue[1:]
		s.busy++
	}
}

func (s *server) change(places int, slower float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.places, s.slower = places, slower
	s.next()
}

// crowd are clients that ask a server through a budget, each again as soon as it is answered.
type crowd struct {
	t *testing.T
	b *Budget
	s *server

	mu       sync.Mutex
	answers  int
	took     time.Duration // all together
	least    int           // of AtOnce
	usable   int           // slots, trials and all: the sum over the answers
	fixed    bool          // the budget is told nothing
	patience time.Duration // after it a client leaves; 0: none does
	question func(n int) (Sort, float64)
}

// gather begins so many clients. They end with the bubble's context.
func gather(t *testing.T, s *server, clients, total int, change ...func(*crowd)) *crowd {
	c := &crowd{t: t, s: s, b: NewBudget(Options{
		Rate: 1e9, Concurrency: total, Queue: 1e6, Prefetch: time.Hour, Now: time.Now, Logger: slog.New(slog.DiscardHandler),
	})}
	for _, f := range change {
		f(c)
	}
	ctx, end := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	t.Cleanup(func() { end(); wg.Wait(); c.b.Close() })
	for range clients {
		wg.Go(func() {
			for ctx.Err() == nil {
				c.ask(ctx, request.ReasonSync)
			}
		})
	}
	return c
}

func (c *crowd) ask(ctx context.Context, r request.Reason) {
	if _, err := c.b.Take(ctx, Claim{Reason: r}); err != nil {
		return
	}
	defer c.b.Release()
	sort, times := Sort{}, 1.0
	c.mu.Lock()
	if c.question != nil {
		sort, times = c.question(c.answers)
	}
	c.mu.Unlock()
	began, lost := time.Now(), false
	if done := make(chan struct{}); c.patience > 0 {
		go func() { defer close(done); c.s.serve(times) }()
		select {
		case <-done:
		case <-time.After(c.patience):
			lost = true
		}
	} else {
		c.s.serve(times)
	}
	took := time.Since(began)
	if !c.fixed {
		c.b.Observe(Observation{Sort: sort, Began: began, Took: took, Lost: lost})
	}
	c.b.mu.Lock()
	n, usable := c.b.slots.bestLimit(), c.b.slots.currentLimit()
	c.b.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.usable += usable
	c.answers++
	c.took += took
	c.least = min(c.least, n)
}

// wait lets so many answers come. It returns those of a second, and the mean time of one; both in relation to a server
// with one place.
func (c *crowd) wait(answers int) (throughput, latency float64) {
	c.mu.Lock()
	c.answers, c.took, c.least, c.usable = 0, 0, math.MaxInt, 0
	c.mu.Unlock()
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		c.mu.Lock()
		n, took := c.answers, c.took
		c.mu.Unlock()
		if n >= answers {
			return float64(n) * serviceTime.Seconds() / time.Since(began).Seconds(), took.Seconds() / float64(n) / serviceTime.Seconds()
		}
	}
}

// fewest is the least AtOnce of the last wait.
func (c *crowd) fewest() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.least
}

// until is after how many answers the number at once lies between two.
func (c *crowd) until(least, most, limit int) int {
	for n := 0; n < limit; n += 10 {
		if now := c.b.Stats().AtOnce; now >= least && now <= most {
			return n
		}
		c.wait(10)
	}
	return limit
}

// found are answers in which the number is found again, whatever the seed.
var found = map[string]int{"constant": 3000, "lognormal": 4000, "exponential": 8000}

func seeds() uint64 { return uint64(sample.Count(1, 20)) }

// bubbles runs a test for each distribution and seed.
func bubbles(t *testing.T, dists []string, test func(t *testing.T, dist string, seed uint64)) {
	for _, dist := range dists {
		for seed := range seeds() {
			t.Run(fmt.Sprint(dist, seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { test(t, dist, seed) })
			})
		}
	}
}

// Nobody has said how many requests this upstream serves at once. As many answers come in a second as with that number
// fixed, nearly as soon; with all that the settings allow they only take longer.
func TestLatencyShowsTheKnee(t *testing.T) {
	for _, places := range []int{1, 4, 16} {
		bubbles(t, []string{"constant", "lognormal", "exponential"}, func(t *testing.T, dist string, seed uint64) {
			c := gather(t, newServer(places, dist, seed), 60, 40)
			c.wait(4000) // to find it
			x, latency := c.wait(6000)
			worst := 1.5
			if dist == "exponential" {
				worst = 1.75
			}
			q := c.b.Stats()
			x /= float64(places)
			checktest.True(t, x >= 0.9,
				"of %d places %.2f are used, latency is %.2f of the least: x is %v, want >= 0.9", places, x, latency,
				x)
			checktest.True(t, latency <= worst,
				"of %d places %.2f are used, latency is %.2f of the least: latency is %v", places, x, latency,
				latency)
			checktest.True(t, q.AtOnce != 40,
				"of %d places %.2f are used, latency is %.2f of the least: q.AtOnce is 40", places, x, latency)
			checktest.True(t, q.Why != "",
				"of %d places %.2f are used, latency is %.2f of the least: q.Why is empty", places, x, latency)
			t.Logf("of %d places %.2f, latency %.2f, %d at once: %s", places, x, latency, q.AtOnce, q.Why)
		})
	}
	synctest.Test(t, func(t *testing.T) {
		c := gather(t, newServer(4, "constant", 1), 60, 40, func(c *crowd) { c.fixed = true })
		c.wait(1000)
		if x, latency := c.wait(2000); x > 4.1 || latency < 7 {
			t.Errorf("with as many as the settings allow, %.2f answers and a latency of %.2f: this server does not get slower", x, latency)
		}
	})
}

// An upstream that gets more places, or loses some.
func TestTheKneeMoves(t *testing.T) {
	bubbles(t, []string{"constant", "lognormal", "exponential"}, func(t *testing.T, dist string, seed uint64) {
		s := newServer(4, dist, seed)
		c := gather(t, s, 60, 40)
		c.wait(4000)
		for _, places := range []int{16, 4, 16} {
			s.change(places, 1)
			if n := c.until(places*8/10, places*3/2, found[dist]); n == found[dist] {
				t.Errorf("after %d answers %d at once go out, for %d places", n, c.b.Stats().AtOnce, places)
			}
			c.wait(2000)
			var over int
			if q := c.b.Stats(); strings.HasPrefix(q.Why, "with") {
				if _, err := fmt.Sscanf(q.Why, "with %d", &over); err != nil || over <= q.AtOnce {
					t.Errorf("%d at once, because %s", q.AtOnce, q.Why)
				}
			}
		}
	})
}

// An upstream that becomes slower, whatever is asked at once, is asked as much at once as before.
func TestASlowerUpstreamKeepsItsSlots(t *testing.T) {
	for _, places := range []int{4, 1000} {
		bubbles(t, []string{"constant", "lognormal"}, func(t *testing.T, dist string, seed uint64) {
			s := newServer(places, dist, seed)
			c := gather(t, s, 60, 20)
			c.wait(4000)
			best := float64(min(places, 16)) // a quarter of 20 is for readers
			for _, slower := range []float64{2, 1, 3} {
				before := c.b.Stats().AtOnce
				s.change(places, slower)
				if x, _ := c.wait(3000); x*slower/best < 0.85 || c.fewest() < before/2 {
					t.Errorf("%.0f times as slow: %.2f of what can be, down from %d to %d at once", slower, x*slower/best, before, c.fewest())
				}
			}
		})
	}
}

// Slow searches beside fast records, single answers that take very long, and a latency that goes up and down by itself are
// no sign of too many requests.
func TestAnswersThatDiffer(t *testing.T) {
	mixed := func(rng *rand.Rand, sorts bool) func(int) (Sort, float64) {
		return func(int) (sort Sort, times float64) {
			if times = 0.3; rng.Float64() < 0.1 {
				sort.Place, times = "/search", 6
			}
			if rng.Float64() < 0.003 {
				times *= 100
			}
			if !sorts {
				sort = Sort{}
			}
			return sort, times
		}
	}
	waves := func(rng *rand.Rand) func(int) (Sort, float64) {
		slow := 1.0
		return func(int) (Sort, float64) {
			if rng.Float64() < 0.005 {
				slow = 0.7 + rng.Float64()
			}
			return Sort{}, slow
		}
	}
	least := map[string]float64{"sorts": 18, "one sort": 18, "waves": 14}
	for name, question := range map[string]func(*rand.Rand) func(int) (Sort, float64){
		"sorts":    func(rng *rand.Rand) func(int) (Sort, float64) { return mixed(rng, true) },
		"one sort": func(rng *rand.Rand) func(int) (Sort, float64) { return mixed(rng, false) },
		"waves":    waves,
	} {
		t.Run(name, func(t *testing.T) {
			bubbles(t, []string{"constant", "lognormal"}, func(t *testing.T, dist string, seed uint64) {
				rng := rand.New(rand.NewPCG(seed, 3))
				c := gather(t, newServer(1000, dist, seed), 60, 20, func(c *crowd) { c.question = question(rng) })
				c.wait(1000)
				c.wait(8000)
				c.mu.Lock()
				defer c.mu.Unlock()
				if mean := float64(c.usable) / float64(c.answers); mean < least[name] {
					t.Errorf("of 20 at once %.1f are used, %d at least", mean, c.least)
				}
			})
		})
	}
	bubbles(t, []string{"constant", "lognormal"}, func(t *testing.T, dist string, seed uint64) {
		rng := rand.New(rand.NewPCG(seed, 3))
		c := gather(t, newServer(4, dist, seed), 60, 20, func(c *crowd) { c.question = mixed(rng, true) })
		c.wait(6000)
		if n := c.b.Stats().AtOnce; n < 4 || n > 7 {
			t.Errorf("%d at once where a mix is served by 4 places", n)
		}
	})
}

// Who asks little learns nothing, and is held up by nothing.
func TestFewRequestsDecideNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := gather(t, newServer(1, "exponential", 1), 4, 20)
		c.wait(3000)
		if q := c.b.Stats(); c.fewest() != 20 || q.Why != "" {
			t.Errorf("%d at once: %s", c.fewest(), q.Why)
		}
	})
	synctest.Test(t, func(t *testing.T) { // bursts: between them nothing is under way
		c := gather(t, newServer(1000, "constant", 1), 0, 20)
		burst := func() time.Duration {
			began := time.Now()
			var wg sync.WaitGroup
			for range 20 {
				wg.Go(func() { c.ask(t.Context(), request.ReasonWaiting) })
			}
			wg.Wait()
			return time.Since(began)
		}
		late := 0
		for range 200 {
			if burst() > serviceTime {
				late++
			}
			time.Sleep(time.Minute)
		}
		if q := c.b.Stats(); late > 20 || q.AtOnce != 20 {
			t.Errorf("%d of 200 bursts had to wait; %d at once", late, q.AtOnce)
		}
	})
}

// Readers go before other work at whatever number is found, and requests that end without an answer count as slow ones.
func TestReadersGoFirstAtTheKnee(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := gather(t, newServer(4, "constant", 1), 60, 40)
		c.wait(4000)
		var slowest time.Duration
		for range 100 {
			began := time.Now()
			c.ask(t.Context(), request.ReasonWaiting)
			slowest = max(slowest, time.Since(began))
			time.Sleep(time.Second)
		}
		if slowest > 4*serviceTime {
			t.Errorf("a reader waited %v", slowest)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		c := gather(t, newServer(4, "constant", 1), 60, 40, func(c *crowd) { c.patience = 5 * serviceTime })
		c.wait(6000)
		if n := c.b.Stats().AtOnce; n < 4 || n > 10 {
			t.Errorf("%d at once, where most of 40 are left without an answer", n)
		}
	})
}

// A trial that sees only errors, or only what was never seen before, is over soon: it holds nobody up.
func TestATrialInVainEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vain := false
		c := gather(t, newServer(1000, "constant", 1), 60, 20, func(c *crowd) {
			c.question = func(n int) (Sort, float64) {
				if vain {
					return Sort{Size: n}, 1
				}
				return Sort{}, 1
			}
		})
		for range 5000 {
			c.wait(1)
			c.b.mu.Lock()
			trying := c.b.slots.knee.isTrialRunning()
			c.b.mu.Unlock()
			if trying {
				break
			}
		}
		c.mu.Lock()
		vain = true
		c.mu.Unlock()
		c.wait(200)
		c.b.mu.Lock()
		defer c.b.mu.Unlock()
		if n := c.b.slots.currentLimit(); n != 20 {
			t.Errorf("%d at once are still tried", n)
		}
	})
}

// Whatever requests show, between one and all of the slots may be used, and every number stays one.
func FuzzSlots(f *testing.F) {
	f.Add([]byte("aaaaaaaaaaaaaaaabbbbbbbbbbbbbbbbccccccccccccccccddddddddddddddddeeeeeeeeeeeeeeee"), uint8(4))
	f.Add([]byte{0, 255, 1, 254, 7, 9, 200, 100, 50}, uint8(40))
	f.Fuzz(func(t *testing.T, steps []byte, total uint8) {
		s := slots{total: max(1, int(total)), knee: newKnee()}
		s.free = s.total
		now := time.Unix(1e9, 0)
		for i := 0; i+1 < len(steps); i++ {
			a, b := steps[i], steps[i+1]
			now = now.Add(time.Duration(a%16) * time.Millisecond)
			for s.availableCount() > 0 && a&1 == 0 {
				s.free--
			}
			o := Observation{Sort: Sort{Size: int(b % 3)}, Began: now.Add(-time.Duration(b) * time.Millisecond), Lost: b%11 == 0,
				Took: time.Duration(math.Pow(10, float64(b)/12)) * time.Duration(a%5), Counted: int64(b % 60)}
			switch {
			case a%29 == 0:
				s.addRefusal(o, now)
			case a == 255:
				s.resize(1+int(b), now)
			default:
				s.addAnswer(o, now)
			}
			if s.usedCount() > 0 {
				s.release()
			}
			s.endIdleTrial(now)
			h := s.knee.baseline
			n := s.currentLimit()
			checktest.MustTrue(t, n >= 1, "step %d: n is %v, want >= 1", i, n)
			checktest.MustTrue(t, n <= s.total, "step %d: n is %v", i, n)
			checktest.MustTrue(t, s.bestLimit() >= 1, "step %d: s.found() < 1", i)
			checktest.MustTrue(t, s.bestLimit() <= s.total, "step %d: s.found() > s.total", i)
			checktest.MustTrue(t, !math.IsNaN(h.recent+h.measure.sum+h.measure.squares+h.measure.used),
				"step %d: math.IsNaN(h.recent+h.measure.sum+h.measure.squares+h.measure.used) is true", i)
		}
	})
}
