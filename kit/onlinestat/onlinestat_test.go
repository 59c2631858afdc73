// Onlinestat: the figures are those of the numbers, however they came.

package onlinestat

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"understudy/internal/checktest"
)

// The author's sum of squares gives a negative variance here.
func TestVarianceIsExact(t *testing.T) {
	xs := []float64{1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16}
	var one, all, left, right Stat
	for i, x := range xs {
		one.Add(x)
		if i < 2 {
			left.Add(x)
		} else {
			right.Add(x)
		}
	}
	all.AddAll(xs)
	left.Merge(&right)
	for name, s := range map[string]*Stat{"one by one": &one, "at once": &all, "merged": &left} {
		checktest.Equal(t, s.Variance(), 30, "%s: s.Variance()", name)
		checktest.Equal(t, s.Average(), 1e9+10, "%s: s.Average()", name)
		checktest.Equal(t, s.Min(), 1e9+4, "%s: s.Min()", name)
		checktest.Equal(t, s.Max(), 1e9+16, "%s: s.Max()", name)
		checktest.Equal(t, s.Range(), 12, "%s: s.Range()", name)
		checktest.Equal(t, s.Count(), 4, "%s: s.Count()", name)
	}
}

func TestOddNumbersChangeNothing(t *testing.T) {
	var s, batched Stat
	odd := []float64{math.NaN(), 3, math.Inf(1), 4, math.Inf(-1), 5, math.MaxFloat64}
	for _, x := range odd {
		s.Add(x)
	}
	batched.AddAll(odd)
	for _, s := range []*Stat{&s, &batched} {
		checktest.Equal(t, s.Count(), 3, "s.Count()")
		checktest.Equal(t, s.SkippedCount(), 4, "s.SkippedCount()")
		checktest.Equal(t, s.Average(), 4, "s.Average()")
		checktest.Equal(t, s.Variance(), 1, "s.Variance()")
		checktest.True(t, s.Quantile(0.5) >= 3.9, "s.Quantile(0.5) < 3.9")
		checktest.True(t, s.Quantile(0.5) <= 4.1, "s.Quantile(0.5) > 4.1")
	}
	if got := s.Quantile(math.NaN()); got != 3 {
		t.Errorf("quantile NaN is %v", got)
	}
}

func TestEmpty(t *testing.T) {
	var s, o Stat
	s.Merge(&o)
	s.AddAll(nil)
	if got := s.Summary(); got != (Summary{}) || NewSharded().Stat().Summary() != (Summary{}) {
		t.Errorf("%+v", got)
	}
}

// exact is what the numbers themselves say.
func exact(xs []float64, p float64) (mean, variance, quantile float64) {
	sum := 0.0
	for _, x := range xs {
		sum += x
	}
	mean = sum / float64(len(xs))
	for _, x := range xs {
		variance += (x - mean) * (x - mean)
	}
	if len(xs) > 1 {
		variance /= float64(len(xs) - 1)
	}
	sorted := slices.Sorted(slices.Values(xs))
	return mean, variance, sorted[max(0, min(len(xs), int(math.Ceil(p*float64(len(xs)))))-1)]
}

// rounding is how far the mean and the variance of xs may be from the exact
// ones. A float64 loses digits of the largest number, also where the mean of
// all is near zero.
func rounding(xs []float64, variance float64) (mean, spread float64) {
	mean = 1e-12 * max(1, math.Abs(slices.Min(xs)), math.Abs(slices.Max(xs)))
	return mean, 1e-9*variance + mean*math.Sqrt(variance) + mean*mean
}

// However numbers are cut into parts, and in whatever way each part is taken,
// the merged summary is that of all.
func TestMergeIsAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.OneOf(rapid.Float64Range(-1e6, 1e6), rapid.Float64Range(0, 60), rapid.SampledFrom([]float64{0, -1, 1, 1e-12, 1e9}))
		xs := rapid.SliceOfN(number, 1, 400).Draw(t, "numbers")
		p := rapid.Float64Range(0, 1).Draw(t, "p")
		sharded := NewSharded()
		var merged Stat
		var parts []*Stat
		for rest := xs; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "part")
			part := &Stat{}
			switch rapid.IntRange(0, 2).Draw(t, "how") {
			case 0:
				part.addEach(rest[:n])
				sharded.AddAll(rest[:n])
			case 1:
				part.AddAll(rest[:n])
				for _, x := range rest[:n] {
					sharded.Add(x)
				}
			case 2:
				part.Add(-5)
				part.Reset()
				part.addEach(rest[:n])
				sharded.AddAll(rest[:n])
			}
			merged.Merge(part)
			parts = append(parts, part)
			rest = rest[n:]
		}
		mean, variance, quantile := exact(xs, p)
		meanWithin, varianceWithin := rounding(xs, variance)
		for name, s := range map[string]*Stat{"merged": &merged, "sharded": sharded.Stat()} {
			equal := math.Abs(s.Average()-mean) <= meanWithin && math.Abs(s.Variance()-variance) <= varianceWithin
			if s.Count() != int64(len(xs)) || !equal {
				t.Fatalf("%s: %+v, want %v, %v", name, s.Summary(), mean, variance)
			}
			if s.Min() != slices.Min(xs) || s.Max() != slices.Max(xs) {
				t.Fatalf("%s: %+v", name, s.Summary())
			}
			if got := s.Quantile(p); math.Abs(got-quantile) > math.Abs(quantile)/128+1e-9 {
				t.Fatalf("%s: quantile %v is %v, want %v", name, p, got, quantile)
			}
		}
		if got, want := Quantile(p, parts...), merged.Quantile(p); got != want {
			t.Fatalf("quantile of %d parts is %v, merged %v", len(parts), got, want)
		}
	})
}

func TestQuantilesOfLatencies(t *testing.T) {
	r := rand.New(rand.NewPCG(22, 1))
	xs := make([]float64, 1_000_000)
	var s Stat
	for i := range xs {
		xs[i] = math.Exp(r.NormFloat64()*0.7 - 2) // log-normal, 0.135 s at the median
		s.Add(xs[i])
	}
	for _, p := range []float64{0.01, 0.5, 0.9, 0.99, 0.9999} {
		_, _, want := exact(xs, p)
		if got := s.Quantile(p); math.Abs(got/want-1) > 1.0/128 {
			t.Errorf("p%v is %v, want %v", p*100, got, want)
		}
	}
	if n := len(s.sketch.pos.counts); n > 16*bucketsPerOctave {
		t.Errorf("%d buckets for latencies", n)
	}
}

func TestBounded(t *testing.T) {
	var s Stat
	for e := -300.0; e <= 140; e++ {
		s.Add(math.Pow(10, e))
		s.Add(-math.Pow(10, e))
	}
	if n := len(s.sketch.pos.counts) + len(s.sketch.neg.counts); n > 2*maxBuckets {
		t.Errorf("%d buckets", n)
	}
	if got := s.Quantile(1); got != s.Max() {
		t.Errorf("p100 is %v, max %v", got, s.Max())
	}
}

func TestWindowForgets(t *testing.T) {
	w := Window{Size: 100}
	for range 1000 {
		w.Add(0.1)
	}
	{
		got := w.Quantile(0.99)
		checktest.True(t, math.Abs(got-0.1) <= 1e-3, "p99: math.Abs(got-0.1) is %v, want <= 1e-3", math.Abs(got-0.1))
		checktest.True(t, w.Count() >= 100, "p99: w.Count() < 100; got %v", got)
		checktest.True(t, w.Count() <= 200, "p99: w.Count() > 200; got %v", got)
	}
	for range 3 {
		w.Add(3)
	}
	if got := w.Quantile(0.99); math.Abs(got-3) > 0.03 {
		t.Errorf("after three slow ones p99 is %v", got)
	}
	for range 200 {
		w.Add(0.1)
	}
	if got := w.Quantile(1); got > 0.11 {
		t.Errorf("what left the window still counts: %v", got)
	}
}

// Snapshots during updates lose and double nothing.
func TestShardedAtOnce(t *testing.T) {
	s := NewSharded()
	var wg sync.WaitGroup
	const each = 20_000
	for w := range 4 {
		wg.Go(func() {
			for i := range each {
				s.Add(float64(w*each + i))
			}
		})
	}
	last := int64(0)
	for range 50 {
		n := s.Stat().Count()
		if n < last {
			t.Errorf("%d after %d", n, last)
		}
		last = n
	}
	wg.Wait()
	got := s.Stat()
	if want := (4*each - 1) / 2.0; got.Count() != 4*each || math.Abs(got.Average()-want) > 1e-12*want {
		t.Errorf("%+v, want %d around %v", got.Summary(), 4*each, want)
	}
}

func TestUpdatesAllocateNothing(t *testing.T) {
	s, sharded, xs := &Stat{}, NewSharded(), []float64{1, 2, 3, 4}
	s.Add(3)
	for range 100_000 {
		sharded.Add(3)
		sharded.AddAll(xs)
	}
	s.AddAll(xs)
	w := &Window{}
	for range 2000 {
		w.Add(3)
	}
	if n := testing.AllocsPerRun(1000, func() {
		s.Add(3)
		s.AddAll(xs)
		sharded.Add(3)
		sharded.AddAll(xs)
		w.Add(3)
		_ = w.Quantile(0.99)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzStat(f *testing.F) {
	f.Add(1.0, math.NaN(), -1e300, 0.5)
	f.Add(math.Inf(1), 5e-324, 1e140, 1.5)
	f.Fuzz(func(t *testing.T, a, b, c, p float64) {
		var s, o Stat
		s.AddAll([]float64{a, b})
		o.Add(c)
		o.Add(a)
		s.Merge(&o)
		for _, v := range []float64{s.Average(), s.Variance(), s.Deviation(), s.Min(), s.Max(), s.Range(), s.Quantile(p)} {
			if v-v != 0 {
				t.Fatalf("%v, %v, %v: %+v", a, b, c, s.Summary())
			}
		}
		if q := s.Quantile(p); s.Count() > 0 && (q < s.Min() || q > s.Max()) || s.Variance() < 0 {
			t.Fatalf("quantile %v of %+v", q, s.Summary())
		}
		if s.Count()+s.SkippedCount() != 4 {
			t.Fatalf("%d and %d of 4", s.Count(), s.SkippedCount())
		}
	})
}

func BenchmarkAdd(b *testing.B) {
	var s Stat
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		s.Add(float64(i & 1023))
		i++
	}
}

func BenchmarkAddAll(b *testing.B) {
	var s Stat
	xs := make([]float64, 1024)
	for i := range xs {
		xs[i] = float64(i)
	}
	b.ReportAllocs()
	for range b.N / len(xs) {
		s.AddAll(xs)
	}
}

func BenchmarkSharded(b *testing.B) {
	s := NewSharded()
	b.ReportAllocs()
	b.RunParallel(func(p *testing.PB) {
		for i := 0; p.Next(); i++ {
			s.Add(float64(i & 1023))
		}
	})
}
