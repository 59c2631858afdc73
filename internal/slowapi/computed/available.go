// Available phone numbers: what could be bought where, and the countries to buy in.
package computed

import (
	"maps"
	"net/http"
	"strings"

	"understudy/internal/slowapi/fake"
	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/kinds"
	"understudy/internal/slowapi/table"
	"understudy/internal/slowapi/world"
)

// PerFront is how many numbers there are to each way they begin.
const PerFront = 40

// drawAvailable draws a number that could be bought from its country, sort and place; none is
// ever bought away. It has no SID and no instance, and a locale only if it is a local one of North America.
func drawAvailable(seed uint64, in *numberCountry, of *offer, i int64) table.Values {
	tag := uint64(kinds.TagAvailable)
	for _, c := range in.ISO + of.Path {
		tag = tag<<5 ^ uint64(c)
	}
	d := fake.RngFor(seed, tag, i)
	front := of.Fronts[i%int64(len(of.Fronts))]
	number := string(fake.AppendSubscriber([]byte("+"+in.Code+front), &d, of.Size))
	luck, north := d.Below(100), in.Code == "1"
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
		"formatted": format.Formatted(number), "country": in.ISO,
	}
	maps.Copy(v, at)
	return v
}

// AvailableNumbers answers the list of one sort of number in one country. Such a
// list has no pages, whatever the published schema says: its examples, and
// Twilio, give the first PageSize numbers and the list's own URI.
func AvailableNumbers(r *world.Request) format.Answer {
	in := numberCountryOf(r.In.Vars[1])
	sort := r.In.Path[strings.LastIndexByte(r.In.Path, '/')+1:]
	sort = strings.TrimSuffix(sort, ".json")
	if in == nil || in.offered(sort) == nil {
		return r.NotFound()
	}
	w, q := r.W, r.Q
	p, refused := world.ReadSize(q, r.Quirks)
	if refused != nil {
		return refused.Answer()
	}
	of := in.offered(sort)
	w.Mu.RLock()
	defer w.Mu.RUnlock()
	x := &world.Search{W: w, Quirks: r.Quirks, Q: q}
	if refused := x.ReadFilters(r.Filters); refused != nil {
		return refused.Answer()
	}
	rows := []table.Part{}
	for i := int64(0); i < int64(len(of.Fronts))*PerFront && int64(len(rows)) < p.Size; i++ {
		if v := drawAvailable(w.Seed, in, of, i); x.Suits(world.RowOf(v), i) {
			rows = append(rows, table.Part{T: shapes()["available_number"], V: v})
		}
	}
	uri := r.In.Path
	if echo := q.Echo(nil, world.KeysOf(r.Filters)); len(echo) > 0 {
		uri += "?" + strings.TrimSuffix(string(echo), "&")
	}
	v := table.Values{"rows": rows, "uri": uri}
	return format.Answer{Status: http.StatusOK, Body: shapes()["available_numbers"].Append(nil, v, "")}
}

// CountryList answers the list of countries, or one of them.
func CountryList(r *world.Request) format.Answer {
	r.W.Mu.RLock()
	base := format.Version + "/Accounts/" + r.W.AccountSID(r.Account) + "/AvailablePhoneNumbers"
	r.W.Mu.RUnlock()
	if len(r.In.Vars) == 2 {
		one := numberCountryOf(r.In.Vars[1])
		if one == nil {
			return r.NotFound()
		}
		return format.Answer{Status: http.StatusOK, Body: table.AppendValue(nil, one.part(base), "")}
	}
	rows := []table.Part{}
	for i := range NumberCountries() {
		rows = append(rows, NumberCountries()[i].part(base))
	}
	return format.Answer{Status: http.StatusOK, Body: shapes()["countries"].Append(nil, table.Values{"rows": rows, "base": base}, "")}
}

// part returns the country as its template shows it.
func (t *numberCountry) part(base string) table.Part {
	var uris table.Members
	for _, one := range t.Offers {
		uris = append(uris, table.Member{Name: OfferNames[one.Path], Value: base + "/" + t.ISO + "/" + one.Path + ".json"})
	}
	return table.Part{T: shapes()["country"], V: table.Values{"beta": t.Beta, "name": t.Name, "code": t.ISO, "uris": uris, "base": base}}
}

// OfferNames are what a country calls its sorts of numbers.
var OfferNames = map[string]string{
	"Local": "local", "Mobile": "mobile", "TollFree": "toll_free", "National": "national",
	"MachineToMachine": "machine_to_machine", "SharedCost": "shared_cost", "Voip": "voip",
}
