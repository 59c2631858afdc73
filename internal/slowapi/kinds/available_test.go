// Tests of available phone numbers: every filter, every country.
package kinds_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"understudy/internal/checktest"
	"understudy/internal/slowapi"
	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/kinds"
	"understudy/internal/slowapi/slowapitest"
)

// offered reads a list of available numbers.
func offered(r slowapitest.API, target string) (rows []record, uri string) {
	r.T.Helper()
	var body struct {
		Rows []record `json:"available_phone_numbers"`
		URI  string   `json:"uri"`
	}
	if err := format.DecodeStrict(r.Get(root+"/AvailablePhoneNumbers"+target), &body); err != nil {
		r.T.Fatalf("%s: %v", target, err)
	}
	return body.Rows, body.URI
}

func TestCountries(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{})
	var body struct {
		Countries []record `json:"countries"`
		URI       string   `json:"uri"`
	}
	if err := format.DecodeStrict(r.Get(root+"/AvailablePhoneNumbers.json?PageSize=2"), &body); err != nil {
		t.Fatal(err)
	}
	if len(body.Countries) != len(kinds.NumberCountries()) || body.URI != root+"/AvailablePhoneNumbers.json" {
		t.Errorf("%d countries at %s", len(body.Countries), body.URI)
	}
	sorts := map[string]bool{}
	for _, one := range body.Countries {
		if got := r.One(one["uri"].(string)); fmt.Sprint(got) != fmt.Sprint(one) {
			t.Errorf("%v, its row is %v", got, one)
		}
		for name, uri := range one["subresource_uris"].(record) {
			sorts[name] = true
			rows, own := offered(r, strings.TrimPrefix(uri.(string), root+"/AvailablePhoneNumbers")+"?PageSize=1000")
			if len(rows) < kinds.NumbersPerPrefix || own != uri.(string) {
				t.Errorf("%v: %d numbers, uri %s", uri, len(rows), own)
			}
			seen := map[any]bool{}
			for _, number := range rows {
				checktest.MustEqual(t, number["iso_country"], one["country_code"], `%v: number["iso_country"]`, uri)
				checktest.MustTrue(t, format.IsNumber(number["phone_number"].(string)),
					`%v: format.IsNumber(number["phone_number"].(string)) is false`, uri)
				checktest.MustTrue(t, !seen[number["phone_number"]], `%v: seen[number["phone_number"]] is true`, uri)
				seen[number["phone_number"]] = true
			}
		}
	}
	if len(sorts) != len(kinds.OfferNames) {
		t.Errorf("sorts of numbers: %v", sorts)
	}
	for _, target := range []string{"/XX.json", "/XX/Local.json", "/US/Mobile.json", "/US/Fax.json", "/us/Local.json"} {
		r.Write("GET", root+"/AvailablePhoneNumbers"+target, nil, 404)
	}
}

// TestAvailableFilters: for each filter of the table, what it leaves is just
// those rows of the whole list that meet it, some and not all.
func TestAvailableFilters(t *testing.T) {
	t.Parallel()
	r := slowapitest.Start(t, slowapi.Options{})
	like := func(field, pattern string) func(record) bool {
		return func(one record) bool { return regexp.MustCompile(pattern).MatchString(fmt.Sprint(one[field])) }
	}
	can := func(what string, want bool) func(record) bool {
		return func(one record) bool { return one["capabilities"].(record)[what] == want }
	}
	tried := map[string]bool{}
	for _, c := range []struct {
		list, query string
		keep        func(record) bool
	}{
		{"/US/Local", "AreaCode=415", like("phone_number", `^\+1415`)},
		{"/US/Local", "Contains=303", like("phone_number", `\+\d*303`)},
		{"/US/Local", "Contains=%2B1212", like("phone_number", `^\+1212`)},
		{"/US/Local", "Contains=7%24&Beta=true", like("phone_number", `7$`)},
		{"/US/Local", "Contains=5*", like("phone_number", `5\d`)},
		{"/US/Local", "Contains=415***2%25", like("phone_number", `415\d\d\d2`)},
		{"/US/Local", "Contains=aDg", like("phone_number", `234`)},
		{"/US/Local", "SmsEnabled=true", can("sms", true)},
		{"/US/Local", "SmsEnabled=false", can("sms", false)},
		{"/US/Local", "MmsEnabled=true", can("mms", true)},
		{"/GB/Mobile", "VoiceEnabled=false", can("voice", false)},
		{"/FR/National", "VoiceEnabled=TRUE", can("voice", true)},
		{"/US/Local", "FaxEnabled=true", can("fax", true)},
		{"/US/Local", "Beta=false", func(one record) bool { return one["beta"] == false }},
		{"/US/Local", "NearNumber=%2B12125551234", like("locality", "New York")},
		{"/US/Local", "NearNumber=%2B12125551234&Distance=250", like("locality", "New York|Boston")},
		{"/US/Local", "NearLatLong=37.8,-122.4", like("locality", "San Francisco")},
		{"/US/Local", "NearLatLong=37.8,%20-122.4&Distance=500", like("locality", "San Francisco|Las Vegas")},
		{"/US/Local", "InPostalCode=10007", like("postal_code", "10007")},
		{"/US/Local", "InRegion=ca", like("region", "^CA$")},
		{"/CA/Local", "InLocality=Montr%C3%A9al", like("locality", "Montréal")},
		{"/US/Local", "InRateCenter=MIAMI&InLata=460", like("rate_center", "MIAMI")},
		{"/US/Local", "InLata=%2B18085550000", like("lata", "834")},
	} {
		all, _ := offered(r, c.list+".json?PageSize=1000")
		got, uri := offered(r, c.list+".json?PageSize=1000&"+c.query)
		var want []any
		for _, one := range all {
			if c.keep(one) {
				want = append(want, one["phone_number"])
			}
		}
		var have []any
		for _, one := range got {
			have = append(have, one["phone_number"])
		}
		checktest.Equal(t, fmt.Sprint(have), fmt.Sprint(want), "%s?%s: fmt.Sprint(have)", c.list, c.query)
		checktest.MustTrue(t, len(want) != 0, "%s?%s: len(want) is 0", c.list, c.query)
		checktest.True(t, len(want) != len(all), "%s?%s: len(want) is %v", c.list, c.query, len(want))
		query, _ := url.ParseQuery(c.query)
		for key := range query {
			tried[key] = true
			if !strings.Contains(uri, key+"=") {
				t.Errorf("%s is not echoed: %s", key, uri)
			}
		}
	}
	for query, requires := range map[string]string{"ExcludeAllAddressRequired": "any foreign local", "ExcludeLocalAddressRequired": "local",
		"ExcludeForeignAddressRequired": "foreign"} {
		for _, list := range []string{"/US/Local", "/GB/Local", "/DE/Local", "/AU/Local"} {
			all, _ := offered(r, list+".json")
			out := strings.Contains(requires, all[0]["address_requirements"].(string))
			if got, _ := offered(r, list+".json?"+query+"=true"); out != (len(got) == 0) {
				t.Errorf("%s?%s: %d", list, query, len(got))
			}
			if got, _ := offered(r, list+".json?"+query+"=false"); len(got) != len(all) {
				t.Errorf("%s?%s=false: %d", list, query, len(got))
			}
		}
		tried[query] = true
	}
	for _, f := range kinds.AvailableFilters {
		if !tried[f.Key] {
			t.Errorf("%s was not tried", f.Key)
		}
	}
}

func TestAvailableEdges(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{})
	for _, bad := range []string{"AreaCode=41", "AreaCode=x", "Contains=1", "Contains=12345678901234567", "Contains=1-2", "SmsEnabled=yes",
		"Beta=2", "ExcludeAllAddressRequired=1",
		"NearLatLong=1", "NearLatLong=91,0", "NearLatLong=NaN,1", "NearNumber=%2B1212&Distance=501", "Distance=far", "PageSize=0"} {
		if status, body, _ := r.Ask("GET", root+"/AvailablePhoneNumbers/US/Local.json?"+bad, nil); status != 400 ||
			!strings.Contains(string(body), "20001") {
			t.Errorf("%s: %d %s", bad, status, body)
		}
	}
	if rows, uri := offered(r, "/US/Local.json?PageSize=3&Unknown=1&Contains=&AreaCode=212"); len(rows) != 3 ||
		uri != root+"/AvailablePhoneNumbers/US/Local.json?AreaCode=212&Contains=" {
		t.Errorf("%d rows, uri %s", len(rows), uri)
	}
	if rows, _ := offered(r, "/US/Local.json"); len(rows) != 50 {
		t.Errorf("%d rows without a PageSize", len(rows))
	}
	if rows, _ := offered(r, "/DE/Local.json?AreaCode=212"); len(rows) != 0 {
		t.Errorf("%d German numbers in an area of New York", len(rows))
	}
	if rows, _ := offered(r, "/DE/Local.json?NearNumber=%2B4930123456"); len(rows) != 0 {
		t.Errorf("%d near a number outside North America", len(rows))
	}
	if body := r.Get(root + "/AvailablePhoneNumbers/US/Local.json?Contains=zzzzz"); !json.Valid(body) || !strings.Contains(string(body),
		`"available_phone_numbers":[]`) {
		t.Errorf("%s", body)
	}
}
