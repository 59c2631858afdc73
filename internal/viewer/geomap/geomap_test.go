package geomap

import (
	"testing"

	"understudy/internal/checktest"
	"understudy/internal/query"
	"understudy/kit/geo"
)

// TestPlacesAreAtTheirDistanceAndDirection draws places in the four directions, one outside, and one across the antimeridian.
func TestPlacesAreAtTheirDistanceAndDirection(t *testing.T) {
	const degree = 111_195.08 // the length of a degree of latitude in metres
	c := &query.Circle{At: geo.Point{Lat: 0, Lon: 180}, Meters: 2*degree + 1, Unit: query.LengthUnit{Name: "km", Meters: 1000}}
	m := New(c, []Place{
		{geo.Point{Lat: 1, Lon: 180}, "north", "/n"}, {geo.Point{Lat: 0, Lon: -179}, "east", ""}, {geo.Point{Lat: -2, Lon: -180}, "south", ""},
		{geo.Point{Lat: 0, Lon: 179.5}, "west", ""}, {geo.Point{Lat: 3, Lon: 180}, "outside", ""},
	})
	want := []Dot{{100, 55, "north, 111 km away", "/n"}, {145, 100, "east, 111 km away", ""}, {100, 190, "south, 222 km away", ""},
		{77.5, 100, "west, 56 km away", ""}}
	checktest.MustEqual(t, len(m.Dots), len(want), "dots: %v", m.Dots)
	for i, s := range m.Dots {
		checktest.Equal(t, s, want[i], "dot %d", i)
	}
	checktest.Equal(t, m.Rings[0], Ring{90, 196.5, "222 km"}, "the outer ring")
	checktest.Equal(t, m.Rings[1], Ring{45, 151.5, "111 km"}, "the inner ring")
	checktest.Equal(t, m.Label, "A map of the 4 results on this page around 0, 180. The nearest is 56 km away.", "the label")
	checktest.True(t, New(c, []Place{{geo.Point{Lat: 3, Lon: 180}, "outside", ""}}) == nil, "a map without places")
	at := New(&query.Circle{Unit: query.LengthUnit{Name: "mi", Meters: geo.MetersPerMile}}, []Place{{geo.Point{}, "here", ""}})
	checktest.Equal(t, at.Dots[0], Dot{100, 100, "here, 0.0 mi away", ""}, "a place at the point, within no distance")
}
