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

// available is one number that could be bought. It is drawn from its country,
// sort and place; none is ever bought away.
type available struct {
	in       *numberCountry
	of       *offer
	number   string
	at       *locale // nil outside North America and for toll-free numbers
	requires string  // what sort of address
	beta     bool

	sms, mms, voice, fax bool
}

// PerFront is how many numbers there are to each way they begin.
const PerFront = 40

// Load draws the number in a place.
func (n *available) Load(w *world.World, _ *world.Sequence, i int64) {
	in, of := n.in, n.of
	*n = available{in: in, of: of, requires: "none", voice: true}
	tag := uint64(kinds.TagAvailable)
	for _, c := range in.ISO + of.Path {
		tag = tag<<5 ^ uint64(c)
	}
	d := fake.RngFor(w.Seed, tag, i)
	front := of.Fronts[i%int64(len(of.Fronts))]
	n.number = string(fake.AppendSubscriber([]byte("+"+in.Code+front), &d, of.Size))
	luck := d.Below(100)
	n.beta = in.Beta || luck < 5
	north := in.Code == "1"
	switch of.Path {
	case "Local":
		n.requires = in.Requires
		n.sms, n.mms, n.fax = north && luck < 90, north && luck < 80, luck%3 == 0
		n.at = placeOf(n.number)
	case "Mobile":
		n.sms, n.mms, n.voice = true, luck < 20, luck >= 30
	case "MachineToMachine":
		n.sms, n.voice = true, false
	case "TollFree":
		n.sms, n.mms = north, north && luck < 40
	default:
		n.voice, n.fax = luck >= 10, luck%4 == 0
	}
}

// count is how many there are.
func (of *offer) count() int64 { return int64(len(of.Fronts)) * PerFront }

// Values are the number as its template shows it. It has no SID and no instance.
func (n *available) Values(*world.World) table.Values {
	v := table.Values{
		"requires": n.requires, "beta": n.beta, "fax": n.fax, "mms": n.mms, "sms": n.sms, "voice": n.voice, "number": n.number,
		"formatted": format.Formatted(n.number), "country": n.in.ISO,
	}
	if at := n.at; at != nil {
		maps.Copy(v, table.Values{
			"lata": at.Lata, "latitude": at.Lat, "locality": at.Locality, "longitude": at.Long, "postal": at.Postal, "rate_center": at.RateCenter,
			"region": at.Region,
		})
	}
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
	n := &available{in: in, of: in.offered(sort)}
	w.Mu.RLock()
	defer w.Mu.RUnlock()
	x := &world.Search{W: w, Quirks: r.Quirks, Q: q}
	if refused := x.ReadFilters(r.Filters); refused != nil {
		return refused.Answer()
	}
	rows := []table.Part{}
	for i := int64(0); i < n.of.count() && int64(len(rows)) < p.Size; i++ {
		if n.Load(w, nil, i); x.Suits(n) {
			rows = append(rows, table.Part{T: shapes()["available_number"], V: n.Values(w)})
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
