package claims

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"understudy/bench/rig"
	"understudy/kit/geo"
)

var fusedMultiplyAdd = claim{
	name: "fused-multiply-add", systems: "38",
	says:    "A fused multiply-add does not pay in Go: its call takes longer than it saves",
	figure:  "atan2 23.6 ns, with FMA by calls 53.4; one FMA 2.72 ns, multiply and add 0.38",
	measure: measureAngles,
}

// total keeps sums, so that the compiler cannot remove their making.
var total float64

// The coefficients of package math's atan.
const (
	p0, p1, p2, p3, p4 = -8.750608600031904122785e-01, -1.615753718733365076637e+01, -7.500855792314704667340e+01, -1.228866684490136173410e+02,
		-6.485021904942025371773e+01
	q0, q1, q2, q3, q4 = +2.485846490142306297962e+01, +1.650270098316988542046e+02, +4.328810604912902668951e+02, +4.853903996359136964868e+02,
		+1.945506571482613964425e+02
)

// fusedAtan2 is atan2 of finite numbers that are not 0, by math.FMA and one division for the argument.
func fusedAtan2(y, x float64) float64 {
	ay, ax := math.Abs(y), math.Abs(x)
	low, high := min(ay, ax), max(ay, ax)
	base := 0.0
	t := low / high
	if t > 0.4142135623730950488 { // tan(pi/8)
		t, base = (low-high)/(low+high), math.Pi/4
	}
	z := t * t
	p := math.FMA(math.FMA(math.FMA(math.FMA(p0, z, p1), z, p2), z, p3), z, p4)
	q := math.FMA(math.FMA(math.FMA(math.FMA(z+q0, z, q1), z, q2), z, q3), z, q4)
	a := base + math.FMA(t, z*p/q, t)
	if ay > ax {
		a = math.Pi/2 - a
	}
	if x < 0 {
		a = math.Pi - a
	}
	return math.Copysign(a, y)
}

//go:noinline
func callFMA(x, y, z float64) float64 { return math.FMA(x, y, z) }

// measureAngles computes atan2 of random pairs, and chains of a fused multiply-add: by the compiler's instruction, and by
// calls as in the article.
func measureAngles(_ context.Context, r *rig.Run) (finding, error) {
	const many = 4096
	xs, ys, angles := make([]float64, many), make([]float64, many), make([]float64, many)
	for i := range xs {
		xs[i], ys[i] = rand.NormFloat64(), rand.NormFloat64()
		if want := math.Atan2(ys[i], xs[i]); math.Abs(fusedAtan2(ys[i], xs[i])-want) > 1e-15*4 {
			return finding{}, fmt.Errorf("atan2(%g, %g) is %g, want %g", ys[i], xs[i], fusedAtan2(ys[i], xs[i]), want)
		}
	}
	got, err := turn(r, []way{
		{"math.Atan2", func(n int) error {
			sum := 0.0
			for i := range n {
				sum += math.Atan2(ys[i&(many-1)], xs[i&(many-1)])
			}
			total = sum
			return nil
		}},
		{"atan2 by math.FMA", func(n int) error {
			sum := 0.0
			for i := range n {
				sum += fusedAtan2(ys[i&(many-1)], xs[i&(many-1)])
			}
			total = sum
			return nil
		}},
		{"kit/geo, one at a time", func(n int) error {
			sum := 0.0
			for i := range n {
				sum += geo.Atan2(ys[i&(many-1)], xs[i&(many-1)])
			}
			total = sum
			return nil
		}},
		{"kit/geo, 4,096 at once", func(n int) error {
			for ; n > 0; n -= many {
				part := min(n, many)
				geo.FillAtan2(angles[:part], ys[:part], xs[:part])
			}
			total = angles[0]
			return nil
		}},
		{"FMA by a call, chained", func(n int) error {
			sum := 0.0
			for i := range n {
				sum = callFMA(ys[i&(many-1)], sum, xs[i&(many-1)])
			}
			total = sum
			return nil
		}},
		{"math.FMA, chained", func(n int) error {
			sum := 0.0
			for i := range n {
				sum = math.FMA(ys[i&(many-1)], sum, xs[i&(many-1)])
			}
			total = sum
			return nil
		}},
		{"multiply and add, chained", func(n int) error {
			sum := 0.0
			for i := range n {
				sum = ys[i&(many-1)]*sum + xs[i&(many-1)]
			}
			total = sum
			return nil
		}},
	})
	if err != nil {
		return finding{}, err
	}
	if math.IsNaN(total) {
		return finding{}, errors.New("there is no result")
	}
	table, bars := tabulate("one result", got)
	return finding{
		ours: fmt.Sprintf("math.Atan2 %s ns, by math.FMA %s, batch of kit/geo %s; one FMA by a call %s, by the instruction %s, multiply and add %s",
			rig.Figure(got[0].median()), rig.Figure(got[1].median()), rig.Figure(got[3].median()), rig.Figure(got[4].median()),
			rig.Figure(got[5].median()), rig.Figure(got[6].median())),
		verdict: judge(got[1].ratio(got[0]) > 1, heldThen),
		title:   "Nanoseconds for one result, random arguments",
		bars:    append([]rig.Bar{article("article: atan2", 23.6), article("article: atan2, FMA by calls", 53.4)}, bars...),
		table:   table,
		text: "Since Go 1.14 the compiler writes math.FMA as one instruction, and checks the processor before it. The article called a function in " +
			"assembly for each, with constant arguments; here they are random. In a chain each result waits for the one before, as in a polynomial. kit/geo " +
			"computes four at once where the processor has AVX2.",
	}, nil
}
