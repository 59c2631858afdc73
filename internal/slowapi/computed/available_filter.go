// Filters of available phone numbers: digits, capabilities, addresses, places.
package computed

import (
	"strconv"
	"strings"

	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/world"
)

// AvailableFilters in the order of docs/twilio.md.
var AvailableFilters = []world.Filter{
	{Key: "AreaCode", Read: areaFilter},
	{Key: "Contains", Read: containsFilter},
	world.TruthFilter("SmsEnabled", "sms"), world.TruthFilter("MmsEnabled", "mms"), world.TruthFilter("VoiceEnabled", "voice"),
	world.TruthFilter("FaxEnabled", "fax"),
	excluding("ExcludeAllAddressRequired", true, func(r world.Row) bool { return r.Value("requires") != "none" }),
	excluding("ExcludeLocalAddressRequired", true, func(r world.Row) bool { return r.Value("requires") == "local" }),
	excluding("ExcludeForeignAddressRequired", true, func(r world.Row) bool { return r.Value("requires") == "foreign" }),
	// False leaves out what is new to Twilio; true asks for it beside all others.
	excluding("Beta", false, func(r world.Row) bool { return r.Value("beta") == true }),
	{Key: "NearNumber", Read: nearNumber},
	{Key: "NearLatLong", Read: nearLatLong},
	{Key: "Distance", Read: distanceFilter},
	inPlace("InPostalCode", "postal"), inPlace("InRegion", "region"), inPlace("InRateCenter", "rate_center"), inPlace("InLata", "lata"),
	inPlace("InLocality", "locality"),
}

// excluding leaves out some numbers when it is as asked, and nothing when it is not.
func excluding(key string, when bool, out func(world.Row) bool) world.Filter {
	return world.Filter{Key: key, Read: func(_ *world.Search, value string) (world.Condition, *format.Refusal) {
		asked, r := world.ReadTruth(value)
		return world.Everywhere(func(r world.Row) bool { return asked != when || !out(r) }), r
	}}
}

// areaFilter asks for numbers of North America by the three digits they begin with.
func areaFilter(_ *world.Search, value string) (world.Condition, *format.Refusal) {
	if len(value) != 3 || !format.Digits(value) {
		return world.Condition{}, format.Invalid("AreaCode is not valid: " + value)
	}
	return world.Everywhere(func(r world.Row) bool { return strings.HasPrefix(r.Value("number").(string), "+1"+value) }), nil
}

// keypad is the digit each letter stands on.
const keypad = "22233344455566677778889999"

// containsFilter asks for a pattern of 2 to 16 characters: digits, letters for
// the digits they stand on, * for any one digit, % at an end for any number of
// them, + at the beginning and $ at the end of the number.
func containsFilter(_ *world.Search, value string) (world.Condition, *format.Refusal) {
	pattern, atStart := strings.CutPrefix(value, "+")
	pattern, atEnd := strings.CutSuffix(pattern, "$")
	pattern = strings.Trim(pattern, "%")
	out := []byte(pattern)
	for i, c := range out {
		switch {
		case c >= 'a' && c <= 'z':
			out[i] = keypad[c-'a']
		case c >= 'A' && c <= 'Z':
			out[i] = keypad[c-'A']
		case c != '*' && (c < '0' || c > '9'):
			return world.Condition{}, format.Invalid("Contains is not valid: " + value)
		}
	}
	if len(value) < 2 || len(value) > 16 {
		return world.Condition{}, format.Invalid("Contains must have 2 to 16 characters")
	}
	return world.Everywhere(func(r world.Row) bool {
		number := r.Value("number").(string)[1:]
		switch {
		case len(out) > len(number):
			return false
		case atStart && atEnd:
			return len(out) == len(number) && world.MatchesHere(number, string(out))
		case atStart:
			return world.MatchesHere(number, string(out))
		case atEnd:
			return world.MatchesHere(number[len(number)-len(out):], string(out))
		}
		return world.ContainsPattern(number, string(out))
	}), nil
}

// inPlace asks for what is in a place, named by itself or by a number of it.
func inPlace(key, name string) world.Filter {
	return world.Filter{Key: key, Read: func(_ *world.Search, value string) (world.Condition, *format.Refusal) {
		if at := placeOf(value); at != nil {
			value = at[name].(string)
		}
		return world.Everywhere(func(r world.Row) bool {
			have, there := r.Value(name).(string)
			return there && strings.EqualFold(have, value)
		}), nil
	}}
}

// distance is how many miles a search reaches: Distance, at most 500, or 25.
func distance(x *world.Search) (float64, *format.Refusal) {
	value := x.Q.Given["Distance"].Value
	if value == "" {
		return 25, nil
	}
	n, ok := format.Whole(value)
	if !ok || n > 500 {
		return 0, format.Invalid("Distance must be a number of miles from 0 to 500")
	}
	return float64(n), nil
}

// distanceFilter narrows nothing by itself.
func distanceFilter(x *world.Search, _ string) (world.Condition, *format.Refusal) {
	_, r := distance(x)
	return world.Always, r
}

func near(x *world.Search, lat, long float64) (world.Condition, *format.Refusal) {
	reach, r := distance(x)
	return world.Everywhere(func(r world.Row) bool {
		atLat, there := r.Value("latitude").(float64)
		return there && miles(lat, long, atLat, r.Value("longitude").(float64)) <= reach
	}), r
}

// nearNumber asks for what is near the place of a number.
func nearNumber(x *world.Search, value string) (world.Condition, *format.Refusal) {
	at := placeOf(value)
	if at == nil {
		return world.Condition{Hi: -1}, nil
	}
	return near(x, at["latitude"].(float64), at["longitude"].(float64))
}

// nearLatLong asks for what is near a point.
func nearLatLong(x *world.Search, value string) (world.Condition, *format.Refusal) {
	first, second, _ := strings.Cut(value, ",")
	lat, err := strconv.ParseFloat(strings.TrimSpace(first), 64)
	long, err2 := strconv.ParseFloat(strings.TrimSpace(second), 64)
	if err != nil || err2 != nil || !(lat >= -90 && lat <= 90 && long >= -180 && long <= 180) {
		return world.Condition{}, format.Invalid("NearLatLong is not valid: " + value)
	}
	return near(x, lat, long)
}
