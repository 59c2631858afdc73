// Settings: kinds whose records are configured by people, such as numbers, addresses, applications and keys.
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

// rules say which fields the records of a kind have, and which values are valid.
type rules struct {
	// Takes are the fields that a write may set, with their valid values: nil means any value, a single
	// word means a SID with this prefix, and several words mean one of them.
	Takes map[string][]string
	// Whole are the fields that must have an integer of at least 1, each with its maximum.
	Whole    map[string]int64
	Needs    []string            // the fields that a new record must have
	Defaults map[string]string   // the values of fields that have never been set
	First    []map[string]string // the seeded records of the main account
}

//go:embed settings.json
var rawRules []byte

// allRules returns the rules of all kinds of settings, by the name of the kind.
var allRules = format.DecodeEmbedded[map[string]*rules](rawRules)

// settingKind returns k with what all kinds of settings have in common. The rules for the kind are in settings.json.
// draw adds fields to a seeded record, and derive adds computed values for the template. Both may be nil.
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

// read returns the fields that a form sets. If a field is not valid, it returns an error response.
func (l *rules) read(form url.Values) (map[string]string, *format.Answer) {
	for name, limit := range l.Whole {
		switch n, ok := format.ParseWhole(form.Get(name)); {
		case !form.Has(name):
		case form.Get(name) == "0":
			return nil, format.NewInvalid(name + " must be at least 1")
		case !ok || n > limit:
			return nil, format.NewInvalid(fmt.Sprintf("%s must be a number from 0 to %d", name, limit))
		}
	}
	fields := map[string]string{}
	for name, valid := range l.Takes {
		if !form.Has(name) {
			continue
		}
		value := form.Get(name)
		if len(valid) == 1 && value != "" && !format.IsSID(value, valid[0]) || len(valid) > 1 && !slices.Contains(valid, value) {
			return nil, format.NewInvalid(name + " is not valid")
		}
		fields[name] = value
	}
	if len([]rune(fields["FriendlyName"])) > 64 {
		return nil, format.Refuse(400, 21451, "FriendlyName is too long")
	}
	return fields, nil
}

// text returns a value as a string. It returns "" if the value is no string.
func text(v table.Values, name string) string {
	s, _ := v[name].(string)
	return s
}

// nameFilter is a filter for the name that is shown: FriendlyName, or if that is empty, the phone number.
var nameFilter = world.TextFilter("FriendlyName", "display_name")

// Addresses are the addresses of an account.
var Addresses = settingKind(world.Kind{
	Name: "addresses", Prefix: "AD", Tag: tagAddresses, Shape: "address", Writes: world.Writes{CanDelete: true},
	Filters: []world.Filter{
		world.TextFilter("CustomerName", "CustomerName"), world.TextFilter("FriendlyName", "FriendlyName"),
		world.BoolFilter("EmergencyEnabled", "EmergencyEnabled"), world.TextFilter("IsoCountry", "IsoCountry"),
	},
}, nil, nil)

// DependentNumbersOf returns the condition for the phone numbers that use an address.
func DependentNumbersOf(w *world.World, s *world.Sequence, address int64) world.Condition {
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

// The API keys and the signing keys of an account.
var (
	ApiKeys     = keyKind("keys", tagKeys)
	SigningKeys = keyKind("signing_keys", tagSigningKeys)
)

// keyKind returns a kind of keys. The response that creates a key contains a secret of 32 letters and digits, as at
// Twilio. The simulated API does not accept this secret as a password.
func keyKind(name string, tag uint64) *world.Kind {
	return settingKind(world.Kind{Name: name, Prefix: "SK", Tag: tag, Shape: "key", Writes: world.Writes{CanDelete: true}}, nil,
		func(_ *world.World, s *world.Sequence, i int64, v table.Values) {
			v["secret"] = generateHex("", world.TagSecrets<<8|tag, s, i)
		})
}
