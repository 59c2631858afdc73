// Available phone numbers: what could be bought where, the countries to buy in, and filters.
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

// PerFront is how many numbers there are to each way they begin.
const PerFront = 40

// drawAvailable draws a number that could be bought from its country, sort and place; none is
// ever bought away. It has no SID and no instance, and a locale only if it is a local one of North America.
func drawAvailable(seed uint64, in *numberCountry, of *offer, i int64) table.Values {
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

// AvailableNumbers answers the list of one sort of number in one country. Such a
// list has no pages, whatever the published schema says: its examples, and
// Twilio, give the first PageSize numbers and the list's own URI.
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
	for i := int64(0); i < int64(len(of.Fronts))*PerFront && int64(len(rows)) < p.Size; i++ {
		if v := drawAvailable(w.Seed, in, of, i); r.Match(&world.Row{Index: i, Values: v}) {
			rows = append(rows, table.Part{Template: Shapes()["available_number"], Values: v})
		}
	}
	uri := r.Incoming.Path
	if echo := q.Echo(nil, world.KeysOf(r.Filters)); len(echo) > 0 {
		uri += "?" + strings.TrimSuffix(string(echo), "&")
	}
	return table.Show(table.Part{Template: Shapes()["available_numbers"], Values: table.Values{"rows": rows, "uri": uri}}, "")
}

// CountryList answers the list of countries, or one of them.
func CountryList(r *world.Request) format.Answer {
	base := format.Version + "/Accounts/" + r.World.AccountSID(r.Account) + "/AvailablePhoneNumbers"
	if len(r.Incoming.Vars) == 2 {
		one := numberCountryOf(r.Incoming.Vars[1])
		if one == nil {
			return r.NewNotFound()
		}
		return table.Show(one.part(base), "")
	}
	rows := []table.Part{}
	for i := range NumberCountries() {
		rows = append(rows, NumberCountries()[i].part(base))
	}
	return table.Show(table.Part{Template: Shapes()["countries"], Values: table.Values{"rows": rows, "base": base}}, "")
}

// part returns the country as its template shows it.
func (t *numberCountry) part(base string) table.Part {
	var uris table.Members
	for _, one := range t.Offers {
		uris = append(uris, table.Member{Name: OfferNames[one.Path], Value: base + "/" + t.ISO + "/" + one.Path + ".json"})
	}
	v := table.Values{"beta": t.Beta, "name": t.Name, "code": t.ISO, "uris": uris, "base": base}
	return table.Part{Template: Shapes()["country"], Values: v}
}

// OfferNames are what a country calls its sorts of numbers.
var OfferNames = map[string]string{
	"Local": "local", "Mobile": "mobile", "TollFree": "toll_free", "National": "national",
	"MachineToMachine": "machine_to_machine", "SharedCost": "shared_cost", "Voip": "voip",
}

// AvailableFilters in the order of docs/reference/twilio.md.
var AvailableFilters = []world.Filter{
	{Key: "AreaCode", Read: areaFilter},
	{Key: "Contains", Read: containsFilter},
	world.BoolFilter("SmsEnabled", "sms"), world.BoolFilter("MmsEnabled", "mms"), world.BoolFilter("VoiceEnabled", "voice"),
	world.BoolFilter("FaxEnabled", "fax"),
	excluding("ExcludeAllAddressRequired", true, func(r *world.Row) bool { return r.Value("requires") != "none" }),
	excluding("ExcludeLocalAddressRequired", true, func(r *world.Row) bool { return r.Value("requires") == "local" }),
	excluding("ExcludeForeignAddressRequired", true, func(r *world.Row) bool { return r.Value("requires") == "foreign" }),
	// False leaves out what is new to Twilio; true asks for it beside all others.
	excluding("Beta", false, func(r *world.Row) bool { return r.Value("beta") == true }),
	{Key: "NearNumber", Read: nearNumber},
	{Key: "NearLatLong", Read: nearLatLong},
	{Key: "Distance", Read: distanceFilter},
	inPlace("InPostalCode", "postal"), inPlace("InRegion", "region"), inPlace("InRateCenter", "rate_center"), inPlace("InLata", "lata"),
	inPlace("InLocality", "locality"),
}

// excluding leaves out some numbers when it is as asked, and nothing when it is not.
func excluding(key string, when bool, out func(*world.Row) bool) world.Filter {
	return world.Filter{Key: key, Read: func(_ *world.Request, value string) (world.Condition, *format.Answer) {
		asked, r := world.ReadBool(value)
		return world.NewCondition(func(r *world.Row) bool { return asked != when || !out(r) }), r
	}}
}

// areaFilter asks for numbers of North America by the three digits they begin with.
func areaFilter(_ *world.Request, value string) (world.Condition, *format.Answer) {
	if len(value) != 3 || !format.IsDigits(value) {
		return world.Condition{}, format.NewInvalid("AreaCode is not valid: " + value)
	}
	return world.NewCondition(func(r *world.Row) bool { return strings.HasPrefix(r.Value("number").(string), "+1"+value) }), nil
}

// keypad is the digit each letter stands on.
const keypad = "22233344455566677778889999"

// numberPattern is what Contains may be, beside its length: digits, letters for the digits they
// stand on, * for any one digit, % at an end for any number of them, + at the beginning and $ at
// the end of the number.
var numberPattern = regexp.MustCompile(`^(\+?)%*([0-9A-Za-z*]*)%*(\$?)$`)

// containsFilter asks for a pattern of 2 to 16 characters.
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

// inPlace asks for what is in a place, named by itself or by a number of it.
func inPlace(key, name string) world.Filter {
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

// distance is how many miles a search reaches: Distance, at most 500, or 25.
func distance(x *world.Request) (float64, *format.Answer) {
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

// distanceFilter narrows nothing by itself.
func distanceFilter(x *world.Request, _ string) (world.Condition, *format.Answer) {
	_, r := distance(x)
	return world.MatchAll, r
}

func near(x *world.Request, lat, long float64) (world.Condition, *format.Answer) {
	reach, r := distance(x)
	return world.NewCondition(func(r *world.Row) bool {
		atLat, there := r.Value("latitude").(float64)
		return there && miles(lat, long, atLat, r.Value("longitude").(float64)) <= reach
	}), r
}

// nearNumber asks for what is near the place of a number.
func nearNumber(x *world.Request, value string) (world.Condition, *format.Answer) {
	at := placeOf(value)
	if at == nil {
		return world.Condition{Hi: -1}, nil
	}
	return near(x, at["latitude"].(float64), at["longitude"].(float64))
}

// nearLatLong asks for what is near a point.
func nearLatLong(x *world.Request, value string) (world.Condition, *format.Answer) {
	first, second, _ := strings.Cut(value, ",")
	lat, err := strconv.ParseFloat(strings.TrimSpace(first), 64)
	long, err2 := strconv.ParseFloat(strings.TrimSpace(second), 64)
	if err != nil || err2 != nil || !(lat >= -90 && lat <= 90 && long >= -180 && long <= 180) {
		return world.Condition{}, format.NewInvalid("NearLatLong is not valid: " + value)
	}
	return near(x, lat, long)
}

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
var NumberCountries = format.DecodeEmbedded[[]numberCountry](rawCountries)

// find returns the first that is what is wanted; nil when none is.
func find[T any](all []T, wanted func(*T) bool) *T {
	for i := range all {
		if wanted(&all[i]) {
			return &all[i]
		}
	}
	return nil
}

// numberCountryOf finds a country by its ISO code; nil for none.
func numberCountryOf(iso string) *numberCountry {
	return find(NumberCountries(), func(t *numberCountry) bool { return t.ISO == iso })
}

//go:embed locales.json
var rawLocales []byte

// locales are where the local numbers of an area of North America are, as templates show it.
var locales = format.DecodeEmbedded[[]table.Values](rawLocales)

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
