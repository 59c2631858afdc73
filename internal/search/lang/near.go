// This file binds near:, which finds records by their coordinates.

package lang

import (
	"strconv"
	"strings"

	"understudy"
	"understudy/internal/query"
	"understudy/kit/geo"
)

// NearName is the name of the condition on a record's distance from a point, and of the order by that distance.
const NearName = "near"

// defaultReach is the distance of near: if the query has none, in miles. It is Twilio's default for its filter Distance.
const defaultReach = 25

// reachUnits are the units of a distance. mi stands before m, because a distance in metres ends in m alone.
var reachUnits = []query.LengthUnit{{Name: "mi", Meters: geo.MetersPerMile}, {Name: "km", Meters: 1000}, {Name: "m", Meters: 1}}

// Area is the circle of a near:, with the coordinates of each kind.
type Area struct {
	Circle     query.Circle
	longitudes map[*KindView]string
	latitudes  map[*KindView]string
}

// bindNear binds near:LATITUDE,LONGITUDE~DISTANCE. The caller must fully see both coordinates in every kind that has them.
func (b *Binder) bindNear(n *Node, scope []*KindView) *Cond {
	a := &Area{latitudes: map[*KindView]string{}, longitudes: map[*KindView]string{}}
	if !a.parse(n) {
		return b.refuse(n.at, n.end, "write near:37.8,-122.4~25mi: a latitude, a longitude, and a distance in mi, km or m")
	}
	for _, s := range scope {
		lat, lon := s.Kind.Coordinates()
		if lat == "" {
			continue
		}
		for _, name := range []string{lat, lon} {
			if !s.CanSee(name) {
				return b.forbid(n.at, n.end, "your role can't see %s of %s in full; remove %s", name, s.Kind.Name, understudy.Clip(n.Name))
			}
		}
		a.latitudes[s], a.longitudes[s] = lat, lon
	}
	if len(a.latitudes) == 0 {
		return b.refuse(n.at, n.end, "these records have no coordinates")
	}
	return fieldCond(&predicate{Node: n, Fields: a.latitudes, near: a, recordTest: func(c *Candidate) bool {
		distance, ok := a.distance(c)
		return ok && distance <= a.Circle.Meters
	}})
}

// parse reads the point and the distance. It returns false if one of them is not valid.
func (a *Area) parse(n *Node) bool {
	if n.Rel != RelIs || len(n.Values) != 2 || n.Values[0].prefix || n.Values[1].prefix {
		return false
	}
	longitude, reach, hasReach := strings.Cut(n.Values[1].Text, "~")
	lat, err := strconv.ParseFloat(n.Values[0].Text, 64)
	lon, err2 := strconv.ParseFloat(longitude, 64)
	a.Circle = query.Circle{At: geo.Point{Lat: lat, Lon: lon}, Meters: defaultReach * geo.MetersPerMile, Unit: reachUnits[0]}
	if err != nil || err2 != nil || !a.Circle.At.IsValid() {
		return false
	}
	if !hasReach {
		return true
	}
	for _, unit := range reachUnits {
		if number, ok := strings.CutSuffix(strings.ToLower(reach), unit.Name); ok {
			length, err := strconv.ParseFloat(number, 64)
			a.Circle.Meters, a.Circle.Unit = length*unit.Meters, unit
			return err == nil && length >= 0
		}
	}
	return false
}

// distance returns the distance of a record in metres. ok is false if the record has no valid coordinates.
func (a *Area) distance(c *Candidate) (meters float64, ok bool) {
	lat, ok := c.numberOf(a.latitudes[c.View])
	lon, ok2 := c.numberOf(a.longitudes[c.View])
	if at := (geo.Point{Lat: lat, Lon: lon}); ok && ok2 && at.IsValid() {
		return a.Circle.At.DistanceTo(at), true
	}
	return 0, false
}

// numberOf returns the value of a fully visible field as a number.
func (c *Candidate) numberOf(name string) (float64, bool) {
	text, ok := c.TextOf(name)
	number, err := strconv.ParseFloat(text, 64)
	return number, name != "" && ok && err == nil
}

// Area returns the circle that contains every match of the condition, that of the first near: outside a NOT or an OR. It returns nil if
// there is none.
func (c *Cond) Area() *Area {
	if c.Predicate != nil {
		return c.Predicate.near
	}
	if c.Op == opAnd {
		for _, of := range c.Of {
			if a := of.Area(); a != nil {
				return a
			}
		}
	}
	return nil
}

// Fields returns the names of a kind's fields with coordinates, or "".
func (a *Area) Fields(s *KindView) (latitude, longitude string) {
	return a.latitudes[s], a.longitudes[s]
}

// Distance returns a function that computes the distance of a record from the point of the query's first near:, in metres. It
// returns nil if the query has no near: outside a NOT.
func (c *Cond) Distance() func(*Candidate) (meters float64, ok bool) {
	if c.Predicate != nil && c.Predicate.near != nil {
		return c.Predicate.near.distance
	}
	if c.Op != OpNot {
		for _, of := range c.Of {
			if f := of.Distance(); f != nil {
				return f
			}
		}
	}
	return nil
}
