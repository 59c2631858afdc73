package geo

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"sync"
	"testing"

	"understudy/internal/sample"
)

// specials are zeros, the smallest and largest numbers, infinities, NaN, and numbers at the bounds of the octants.
var specials = []float64{
	0, math.SmallestNonzeroFloat64, 0x1p-1022, 0x1p-1022 - 0x1p-1074, 0x1p-600, 1e-300, 0x1p-53, 0.5, 1, math.Nextafter(1, 2),
	math.Nextafter(1, 0), 2, 3, math.Pi, 1e100, 0x1p600, 0x1p1021, math.Nextafter(0x1p1022, 0), 0x1p1022, 0x1p1023, math.MaxFloat64,
	math.Inf(1), math.NaN(),
}

// isSame reports whether two results are the same bits, or both NaN, or differ by at most two units in the last place if neither is
// zero.
func isSame(got, want float64) bool {
	if got == want || math.IsNaN(got) && math.IsNaN(want) {
		return math.Signbit(got) == math.Signbit(want) || math.IsNaN(want)
	}
	return want != 0 && unitsOff(got, double{want, 0}) <= 2
}

// mathAtan2 returns math.Atan2(y, x) with the sign of y. math.Atan2 loses the sign if y/x is too small for a float64 and x is negative.
func mathAtan2(y, x float64) float64 { return math.Copysign(math.Atan2(y, x), y) }

// atan2Slices returns the result of FillAtan2 for one point, at place i of a slice of ordinary points.
func atan2Slices(y, x float64, i, n int) float64 {
	dst, ys, xs := make([]float64, n), make([]float64, n), make([]float64, n)
	for j := range ys {
		ys[j], xs[j] = float64(j), float64(3-j)
	}
	ys[i], xs[i] = y, x
	FillAtan2(dst, ys, xs)
	for j := range dst {
		if want := mathAtan2(ys[j], xs[j]); !isSame(dst[j], want) {
			return math.Inf(1)
		}
	}
	return dst[i]
}

// TestSpecialCasesAreThoseOfMath compares all pairs of specials with math.Atan2. Where a result of math.Atan2 is exact by IEEE 754, it must
// be the same: with zeros, infinities and NaN.
func TestSpecialCasesAreThoseOfMath(t *testing.T) {
	var all []float64
	for _, x := range specials {
		all = append(all, x, -x)
	}
	isExact := func(x float64) bool { return x == 0 || math.IsInf(x, 0) || math.IsNaN(x) }
	for _, y := range all {
		for _, x := range all {
			want := mathAtan2(y, x)
			for i := range 9 {
				for at, got := range map[string]float64{"Atan2": Atan2(y, x), "FillAtan2": atan2Slices(y, x, i%7, 7+i%3)} {
					if !isSame(got, want) {
						t.Errorf("%s(%v, %v) is %v, want %v", at, y, x, got, want)
					}
					if (isExact(x) || isExact(y)) && math.Float64bits(got) != math.Float64bits(want) && want == want {
						t.Errorf("%s(%v, %v) is %v, want exactly %v", at, y, x, got, want)
					}
				}
			}
		}
	}
}

// randomPoints fills two slices with coordinates of four sorts: both even from -1 to 1, both with any exponent, nearly equal, and
// at the bound of an octant.
func randomPoints(rng *rand.Rand, y, x []float64) {
	for i := range y {
		bits := rng.Uint64()
		a, b := rng.Float64(), rng.Float64()
		switch bits & 3 {
		case 1:
			a, b = math.Ldexp(a+0.5, int(bits>>8&511)-256), math.Ldexp(b+0.5, int(bits>>20&511)-256)
		case 2:
			a = b * (1 + (a-0.5)/64)
		case 3:
			a = b * (0.5 + (a-0.5)/64)
		}
		if a == 0 || b == 0 {
			a, b = 1, 1
		}
		if bits&4 != 0 {
			a = -a
		}
		if bits&8 != 0 {
			b = -b
		}
		if bits&16 != 0 {
			a, b = b, a
		}
		y[i], x[i] = a, b
	}
}

// TestErrorIsBelowTwoUnits compares random points with an oracle of 106 bits: Atan2, FillAtan2, and FillAtan2 without vectors.
func TestErrorIsBelowTwoUnits(t *testing.T) {
	seed := sample.Seed(t)
	count, exact := sample.Count(400_000, 100_000_000), newOracle()
	var mu sync.Mutex
	var most [2]float64
	var wg sync.WaitGroup
	const workers = 4
	for w := range workers {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(seed), uint64(w)))
			var y, x, many [1000]float64
			var worst [2]float64
			for range count / workers / len(y) {
				randomPoints(rng, y[:], x[:])
				FillAtan2(many[:], y[:], x[:])
				for i := range y {
					want := exact.atan2(y[i], x[i])
					for j, got := range [2]float64{Atan2(y[i], x[i]), many[i]} {
						off := unitsOff(got, want)
						if !(off <= 2) {
							t.Errorf("seed %d: the angle of (%v, %v) is %v, want %v: %.3f units off", seed, x[i], y[i], got, want.hi, off)
							return
						}
						worst[j] = max(worst[j], off)
					}
				}
			}
			mu.Lock()
			defer mu.Unlock()
			most[0], most[1] = max(most[0], worst[0]), max(most[1], worst[1])
		})
	}
	wg.Wait()
	t.Logf("%d points: Atan2 is at most %.3f units off, FillAtan2 %.3f", count, most[0], most[1])
}

// TestOracle compares the oracle with power series of 300 bits: the sine of its angle is that of the point.
func TestOracle(t *testing.T) {
	seed := sample.Seed(t)
	rng, exact := rand.New(rand.NewPCG(uint64(seed), 9)), newOracle()
	var y, x [500]float64
	randomPoints(rng, y[:], x[:])
	for i := range y {
		got := exact.atan2(y[i], x[i])
		s, c := sinCosBig(new(big.Float).SetPrec(precision).Add(newBig(got.hi), newBig(got.lo)))
		// y cos - x sin is the sine of the error times the distance from the origin.
		n := new(big.Float).SetPrec(precision).Mul(newBig(y[i]), c)
		n.Sub(n, new(big.Float).SetPrec(precision).Mul(newBig(x[i]), s))
		off, _ := n.Float64()
		if off = math.Abs(off) / math.Hypot(x[i], y[i]) / math.Abs(got.hi); off > 0x1p-90 {
			t.Errorf("seed %d: the oracle is off by %v of the angle of (%v, %v)", seed, off, x[i], y[i])
		}
	}
}

const pi100 = "3.1415926535897932384626433832795028841971693993751058209749445923078164062862089986280348253421170679821480865"

// bigAngles returns the distance between two points as an angle in radians, and the bearing in radians, with 106 bits.
func bigAngles(exact *oracle, p, q Point) (distance, bearing float64, sharp bool) {
	rad := func(x float64) *big.Float {
		pi, _ := new(big.Float).SetPrec(precision).SetString(pi100)
		return pi.Mul(pi, newBig(x)).Quo(pi, newBig(180))
	}
	mul := func(a ...*big.Float) *big.Float {
		p := newBig(1)
		for _, x := range a {
			p.Mul(p, x)
		}
		return p
	}
	s1, c1 := sinCosBig(rad(p.Lat))
	s2, c2 := sinCosBig(rad(q.Lat))
	sl, cl := sinCosBig(new(big.Float).SetPrec(precision).Sub(rad(q.Lon), rad(p.Lon)))
	east := mul(c2, sl)
	north := new(big.Float).SetPrec(precision).Sub(mul(c1, s2), mul(s1, c2, cl))
	dot := new(big.Float).SetPrec(precision).Add(mul(s1, s2), mul(c1, c2, cl))
	cross := new(big.Float).SetPrec(precision).Add(mul(east, east), mul(north, north))
	cross.Sqrt(cross)
	f := func(x *big.Float) float64 { v, _ := x.Float64(); return v }
	return exact.atan2(f(cross), f(dot)).hi, exact.atan2(f(east), f(north)).hi, f(cross) > 1e-9
}

// TestDistancesAndBearings compares both ways of computing them with series of 300 bits, at all distances, at the poles and
// across the antimeridian. A distance may be off by 1e-15 of itself and by 5 nanometres; a bearing by 2e-13 degrees if the points
// are further than a millimetre from each other and from the antipodes, and by as much more as they are nearer.
func TestDistancesAndBearings(t *testing.T) {
	seed := sample.Seed(t)
	rng, exact := rand.New(rand.NewPCG(uint64(seed), 3)), newOracle()
	var offDistance, offBearing float64
	for range sample.Count(300, 20_000) / 10 {
		from := Point{rng.Float64()*180 - 90, rng.Float64()*360 - 180}
		if rng.IntN(5) == 0 {
			from = Point{[]float64{90, -90, 0, 45}[rng.IntN(4)], []float64{180, -180, 0, 179.5}[rng.IntN(4)]}
		}
		lat, lon := make([]float64, 10), make([]float64, 10)
		for i := range lat {
			lat[i], lon[i] = rng.Float64()*180-90, rng.Float64()*360-180
			if near := math.Pow(10, -6*rng.Float64()); i%3 == 0 {
				lat[i] = max(-90, min(90, from.Lat+near*(rng.Float64()-0.5)))
				lon[i] = math.Remainder(from.Lon+near*(rng.Float64()-0.5), 360)
			}
		}
		distances, bearings := make([]float64, 10), make([]float64, 10)
		FillDistances(distances, from, lat, lon)
		FillBearings(bearings, from, lat, lon)
		for i := range lat {
			to := Point{lat[i], lon[i]}
			distance, bearing, sharp := bigAngles(exact, from, to)
			for _, got := range []float64{distances[i], from.DistanceTo(to)} {
				off := math.Abs(got-EarthRadius*distance) / (EarthRadius*distance*1e-15 + 5e-9)
				offDistance = max(offDistance, off)
				if !(off < 1) {
					t.Errorf("seed %d: from %v to %v are %v m, want %v", seed, from, to, got, EarthRadius*distance)
				}
			}
			for _, got := range []float64{bearings[i], from.BearingTo(to)} {
				if !(got >= 0 && got < 360) {
					t.Errorf("seed %d: the bearing from %v to %v is %v", seed, from, to, got)
				}
				off := math.Abs(math.Remainder(got-bearing*180/math.Pi, 360)) * min(1, math.Sin(distance))
				if sharp {
					offBearing = max(offBearing, off)
				}
				if sharp && !(off < 2e-13) {
					t.Errorf("seed %d: the bearing from %v to %v is %v, want %v", seed, from, to, got, bearing*180/math.Pi)
				}
			}
		}
	}
	t.Logf("distances are off by at most %.2g of what they may, bearings %.2g degrees", offDistance, offBearing)
}

// TestSlicesOfAnyLength computes slices of 0 to 600 points, and each point as the functions for one do.
func TestSlicesOfAnyLength(t *testing.T) {
	from := Point{37.8, -122.4}
	for n := 0; n < 600; n += 1 + n/20 {
		lat, lon := make([]float64, n), make([]float64, n)
		for i := range lat {
			lat[i], lon[i] = float64(i%181)-90, float64(i*7%361)-180
		}
		distances, bearings := make([]float64, n), make([]float64, n)
		FillDistances(distances, from, lat, lon)
		FillBearings(bearings, from, lat, lon)
		for i := range lat {
			to := Point{lat[i], lon[i]}
			if want := from.DistanceTo(to); math.Abs(distances[i]-want) > 1e-8 {
				t.Errorf("%d of %d: %v m, want %v", i, n, distances[i], want)
			}
			if want := from.BearingTo(to); math.Abs(math.Remainder(bearings[i]-want, 360)) > 1e-12 {
				t.Errorf("%d of %d: bearing %v, want %v", i, n, bearings[i], want)
			}
		}
	}
}

func TestPointIsValid(t *testing.T) {
	for p, want := range map[Point]bool{
		{90, -180}: true, {-90, 180}: true, {90.1, 0}: false, {0, -180.1}: false, {math.NaN(), 0}: false, {0, math.Inf(1)}: false,
	} {
		if p.IsValid() != want {
			t.Errorf("%v is valid: %t", p, !want)
		}
	}
}

// FuzzAtan2 compares Atan2 and FillAtan2 with math.Atan2 for any two numbers.
func FuzzAtan2(f *testing.F) {
	for i, x := range specials {
		f.Add(x, specials[(i*7+3)%len(specials)])
	}
	f.Fuzz(func(t *testing.T, y, x float64) {
		want := mathAtan2(y, x)
		// math.Atan2 is up to two units off itself. A quotient below the smallest normal number has fewer digits.
		isNear := func(got float64) bool {
			return isSame(got, want) || unitsOff(got, double{want, 0}) <= 4 && math.Signbit(got) == math.Signbit(want)
		}
		for i := range 5 {
			if got := atan2Slices(y, x, i, 5); !isNear(got) {
				t.Errorf("FillAtan2(%v, %v) is %v, want %v", y, x, got, want)
			}
		}
		if got := Atan2(y, x); !isNear(got) {
			t.Errorf("Atan2(%v, %v) is %v, want %v", y, x, got, want)
		}
	})
}

// benchmarkPoints returns 4,096 random points.
func benchmarkPoints() (y, x []float64) {
	rng := rand.New(rand.NewPCG(1, 2))
	y, x = make([]float64, 4096), make([]float64, 4096)
	for i := range y {
		y[i], x[i] = rng.Float64()*2-1, rng.Float64()*2-1
	}
	return y, x
}

// BenchmarkAtan2 computes 4,096 angles an iteration.
func BenchmarkAtan2(b *testing.B) {
	y, x := benchmarkPoints()
	dst := make([]float64, len(y))
	for name, run := range map[string]func(){
		"math": func() {
			for i := range dst {
				dst[i] = math.Atan2(y[i], x[i])
			}
		},
		"one": func() {
			for i := range dst {
				dst[i] = Atan2(y[i], x[i])
			}
		},
		"slice": func() { FillAtan2(dst, y, x) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				run()
			}
		})
	}
}

// BenchmarkDistances computes the distances and bearings of 4,096 points.
func BenchmarkDistances(b *testing.B) {
	lat, lon := benchmarkPoints()
	for i := range lat {
		lat[i], lon[i] = lat[i]*90, lon[i]*180
	}
	dst := make([]float64, len(lat))
	for name, fill := range map[string]func([]float64, Point, []float64, []float64){"distances": FillDistances, "bearings": FillBearings} {
		b.Run(fmt.Sprint(name, "=", len(lat)), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				fill(dst, Point{37.8, -122.4}, lat, lon)
			}
		})
	}
}
