// Streams joined are what sets are.

package postings

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestStreams joins random streams and compares them with sets.
func TestStreams(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		up := rapid.Bool().Draw(t, "up")
		spots := rapid.SliceOfDistinct(rapid.Int64Range(-50, 50), func(n int64) int64 { return n })
		a, b, c := spots.Draw(t, "a"), spots.Draw(t, "b"), spots.Draw(t, "c")
		of := func(s []int64) Iterator {
			s = slices.Clone(s)
			slices.SortFunc(s, Compare(up))
			return &Slice{Up: up, Spots: s}
		}
		in := func(s []int64, n int64) bool { return slices.Contains(s, n) }
		for name, one := range map[string]struct {
			s    Iterator
			want func(n int64) bool
		}{
			"all":   {Intersect(of(a), of(b), of(c)), func(n int64) bool { return in(a, n) && in(b, n) && in(c, n) }},
			"any":   {Unite(up, of(a), of(b)), func(n int64) bool { return in(a, n) || in(b, n) }},
			"less":  {Exclude(up, of(a), Unite(up, of(b), of(c))), func(n int64) bool { return in(a, n) && !in(b, n) && !in(c, n) }},
			"but":   {Unite(up, Exclude(up, of(a), of(b)), of(c)), func(n int64) bool { return in(a, n) && !in(b, n) || in(c, n) }},
			"mixed": {Intersect(Unite(up, of(a), of(b)), of(c)), func(n int64) bool { return (in(a, n) || in(b, n)) && in(c, n) }},
		} {
			var want, got []int64
			for n := int64(-50); n <= 50; n++ {
				if one.want(n) {
					want = append(want, n)
				}
			}
			slices.SortFunc(want, Compare(up))
			from := beginning(up)
			if rapid.Bool().Draw(t, "later") {
				from = rapid.Int64Range(-50, 50).Draw(t, "from")
				want = slices.DeleteFunc(want, func(n int64) bool { return IsBefore(n, from, up) })
			}
			for spot, ok, err := one.s.Advance(from); ok; spot, ok, err = one.s.Advance(from) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, spot)
				from, _ = Next(spot, up)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("%s, up %v:\n got %v\nwant %v", name, up, got, want)
			}
		}
	})
}

// beginning is where a stream begins.
func beginning(up bool) int64 {
	if up {
		return math.MinInt64
	}
	return math.MaxInt64
}
