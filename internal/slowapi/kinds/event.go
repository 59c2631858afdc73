// Monitor events: who changed what, from where.
package kinds

import (
	"strconv"

	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/table"
	"understudy/internal/slowapi/world"
)

// Events are the audit events of the Monitor API.
var Events = &world.Kind{
	Name: "monitor_events", Prefix: "AE", Tag: 0x4145, Draw: drawEvent, Shape: "event",
	Seed: func(w *world.World, k *world.Kind) *world.Sequence {
		return w.Sequence(k, 0, w.Records/troubled, w.Epoch.Unix(), world.Days*86400)
	},
	Filters: []world.Filter{
		world.TextFilter("ActorSid", "actor"), world.TextFilter("EventType", "type"), world.TextFilter("ResourceSid", "resource"),
		world.TextFilter("SourceIpAddress", "address"),
		{Key: "StartDate", Read: createdFilters[2].Read},
		{Key: "EndDate", Read: createdFilters[1].Read},
	},
}

// createdFilters are "at it", "at its end or earlier" and "at its beginning or later".
var createdFilters = world.ClockFilters("Date", true, "created")

// auditEvents are the sorts of event: what was done, to what, and what of it changed from
// what to what; nothing did in a creation or deletion.
var auditEvents = [][5]string{
	{"account.updated", "account", "friendly_name", "Slow & Steady", "Slow & Steady Telephony"},
	{"phone-number.updated", "phone-number", "voice_url", "https://example.com/old", "https://example.com/voice"},
	{"phone-number.updated", "phone-number", "friendly_name", "Line 2", "Büro Köln & Bonn"},
	{"application.created", "application"},
	{"application.updated", "application", "sms_method", "GET", "POST"},
	{"api-key.created", "api-key"},
	{"api-key.deleted", "api-key"},
}

// drawEvent draws an event. Its user is one of six, in no other record. It was done from the
// range of addresses that is kept for documentation, and a key it was done to is one that is no more.
func drawEvent(w *world.World, s *world.Sequence, i int64) table.Values {
	d := s.Draw(i)
	does, who, from, which := auditEvents[d.Below(len(auditEvents))], d.Below(6), d.Below(20), int64(d.Below(world.OwnNumbers))
	account := w.AccountSID(s.Account)
	resource, path := account, format.Version+"/Accounts/"+account
	switch does[1] {
	case "phone-number":
		resource = ownSID(w, which)
		path += "/IncomingPhoneNumbers/" + resource
	case "application":
		one := which % int64(len(allRules()["applications"].First))
		resource = string(w.Cipher.AppendSID(nil, "AP", s.Account, tagApplications, one))
		path += "/Applications/" + resource
	case "api-key":
		resource = drawHex("SK", s.Kind.Tag<<8|1, s, which)
		path += "/Keys/" + resource
	}
	changes := table.Members{}
	if does[2] != "" {
		changes = table.Members{{Name: does[2], Value: table.Members{{Name: "previous", Value: does[3]}, {Name: "updated", Value: does[4]}}}}
	}
	return table.Values{
		"actor": drawHex("US", s.Kind.Tag<<8, s, int64(who)), "changes": changes, "created": s.Created(i), "type": does[0],
		"resource": resource, "resource_path": path, "resource_type": does[1], "source": [...]string{"web", "api", "twilio"}[i%3],
		"address": "203.0.113." + strconv.Itoa(7+from),
	}
}
