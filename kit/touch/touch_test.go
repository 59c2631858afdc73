// Touch: the closed form beside a simulation, its inverses, and the band beside the truth.

package touch_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"understudy/internal/checktest"
	"understudy/internal/sample"
	"understudy/kit/touch"
)

// seeded is a generator whose seed is printed when the test fails.
func seeded(t *testing.T) *rand.Rand {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

// touched simulates: how many of n paths in 64 steps reach a level d ahead. Between two
// points of a step a path reaches it with the chance of a Brownian bridge, so that steps
// of any length show no bias.
func touched(rnd *rand.Rand, w touch.Walk, d, within float64, n int) int {
	const steps = 64
	dt := within / steps
	s, hits := w.Sigma*math.Sqrt(dt), 0
	for range n {
		left := d
		for range steps {
			next := left - w.Drift*dt - s*rnd.NormFloat64()
			if next <= 0 || rnd.Float64() < math.Exp(-2*left*next/(s*s)) {
				hits++
				break
			}
			left = next
		}
	}
	return hits
}

// TestTheChanceIsThatOfPaths: 10^6 paths reach the article's price, and ours, as often as
// the closed form says; the same with drifts to either side. A fiftieth in a short run.
func TestTheChanceIsThatOfPaths(t *testing.T) {
	rnd, n := seeded(t), sample.Count(20_000, 1_000_000)
	price := touch.Geometric{Walk: touch.Walk{Sigma: 0.107022}}
	for name, c := range map[string]struct {
		walk    touch.Walk
		d, want float64
	}{
		"ours at 95 %":  {price.Walk, math.Log(74.95 / price.Level(74.95, 0.95, 1, true)), 0.95},
		"the article's": {price.Walk, math.Log(74.95 / touch.ArticlePrice(74.95, 0.107022, 0.95, 1)), 0.9405},
		"toward it":     {touch.Walk{Drift: 0.4, Sigma: 0.5}, 0.6, touch.Walk{Drift: 0.4, Sigma: 0.5}.Probability(0, 0.6, 1)},
		"away from it":  {touch.Walk{Drift: -0.4, Sigma: 0.5}, 0.6, touch.Walk{Drift: -0.4, Sigma: 0.5}.Probability(0, 0.6, 1)},
		"almost none":   {touch.Walk{Drift: -1, Sigma: 0.7}, 1, touch.Walk{Drift: -1, Sigma: 0.7}.Probability(0, 1, 1)},
	} {
		got := float64(touched(rnd, c.walk, c.d, 1, n)) / float64(n)
		off := 6 * math.Sqrt(c.want*(1-c.want)/float64(n)) // six deviations; 0.13 % of 95 with 10^6
		if n >= 1_000_000 {
			off = min(off, 0.002)
		}
		if math.Abs(got-c.want) > off {
			t.Errorf("%s: %.4f of %d paths, want %.4f", name, got, n, c.want)
		}
	}
}

// TestLevelsAndTimesAreInverse: the chance of the level of p is p, and of the time of p.
func TestLevelsAndTimesAreInverse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sigma := rapid.Float64Range(1e-4, 3).Draw(t, "sigma")
		p := rapid.Float64Range(1e-9, 1-1e-9).Draw(t, "p")
		within := rapid.Float64Range(1e-3, 10).Draw(t, "within")
		below := rapid.Bool().Draw(t, "below")
		price := touch.Geometric{Walk: touch.Walk{Sigma: sigma}}
		if got := price.Probability(74.95, price.Level(74.95, p, within, below), within); math.Abs(got-p) > 1e-9 {
			t.Fatalf("p(price(%v)) = %v", p, got)
		}
		w := touch.Walk{Drift: rapid.Float64Range(-5, 5).Draw(t, "drift"), Sigma: sigma}
		from := rapid.Float64Range(-10, 10).Draw(t, "from")
		level := w.Level(from, p, within, below)
		if got := w.Probability(from, level, within); math.Abs(got-p) > 1e-6 && math.Abs(level-from) > 1e-9*math.Abs(from) {
			t.Fatalf("the level %v of %v has %v", level, p, got)
		}
		if level == from {
			return
		}
		if at := w.Time(from, level, p); !math.IsInf(at, 1) {
			if got := w.Probability(from, level, at); math.Abs(got-p) > 1e-6 {
				t.Fatalf("the time %v of %v has %v", at, p, got)
			}
		} else if ever := w.Probability(from, level, math.Inf(1)); ever > p {
			t.Fatalf("never with %v, but %v in the end", p, ever)
		}
	})
}

// TestTheChanceGrows with time and with drift, falls with the distance, and is always one.
func TestTheChanceGrows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.Float64Range(-1e4, 1e4)
		w := touch.Walk{Drift: number.Draw(t, "drift"), Sigma: rapid.Float64Range(0, 1e4).Draw(t, "sigma")}
		from, d := number.Draw(t, "from"), rapid.Float64Range(0, 1e4).Draw(t, "distance")
		within := rapid.Float64Range(0, 1e5).Draw(t, "within")
		p := w.Probability(from, from+d, within)
		more := touch.Walk{Drift: w.Drift + 1, Sigma: w.Sigma}.Probability(from, from+d, within)
		further, longer := w.Probability(from, from+d*1.5, within), w.Probability(from, from+d, within*1.5)
		const hair = 1e-9
		checktest.MustTrue(t, p >= 0 && p <= 1, "p >= 0 && p <= 1 is false")
		checktest.MustTrue(t, more >= p-hair, "more is %v", more)
		checktest.MustTrue(t, further <= p+hair, "further is %v", further)
		checktest.MustTrue(t, longer >= p-hair, "longer is %v", longer)
		down := touch.Walk{Drift: -w.Drift, Sigma: w.Sigma}.Probability(-from, -(from + d), within)
		if math.Abs(down-p) > hair {
			t.Fatalf("up %v, down %v", p, down)
		}
	})
}

func TestOddArguments(t *testing.T) {
	w := touch.Walk{Drift: -1, Sigma: 2}
	for name, got := range map[string]float64{
		"p of nan":         w.Probability(math.NaN(), 0, 1),
		"negative sigma":   touch.Walk{Sigma: -1}.Probability(1, 0, 1),
		"level of 0":       w.Level(1, 0, 1, true),
		"level of 1":       w.Level(1, 1, 1, true),
		"no time":          w.Level(1, 0.5, 0, true),
		"time of 2":        w.Time(1, 0, 2),
		"a price below 0":  touch.Geometric{Walk: w}.Probability(-1, 2, 1),
		"quantile of none": touch.Quantile(nil, 0.5),
	} {
		if !math.IsNaN(got) {
			t.Errorf("%s: %v", name, got)
		}
	}
	still, even := touch.Walk{}, touch.Walk{Drift: -2}
	for name, c := range map[string][2]float64{
		"there":                {w.Probability(3, 3, 0), 1},
		"no time left":         {w.Probability(3, 2, 0), 0},
		"still":                {still.Probability(3, 2, 1e9), 0},
		"even, in time":        {even.Probability(4, 0, 2), 1},
		"even, too late":       {even.Probability(4, 0, 1.9), 0},
		"even, how far":        {even.Level(4, 0.3, 2, true), 0},
		"even, the other way":  {even.Level(4, 0.3, 2, false), 4},
		"even, when":           {even.Time(4, 0, 0.3), 2},
		"even, never":          {even.Time(4, 5, 0.3), math.Inf(1)},
		"in the end":           {w.Probability(3, 0, math.Inf(1)), 1},
		"perhaps never":        {w.Probability(0, 2, math.Inf(1)), math.Exp(-1)},
		"more than that":       {w.Time(0, 2, 0.4), math.Inf(1)},
		"a drift beyond exp":   {touch.Walk{Drift: 1e3, Sigma: 1}.Probability(0, 2e3, 2), touch.Walk{Sigma: 1}.Probability(0, 1e-9, 1) / 2},
		"a still longer while": {touch.Walk{Drift: 1e3, Sigma: 1}.Probability(0, 2e3, 3), 1},
	} {
		if math.Abs(c[0]-c[1]) > 0.02 && c[0] != c[1] {
			t.Errorf("%s: %v, want %v", name, c[0], c[1])
		}
	}
}

// TestEstimates: from steps of uneven length drift and deviation come out as they went in.
func TestEstimates(t *testing.T) {
	rnd, truth := seeded(t), touch.Walk{Drift: -0.3, Sigma: 0.8}
	points := history(rnd, truth, 50, 20_000, func() float64 { return 0.1 + 3*rnd.Float64()*rnd.Float64() })
	s := touch.Steps(points)
	recent := func() (touch.Walk, bool) { return s.RecentWalk(4000) }
	for name, estimate := range map[string]func() (touch.Walk, bool){"all": s.Walk, "recent": recent} {
		w, ok := estimate()
		checktest.MustTrue(t, ok, "%s: ok is false", name)
		checktest.True(t, math.Abs(w.Drift-truth.Drift) <= 0.06,
			"%s: math.Abs(w.Drift-truth.Drift) is %v, want <= 0.06", name, math.Abs(w.Drift-truth.Drift))
		checktest.True(t, math.Abs(w.Sigma-truth.Sigma) <= 0.06,
			"%s: math.Abs(w.Sigma-truth.Sigma) is %v, want <= 0.06", name, math.Abs(w.Sigma-truth.Sigma))
	}
	if _, ok := s[:1].Walk(); ok {
		t.Error("one step is an estimate")
	}
	if _, ok := s.RecentWalk(0); ok {
		t.Error("a half-life of 0 is one")
	}
	twice := []touch.Point{{At: 0, Value: 1}, {At: 1, Value: 9}, {At: 1, Value: 2}, {At: 2, Value: 4}}
	got := touch.Steps(twice)
	checktest.MustEqual(t, len(got), 2, "two of one time: len(got)")
	checktest.Equal(t, got[0].Change, 1, "two of one time: got[0].Change")
	checktest.Equal(t, got[1].Change, 2, "two of one time: got[1].Change")
}

// history is a walk as it is looked at now and then.
func history(rnd *rand.Rand, w touch.Walk, from float64, n int, wait func() float64) []touch.Point {
	points := []touch.Point{{Value: from}}
	for range n - 1 {
		last, over := points[len(points)-1], wait()
		points = append(points, touch.Point{At: last.At + over, Value: last.Value + w.Drift*over + w.Sigma*math.Sqrt(over)*rnd.NormFloat64()})
	}
	return points
}

// TestTheBandHoldsTheTruth: histories of a price are made, each gives an estimate, a
// chance and its band of 90 %. As often as that the band holds the true chance, and the
// paths that go on from there reach the level as often as the bands say.
func TestTheBandHoldsTheTruth(t *testing.T) {
	rnd, truth, n := seeded(t), touch.Walk{Drift: -0.02, Sigma: 0.107022}, sample.Count(300, 15_000)
	held, touchedAll, low, high := 0, 0, 0.0, 0.0
	for range n {
		points := history(rnd, truth, math.Log(74.95), 250, func() float64 { return 1.0 / 250 })
		from := points[len(points)-1].Value
		level := from - 0.05
		chance := func(w touch.Walk) float64 {
			w.Span = 0 // the band shows how unsure the drift is
			return w.Probability(from, level, 0.25)
		}
		band := touch.Steps(points).Bootstrap(rnd, 200, 1, chance)
		if a, b := touch.Quantile(band, 0.05), touch.Quantile(band, 0.95); a <= chance(truth) && chance(truth) <= b {
			held++
		}
		low, high = low+touch.Quantile(band, 0.05), high+touch.Quantile(band, 0.95)
		touchedAll += touched(rnd, truth, 0.05, 0.25, 1)
	}
	all := float64(n)
	if share := float64(held) / all; share < 0.9-4*0.3/math.Sqrt(all)-0.02 || share > 0.9+4*0.3/math.Sqrt(all)+0.02 {
		t.Errorf("the bands of 90 %% hold the truth in %.1f %% of %d", 100*share, n)
	}
	if share := float64(touchedAll) / all; share < low/all || share > high/all {
		t.Errorf("%.1f %% of %d paths reach the level, outside of %.1f to %.1f %%", 100*share, n, 100*low/all, 100*high/all)
	}
}

// TestADriftThatIsNotSure: the answers are the mean over the drift, found by integration;
// levels and times are inverse to the chance; a drift that is surer and surer is known.
func TestADriftThatIsNotSure(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := touch.Walk{Drift: rapid.Float64Range(-3, 3).Draw(t, "drift"), Sigma: rapid.Float64Range(0.1, 3).Draw(t, "sigma"),
			Span: rapid.Float64Range(0.3, 100).Draw(t, "span")}
		d, within := rapid.Float64Range(0.01, 5).Draw(t, "distance"), rapid.Float64Range(0.01, 10).Draw(t, "within")
		mean, sum := 0.0, 0.0
		for x := -8.0; x <= 8; x += 1.0 / 64 {
			by := math.Exp(-x * x / 2)
			known := touch.Walk{Drift: w.Drift + x*w.Sigma/math.Sqrt(w.Span), Sigma: w.Sigma}
			mean, sum = mean+by*known.Probability(0, d, within), sum+by
		}
		got := w.Probability(0, d, within)
		if math.Abs(got-mean/sum) > 1e-9 {
			t.Fatalf("%v, and by integration %v", got, mean/sum)
		}
		further, longer, ever := w.Probability(0, d*1.1, within), w.Probability(0, d, within*1.1), w.Probability(0, d, math.Inf(1))
		checktest.MustTrue(t, further <= got+1e-12, "further is %v", further)
		checktest.MustTrue(t, longer >= got-1e-12, "longer is %v", longer)
		checktest.MustTrue(t, ever >= longer-1e-12, "ever is %v; got %v", ever, got)
		p := rapid.Float64Range(1e-6, 1-1e-6).Draw(t, "p")
		if back := w.Probability(0, w.Level(0, p, within, false), within); math.Abs(back-p) > 1e-9 {
			t.Fatalf("p(level(%v)) = %v", p, back)
		}
		if at := w.Time(0, d, p); !math.IsInf(at, 1) && math.Abs(w.Probability(0, d, at)-p) > 1e-6 {
			t.Fatalf("p(time(%v)) = %v", p, w.Probability(0, d, at))
		}
		known := w
		known.Span, w.Span = 0, 1e12
		if a, b := w.Probability(0, d, within), known.Probability(0, d, within); math.Abs(a-b) > 1e-6 {
			t.Fatalf("nearly sure %v, known %v", a, b)
		}
	})
}

// TestBacktest: of histories that are walks as many levels are reached as was said.
func TestBacktest(t *testing.T) {
	rnd, n := seeded(t), sample.Count(400, 20_000)
	for _, p := range []float64{0.5, 0.8, 0.9, 0.95} {
		for _, drift := range []float64{0, -0.3} {
			var all touch.BacktestResult
			for range n {
				points := history(rnd, touch.Walk{Drift: drift, Sigma: 1}, 0, 600, func() float64 { return 1.0 / 24 })
				got := touch.Backtest(points, 150, p, 3, true)
				all.Forecasts, all.Touched = all.Forecasts+got.Forecasts, all.Touched+got.Touched
			}
			// The forecasts of one history overlap: together they tell half as much as so many apart.
			share, off := float64(all.Touched)/float64(all.Forecasts), 4*math.Sqrt(2*p*(1-p)/float64(all.Forecasts))
			if math.Abs(share-p) > off+0.02 { // with neither correction it is 0.06 and more
				t.Errorf("%+v with a drift of %v: %.4f, want %v", all, drift, share, p)
			}
		}
	}
	points := history(rnd, touch.Walk{Drift: -0.2, Sigma: 1}, 0, 50, func() float64 { return 0.1 })
	if none := touch.Backtest(points, 100, 0.8, 20, true); none != (touch.BacktestResult{}) {
		t.Errorf("from too few: %+v", none)
	}
}

func BenchmarkProbability(b *testing.B) {
	w := touch.Walk{Drift: -1, Sigma: 2}
	for b.Loop() {
		w.Probability(10, 0, 5)
	}
}
