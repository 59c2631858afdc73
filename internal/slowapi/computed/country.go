// Territories: where numbers can be had, of which sorts, and the locales of North America.
package computed

import (
	"math"
	"strings"
)

// numberCountry is one country numbers can be had in.
type numberCountry struct {
	iso, name, code string
	beta            bool
	offers          []offer
	requires        string // what sort of address its local numbers require
}

// offer is one sort of number there: the path it is asked for by, how its
// numbers begin behind the country's code, and how many digits follow.
type offer struct {
	path   string
	fronts []string
	size   int
}

// NumberCountries are the countries numbers can be bought in.
var NumberCountries = []numberCountry{
	{"US", "United States", "1", false, []offer{
		{"Local", []string{"212", "305", "312", "404", "415", "503", "602", "617", "702", "713", "808", "919"}, 7},
		{"TollFree", []string{"800", "833", "844", "855", "866", "877", "888"}, 7},
	}, "none"},
	{"CA", "Canada", "1", false, []offer{
		{"Local", []string{"416", "514", "604", "780"}, 7},
		{"TollFree", []string{"800", "833", "844"}, 7},
	}, "none"},
	{"GB", "United Kingdom", "44", false, []offer{
		{"Local", []string{"20", "113", "121", "161"}, 8},
		{"Mobile", []string{"7400", "7700", "7911", "7975"}, 6},
		{"TollFree", []string{"800"}, 7},
		{"National", []string{"330", "333"}, 7},
		{"SharedCost", []string{"843", "844"}, 7},
		{"Voip", []string{"56"}, 8},
	}, "any"},
	{"DE", "Germany", "49", false, []offer{
		{"Local", []string{"30", "40", "89"}, 8},
		{"Mobile", []string{"1511", "1521"}, 7},
		{"National", []string{"32"}, 8},
	}, "local"},
	{"FR", "France", "33", false, []offer{
		{"Local", []string{"1", "4"}, 8},
		{"National", []string{"9"}, 8},
		{"SharedCost", []string{"810", "820"}, 6},
	}, "local"},
	{"AU", "Australia", "61", false, []offer{
		{"Local", []string{"2", "3"}, 8},
		{"Mobile", []string{"4"}, 8},
		{"TollFree", []string{"1800"}, 6},
	}, "foreign"},
	{"SE", "Sweden", "46", false, []offer{
		{"Local", []string{"8", "31"}, 7},
		{"Mobile", []string{"70"}, 7},
		{"MachineToMachine", []string{"719"}, 10},
	}, "none"},
	{"CH", "Switzerland", "41", true, []offer{{"Local", []string{"22", "44"}, 7}, {"Mobile", []string{"79"}, 7}}, "any"},
}

// numberCountryOf finds a country by its ISO code; nil for none.
func numberCountryOf(iso string) *numberCountry {
	for i := range NumberCountries {
		if NumberCountries[i].iso == iso {
			return &NumberCountries[i]
		}
	}
	return nil
}

// offered finds what is asked for by a path; nil when it is not to be had there.
func (t *numberCountry) offered(path string) *offer {
	for i := range t.offers {
		if t.offers[i].path == path {
			return &t.offers[i]
		}
	}
	return nil
}

// locale is where the local numbers of an area of North America are.
type locale struct {
	area, iso, region, locality, rateCenter, lata, postal string
	lat, long                                             float64
}

var locales = []locale{
	{"212", "US", "NY", "New York", "NWYRCYZN01", "132", "10007", 40.71, -74.01},
	{"305", "US", "FL", "Miami", "MIAMI", "460", "33128", 25.77, -80.19},
	{"312", "US", "IL", "Chicago", "CHICAGO", "358", "60602", 41.88, -87.63},
	{"404", "US", "GA", "Atlanta", "ATLANTA", "438", "30303", 33.75, -84.39},
	{"415", "US", "CA", "San Francisco", "SNFC CNTRL", "722", "94103", 37.77, -122.42},
	{"503", "US", "OR", "Portland", "PORTLAND", "672", "97204", 45.52, -122.68},
	{"602", "US", "AZ", "Phoenix", "PHOENIX", "666", "85003", 33.45, -112.07},
	{"617", "US", "MA", "Boston", "BOSTON", "128", "02108", 42.36, -71.06},
	{"702", "US", "NV", "Las Vegas", "LAS VEGAS", "721", "89101", 36.17, -115.14},
	{"713", "US", "TX", "Houston", "HOUSTON", "560", "77002", 29.76, -95.37},
	{"808", "US", "HI", "Honolulu", "HONOLULU", "834", "96813", 21.31, -157.86},
	{"919", "US", "NC", "Raleigh", "RALEIGH", "426", "27601", 35.78, -78.64},
	{"416", "CA", "ON", "Toronto", "TORONTO", "888", "M5H 2N2", 43.65, -79.38},
	{"514", "CA", "QC", "Montréal", "MONTREAL", "888", "H2Y 1C6", 45.50, -73.57},
	{"604", "CA", "BC", "Vancouver", "VANCOUVER", "888", "V5Y 1V4", 49.28, -123.12},
	{"780", "CA", "AB", "Edmonton", "EDMONTON", "888", "T5J 2R7", 53.55, -113.49},
}

// placeOf is where a number of North America is; nil for any other.
func placeOf(number string) *locale {
	rest, there := strings.CutPrefix(number, "+1")
	for i := range locales {
		if there && strings.HasPrefix(rest, locales[i].area) {
			return &locales[i]
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
