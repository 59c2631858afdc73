// Settings: numbers, addresses, applications, keys, caller ids and queues, which are set by hand.
package kinds

import (
	"cmp"
	_ "embed"
	"fmt"
	"maps"
	"net/url"
	"slices"

	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/table"
	"understudy/internal/slowapi/world"
)

// rules say what the settings of one kind can hold.
type rules struct {
	// Takes are the fields a write may set, each with what it may hold: nil means
	// anything, a two-letter word the prefix of a SID, several words one of them.
	Takes map[string][]string
	// Whole are fields that must be numbers from 1, with the highest each may be.
	Whole    map[string]int64
	Needs    []string            // what a creation must say
	Defaults map[string]string   // what a field holds that was never set
	First    []map[string]string // those the main account begins with
}

//go:embed settings.json
var rawRules []byte

// allRules are the rules by the name of the kind.
var allRules = format.DecodeEmbedded[map[string]*rules](rawRules)

// settingKind completes a kind of settings, whose rules stand in settings.json. draw adds fields
// to one of the first, and derive what a template shows beside the fields; nil for most kinds.
func settingKind(k world.Kind, draw func(w *world.World, s *world.Sequence, i int64, fields map[string]string),
	derive func(w *world.World, s *world.Sequence, i int64, v table.Values)) *world.Kind {
	own := func() *rules { return allRules()[k.Name] }
	k.Count, k.Old = func(*world.World) int64 { return int64(len(own().First)) }, true
	if k.Writes.Create == nil {
		k.Writes.Create = func(_ *world.World, _ *world.Sequence, form url.Values) (map[string]string, *format.Answer) {
			for _, name := range own().Needs {
				if form.Get(name) == "" {
					return nil, format.NewInvalid("Missing required parameter " + name + " in the post body")
				}
			}
			return own().read(form)
		}
	}
	if k.Writes.Update == nil {
		k.Writes.Update = func(_ *world.World, _ *world.Sequence, _ int64, form url.Values) (map[string]string, []string, *format.Answer) {
			fields, r := own().read(form)
			return fields, nil, r
		}
	}
	k.Generate = func(w *world.World, s *world.Sequence, i int64) table.Values {
		fields := map[string]string{}
		if !s.IsCreatedByWrite(i) && i < s.SeededCount {
			maps.Copy(fields, own().First[i])
			if draw != nil {
				draw(w, s, i, fields)
			}
		}
		if m := s.History[i]; m != nil {
			maps.Copy(fields, m.Fields)
		}
		v := table.Values{"created": s.CreationTime(i), "updated": s.UpdateTime(i)}
		for _, some := range []map[string]string{own().Defaults, fields} {
			for name, value := range some {
				if value != "" {
					v[name] = value
				}
			}
		}
		v["display_name"] = cmp.Or(text(v, "FriendlyName"), format.DisplayNumber(text(v, "PhoneNumber")))
		if derive != nil {
			derive(w, s, i, v)
		}
		return v
	}
	return &k
}

// read takes the fields a write sets from its form.
func (l *rules) read(form url.Values) (map[string]string, *format.Answer) {
	for name, most := range l.Whole {
		switch n, ok := format.ParseWhole(form.Get(name)); {
		case !form.Has(name):
		case form.Get(name) == "0":
			return nil, format.NewInvalid(name + " must be at least 1")
		case !ok || n > most:
			return nil, format.NewInvalid(fmt.Sprintf("%s must be a number from 0 to %d", name, most))
		}
	}
	fields := map[string]string{}
	for name, one := range l.Takes {
		if !form.Has(name) {
			continue
		}
		value := form.Get(name)
		if len(one) == 1 && value != "" && !format.IsSID(value, one[0]) || len(one) > 1 && !slices.Contains(one, value) {
			return nil, format.NewInvalid(name + " is not valid")
		}
		fields[name] = value
	}
	if len([]rune(fields["FriendlyName"])) > 64 {
		return nil, format.Refuse(400, 21451, "FriendlyName is too long")
	}
	return fields, nil
}

// text returns a value that is a text, or "".
func text(v table.Values, name string) string {
	s, _ := v[name].(string)
	return s
}

// nameFilter asks for settings that people know by this name.
var nameFilter = world.TextFilter("FriendlyName", "display_name")

// Addresses are the addresses of an account.
var Addresses = settingKind(world.Kind{
	Name: "addresses", Prefix: "AD", Tag: tagAddresses, Shape: "address", Writes: world.Writes{CanDelete: true},
	Filters: []world.Filter{
		world.TextFilter("CustomerName", "CustomerName"), world.TextFilter("FriendlyName", "FriendlyName"),
		world.BoolFilter("EmergencyEnabled", "EmergencyEnabled"), world.TextFilter("IsoCountry", "IsoCountry"),
	},
}, nil, nil)

// DependOn are the numbers that name an address.
func DependOn(w *world.World, s *world.Sequence, address int64) world.Condition {
	sid := w.SID(w.Sequences[s.Account][Addresses], address)
	return world.NewCondition(func(r *world.Row) bool {
		return r.Value("AddressSid") == sid || r.Value("EmergencyAddressSid") == sid
	})
}

// Applications are the applications of an account.
var Applications = settingKind(world.Kind{
	Name: "applications", Prefix: "AP", Tag: tagApplications, Shape: "application", Writes: world.Writes{CanDelete: true},
	Filters: []world.Filter{world.TextFilter("FriendlyName", "FriendlyName")},
}, nil, nil)

var (
	ApiKeys     = keyKind("keys", tagKeys)
	SigningKeys = keyKind("signing_keys", tagSigningKeys)
)

// keyKind returns a kind of keys. The answer to a creation has a real secret, 32
// letters and digits, as Twilio's does; it opens nothing here.
func keyKind(name string, tag uint64) *world.Kind {
	return settingKind(world.Kind{Name: name, Prefix: "SK", Tag: tag, Shape: "key", Writes: world.Writes{CanDelete: true}}, nil,
		func(_ *world.World, s *world.Sequence, i int64, v table.Values) {
			v["secret"] = drawHex("", world.TagSecrets<<8|tag, s, i)
		})
}
