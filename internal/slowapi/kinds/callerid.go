// Outgoing caller ids: numbers of others that may be shown as the caller's.
package kinds

import (
	"net/http"
	"net/url"
	"strconv"

	"understudy/internal/slowapi/fake"
	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/table"
	"understudy/internal/slowapi/world"
)

// CallerIDs are the caller ids of an account. Their SIDs begin with PN, as those
// of owned numbers do.
var CallerIDs = callerIDKind()

func callerIDKind() *world.Kind {
	l := &settingKind{
		name: "outgoing_caller_ids", prefix: "PN", tag: tagCallerIDs, shape: "caller_id", derive: deriveValidation,
		filters: []world.Filter{fieldFilter("PhoneNumber"), nameFilter},
		draw: func(w *world.World, _ *world.Sequence, i int64, fields map[string]string) {
			fields["PhoneNumber"] = string(fake.AppendPerson(nil, w.Seed, i%w.People))
		},
	}
	k := l.kind()
	// Twilio calls the number and waits for the code; here it counts as verified at once.
	k.Create = func(_ *world.World, _ *world.Sequence, form url.Values) (map[string]string, *format.Refusal) {
		number := form.Get("PhoneNumber")
		if !format.IsNumber(number) {
			return nil, format.Refuse(http.StatusBadRequest, 21401, "Invalid phone number: "+number)
		}
		fields, r := l.rules().read(form)
		if r == nil {
			fields["PhoneNumber"] = number
		}
		return fields, r
	}
	k.Fresh = world.Fresh{Status: http.StatusOK, Shape: "new_caller_id"}
	return k
}

// deriveValidation draws the code and the call that tells it, which is no call of
// this world.
func deriveValidation(_ *world.World, s *world.Sequence, i int64, v table.Values) {
	v["validation_call"] = drawHex("CA", world.TagSecrets<<8|tagCallerIDs, s, i)
	d := fake.RngFor(s.Seed, world.TagSecrets<<16|tagCallerIDs, i)
	v["validation_code"] = strconv.Itoa(100000 + d.Below(900000))
}
