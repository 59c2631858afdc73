package geo

import (
	"math"
	"math/big"
)

// double is the sum of two numbers, of which the second is below the precision of the first: 106 bits together (T. J. Dekker, "A
// floating-point technique for extending the available precision", 1971).
type double struct{ hi, lo float64 }

func newDouble(a, b float64) double {
	s := a + b
	bb := s - a
	return double{s, (a - (s - bb)) + (b - bb)}
}

func (a double) add(b double) double {
	s := newDouble(a.hi, b.hi)
	t := newDouble(a.lo, b.lo)
	s = newDouble(s.hi, s.lo+t.hi)
	return newDouble(s.hi, s.lo+t.lo)
}

func (a double) mul(b double) double {
	p := a.hi * b.hi
	return newDouble(p, math.FMA(a.hi, b.hi, -p)+(a.hi*b.lo+a.lo*b.hi))
}

func (a double) neg() double { return double{-a.hi, -a.lo} }

// oracle computes arc tangents with an error below 2^-100. It corrects the result of math.Atan2 by the angle that remains.
type oracle struct {
	sin, cos [256]double // of i/64
	inverse  [16]double  // 1/i!
}

const precision = 300

func newBig(x float64) *big.Float { return new(big.Float).SetPrec(precision).SetFloat64(x) }

func toDouble(x *big.Float) double {
	hi, _ := x.Float64()
	lo, _ := new(big.Float).SetPrec(precision).Sub(x, newBig(hi)).Float64()
	return double{hi, lo}
}

// sinCosBig returns the sine and the cosine of an angle in radians by their power series.
func sinCosBig(x *big.Float) (sin, cos *big.Float) {
	sin, cos = newBig(0), newBig(0)
	term := newBig(1)
	for i := 0; i < 400 && term.Sign() != 0; i++ {
		to := []*big.Float{cos, sin}[i%2]
		if i%4 < 2 {
			to.Add(to, term)
		} else {
			to.Sub(to, term)
		}
		term = new(big.Float).SetPrec(precision).Mul(term, x)
		term.Quo(term, newBig(float64(i+1)))
		if term.MantExp(nil) < -4*precision {
			break
		}
	}
	return sin, cos
}

func newOracle() *oracle {
	o := &oracle{}
	for i := range o.sin {
		s, c := sinCosBig(newBig(float64(i) / 64))
		o.sin[i], o.cos[i] = toDouble(s), toDouble(c)
	}
	factorial := newBig(1)
	for i := range o.inverse {
		if i > 0 {
			factorial.Mul(factorial, newBig(float64(i)))
		}
		o.inverse[i] = toDouble(new(big.Float).SetPrec(precision).Quo(newBig(1), factorial))
	}
	return o
}

// sinCos returns the sine and the cosine of an angle from 0 to 3.2.
func (o *oracle) sinCos(x float64) (sin, cos double) {
	i := int(x*64 + 0.5)
	r := x - float64(i)/64 // exact
	square := double{r, 0}.mul(double{r, 0})
	var s, c double
	for k := 15; k >= 1; k -= 2 {
		s = s.mul(square).neg().add(o.inverse[k])
		c = c.mul(square).neg().add(o.inverse[k-1])
	}
	s = s.mul(double{r, 0})
	return o.sin[i].mul(c).add(o.cos[i].mul(s)), o.cos[i].mul(c).add(o.sin[i].mul(s).neg())
}

// atan2 returns the angle of the point (x, y), whose amounts are from 1e-100 to 1e100.
func (o *oracle) atan2(y, x float64) double {
	guess := math.Atan2(math.Abs(y), x)
	s, c := o.sinCos(guess)
	yy, xx := double{math.Abs(y), 0}, double{x, 0}
	n := yy.mul(c).add(xx.mul(s).neg())
	d := xx.mul(c).add(yy.mul(s))
	rest := n.hi / d.hi // below 1e-15, so it is its own arc tangent
	result := newDouble(guess, rest)
	if y < 0 {
		return result.neg()
	}
	return result
}

// unitsOff returns the distance of a number to the exact result, in units of the last place of that result.
func unitsOff(got float64, exact double) float64 {
	unit := math.Nextafter(math.Abs(exact.hi), math.Inf(1)) - math.Abs(exact.hi)
	return math.Abs((got-exact.hi)-exact.lo) / unit
}
