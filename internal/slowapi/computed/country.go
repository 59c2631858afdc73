// Territories: where numbers can be had, of which sorts, and the locales of North America.
package computed

import (
	_ "embed"
	"math"
	"strings"

	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/table"
)

// numberCountry is one country numbers can be had in.
type numberCountry struct {
	ISO, Name, Code string
	Beta            bool
	Requires        string // what sort of address its local numbers require
	Offers          []offer
}

// offer is one sort of number there: the path it is asked for by, how its
// numbers begin behind the country's code, and how many digits follow.
type offer struct {
	Path   string
	Fronts []string
	Size   int
}

//go:embed countries.json
var rawCountries []byte

// NumberCountries are the countries numbers can be bought in.
var NumberCountries = format.Embedded[[]numberCountry](rawCountries)

// numberCountryOf finds a country by its ISO code; nil for none.
func numberCountryOf(iso string) *numberCountry {
	for i := range NumberCountries() {
		if NumberCountries()[i].ISO == iso {
			return &NumberCountries()[i]
		}
	}
	return nil
}

// offered finds what is asked for by a path; nil when it is not to be had there.
func (t *numberCountry) offered(path string) *offer {
	for i := range t.Offers {
		if t.Offers[i].Path == path {
			return &t.Offers[i]
		}
	}
	return nil
}

//go:embed locales.json
var rawLocales []byte

// locales are where the local numbers of an area of North America are, as templates show it.
var locales = format.Embedded[[]table.Values](rawLocales)

// placeOf is where a number of North America is; nil for any other.
func placeOf(number string) table.Values {
	rest, there := strings.CutPrefix(number, "+1")
	for _, at := range locales() {
		if there && strings.HasPrefix(rest, at["area"].(string)) {
			return at
		}
	}
	return nil
}

// miles is how far apart two points are, along a great circle.
func miles(lat1, long1, lat2, long2 float64) float64 {
	const earth, degree = 3958.8, math.Pi / 180
	across := math.Sin((lat2 - lat1) / 2 * degree)
	along := math.Sin((long2 - long1) / 2 * degree)
	h := across*across + math.Cos(lat1*degree)*math.Cos(lat2*degree)*along*along
	return 2 * earth * math.Asin(math.Sqrt(min(h, 1)))
}
