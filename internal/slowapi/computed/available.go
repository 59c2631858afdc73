// Available phone numbers: what could be bought where, and the countries to buy in.
package computed

import (
	"net/http"
	"strings"

	"understudy/internal/slowapi/fake"
	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/kinds"
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
	for _, c := range in.iso + of.path {
		tag = tag<<5 ^ uint64(c)
	}
	d := fake.RngFor(w.Seed, tag, i)
	front := of.fronts[i%int64(len(of.fronts))]
	n.number = string(fake.AppendSubscriber([]byte("+"+in.code+front), &d, of.size))
	luck := d.Below(100)
	n.beta = in.beta || luck < 5
	north := in.code == "1"
	switch of.path {
	case "Local":
		n.requires = in.requires
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
func (of *offer) count() int64 { return int64(len(of.fronts)) * PerFront }

// Append writes the number's row. It has no SID and no instance.
func (n *available) Append(dst []byte, _ *world.World) []byte {
	o := format.Object{B: dst}
	at := n.at
	if at == nil {
		at = &locale{}
	}
	o.Open()
	o.Text("address_requirements", n.requires)
	o.Truth("beta", n.beta)
	o.Name("capabilities")
	o.Open()
	o.Truth("fax", n.fax)
	o.Truth("mms", n.mms)
	o.Truth("sms", n.sms)
	o.Truth("voice", n.voice)
	o.Close()
	o.Text("friendly_name", format.Formatted(n.number))
	o.Text("iso_country", n.in.iso)
	o.TextOrNull("lata", at.lata)
	o.Degrees("latitude", at.lat)
	o.TextOrNull("locality", at.locality)
	o.Degrees("longitude", at.long)
	o.Text("phone_number", n.number)
	o.TextOrNull("postal_code", at.postal)
	o.TextOrNull("rate_center", at.rateCenter)
	o.TextOrNull("region", at.region)
	o.Close()
	return o.B
}

// AvailableNumbers answers the list of one sort of number in one country. Such a
// list has no pages, whatever the published schema says: its examples, and
// Twilio, give the first PageSize numbers and the list's own URI.
func AvailableNumbers(r *Request) format.Answer {
	in := numberCountryOf(r.Sids[1])
	sort := r.Path[strings.LastIndexByte(r.Path, '/')+1:]
	sort = strings.TrimSuffix(sort, ".json")
	if in == nil || in.offered(sort) == nil {
		return format.NotFound(r.Path).Answer()
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
	var rows []byte
	for i, found := int64(0), int64(0); i < n.of.count() && found < p.Size; i++ {
		if n.Load(w, nil, i); !x.Suits(n) {
			continue
		}
		if found++; found > 1 {
			rows = append(rows, ',')
		}
		rows = n.Append(rows, w)
	}
	uri := r.Path
	if echo := q.Echo(nil, world.KeysOf(r.Filters)); len(echo) > 0 {
		uri += "?" + strings.TrimSuffix(string(echo), "&")
	}
	var o format.Object
	o.Open()
	o.Array("available_phone_numbers", rows)
	o.Text("uri", uri)
	o.Close()
	return format.Answer{Status: http.StatusOK, Body: o.B}
}

// CountryList answers the list of countries, or one of them.
func CountryList(r *Request) format.Answer {
	r.W.Mu.RLock()
	base := format.Version + "/Accounts/" + r.W.AccountSID(r.Account) + "/AvailablePhoneNumbers"
	r.W.Mu.RUnlock()
	if len(r.Sids) == 2 {
		one := numberCountryOf(r.Sids[1])
		if one == nil {
			return format.NotFound(r.Path).Answer()
		}
		return format.Answer{Status: http.StatusOK, Body: one.append(nil, base)}
	}
	var rows []byte
	for i := range NumberCountries {
		if i > 0 {
			rows = append(rows, ',')
		}
		rows = NumberCountries[i].append(rows, base)
	}
	var o format.Object
	o.Open()
	o.Array("countries", rows)
	o.Text("uri", base+".json")
	o.Close()
	return format.Answer{Status: http.StatusOK, Body: o.B}
}

// append writes the country.
func (t *numberCountry) append(dst []byte, base string) []byte {
	o := format.Object{B: dst}
	o.Open()
	o.Truth("beta", t.beta)
	o.Text("country", t.name)
	o.Text("country_code", t.iso)
	o.Name("subresource_uris")
	o.Open()
	for _, one := range t.offers {
		o.Text(OfferNames[one.path], base+"/"+t.iso+"/"+one.path+".json")
	}
	o.Close()
	o.Text("uri", base+"/"+t.iso+".json")
	o.Close()
	return o.B
}

// OfferNames are what a country calls its sorts of numbers.
var OfferNames = map[string]string{
	"Local": "local", "Mobile": "mobile", "TollFree": "toll_free", "National": "national",
	"MachineToMachine": "machine_to_machine", "SharedCost": "shared_cost", "Voip": "voip",
}
