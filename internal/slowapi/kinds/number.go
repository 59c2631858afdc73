// Phone numbers that the account owns, and caller IDs: numbers of other people that outgoing calls may show.
package kinds

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"understudy/internal/slowapi/fake"
	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/table"
	"understudy/internal/slowapi/world"
)

// Numbers are the phone numbers an account owns.
var Numbers = settingKind(world.Kind{
	Name: "incoming_phone_numbers", Prefix: "PN", Tag: 'N', Shape: "number", Writes: world.Writes{Create: buyNumber, CanDelete: true},
	Filters: []world.Filter{
		world.BoolFilter("Beta", "Beta"), nameFilter, world.PatternFilter("PhoneNumber", "PhoneNumber"), world.TextFilter("Origin", "Origin"),
	},
}, generateNumber, deriveCapabilities)

// generateNumber sets the phone number and its webhooks. The numbers of London and Berlin require an address: the
// account's second and third.
func generateNumber(w *world.World, s *world.Sequence, i int64, fields map[string]string) {
	number := fake.OwnNumber(w.Seed, i)
	fields["PhoneNumber"], fields["Type"] = number, numberType(number)
	fields["VoiceUrl"], fields["SmsUrl"] = "https://example.com/voice?line="+number[1:], "https://example.com/sms"
	if address := map[int64]int64{4: 1, 5: 2}[i]; address != 0 {
		fields["AddressSid"] = string(w.Cipher.AppendSID(nil, "AD", s.Account, tagAddresses, address))
	}
}

// deriveCapabilities sets whether a phone number can send SMS and MMS.
func deriveCapabilities(_ *world.World, _ *world.Sequence, _ int64, v table.Values) {
	north := strings.HasPrefix(text(v, "PhoneNumber"), "+1")
	v["mms"], v["sms"] = north, north || v["Type"] != "local"
}

// buyNumber parses the form that buys a phone number. The form has the number, or an area code in which one is chosen.
func buyNumber(w *world.World, s *world.Sequence, form url.Values) (map[string]string, *format.Answer) {
	fields, r := allRules()["incoming_phone_numbers"].read(form)
	if r != nil {
		return nil, r
	}
	number, area := form.Get("PhoneNumber"), form.Get("AreaCode")
	if number == "" && len(area) == 3 && format.IsDigits(area) {
		d := fake.RngFor(w.Seed, fake.TagOwn, s.Count()+1000)
		number = string(fake.AppendSubscriber([]byte("+1"+area), &d, 7))
	}
	if !format.IsNumber(number) {
		return nil, format.Refuse(400, 21421, "PhoneNumber is invalid: "+number)
	}
	fields["PhoneNumber"], fields["Type"] = number, numberType(number)
	return fields, nil
}

// numberType returns the type of a phone number, according to its first digits: local, mobile or toll-free.
func numberType(number string) string {
	begins := func(front string) bool { return strings.HasPrefix(number, front) }
	switch {
	case slices.ContainsFunc([]string{"+1800", "+1833", "+1844", "+1855", "+1866", "+1877", "+1888"}, begins):
		return "toll-free"
	case slices.ContainsFunc([]string{"+447", "+614", "+4915", "+4917"}, begins):
		return "mobile"
	}
	return "local"
}

// ownSID returns the SID of one of the main account's seeded numbers.
func ownSID(w *world.World, own int64) string {
	return w.SID(w.Sequences[0][Numbers], own)
}

// CallerIDs are the caller IDs of an account. Their SIDs begin with PN, like those of phone numbers that the account owns.
var CallerIDs = settingKind(world.Kind{
	Name: "outgoing_caller_ids", Prefix: "PN", Tag: tagCallerIDs, Shape: "caller_id",
	Writes:  world.Writes{Create: addCallerID, CreateStatus: http.StatusOK, CanDelete: true},
	Filters: []world.Filter{world.TextFilter("PhoneNumber", "PhoneNumber"), nameFilter},
}, func(w *world.World, _ *world.Sequence, i int64, fields map[string]string) {
	fields["PhoneNumber"] = string(fake.AppendPerson(nil, w.Seed, i%w.People))
}, deriveValidation)

// addCallerID parses the form that adds a caller ID. Twilio calls the number and waits until a code is entered. Here
// the number counts as verified at once.
func addCallerID(_ *world.World, _ *world.Sequence, form url.Values) (map[string]string, *format.Answer) {
	number := form.Get("PhoneNumber")
	if !format.IsNumber(number) {
		return nil, format.Refuse(http.StatusBadRequest, 21401, "Invalid phone number: "+number)
	}
	fields, r := allRules()["outgoing_caller_ids"].read(form)
	if r == nil {
		fields["PhoneNumber"] = number
	}
	return fields, r
}

// deriveValidation sets the validation code, and the SID of the call that announces the code. That call is not a
// simulated record.
func deriveValidation(_ *world.World, s *world.Sequence, i int64, v table.Values) {
	v["validation_call"] = generateHex("CA", world.TagSecrets<<8|tagCallerIDs, s, i)
	d := fake.RngFor(s.Seed, world.TagSecrets<<16|tagCallerIDs, i)
	v["validation_code"] = strconv.Itoa(100000 + d.IntBelow(900000))
}
