// The formula of an article on limit orders, to compare with.

package touch

import "math"

// Article is the price that an order to buy should name so that it is filled with
// probability p, as an article on limit orders and volatility reckons it: sigma is that
// of a year, within in years. It takes (1+sigma)^x for the exponential of sigma x and a
// factor of sqrt(pi) for sqrt(2), so its chance is not p: Geometric.Probability says what
// it is, Geometric.Level which price has p.
func Article(price, sigma, p, within float64) float64 {
	return price * math.Pow(1+sigma, -math.Sqrt(math.Pi)*math.Erfinv(1-p)*math.Sqrt(within))
}
