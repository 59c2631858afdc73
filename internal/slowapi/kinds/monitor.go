// The Monitor API: alerts, and events of who changed what from where.
package kinds

import (
	"strconv"

	"understudy/internal/slowapi/fake"
	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/table"
	"understudy/internal/slowapi/world"
)

// Alerts are the alerts of the Monitor API. Twilio does not document ResourceSid; Logrole uses it.
var Alerts = &world.Kind{
	Name: "alerts", Prefix: "NO", Tag: 0x4e4c, Generate: drawAlert, Shape: "alert",
	Count: countTroubles,
	// Each comes two seconds after what it is of.
	CreationTime: func(s *world.Sequence, i int64) int64 {
		of, subject, _ := alerted(s, i)
		return min(of.CreationTime(subject)+2, s.Newest)
	},
	Filters: []world.Filter{
		world.TextFilter("LogLevel", "log_level"),
		{Key: "StartDate", Read: monthLong(createdFilters[2].Read)},
		{Key: "EndDate", Read: monthLong(createdFilters[1].Read)},
		world.TextFilter("ResourceSid", "subject"),
	},
	Arrives: true,
}

// alerted draws what an alert is of: one of the hundred messages or fifty calls that came
// when it did; one made by an advance is of any of them. The last ten calls of fifty have
// none, so that the order of calls and messages is that of their alerts. d decides on the rest.
func alerted(s *world.Sequence, i int64) (of *world.Sequence, subject int64, d fake.Rng) {
	d = s.Random(i)
	of, each := s.Siblings[Calls], int64(1)
	if d.IntBelow(3) == 0 {
		of, each = s.Siblings[Messages], 2
	}
	subject = (i*troubled + int64(d.IntBelow(troubled-10))) * each
	if i >= s.SeededCount {
		subject = int64(d.Next() % uint64(of.SeededCount))
	}
	return of, subject, d
}

// monthLong refuses a range of more than 30 days, to now where EndDate is
// missing. Twilio says of both dates that queries for alerts older than 30 days
// are not supported, not what becomes of them; the quirk range-forgiven answers.
func monthLong(read func(*world.Request, string) (world.Condition, *format.Answer)) func(*world.Request, string) (world.Condition,
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

// drawAlert draws an alert: alone it says more than in a list.
func drawAlert(w *world.World, s *world.Sequence, i int64) table.Values {
	of, subject, d := alerted(s, i)
	v := drawIncident(w, of, subject, d)
	if v["created"] = s.CreationTime(i); i%4 == 0 {
		v["text"] = v["sentence"]
	}
	return v
}

// Events are the audit events of the Monitor API.
var Events = &world.Kind{
	Name: "monitor_events", Prefix: "AE", Tag: 0x4145, Generate: drawEvent, Shape: "event",
	Count: countTroubles,
	Filters: []world.Filter{
		world.TextFilter("ActorSid", "actor"), world.TextFilter("EventType", "type"), world.TextFilter("ResourceSid", "resource"),
		world.TextFilter("SourceIpAddress", "address"),
		{Key: "StartDate", Read: createdFilters[2].Read},
		{Key: "EndDate", Read: createdFilters[1].Read},
	},
}

// createdFilters are "at it", "at its end or earlier" and "at its beginning or later".
var createdFilters = world.TimeFilters("Date", true, "created")

// drawEvent draws an event. Its user is one of six, in no other record. It was done from the
// range of addresses that is kept for documentation, and a key it was done to is one that is no more.
func drawEvent(w *world.World, s *world.Sequence, i int64) table.Values {
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
		resource = drawHex("SK", s.Kind.Tag<<8|1, s, which)
		path += "/Keys/" + resource
	}
	changes := table.Members{}
	if does.Field != "" {
		changes = table.Members{{Name: does.Field, Value: table.Members{{Name: "previous", Value: does.Old}, {Name: "updated", Value: does.New}}}}
	}
	return table.Values{
		"actor": drawHex("US", s.Kind.Tag<<8, s, int64(who)), "changes": changes, "created": s.CreationTime(i), "type": does.Type,
		"resource": resource, "resource_path": path, "resource_type": does.To, "source": [...]string{"web", "api", "twilio"}[i%3],
		"address": "203.0.113." + strconv.Itoa(7+from),
	}
}
