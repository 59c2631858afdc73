// Lengths of time and calendars, compared with what is counted one by one.

package aggregate

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"understudy/internal/checktest"
)

// Quantiles are those of all values, exact up to exactTimes and to 1 % above; what was taken
// out leaves no trace.
func TestQuantiles(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	for round := range 50 {
		var ts durations
		var all []int64
		for range 200 {
			n := int64(math.Exp(rng.Float64() * 14))
			ts.add(n, 1)
			if rng.IntN(3) == 0 {
				ts.add(n, -1)
				continue
			}
			all = append(all, n)
		}
		slices.Sort(all)
		for i, share := range []float64{0.5, 0.95} {
			want := float64(all[int(math.Ceil(share*float64(len(all))))-1])
			got := ts.quantiles(0.5, 0.95)[i]
			if exact := want < exactSeconds; exact && got != want || math.Abs(got-want) > want/100 {
				t.Fatalf("round %d: %g: %g, want %g", round, share, got, want)
			}
		}
		for _, n := range all {
			ts.add(n, -1)
		}
		if len(ts) != 0 {
			t.Fatalf("round %d: %v stays", round, ts)
		}
	}
}

// A time lies in its span, and the range of the span's text is that span.
func TestCalendar(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 4))
	for _, name := range []string{"UTC", "Europe/Berlin", "Australia/Adelaide", "America/Sao_Paulo", "Asia/Kathmandu"} {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Skip("no time zones here")
		}
		for _, span := range Spans() {
			at := int64(0)
			d := Calendar(span, zone, func(int32) int64 { return at })
			for range 300 {
				at = 1_500_000_000 + rng.Int64N(500_000_000)
				text := d.Text(d.Key(0))
				from, to, ok := ParseSpan(span, text, zone)
				checktest.MustTrue(t, ok, "%s in %s: ok is false; text %s", span, name, text)
				checktest.MustTrue(t, at >= from.Unix(), "%s in %s: at is %v; text %s", span, name, at, text)
				checktest.MustTrue(t, at < to.Unix()+60, "%s in %s: at is %v; text %s", span, name, at, text)
			}
			if at = 0; d.Text(d.Key(0)) != "" {
				t.Errorf("%s: no time is %q", span, d.Text(d.Key(0)))
			}
		}
	}
}
