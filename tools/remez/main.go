// Command remez prints the polynomials of kit/geo. They approximate (atan(√z)/√z - 1)/z and (sin(√z)/√z - 1)/z with the smallest
// relative error of atan and sin, by the exchange algorithm of E. Remez (1934) with 200 bits.
//
//	cd tools && go run ./remez
package main

import (
	"fmt"
	"math"
	"math/big"
	"slices"
)

// number returns a number of 200 bits.
func number(x float64) *big.Float { return new(big.Float).SetPrec(200).SetFloat64(x) }

func add(a, b *big.Float) *big.Float { return number(0).Add(a, b) }

func mul(a, b *big.Float) *big.Float { return number(0).Mul(a, b) }

func quo(a, b *big.Float) *big.Float { return number(0).Quo(a, b) }

// sum returns the value of a polynomial.
func sum(coefficients []*big.Float, z *big.Float) *big.Float {
	s := number(0)
	for _, c := range slices.Backward(coefficients) {
		s = add(mul(s, z), c)
	}
	return s
}

// solve solves a system of linear equations, whose rows end with the right side, by Gauss's elimination.
func solve(rows [][]*big.Float) []*big.Float {
	n := len(rows)
	for i := range n {
		best := i
		for j := i + 1; j < n; j++ {
			if number(0).Abs(rows[j][i]).Cmp(number(0).Abs(rows[best][i])) > 0 {
				best = j
			}
		}
		rows[i], rows[best] = rows[best], rows[i]
		for j := range n {
			if j == i {
				continue
			}
			factor := quo(rows[j][i], rows[i][i])
			for k := i; k <= n; k++ {
				rows[j][k] = number(0).Sub(rows[j][k], mul(factor, rows[i][k]))
			}
		}
	}
	x := make([]*big.Float, n)
	for i := range n {
		x[i] = quo(rows[i][n], rows[i][i])
	}
	return x
}

// approximate returns the polynomial of a degree with the smallest relative error on (0, last], and that error. series is the power
// series of the function.
func approximate(series []*big.Float, last float64, degree int) (best []*big.Float, worst float64) {
	n := degree + 2
	points := make([]float64, n)
	for i := range points {
		points[i] = last * (1 - math.Cos(math.Pi*(float64(i)+0.5)/float64(n))) / 2
	}
	weight := func(z *big.Float) *big.Float { return quo(z, add(number(1), mul(z, sum(series, z)))) }
	for range 8 {
		rows := make([][]*big.Float, n)
		for i, point := range points {
			z := number(point)
			power := number(1)
			for range degree + 1 {
				rows[i] = append(rows[i], power)
				power = mul(power, z)
			}
			rows[i] = append(rows[i], quo(number(float64(1-i%2*2)), weight(z)), sum(series, z))
		}
		best = solve(rows)[:degree+1]
		// The next points are the greatest errors between changes of their sign.
		points, worst = points[:0], 0
		sign := 0
		var top float64
		for i := range 3000 {
			point := last * (1 - math.Cos(math.Pi*float64(i+1)/3000)) / 2
			z := number(point)
			off, _ := mul(weight(z), number(0).Sub(sum(series, z), sum(best, z))).Float64()
			if s := 1 - 2*int(math.Float64bits(off)>>63); s != sign {
				points, sign, top = append(points, point), s, 0
			}
			if math.Abs(off) > top {
				points[len(points)-1], top = point, math.Abs(off)
			}
			worst = max(worst, top)
		}
		if len(points) != n {
			panic(fmt.Sprintf("%d extremes, want %d", len(points), n))
		}
	}
	return best, worst
}

func main() {
	var atan, sin []*big.Float
	factorial := number(1)
	for k := range 150 {
		odd := float64(2*k + 3)
		factorial = mul(factorial, number(odd*(odd-1)))
		sign := number(float64(k%2*2 - 1))
		atan, sin = append(atan, quo(sign, number(odd))), append(sin, quo(sign, factorial))
	}
	for _, f := range []struct {
		name   string
		series []*big.Float
		last   float64
		degree int
	}{{"a", atan, 0.2501, 12}, {"s", sin, 2.4675, 7}} {
		coefficients, worst := approximate(f.series, f.last, f.degree)
		fmt.Printf("%s: relative error 2^%.1f\n", f.name, math.Log2(worst))
		for i, c := range coefficients {
			v, _ := c.Float64()
			fmt.Printf("%s%d = %.17g\n", f.name, i, v)
		}
	}
}
