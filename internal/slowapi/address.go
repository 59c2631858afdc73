// Addresses, and the numbers that depend on one.
package slowapi

import "strings"

var addresses = cards("addresses", "AD", tagAddresses, int64(len(firstAddresses)), &layout{
	path: "Addresses",
	columns: []column{
		{"account_sid", accountColumn},
		{"city", text("City")},
		{"customer_name", text("CustomerName")},
		{"date_created", createdColumn},
		{"date_updated", updatedColumn},
		{"emergency_enabled", truth("EmergencyEnabled")},
		{"friendly_name", text("FriendlyName")},
		{"iso_country", text("IsoCountry")},
		{"postal_code", text("PostalCode")},
		{"region", text("Region")},
		{"sid", sidColumn},
		{"street", text("Street")},
		{"street_secondary", textOrNull("StreetSecondary")},
		{"uri", uriColumn},
		{"validated", truth("Validated")},
		{"verified", truth("Verified")},
	},
	may: map[string][]string{
		"FriendlyName": nil, "CustomerName": nil, "Street": nil, "StreetSecondary": nil, "City": nil, "Region": nil, "PostalCode": nil, "IsoCountry": nil,
		"EmergencyEnabled": truths, "AutoCorrectAddress": truths,
	},
	needs: []string{"CustomerName", "Street", "City", "Region", "PostalCode", "IsoCountry"},
	first: func(_ *world, _ *sequence, i int64) map[string]string {
		fields := map[string]string{}
		for n, name := range []string{"FriendlyName", "CustomerName", "Street", "City", "Region", "PostalCode", "IsoCountry", "EmergencyEnabled", "Validated"} {
			fields[name] = firstAddresses[i][n]
		}
		return fields
	},
},
	cardFilter("CustomerName"), cardFilter("FriendlyName"),
	filter{"EmergencyEnabled", truthFilter(func(r row) bool { return r.(*card).field("EmergencyEnabled") == "true" })},
	cardFilter("IsoCountry"),
)

// firstAddresses are those the main account begins with. Numbers of London and
// Berlin depend on the second and the third.
var firstAddresses = [...][9]string{
	{"Head office", "Slow & Steady Telephony", "1 Snail Lane", "San Francisco", "CA", "94105", "US", "true", "true"},
	{"London", "Slow & Steady Telephony", "12 Tortoise Row", "London", "London", "SE1 7PB", "GB", "false", "true"},
	{"Büro Berlin", "Langsam & Söhne GmbH", "Schneckenstraße 4", "Berlin", "Berlin", "10115", "DE", "false", "false"},
	{"", "Chloé O'Brien", "5 rue de l'Escargot", "Paris", "Île-de-France", "75011", "FR", "false", "false"},
}

// addressOf is the SID of the address one of the first numbers depends on.
func (w *world) addressOf(account int, number int64) string {
	index := map[int64]int64{4: 1, 5: 2}[number%ownNumbers]
	if index == 0 {
		return ""
	}
	return string(w.cipher.appendSID(nil, "AD", account, tagAddresses, index))
}

// dependOn are the numbers that name an address.
func dependOn(w *world, s *sequence, address int64) condition {
	sid := string(w.appendSID(nil, w.below[s.account][addresses], address))
	return everywhere(func(r row) bool {
		n := r.(*number)
		return n.field("AddressSid") == sid || n.field("EmergencyAddressSid") == sid
	})
}

// dependent is a number as it looks among those that depend on an address.
type dependent struct{ n *number }

// append writes its row. There is no instance of it.
func (d dependent) append(dst []byte, w *world) []byte {
	n := d.n
	sid, account := string(w.appendSID(nil, n.s, n.i)), w.accountSID(n.s.account)
	o := object{b: dst}
	o.open()
	o.text("account_sid", account)
	o.text("address_requirements", "none")
	o.text("api_version", apiVersion)
	o.name("capabilities")
	o.open()
	o.truth("MMS", strings.HasPrefix(n.number, "+1"))
	o.truth("SMS", n.sort != "local" || strings.HasPrefix(n.number, "+1"))
	o.truth("Voice", true)
	o.close()
	o.date("date_created", n.s.created(n.i))
	o.date("date_updated", n.updated())
	o.textOrNull("emergency_address_sid", n.field("EmergencyAddressSid"))
	o.text("emergency_status", n.or("EmergencyStatus", "Inactive"))
	o.text("friendly_name", n.field("FriendlyName"))
	o.text("phone_number", n.number)
	o.text("sid", sid)
	o.textOrNull("sms_application_sid", n.field("SmsApplicationSid"))
	o.text("sms_fallback_method", n.or("SmsFallbackMethod", "POST"))
	o.text("sms_fallback_url", n.field("SmsFallbackUrl"))
	o.text("sms_method", n.or("SmsMethod", "POST"))
	o.text("sms_url", n.field("SmsUrl"))
	o.text("status_callback", n.field("StatusCallback"))
	o.text("status_callback_method", n.or("StatusCallbackMethod", "POST"))
	o.textOrNull("trunk_sid", n.field("TrunkSid"))
	o.text("uri", version+"/Accounts/"+account+"/IncomingPhoneNumbers/"+sid+".json")
	o.textOrNull("voice_application_sid", n.field("VoiceApplicationSid"))
	o.truth("voice_caller_id_lookup", n.field("VoiceCallerIdLookup") == "true")
	o.text("voice_fallback_method", n.or("VoiceFallbackMethod", "POST"))
	o.textOrNull("voice_fallback_url", n.field("VoiceFallbackUrl"))
	o.text("voice_method", n.or("VoiceMethod", "POST"))
	o.textOrNull("voice_url", n.field("VoiceUrl"))
	o.close()
	return o.b
}

var addressRoutes = []route{
	{pattern: "Accounts/*/Addresses", kind: addresses},
	{pattern: "Accounts/*/Addresses/*", kind: addresses, instance: true},
	{pattern: "Accounts/*/Addresses/*/DependentPhoneNumbers", kind: numbers, parent: addresses, within: dependOn,
		key: "dependent_phone_numbers", filters: []filter{}, readOnly: true, dress: func(r row, _ string) { r.(*number).dependent = true }},
}
