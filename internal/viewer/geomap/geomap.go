// Package geomap draws records around a point. A record is at its distance and in its direction from the center, with north at the top
// (azimuthal equidistant projection; Snyder, Map Projections: A Working Manual, 1987, page 191).
package geomap

import (
	"fmt"
	"math"
	"strconv"

	"understudy/internal/query"
	"understudy/kit/geo"
)

// Place is a record to draw.
type Place struct {
	At          geo.Point
	Title, Href string
}

// Map is the data of the template map. Its coordinates are those of a square of 200 units, whose center is the point.
type Map struct {
	Label string // what the map shows, for people who do not see it
	Rings []Ring // the whole distance and half of it
	Dots  []Dot
}

// Ring is a circle around the point.
type Ring struct {
	Radius, LabelY float64
	Label          string // its distance
}

// Dot is a record on the map.
type Dot struct {
	X, Y        float64
	Title, Href string
}

// radius is the radius of the whole circle on the map. The rest of the square has room for labels.
const radius = 90

// New returns the map of places in a circle. Places outside are left out. It returns nil if no place is inside.
func New(c *query.Circle, places []Place) *Map {
	m := &Map{}
	nearest := math.Inf(1)
	for _, p := range places {
		meters := c.At.DistanceTo(p.At)
		if meters > c.Meters {
			continue
		}
		sin, cos := math.Sincos(c.At.BearingTo(p.At) * math.Pi / 180)
		r := radius * meters / max(c.Meters, 1)
		title := p.Title + ", " + formatLength(meters, c.Unit) + " away"
		m.Dots = append(m.Dots, Dot{roundTenths(100 + r*sin), roundTenths(100 - r*cos), title, p.Href})
		nearest = min(nearest, meters)
	}
	if len(m.Dots) == 0 {
		return nil
	}
	for _, share := range []float64{1, 0.5} {
		m.Rings = append(m.Rings, Ring{radius * share, 106.5 + radius*share, formatLength(c.Meters*share, c.Unit)})
	}
	m.Label = fmt.Sprintf("A map of the %d results on this page around %v, %v. The nearest is %s away.", len(m.Dots), c.At.Lat, c.At.Lon,
		formatLength(nearest, c.Unit))
	return m
}

// roundTenths rounds to tenths, which are finer than a pixel.
func roundTenths(x float64) float64 { return math.Round(10*x) / 10 }

// formatLength returns a length with two or three digits in its unit.
func formatLength(meters float64, unit query.LengthUnit) string {
	n := meters / unit.Meters
	places := 0
	if n < 10 {
		places = 1
	}
	return strconv.FormatFloat(n, 'f', places, 64) + " " + unit.Name
}
