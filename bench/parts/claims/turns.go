// Turns: several ways to do the same, measured one after the other, again and again.

package claims

import (
	"fmt"
	"runtime"
	"time"

	"understudy/bench/rig"
)

// way does the same thing n times.
type way struct {
	name string
	do   func(n int) error
}

// measured is what a way took: nanoseconds of one time in each round, and allocations and bytes of one time.
type measured struct {
	name          string
	ns            []float64
	allocs, bytes float64
}

// The number of rounds, and how long each way runs in a round.
const (
	rounds    = 15
	roundTime = 40 * time.Millisecond
)

// turn measures all ways in turns. In each round another way begins.
func turn(r *rig.Run, ways []way) ([]measured, error) {
	out, times := make([]measured, len(ways)), make([]int, len(ways))
	long := r.Long(roundTime)
	if r.Quick {
		long = time.Millisecond
	}
	for i, w := range ways { // find out how often fills the time
		out[i].name = w.name
		for times[i] = 1; ; times[i] *= 2 {
			began := time.Now()
			if err := w.do(times[i]); err != nil {
				return nil, fmt.Errorf("%s: %w", w.name, err)
			}
			if time.Since(began) >= long/2 {
				break
			}
		}
	}
	for round := range r.Times(rounds, 2) {
		for k := range ways {
			i := (k + round) % len(ways)
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			began := time.Now()
			if err := ways[i].do(times[i]); err != nil {
				return nil, fmt.Errorf("%s: %w", ways[i].name, err)
			}
			took := time.Since(began)
			runtime.ReadMemStats(&after)
			n := float64(times[i])
			out[i].ns = append(out[i].ns, float64(took)/n)
			out[i].allocs = float64(after.Mallocs-before.Mallocs) / n
			out[i].bytes = float64(after.TotalAlloc-before.TotalAlloc) / n
		}
	}
	return out, nil
}

// median returns the median time of a way in nanoseconds.
func (m measured) median() float64 { return rig.Median(m.ns) }

// ratio returns the median of a way's time divided by another's in the same round.
func (m measured) ratio(other measured) float64 {
	var all []float64
	for i := range m.ns {
		all = append(all, m.ns[i]/other.ns[i])
	}
	return rig.Median(all)
}

// bar returns the bar of samples.
func bar(name string, samples []float64) rig.Bar {
	return rig.Bar{Name: name, Value: rig.Median(samples), Low: rig.Quantile(samples, 0.25), High: rig.Quantile(samples, 0.75)}
}

// tabulate returns the table and the bars of ways, in nanoseconds and allocations.
func tabulate(what string, ways []measured) (table [][]string, bars []rig.Bar) {
	table = [][]string{{what, "ns", "quartiles", "allocations", "bytes"}}
	for _, m := range ways {
		b := bar(m.name, m.ns)
		bars = append(bars, b)
		table = append(table, []string{m.name, rig.Figure(b.Value), rig.Figure(b.Low) + " to " + rig.Figure(b.High),
			count(m.allocs), count(m.bytes)})
	}
	return table, bars
}

// count returns a mean of counts without the few allocations that belong to the measurement.
func count(n float64) string {
	if n < 0.05 {
		return "0"
	}
	return rig.Figure(float64(int(n*10+0.5)) / 10)
}

// article returns the bar of a figure that an article has measured.
func article(name string, value float64) rig.Bar {
	return rig.Bar{Name: name, Value: value, Theirs: true}
}
