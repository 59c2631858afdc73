// Addresses, and the numbers that depend on one.
package slowapi

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
		n := r.(*card)
		return n.field("AddressSid") == sid || n.field("EmergencyAddressSid") == sid
	})
}

var addressRoutes = []route{
	{pattern: "Accounts/*/Addresses", kind: addresses},
	{pattern: "Accounts/*/Addresses/*", kind: addresses, instance: true},
	{pattern: "Accounts/*/Addresses/*/DependentPhoneNumbers", kind: numbers, parent: addresses, within: dependOn,
		key: "dependent_phone_numbers", filters: []filter{}, readOnly: true,
		dress: func(r row, _ string) { r.(*card).shown = dependentColumns }},
}
