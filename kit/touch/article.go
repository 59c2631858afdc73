// Article: a published formula for limit orders, to compare results with.

package touch

import "math"

// ArticlePrice returns the price that an order to buy should have to be filled with probability p, by the
// formula of an article on limit orders and volatility. sigma is the volatility of a year, within is in years.
// The article uses (1+sigma)^x instead of the exponential of sigma x, and a factor sqrt(pi) instead of sqrt(2).
// So the true probability is not p: Geometric.Probability returns it, and Geometric.Level returns the price
// that has probability p.
func ArticlePrice(price, sigma, p, within float64) float64 {
	return price * math.Pow(1+sigma, -math.Sqrt(math.Pi)*math.Erfinv(1-p)*math.Sqrt(within))
}
