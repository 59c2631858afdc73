// Available phone numbers: the numbers for sale in each country, and the filters for them.
package kinds

import (
	_ "embed"
	"maps"
	"math"
	"path"
	"regexp"
	"strconv"
	"strings"

	"understudy/internal/slowapi/fake"
	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/table"
	"understudy/internal/slowapi/world"
)

// NumbersPerPrefix is the number of phone numbers for sale with each prefix of an offer.
const NumbersPerPrefix = 40

// generateAvailable computes the values of a number for sale, by its index in an offer. Buying a number does not
// remove it from the list. It has no SID. Only local numbers of North America have a locality.
func generateAvailable(seed uint64, in *numberCountry, of *offer, i int64) table.Values {
	tag := uint64(tagAvailable)
	for _, c := range in.ISO + of.Path {
		tag = tag<<5 ^ uint64(c)
	}
	d := fake.RngFor(seed, tag, i)
	front := of.Fronts[i%int64(len(of.Fronts))]
	number := string(fake.AppendSubscriber([]byte("+"+in.Code+front), &d, of.Size))
	luck, north := d.IntBelow(100), in.Code == "1"
	requires, sms, mms, voice, fax := "none", false, false, true, false
	var at table.Values
	switch of.Path {
	case "Local":
		requires, at = in.Requires, placeOf(number)
		sms, mms, fax = north && luck < 90, north && luck < 80, luck%3 == 0
	case "Mobile":
		sms, mms, voice = true, luck < 20, luck >= 30
	case "MachineToMachine":
		sms, voice = true, false
	case "TollFree":
		sms, mms = north, north && luck < 40
	default:
		voice, fax = luck >= 10, luck%4 == 0
	}
	v := table.Values{
		"requires": requires, "beta": in.Beta || luck < 5, "fax": fax, "mms": mms, "sms": sms, "voice": voice, "number": number,
		"formatted": format.DisplayNumber(number), "country": in.ISO,
	}
	maps.Copy(v, at)
	return v
}

// AvailableNumbers answers with the list of one type of numbers for sale in one country. The list has no pages, although the
// published schema describes some. Like Twilio, it shows the first PageSize numbers and the list's own URI.
func AvailableNumbers(r *world.Request) format.Answer {
	in := numberCountryOf(r.Incoming.Vars[1])
	if in == nil {
		return r.NewNotFound()
	}
	sort := strings.TrimSuffix(path.Base(r.Incoming.Path), ".json")
	of := find(in.Offers, func(o *offer) bool { return o.Path == sort })
	if of == nil {
		return r.NewNotFound()
	}
	w, q := r.World, r.Query
	p, refused := r.ReadPageSize()
	if refused != nil {
		return *refused
	}
	if refused := r.ReadFilters(); refused != nil {
		return *refused
	}
	rows := []table.Part{}
	for i := int64(0); i < int64(len(of.Fronts))*NumbersPerPrefix && int64(len(rows)) < p.Size; i++ {
		if v := generateAvailable(w.Seed, in, of, i); r.Match(&world.Row{Index: i, Values: v}) {
			rows = append(rows, table.Part{Template: Shapes()["available_number"], Values: v})
		}
	}
	uri := r.Incoming.Path
	if echo := q.Echo(nil, world.KeysOf(r.Filters)); len(echo) > 0 {
		uri += "?" + strings.TrimSuffix(string(echo), "&")
	}
	return table.Show(table.Part{Template: Shapes()["available_numbers"], Values: table.Values{"rows": rows, "uri": uri}}, "")
}

// CountryList answers with the list of countries, or with one country.
func CountryList(r *world.Request) format.Answer {
	base := format.Version + "/Accounts/" + r.World.AccountSID(r.Account) + "/AvailablePhoneNumbers"
	if len(r.Incoming.Vars) == 2 {
		country := numberCountryOf(r.Incoming.Vars[1])
		if country == nil {
			return r.NewNotFound()
		}
		return table.Show(country.part(base), "")
	}
	rows := []table.Part{}
	for i := range NumberCountries() {
		rows = append(rows, NumberCountries()[i].part(base))
	}
	return table.Show(table.Part{Template: Shapes()["countries"], Values: table.Values{"rows": rows, "base": base}}, "")
}

// part returns the country with its template.
func (t *numberCountry) part(base string) table.Part {
	var uris table.Members
	for _, one := range t.Offers {
		uris = append(uris, table.Member{Name: OfferNames[one.Path], Value: base + "/" + t.ISO + "/" + one.Path + ".json"})
	}
	v := table.Values{"beta": t.Beta, "name": t.Name, "code": t.ISO, "uris": uris, "base": base}
	return table.Part{Template: Shapes()["country"], Values: v}
}

// OfferNames are the names of the types of numbers in the subresource_uris of a country, by path.
var OfferNames = map[string]string{
	"Local": "local", "Mobile": "mobile", "TollFree": "toll_free", "National": "national",
	"MachineToMachine": "machine_to_machine", "SharedCost": "shared_cost", "Voip": "voip",
}

// AvailableFilters are the filters of available numbers, in the order of docs/reference/twilio.md.
var AvailableFilters = []world.Filter{
	{Key: "AreaCode", Read: areaFilter},
	{Key: "Contains", Read: containsFilter},
	world.BoolFilter("SmsEnabled", "sms"), world.BoolFilter("MmsEnabled", "mms"), world.BoolFilter("VoiceEnabled", "voice"),
	world.BoolFilter("FaxEnabled", "fax"),
	exclusionFilter("ExcludeAllAddressRequired", true, func(r *world.Row) bool { return r.Value("requires") != "none" }),
	exclusionFilter("ExcludeLocalAddressRequired", true, func(r *world.Row) bool { return r.Value("requires") == "local" }),
	exclusionFilter("ExcludeForeignAddressRequired", true, func(r *world.Row) bool { return r.Value("requires") == "foreign" }),
	// Beta=false leaves out numbers that are new to Twilio. Beta=true shows all numbers.
	exclusionFilter("Beta", false, func(r *world.Row) bool { return r.Value("beta") == true }),
	{Key: "NearNumber", Read: filterNearNumber},
	{Key: "NearLatLong", Read: filterNearPoint},
	{Key: "Distance", Read: distanceFilter},
	placeFilter("InPostalCode", "postal"), placeFilter("InRegion", "region"), placeFilter("InRateCenter", "rate_center"),
	placeFilter("InLata", "lata"), placeFilter("InLocality", "locality"),
}

// exclusionFilter returns a filter. If its value is when, it leaves out the numbers for which the function out returns true.
func exclusionFilter(key string, when bool, out func(*world.Row) bool) world.Filter {
	return world.Filter{Key: key, Read: func(_ *world.Request, value string) (world.Condition, *format.Answer) {
		asked, r := world.ReadBool(value)
		return world.NewCondition(func(r *world.Row) bool { return asked != when || !out(r) }), r
	}}
}

// areaFilter parses the filter AreaCode: three digits, for North America.
func areaFilter(_ *world.Request, value string) (world.Condition, *format.Answer) {
	if len(value) != 3 || !format.IsDigits(value) {
		return world.Condition{}, format.NewInvalid("AreaCode is not valid: " + value)
	}
	return world.NewCondition(func(r *world.Row) bool { return strings.HasPrefix(r.Value("number").(string), "+1"+value) }), nil
}

// keypad has, for each letter from a to z, its digit on the keypad of a telephone.
const keypad = "22233344455566677778889999"

// numberPattern is the syntax of the filter Contains: digits, letters that stand for digits on a keypad, * for any
// digit, % at either end for any digits, + for the beginning of the number and $ for its end.
var numberPattern = regexp.MustCompile(`^(\+?)%*([0-9A-Za-z*]*)%*(\$?)$`)

// containsFilter parses the filter Contains: a pattern of 2 to 16 characters that must be part of the number.
func containsFilter(_ *world.Request, value string) (world.Condition, *format.Answer) {
	m := numberPattern.FindStringSubmatch(value)
	if m == nil {
		return world.Condition{}, format.NewInvalid("Contains is not valid: " + value)
	}
	if len(value) < 2 || len(value) > 16 {
		return world.Condition{}, format.NewInvalid("Contains must have 2 to 16 characters")
	}
	digits := strings.Map(func(c rune) rune {
		if c >= 'a' {
			return rune(keypad[c-'a'])
		}
		return c
	}, strings.ToLower(m[2]))
	contains := world.Pattern(map[string]string{"+": `^\+`}[m[1]], digits, m[3])
	return world.NewCondition(func(r *world.Row) bool { return contains(r.Value("number").(string)) }), nil
}

// placeFilter returns a filter for numbers in a place. Its value is the name of the place, or a phone number from that place.
func placeFilter(key, name string) world.Filter {
	return world.Filter{Key: key, Read: func(_ *world.Request, value string) (world.Condition, *format.Answer) {
		if at := placeOf(value); at != nil {
			value = at[name].(string)
		}
		return world.NewCondition(func(r *world.Row) bool {
			have, there := r.Value(name).(string)
			return there && strings.EqualFold(have, value)
		}), nil
	}}
}

// readDistance returns the radius of a search in miles. It is the value of the filter Distance, at most 500, or 25 if
// there is none.
func readDistance(x *world.Request) (float64, *format.Answer) {
	value := x.Query.Given["Distance"].Value
	if value == "" {
		return 25, nil
	}
	n, ok := format.ParseWhole(value)
	if !ok || n > 500 {
		return 0, format.NewInvalid("Distance must be a number of miles from 0 to 500")
	}
	return float64(n), nil
}

// distanceFilter returns an error response if Distance is not valid. It filters nothing; NearNumber and NearLatLong
// use the value.
func distanceFilter(x *world.Request, _ string) (world.Condition, *format.Answer) {
	_, r := readDistance(x)
	return world.MatchAll, r
}

func conditionNear(x *world.Request, lat, long float64) (world.Condition, *format.Answer) {
	reach, r := readDistance(x)
	return world.NewCondition(func(r *world.Row) bool {
		atLat, there := r.Value("latitude").(float64)
		return there && distanceInMiles(lat, long, atLat, r.Value("longitude").(float64)) <= reach
	}), r
}

// filterNearNumber parses a phone number. It returns the condition that a number is from a place near that number's place.
func filterNearNumber(x *world.Request, value string) (world.Condition, *format.Answer) {
	at := placeOf(value)
	if at == nil {
		return world.Condition{Hi: -1}, nil
	}
	return conditionNear(x, at["latitude"].(float64), at["longitude"].(float64))
}

// filterNearPoint parses a latitude and a longitude. It returns the condition that a number is from a place near that point.
func filterNearPoint(x *world.Request, value string) (world.Condition, *format.Answer) {
	first, second, _ := strings.Cut(value, ",")
	lat, err := strconv.ParseFloat(strings.TrimSpace(first), 64)
	long, err2 := strconv.ParseFloat(strings.TrimSpace(second), 64)
	if err != nil || err2 != nil || !(lat >= -90 && lat <= 90 && long >= -180 && long <= 180) {
		return world.Condition{}, format.NewInvalid("NearLatLong is not valid: " + value)
	}
	return conditionNear(x, lat, long)
}

// numberCountry is a country whose phone numbers are for sale.
type numberCountry struct {
	ISO, Name, Code string // the ISO code, the name, and the calling code without the plus sign
	Beta            bool   // whether the numbers of the country are new to Twilio
	Requires        string // the type of address that an owner of a local number must have
	Offers          []offer
}

// offer is one type of number that is for sale in a country.
type offer struct {
	Path   string   // the last part of the path of the list, such as Local
	Fronts []string // the digits with which numbers begin after the calling code
	Size   int      // the number of digits after the prefix of a number
}

//go:embed countries.json
var rawCountries []byte

// NumberCountries returns the countries whose phone numbers are for sale.
var NumberCountries = format.DecodeEmbedded[[]numberCountry](rawCountries)

// find returns the first element for which wanted returns true. It returns nil if there is none.
func find[T any](all []T, wanted func(*T) bool) *T {
	for i := range all {
		if wanted(&all[i]) {
			return &all[i]
		}
	}
	return nil
}

// numberCountryOf returns the country with an ISO code, or nil if there is none.
func numberCountryOf(iso string) *numberCountry {
	return find(NumberCountries(), func(t *numberCountry) bool { return t.ISO == iso })
}

//go:embed locales.json
var rawLocales []byte

// locales are the places to which the area codes of North America belong, as values for templates.
var locales = format.DecodeEmbedded[[]table.Values](rawLocales)

// placeOf returns the place to which a number of North America belongs. It returns nil for any other number.
func placeOf(number string) table.Values {
	rest, there := strings.CutPrefix(number, "+1")
	for _, at := range locales() {
		if there && strings.HasPrefix(rest, at["area"].(string)) {
			return at
		}
	}
	return nil
}

// distanceInMiles returns the distance between two points in miles, along a great circle.
func distanceInMiles(lat1, long1, lat2, long2 float64) float64 {
	const earth, degree = 3958.8, math.Pi / 180
	across := math.Sin((lat2 - lat1) / 2 * degree)
	along := math.Sin((long2 - long1) / 2 * degree)
	h := across*across + math.Cos(lat1*degree)*math.Cos(lat2*degree)*along*along
	return 2 * earth * math.Asin(math.Sqrt(min(h, 1)))
}
