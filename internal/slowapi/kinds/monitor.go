// The Monitor API: alerts and audit events.
package kinds

import (
	"strconv"

	"understudy/internal/slowapi/fake"
	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/table"
	"understudy/internal/slowapi/world"
)

// Alerts are the alerts of the Monitor API. The filter ResourceSid is not in Twilio's documentation, but Logrole uses it.
var Alerts = &world.Kind{
	Name: "alerts", Prefix: "NO", Tag: 0x4e4c, Generate: generateAlert, Shape: "alert",
	Count: countIncidents,
	// An alert is created two seconds after the call or message it is about.
	CreationTime: func(s *world.Sequence, i int64) int64 {
		of, subject, _ := alertSubject(s, i)
		return min(of.CreationTime(subject)+2, s.Newest)
	},
	Filters: []world.Filter{
		world.TextFilter("LogLevel", "log_level"),
		{Key: "StartDate", Read: limitToMonth(createdFilters[2].Read)},
		{Key: "EndDate", Read: limitToMonth(createdFilters[1].Read)},
		world.TextFilter("ResourceSid", "subject"),
	},
	Arrives: true,
}

// alertSubject returns the call or message that an alert is about, and the random numbers for the other values of the alert. A
// seeded alert is about one of 50 calls or one of 100 messages of its time. These are never among the last fifth, so that
// alerts have the same order as their subjects. An alert that was created later is about any seeded call or message.
func alertSubject(s *world.Sequence, i int64) (of *world.Sequence, subject int64, d fake.Rng) {
	d = s.Random(i)
	of, each := s.Siblings[Calls], int64(1)
	if d.IntBelow(3) == 0 {
		of, each = s.Siblings[Messages], 2
	}
	subject = (i*callsPerIncident + int64(d.IntBelow(callsPerIncident-10))) * each
	if i >= s.SeededCount {
		subject = int64(d.Next() % uint64(of.SeededCount))
	}
	return of, subject, d
}

// limitToMonth returns a filter that refuses a range of more than 30 days. Without EndDate, the range ends now.
// According to Twilio's documentation, older alerts cannot be queried; the response to such a query is not
// documented. The quirk range-forgiven permits it.
func limitToMonth(read func(*world.Request, string) (world.Condition, *format.Answer)) func(*world.Request, string) (world.Condition,
	*format.Answer) {
	return func(x *world.Request, value string) (world.Condition, *format.Answer) {
		from, begins := format.ParseDate(x.Query.Given["StartDate"].Value)
		to, ends := format.ParseDate(x.Query.Given["EndDate"].Value)
		last := x.World.Now().Unix()
		if ends {
			last = to.From
		}
		if begins && last/86400-from.From/86400 > 30 && !x.Quirks[world.RangeForgiven] {
			return world.Condition{}, format.NewInvalid("The range from StartDate to EndDate must not be longer than 30 days")
		}
		return read(x, value)
	}
}

// generateAlert computes the values of an alert. A single alert has more of them than an alert in a list.
func generateAlert(w *world.World, s *world.Sequence, i int64) table.Values {
	of, subject, d := alertSubject(s, i)
	v := generateIncident(w, of, subject, d)
	if v["created"] = s.CreationTime(i); i%4 == 0 {
		v["text"] = v["sentence"]
	}
	return v
}

// Events are the audit events of the Monitor API.
var Events = &world.Kind{
	Name: "monitor_events", Prefix: "AE", Tag: 0x4145, Generate: generateEvent, Shape: "event",
	Count: countIncidents,
	Filters: []world.Filter{
		world.TextFilter("ActorSid", "actor"), world.TextFilter("EventType", "type"), world.TextFilter("ResourceSid", "resource"),
		world.TextFilter("SourceIpAddress", "address"),
		{Key: "StartDate", Read: createdFilters[2].Read},
		{Key: "EndDate", Read: createdFilters[1].Read},
	},
}

// createdFilters are the filters for events of a day, for events until the end of a day, and for events since its beginning.
var createdFilters = world.TimeFilters("Date", true, "created")

// generateEvent computes the values of an event. Its actor is one of six users who occur nowhere else. Its IP address
// is reserved for documentation (RFC 5737). Its API key is not one of the account's keys.
func generateEvent(w *world.World, s *world.Sequence, i int64) table.Values {
	d := s.Random(i)
	all := incidents().Events
	does, who, from, which := all[d.IntBelow(len(all))], d.IntBelow(6), d.IntBelow(20), int64(d.IntBelow(world.OwnNumbers))
	account := w.AccountSID(s.Account)
	resource, path := account, format.Version+"/Accounts/"+account
	switch does.To {
	case "phone-number":
		resource = ownSID(w, which)
		path += "/IncomingPhoneNumbers/" + resource
	case "application":
		one := which % int64(len(allRules()["applications"].First))
		resource = string(w.Cipher.AppendSID(nil, "AP", s.Account, tagApplications, one))
		path += "/Applications/" + resource
	case "api-key":
		resource = generateHex("SK", s.Kind.Tag<<8|1, s, which)
		path += "/Keys/" + resource
	}
	changes := table.Members{}
	if does.Field != "" {
		changes = table.Members{{Name: does.Field, Value: table.Members{{Name: "previous", Value: does.Old}, {Name: "updated", Value: does.New}}}}
	}
	return table.Values{
		"actor": generateHex("US", s.Kind.Tag<<8, s, int64(who)), "changes": changes, "created": s.CreationTime(i), "type": does.Type,
		"resource": resource, "resource_path": path, "resource_type": does.To, "source": [...]string{"web", "api", "twilio"}[i%3],
		"address": "203.0.113." + strconv.Itoa(7+from),
	}
}
