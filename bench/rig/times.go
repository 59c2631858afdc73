// Times: quantiles of measured durations and ratios, exact, from all samples.

package rig

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"
)

// Quantile returns the smallest sample that at least the share q of all samples do not exceed. Without samples it
// returns 0.
func Quantile[T cmp.Ordered](samples []T, q float64) T {
	if len(samples) == 0 {
		var zero T
		return zero
	}
	sorted := slices.Sorted(slices.Values(samples))
	i := int(math.Ceil(q*float64(len(sorted)))) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}

// Median returns the middle sample, or the lower one of two.
func Median[T cmp.Ordered](samples []T) T { return Quantile(samples, 0.5) }

// Spread returns a row that describes durations: median, quartiles, 99 % and the slowest.
func Spread(name string, d []time.Duration) []string {
	row := []string{name, Figure(float64(len(d)))}
	for _, q := range []float64{0.25, 0.5, 0.75, 0.99, 1} {
		row = append(row, Figure(Ms(Quantile(d, q))))
	}
	return row
}

// SpreadHead is the heading of the rows of Spread.
var SpreadHead = []string{"ms", "n", "p25", "p50", "p75", "p99", "max"}

// Pause waits for a duration. It returns the error of the context if the context ends first.
func Pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
