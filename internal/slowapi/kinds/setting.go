// Settings: addresses, applications, keys and caller ids, which are set by hand.
package kinds

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"understudy/internal/slowapi/fake"
	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/world"
)

// Addresses are the addresses of an account.
var Addresses = tableKind("addresses", "AD", tagAddresses, int64(len(firstAddresses)), &table{
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
		"FriendlyName": nil, "CustomerName": nil, "Street": nil, "StreetSecondary": nil, "City": nil, "Region": nil, "PostalCode": nil,
		"IsoCountry":       nil,
		"EmergencyEnabled": truths, "AutoCorrectAddress": truths,
	},
	needs: []string{"CustomerName", "Street", "City", "Region", "PostalCode", "IsoCountry"},
	first: func(_ *world.World, _ *world.Sequence, i int64) map[string]string {
		fields := map[string]string{}
		for n, name := range []string{"FriendlyName", "CustomerName", "Street", "City", "Region", "PostalCode", "IsoCountry", "EmergencyEnabled",
			"Validated"} {
			fields[name] = firstAddresses[i][n]
		}
		return fields
	},
},
	tableFilter("CustomerName"), tableFilter("FriendlyName"),
	world.Filter{Key: "EmergencyEnabled", Read: world.TruthFilter(func(r world.Row) bool {
		return r.(*TableRow).Field("EmergencyEnabled") == "true"
	})},
	tableFilter("IsoCountry"),
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
func addressOf(w *world.World, account int, number int64) string {
	index := map[int64]int64{4: 1, 5: 2}[number%world.OwnNumbers]
	if index == 0 {
		return ""
	}
	return string(w.Cipher.AppendSID(nil, "AD", account, tagAddresses, index))
}

// DependOn are the numbers that name an address.
func DependOn(w *world.World, s *world.Sequence, address int64) world.Condition {
	sid := string(w.AppendSID(nil, w.Below[s.Account][Addresses], address))
	return world.Everywhere(func(r world.Row) bool {
		n := r.(*TableRow)
		return n.Field("AddressSid") == sid || n.Field("EmergencyAddressSid") == sid
	})
}

// seededApplications is how many the main account begins with.
const seededApplications = 6

// Applications are the applications of an account.
var Applications = tableKind("applications", "AP", tagApplications, seededApplications, &table{
	path: "Applications",
	columns: []column{
		{"account_sid", accountColumn},
		{"api_version", text("ApiVersion")},
		{"date_created", createdColumn},
		{"date_updated", updatedColumn},
		{"friendly_name", text("FriendlyName")},
		{"message_status_callback", textOrNull("MessageStatusCallback")},
		{"public_application_connect_enabled", truth("PublicApplicationConnectEnabled")},
		{"sid", sidColumn},
		{"sms_fallback_method", text("SmsFallbackMethod")},
		{"sms_fallback_url", textOrNull("SmsFallbackUrl")},
		{"sms_method", text("SmsMethod")},
		{"sms_status_callback", textOrNull("SmsStatusCallback")},
		{"sms_url", textOrNull("SmsUrl")},
		{"status_callback", textOrNull("StatusCallback")},
		{"status_callback_method", text("StatusCallbackMethod")},
		{"uri", uriColumn},
		{"voice_caller_id_lookup", truth("VoiceCallerIdLookup")},
		{"voice_fallback_method", text("VoiceFallbackMethod")},
		{"voice_fallback_url", textOrNull("VoiceFallbackUrl")},
		{"voice_method", text("VoiceMethod")},
		{"voice_url", textOrNull("VoiceUrl")},
	},
	may: map[string][]string{
		"FriendlyName": nil, "ApiVersion": {"2008-08-01", format.ApiVersion},
		"VoiceUrl": nil, "VoiceFallbackUrl": nil, "StatusCallback": nil, "SmsUrl": nil, "SmsFallbackUrl": nil, "SmsStatusCallback": nil,
		"MessageStatusCallback": nil,
		"VoiceMethod":           methods, "VoiceFallbackMethod": methods, "StatusCallbackMethod": methods, "SmsMethod": methods,
		"SmsFallbackMethod":   methods,
		"VoiceCallerIdLookup": truths, "PublicApplicationConnectEnabled": truths,
	},
	defaults: map[string]string{
		"ApiVersion": format.ApiVersion, "VoiceMethod": "POST", "VoiceFallbackMethod": "POST", "StatusCallbackMethod": "POST",
		"SmsMethod":         "POST",
		"SmsFallbackMethod": "POST",
	},
	first: firstApplication,
}, tableFilter("FriendlyName"))

var truths = []string{"true", "false"}

var applicationNames = [seededApplications]string{"Switchboard", "Night desk", "Browser phone", "Survey <v2>", "Rückruf & Termine",
	"IVR \"old\""}

func firstApplication(_ *world.World, _ *world.Sequence, i int64) map[string]string {
	name := applicationNames[i]
	fields := map[string]string{"FriendlyName": name, "VoiceUrl": "https://hooks.example.com/app/voice?name=" + format.Encode(name)}
	if i%2 == 0 {
		fields["SmsUrl"], fields["SmsMethod"] = "https://hooks.example.com/app/sms", "GET"
		fields["StatusCallback"] = "https://hooks.example.com/app/status"
	}
	if i == 2 {
		fields["VoiceCallerIdLookup"], fields["PublicApplicationConnectEnabled"] = "true", "true"
	}
	return fields
}

var (
	ApiKeys     = tableKind("keys", "SK", tagKeys, 3, &keyLayout)
	SigningKeys = tableKind("signing_keys", "SK", tagSigningKeys, 2, &keyLayout)
)

var keyLayout = table{
	columns: keyColumns,
	fresh:   slices.Concat(keyColumns, []column{{"secret", secretColumn}}),
	may:     map[string][]string{"FriendlyName": nil},
	first: func(_ *world.World, _ *world.Sequence, i int64) map[string]string {
		return map[string]string{"FriendlyName": [...]string{"reports", "Nightly <backup>", ""}[i]}
	},
}

var keyColumns = []column{
	{"date_created", createdColumn},
	{"date_updated", updatedColumn},
	{"friendly_name", text("FriendlyName")},
	{"sid", sidColumn},
}

// secretColumn writes a real secret, 32 letters and digits, as Twilio does; it
// opens nothing here.
func secretColumn(o *format.Object, name string, c *TableRow, _ *world.World) {
	d := fake.RngFor(c.s.Seed, world.TagSecrets<<8|c.s.Kind.Tag, c.i)
	o.Text(name, string(d.Hex(nil, 16)))
}

// Their SIDs begin with PN, as those of owned numbers do.
var CallerIDs = callerIDKind()

func callerIDKind() *world.Kind {
	k := tableKind("outgoing_caller_ids", "PN", tagCallerIDs, 5, &table{
		path: "OutgoingCallerIds",
		columns: []column{
			{"account_sid", accountColumn},
			{"date_created", createdColumn},
			{"date_updated", updatedColumn},
			{"friendly_name", nameColumn},
			{"phone_number", text("PhoneNumber")},
			{"sid", sidColumn},
			{"uri", uriColumn},
		},
		fresh: []column{
			{"account_sid", accountColumn},
			{"call_sid", validationCall},
			{"friendly_name", nameColumn},
			{"phone_number", text("PhoneNumber")},
			{"validation_code", validationCode},
		},
		may:   map[string][]string{"FriendlyName": nil},
		first: firstCallerID,
	}, tableFilter("PhoneNumber"), world.Filter{Key: "FriendlyName",
		Read: world.TextFilter(func(r world.Row) string { return r.(*TableRow).friendlyName() })})
	k.Create, k.Made = createCallerID, http.StatusOK
	return k
}

func firstCallerID(w *world.World, _ *world.Sequence, i int64) map[string]string {
	fields := map[string]string{"PhoneNumber": string(fake.AppendPerson(nil, w.Seed, i%w.People))}
	if i%2 == 1 {
		fields["FriendlyName"] = fake.Names[i] + "'s mobile"
	}
	return fields
}

// createCallerID asks for a number to be verified. Twilio calls it and waits for
// the code; here the number counts as verified at once.
func createCallerID(_ *world.World, _ *world.Sequence, form url.Values) (map[string]string, *format.Refusal) {
	number := form.Get("PhoneNumber")
	if !format.IsNumber(number) {
		return nil, format.Refuse(http.StatusBadRequest, 21401, "Invalid phone number: "+number)
	}
	fields, r := readFields(map[string][]string{"FriendlyName": nil}, form)
	if r == nil {
		fields["PhoneNumber"] = number
	}
	return fields, r
}

// validationCall names the call that tells the code; it is no call of this world.
func validationCall(o *format.Object, name string, c *TableRow, _ *world.World) {
	d := fake.RngFor(c.s.Seed, world.TagSecrets<<8|tagCallerIDs, c.i)
	o.Text(name, string(d.Hex([]byte("CA"), 16)))
}

func validationCode(o *format.Object, name string, c *TableRow, _ *world.World) {
	d := fake.RngFor(c.s.Seed, world.TagSecrets<<16|tagCallerIDs, c.i)
	o.Text(name, strconv.Itoa(100000+d.Below(900000)))
}
