// Outgoing caller ids: verified numbers calls may come from.
package slowapi

import (
	"net/http"
	"net/url"
	"strconv"
)

// Their SIDs begin with PN, as those of owned numbers do.
var callerIDs = callerIDKind()

func callerIDKind() *kind {
	k := cards("outgoing_caller_ids", "PN", tagCallerIDs, 5, &layout{
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
	}, cardFilter("PhoneNumber"), filter{"FriendlyName", textFilter(func(r row) string { return r.(*card).friendlyName() })})
	k.create, k.made = createCallerID, http.StatusOK
	return k
}

func firstCallerID(w *world, _ *sequence, i int64) map[string]string {
	fields := map[string]string{"PhoneNumber": string(w.appendPerson(nil, i%w.people))}
	if i%2 == 1 {
		fields["FriendlyName"] = names[i] + "'s mobile"
	}
	return fields
}

// createCallerID asks for a number to be verified. Twilio calls it and waits for
// the code; here the number counts as verified at once.
func createCallerID(_ *world, _ *sequence, form url.Values) (map[string]string, *refusal) {
	number := form.Get("PhoneNumber")
	if !isNumber(number) {
		return nil, refuse(http.StatusBadRequest, 21401, "Invalid phone number: "+number)
	}
	fields, r := readFields(map[string][]string{"FriendlyName": nil}, form)
	if r == nil {
		fields["PhoneNumber"] = number
	}
	return fields, r
}

// validationCall names the call that tells the code; it is no call of this world.
func validationCall(o *object, name string, c *card, _ *world) {
	d := drawFor(c.s.seed, tagSecrets<<8|tagCallerIDs, c.i)
	o.text(name, string(d.hex([]byte("CA"), 16)))
}

func validationCode(o *object, name string, c *card, _ *world) {
	d := drawFor(c.s.seed, tagSecrets<<16|tagCallerIDs, c.i)
	o.text(name, strconv.Itoa(100000+d.below(900000)))
}

var callerIDRoutes = []route{
	{pattern: "Accounts/*/OutgoingCallerIds", kind: callerIDs},
	{pattern: "Accounts/*/OutgoingCallerIds/*", kind: callerIDs, instance: true},
}
