package lang

import (
	"math"
	"testing"

	"understudy/internal/query"
	"understudy/kit/geo"
)

// FuzzNear parses any values of near:. What is accepted is a valid point and a finite or infinite distance of at least 0, and its text
// parses to the same area.
func FuzzNear(f *testing.F) {
	for _, seed := range [][2]string{{"37.8", "-122.4~25mi"}, {"-90", "180~0.5km"}, {"1e1", "1~1e400m"}, {"NaN", "0"}, {"0", "0~-1m"},
		{"1", "2~"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, first, second string) {
		n := &Node{Op: OpField, Name: NearName, Values: []Value{{Text: first}, {Text: second}}}
		var a, again Area
		if !a.parse(n) {
			return
		}
		if !a.Circle.At.IsValid() || !(a.Circle.Meters >= 0) {
			t.Errorf("%q is %v within %v m", n.String(), a.Circle.At, a.Circle.Meters)
		}
		tree, err := Parse(n.String())
		if err != nil || !again.parse(tree) {
			t.Errorf("%q: %v", n.String(), err)
		} else if again.Circle.At != a.Circle.At || again.Circle.Meters != a.Circle.Meters {
			t.Errorf("%q is %v within %v m, want %v within %v", n.String(), again.Circle.At, again.Circle.Meters, a.Circle.At, a.Circle.Meters)
		}
	})
}

func TestNearHasADefaultDistance(t *testing.T) {
	for text, want := range map[string]query.Circle{
		"near:37.8,-122.4":      {At: geo.Point{Lat: 37.8, Lon: -122.4}, Meters: 25 * 1609.344},
		"near:37.8,-122.4~10MI": {At: geo.Point{Lat: 37.8, Lon: -122.4}, Meters: 10 * 1609.344},
		`near:"-1","2~1.5km"`:   {At: geo.Point{Lat: -1, Lon: 2}, Meters: 1500},
		"near:0,0~250m":         {Meters: 250},
		"near:90,-180~1e3km":    {At: geo.Point{Lat: 90, Lon: -180}, Meters: 1e6},
	} {
		tree, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		var got Area
		if !got.parse(tree) {
			t.Errorf("%s is refused", text)
		}
		if got.Circle.At != want.At || math.Abs(got.Circle.Meters-want.Meters) > 1e-9 {
			t.Errorf("%s is %v within %v m, want %v within %v", text, got.Circle.At, got.Circle.Meters, want.At, want.Meters)
		}
	}
}
