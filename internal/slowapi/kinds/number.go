// Incoming phone numbers: the numbers the account owns.
package kinds

import (
	"net/url"
	"slices"
	"strings"

	"understudy/internal/slowapi/fake"
	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/world"
)

// Numbers are the phone numbers an account owns.
var Numbers = numberKind()

func numberKind() *world.Kind {
	k := tableKind("incoming_phone_numbers", "PN", 'N', world.OwnNumbers, &table{
		path:    "IncomingPhoneNumbers",
		columns: numberColumns,
		may:     numberFields,
		defaults: map[string]string{
			"EmergencyStatus": "Inactive", "Origin": "twilio", "SmsFallbackMethod": "POST", "SmsMethod": "POST", "StatusCallbackMethod": "POST",
			"VoiceFallbackMethod": "POST", "VoiceMethod": "POST", "VoiceReceiveMode": "voice",
		},
		first: firstNumber,
	},
		world.Filter{Key: "Beta", Read: world.TruthFilter(func(r world.Row) bool { return r.(*TableRow).Field("Beta") == "true" })},
		world.Filter{Key: "FriendlyName", Read: world.TextFilter(func(r world.Row) string { return r.(*TableRow).friendlyName() })},
		world.Filter{Key: "PhoneNumber", Read: world.PatternFilter(func(r world.Row) string { return r.(*TableRow).Field("PhoneNumber") })},
		tableFilter("Origin"),
	)
	k.Create = createNumber
	return k
}

// ownFriendly are the names of the first eight; empty means the number itself.
var ownFriendly = [...]string{"", "Support", "Toll-free line", "Notfälle ☎", "Sales \"EMEA\"", "Büro Köln & Bonn", "On call", ""}

func firstNumber(w *world.World, s *world.Sequence, i int64) map[string]string {
	number := fake.OwnNumber(w.Seed, i)
	fields := map[string]string{
		"PhoneNumber": number, "Type": fake.OwnTypes[i%8], "FriendlyName": ownFriendly[i%8], "AddressSid": addressOf(w, s.Account, i),
		"VoiceUrl": "https://example.com/voice?line=" + number[1:], "SmsUrl": "https://example.com/sms",
	}
	switch i % 8 {
	case 1:
		fields["Origin"] = "hosted"
	case 6:
		fields["Beta"] = "true"
	}
	return fields
}

var numberColumns = []column{
	{"account_sid", accountColumn},
	{"address_requirements", always("none")},
	{"address_sid", textOrNull("AddressSid")},
	{"api_version", always(format.ApiVersion)},
	{"beta", truth("Beta")},
	{"bundle_sid", textOrNull("BundleSid")},
	{"capabilities", capabilities("fax", "mms", "sms", "voice")},
	{"date_created", createdColumn},
	{"date_updated", updatedColumn},
	{"emergency_address_sid", textOrNull("EmergencyAddressSid")},
	{"emergency_address_status", always("unregistered")},
	{"emergency_status", text("EmergencyStatus")},
	{"friendly_name", nameColumn},
	{"identity_sid", textOrNull("IdentitySid")},
	{"origin", text("Origin")},
	{"phone_number", text("PhoneNumber")},
	{"sid", sidColumn},
	{"sms_application_sid", text("SmsApplicationSid")},
	{"sms_fallback_method", text("SmsFallbackMethod")},
	{"sms_fallback_url", text("SmsFallbackUrl")},
	{"sms_method", text("SmsMethod")},
	{"sms_url", text("SmsUrl")},
	{"status", always("in-use")},
	{"status_callback", text("StatusCallback")},
	{"status_callback_method", text("StatusCallbackMethod")},
	{"trunk_sid", textOrNull("TrunkSid")},
	{"type", text("Type")},
	{"uri", uriColumn},
	{"voice_application_sid", textOrNull("VoiceApplicationSid")},
	{"voice_caller_id_lookup", truth("VoiceCallerIdLookup")},
	{"voice_fallback_method", text("VoiceFallbackMethod")},
	{"voice_fallback_url", textOrNull("VoiceFallbackUrl")},
	{"voice_method", text("VoiceMethod")},
	{"voice_receive_mode", text("VoiceReceiveMode")},
	{"voice_url", textOrNull("VoiceUrl")},
}

// DependentColumns are a number's among those that depend on an address.
var DependentColumns = func() (all []column) {
	own := map[string]func(*format.Object, string, *TableRow, *world.World){
		"capabilities": capabilities("MMS", "SMS", "Voice"), "sms_application_sid": textOrNull("SmsApplicationSid"),
	}
	missing := []string{
		"address_sid", "beta", "bundle_sid", "emergency_address_status", "identity_sid", "origin", "status", "type", "voice_receive_mode",
	}
	for _, c := range numberColumns {
		if write := own[c.name]; write != nil {
			c.write = write
		}
		if !slices.Contains(missing, c.name) {
			all = append(all, c)
		}
	}
	return all
}()

// capabilities is what a number can do, under names of either case.
func capabilities(names ...string) func(*format.Object, string, *TableRow, *world.World) {
	return func(o *format.Object, name string, c *TableRow, _ *world.World) {
		north := strings.HasPrefix(c.Field("PhoneNumber"), "+1")
		can := map[string]bool{"mms": north, "sms": north || c.Field("Type") != "local", "voice": true}
		o.Name(name)
		o.Open()
		for _, one := range names {
			o.Truth(one, can[strings.ToLower(one)])
		}
		o.Close()
	}
}

// numberFields are the fields a write may set, each with what it may hold: nil
// means anything, a two-letter word the prefix of a SID.
var numberFields = map[string][]string{
	"FriendlyName": nil, "SmsUrl": nil, "SmsFallbackUrl": nil, "StatusCallback": nil, "VoiceUrl": nil, "VoiceFallbackUrl": nil,
	"SmsMethod": methods, "SmsFallbackMethod": methods, "StatusCallbackMethod": methods, "VoiceMethod": methods,
	"VoiceFallbackMethod": methods,
	"VoiceCallerIdLookup": {"true", "false"}, "VoiceReceiveMode": {"voice", "fax"}, "EmergencyStatus": {"Active", "Inactive"},
	"SmsApplicationSid": {"AP"}, "VoiceApplicationSid": {"AP"}, "AddressSid": {"AD"}, "EmergencyAddressSid": {"AD"},
	"TrunkSid": {"TK"}, "IdentitySid": {"RI"}, "BundleSid": {"BU"},
}

var methods = []string{"GET", "POST"}

// createNumber buys a number, by itself or by its area.
func createNumber(w *world.World, s *world.Sequence, form url.Values) (map[string]string, *format.Refusal) {
	fields, r := readFields(numberFields, form)
	if r != nil {
		return nil, r
	}
	number, area := form.Get("PhoneNumber"), form.Get("AreaCode")
	if number == "" && len(area) == 3 && format.Digits(area) {
		d := fake.RngFor(w.Seed, fake.TagOwn, s.Count()+1000)
		number = string(fake.AppendSubscriber([]byte("+1"+area), &d, 7))
	}
	if !format.IsNumber(number) {
		return nil, format.Refuse(400, 21421, "PhoneNumber is invalid: "+number)
	}
	fields["PhoneNumber"], fields["Type"] = number, sortOf(number)
	return fields, nil
}

// sortOf tells from a number's first digits what sort it is.
func sortOf(number string) string {
	for _, front := range []string{"+1800", "+1833", "+1844", "+1855", "+1866", "+1877", "+1888"} {
		if strings.HasPrefix(number, front) {
			return "toll-free"
		}
	}
	for _, front := range []string{"+447", "+614", "+4915", "+4917"} {
		if strings.HasPrefix(number, front) {
			return "mobile"
		}
	}
	return "local"
}

// ownSID is the SID of one of the numbers the main account began with.
func ownSID(w *world.World, own int64) string {
	return string(w.AppendSID(nil, w.Below[0][Numbers], own))
}
