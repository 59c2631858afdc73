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
	world.TruthFilter("SmsEnabled", func(n *available) bool { return n.sms }),
	world.TruthFilter("MmsEnabled", func(n *available) bool { return n.mms }),
	world.TruthFilter("VoiceEnabled", func(n *available) bool { return n.voice }),
	world.TruthFilter("FaxEnabled", func(n *available) bool { return n.fax }),
	excluding("ExcludeAllAddressRequired", true, func(n *available) bool { return n.requires != "none" }),
	excluding("ExcludeLocalAddressRequired", true, func(n *available) bool { return n.requires == "local" }),
	excluding("ExcludeForeignAddressRequired", true, func(n *available) bool { return n.requires == "foreign" }),
	// False leaves out what is new to Twilio; true asks for it beside all others.
	excluding("Beta", false, func(n *available) bool { return n.beta }),
	{Key: "NearNumber", Read: nearNumber},
	{Key: "NearLatLong", Read: nearLatLong},
	{Key: "Distance", Read: distanceFilter},
	inPlace("InPostalCode", func(l *locale) string { return l.Postal }),
	inPlace("InRegion", func(l *locale) string { return l.Region }),
	inPlace("InRateCenter", func(l *locale) string { return l.RateCenter }),
	inPlace("InLata", func(l *locale) string { return l.Lata }),
	inPlace("InLocality", func(l *locale) string { return l.Locality }),
}

// excluding leaves out some numbers when it is as asked, and nothing when it is not.
func excluding(key string, when bool, out func(*available) bool) world.Filter {
	return world.Filter{Key: key, Read: func(_ *world.Search, value string) (world.Condition, *format.Refusal) {
		asked, r := world.ReadTruth(value)
		return world.Everywhere(func(r world.Row) bool { return asked != when || !out(r.(*available)) }), r
	}}
}

// areaFilter asks for numbers of North America by the three digits they begin with.
func areaFilter(_ *world.Search, value string) (world.Condition, *format.Refusal) {
	if len(value) != 3 || !format.Digits(value) {
		return world.Condition{}, format.Invalid("AreaCode is not valid: " + value)
	}
	return world.Everywhere(func(r world.Row) bool {
		n := r.(*available)
		return n.in.Code == "1" && strings.HasPrefix(n.number, "+1"+value)
	}), nil
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
		number := r.(*available).number[1:]
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
func inPlace(key string, get func(*locale) string) world.Filter {
	return world.Filter{Key: key, Read: func(_ *world.Search, value string) (world.Condition, *format.Refusal) {
		if at := placeOf(value); at != nil {
			value = get(at)
		}
		return world.Everywhere(func(r world.Row) bool {
			at := r.(*available).at
			return at != nil && strings.EqualFold(get(at), value)
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
	return world.Everywhere(func(world.Row) bool { return true }), r
}

func near(x *world.Search, lat, long float64) (world.Condition, *format.Refusal) {
	reach, r := distance(x)
	return world.Everywhere(func(r world.Row) bool {
		at := r.(*available).at
		return at != nil && miles(lat, long, at.Lat, at.Long) <= reach
	}), r
}

// nearNumber asks for what is near the place of a number.
func nearNumber(x *world.Search, value string) (world.Condition, *format.Refusal) {
	at := placeOf(value)
	if at == nil {
		return world.Everywhere(func(world.Row) bool { return false }), nil
	}
	return near(x, at.Lat, at.Long)
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
