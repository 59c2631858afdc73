package touch_test

import (
	"fmt"
	"math"
	"math/rand/v2"

	"understudy/kit/touch"
)

// A price of 74.95 with a deviation of 10.7 % a year: an order at 74.449 is filled within
// the year with a chance of 95 %, one as the article reckons it with 94.05 %.
func ExampleGeometric() {
	price := touch.Geometric{Walk: touch.Walk{Sigma: 0.107022}}
	fmt.Printf("%.3f\n", price.Level(74.95, 0.95, 1, true))
	article := touch.ArticlePrice(74.95, 0.107022, 0.95, 1)
	fmt.Printf("%.2f %.2f %%\n", article, 100*price.Probability(74.95, article, 1))
	// Output:
	// 74.449
	// 74.35 94.05 %
}

// A balance falls by about 2 a day and is looked at now and then.
func ExampleSeries() {
	points := []touch.Point{{0, 60}, {1, 58.5}, {2, 56.1}, {4, 51.8}, {5, 50.2}, {6, 47.6}, {8, 44.1}, {9, 42.3}}
	steps := touch.Steps(points)
	walk, _ := steps.Walk()
	fmt.Printf("drift %.2f, deviation %.2f\n", walk.Drift, walk.Sigma)
	fmt.Printf("reaches 0 within 21 days: %.0f %%\n", 100*walk.Probability(42.3, 0, 21))
	band := steps.Bootstrap(rand.New(rand.NewPCG(1, 2)), 500, 2, func(w touch.Walk) float64 { return w.Time(42.3, 0, 0.5) })
	fmt.Printf("as likely as not by day %.1f, at most %.0f\n", walk.Time(42.3, 0, 0.5), math.Ceil(touch.Quantile(band, 0.95)))
	fmt.Println(touch.Backtest(points, 4, 0.5, 2, true).Forecasts, "forecasts to look back at")
	// Output:
	// drift -1.97, deviation 0.43
	// reaches 0 within 21 days: 40 %
	// as likely as not by day 21.5, at most 24
	// 2 forecasts to look back at
}
