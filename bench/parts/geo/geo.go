// Package geo is a part of the bench: arc tangents one at a time and by vectors, beside math.Atan2, the distances of a
// million points, and a search near a point among a million records.
package geo

import (
	"context"
	"math"
	"math/rand/v2"

	"understudy/bench/rig"
	"understudy/kit/geo"
)

// points is the number of angles computed in one call.
const points = 4096

// Measure computes the angles of random points both ways in alternating rounds, the distances and bearings of 10^6 points, and
// searches near a point among 10^6 records.
func Measure(ctx context.Context, r *rig.Run) error {
	rng := rand.New(rand.NewPCG(1, 2))
	lat, lon := make([]float64, r.Times(1_000_000, points)), make([]float64, r.Times(1_000_000, points))
	for i := range lat {
		lat[i], lon[i] = rng.Float64()*180-90, rng.Float64()*360-180
	}
	dst := make([]float64, len(lat))
	y, x, angles := lat[:points], lon[:points], dst[:points]
	theirs := func() error {
		for i := range angles {
			angles[i] = math.Atan2(y[i], x[i])
		}
		return nil
	}
	one := func() error {
		for i := range angles {
			angles[i] = geo.Atan2(y[i], x[i])
		}
		return nil
	}
	many := func() error { geo.FillAtan2(angles, y, x); return nil }
	for _, way := range []struct {
		title   string
		do      func() error
		atLeast float64
	}{{"4,096 angles, one at a time", one, 1.3}, {"4,096 angles as slices", many, 4}} {
		ratios, allocs, err := r.Turns(way.title, "math.Atan2", 2_000, way.do, theirs)
		if err != nil {
			return err
		}
		r.AtMost("allocations, "+way.title, float64(int(allocs)), 0, "")
		r.AtLeast("times as fast as math.Atan2, "+way.title+", median", rig.Median(ratios), way.atLeast, "")
		r.Say("")
	}
	from := geo.Point{Lat: 37.8, Lon: -122.4}
	for _, way := range []struct {
		name string
		do   func() error
	}{
		{"distances", func() error { geo.FillDistances(dst, from, lat, lon); return nil }},
		{"bearings", func() error { geo.FillBearings(dst, from, lat, lon); return nil }},
	} {
		var took []float64
		for range r.Times(15, 2) {
			one, _, err := rig.Each(way.do, 1)
			if err != nil {
				return err
			}
			took = append(took, rig.Us(one)/1000)
		}
		r.AtMost("1,000,000 "+way.name+", median", rig.Median(took), 25, "ms")
	}
	return measureNear(ctx, r)
}
