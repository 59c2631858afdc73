// Incoming phone numbers: the numbers the account owns.
package slowapi

import (
	"net/url"
	"strings"
)

var numbers = &kind{
	name: "incoming_phone_numbers", prefix: "PN", tag: 'N',
	blank: func() row { return new(number) },
	seed: func(w *world, k *kind) *sequence {
		return w.sequence(k, 0, ownNumbers, w.epoch.Unix()-(days+1)*86400, 300*86400)
	},
	filters: []filter{
		{"Beta", truthFilter(func(r row) bool { return r.(*number).beta })},
		{"FriendlyName", textFilter(func(r row) string { return r.(*number).field("FriendlyName") })},
		{"PhoneNumber", patternFilter(func(r row) string { return r.(*number).number })},
		{"Origin", textFilter(func(r row) string { return r.(*number).origin })},
	},
	create: createNumber, update: updateNumber, remove: true,
}

// number is one owned number.
type number struct {
	s      *sequence
	i      int64
	number string
	sort   string // local, mobile or toll-free
	beta   bool
	origin string
	fields map[string]string // what is set, by the name of the form field

	dependent bool // shown among those that depend on an address
}

// ownFriendly are the names of the first eight; empty means the number itself.
var ownFriendly = [...]string{"", "Support", "Toll-free line", "Notfälle ☎", "Sales \"EMEA\"", "Büro Köln & Bonn", "On call", ""}

// load reads the number with an index.
func (n *number) load(w *world, s *sequence, i int64) {
	*n = number{s: s, i: i, number: ownNumber(w.seed, i), sort: ownTypes[i%8], origin: "twilio"}
	n.beta, n.fields = i%8 == 6, map[string]string{}
	if i%8 == 1 {
		n.origin = "hosted"
	}
	if m := s.marks[i]; m != nil && m.written {
		n.number, n.sort, n.beta, n.origin = m.form["PhoneNumber"], m.form["Type"], false, "twilio"
	} else {
		n.fields["FriendlyName"] = ownFriendly[i%8]
		n.fields["VoiceUrl"] = "https://example.com/voice?line=" + n.number[1:]
		n.fields["SmsUrl"] = "https://example.com/sms"
		n.fields["AddressSid"] = w.addressOf(s.account, i)
	}
	if m := s.marks[i]; m != nil {
		for field, value := range m.form {
			n.fields[field] = value
		}
	}
	if n.fields["FriendlyName"] == "" {
		n.fields["FriendlyName"] = formatted(n.number)
	}
}

func (n *number) field(name string) string { return n.fields[name] }

// or is a field's value, or what stands there when it is not set.
func (n *number) or(name, otherwise string) string {
	if value := n.fields[name]; value != "" {
		return value
	}
	return otherwise
}

// updated is when the number was last written to.
func (n *number) updated() int64 {
	created := n.s.created(n.i)
	if m := n.s.marks[n.i]; m != nil {
		return max(created, m.touched)
	}
	return created
}

// append writes the number's row, which is its instance too.
func (n *number) append(dst []byte, w *world) []byte {
	if n.dependent {
		return dependent{n}.append(dst, w)
	}
	sid := string(w.appendSID(nil, n.s, n.i))
	account := w.accountSID(n.s.account)

	o := object{b: dst}
	o.open()
	o.text("account_sid", account)
	o.text("address_requirements", "none")
	o.textOrNull("address_sid", n.field("AddressSid"))
	o.text("api_version", apiVersion)
	o.truth("beta", n.beta)
	o.textOrNull("bundle_sid", n.field("BundleSid"))
	o.name("capabilities")
	o.open()
	o.truth("fax", false)
	o.truth("mms", strings.HasPrefix(n.number, "+1"))
	o.truth("sms", n.sort != "local" || strings.HasPrefix(n.number, "+1"))
	o.truth("voice", true)
	o.close()
	o.date("date_created", n.s.created(n.i))
	o.date("date_updated", n.updated())
	o.textOrNull("emergency_address_sid", n.field("EmergencyAddressSid"))
	o.text("emergency_address_status", "unregistered")
	o.text("emergency_status", n.or("EmergencyStatus", "Inactive"))
	o.text("friendly_name", n.field("FriendlyName"))
	o.textOrNull("identity_sid", n.field("IdentitySid"))
	o.text("origin", n.origin)
	o.text("phone_number", n.number)
	o.text("sid", sid)
	o.text("sms_application_sid", n.field("SmsApplicationSid"))
	o.text("sms_fallback_method", n.or("SmsFallbackMethod", "POST"))
	o.text("sms_fallback_url", n.field("SmsFallbackUrl"))
	o.text("sms_method", n.or("SmsMethod", "POST"))
	o.text("sms_url", n.field("SmsUrl"))
	o.text("status", "in-use")
	o.text("status_callback", n.field("StatusCallback"))
	o.text("status_callback_method", n.or("StatusCallbackMethod", "POST"))
	o.textOrNull("trunk_sid", n.field("TrunkSid"))
	o.text("type", n.sort)
	o.text("uri", version+"/Accounts/"+account+"/IncomingPhoneNumbers/"+sid+".json")
	o.textOrNull("voice_application_sid", n.field("VoiceApplicationSid"))
	o.truth("voice_caller_id_lookup", n.field("VoiceCallerIdLookup") == "true")
	o.text("voice_fallback_method", n.or("VoiceFallbackMethod", "POST"))
	o.textOrNull("voice_fallback_url", n.field("VoiceFallbackUrl"))
	o.text("voice_method", n.or("VoiceMethod", "POST"))
	o.text("voice_receive_mode", n.or("VoiceReceiveMode", "voice"))
	o.textOrNull("voice_url", n.field("VoiceUrl"))
	o.close()
	return o.b
}

// numberFields are the fields a write may set, each with what it may hold: nil
// means anything, a two-letter word the prefix of a SID.
var numberFields = map[string][]string{
	"FriendlyName": nil, "SmsUrl": nil, "SmsFallbackUrl": nil, "StatusCallback": nil, "VoiceUrl": nil, "VoiceFallbackUrl": nil,
	"SmsMethod": methods, "SmsFallbackMethod": methods, "StatusCallbackMethod": methods, "VoiceMethod": methods, "VoiceFallbackMethod": methods,
	"VoiceCallerIdLookup": {"true", "false"}, "VoiceReceiveMode": {"voice", "fax"}, "EmergencyStatus": {"Active", "Inactive"},
	"SmsApplicationSid": {"AP"}, "VoiceApplicationSid": {"AP"}, "AddressSid": {"AD"}, "EmergencyAddressSid": {"AD"},
	"TrunkSid": {"TK"}, "IdentitySid": {"RI"}, "BundleSid": {"BU"},
}

var methods = []string{"GET", "POST"}

// createNumber buys a number, by itself or by its area.
func createNumber(w *world, s *sequence, form url.Values) (map[string]string, *refusal) {
	fields, r := readFields(numberFields, form)
	if r != nil {
		return nil, r
	}
	number, area := form.Get("PhoneNumber"), form.Get("AreaCode")
	if number == "" && len(area) == 3 && digits(area) {
		d := drawFor(w.seed, tagOwn, s.count()+1000)
		number = string(appendSubscriber([]byte("+1"+area), &d, 7))
	}
	if !isNumber(number) {
		return nil, refuse(400, 21421, "PhoneNumber is invalid: "+number)
	}
	fields["PhoneNumber"], fields["Type"] = number, sortOf(number)
	return fields, nil
}

func updateNumber(_ *world, _ *sequence, _ int64, form url.Values) (map[string]string, []string, *refusal) {
	fields, r := readFields(numberFields, form)
	return fields, nil, r
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
