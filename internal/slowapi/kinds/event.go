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
	Name: "monitor_events", Prefix: "AE", Tag: 0x4145,
	Blank: func() world.Row { return new(event) }, Shape: "event",
	Seed: func(w *world.World, k *world.Kind) *world.Sequence {
		return w.Sequence(k, 0, w.Records/troubled, w.Epoch.Unix(), world.Days*86400)
	},
	Filters: []world.Filter{
		world.TextFilter("ActorSid", (*event).actorSID),
		world.TextFilter("EventType", func(r *event) string { return r.doing().name }),
		{Key: "ResourceSid", Read: eventResourceFilter},
		world.TextFilter("SourceIpAddress", (*event).address),
		{Key: "StartDate", Read: eventDates[2].Read},
		{Key: "EndDate", Read: eventDates[1].Read},
	},
}

// eventDates are "at it", "at its end or earlier" and "at its beginning or later".
var eventDates = world.ClockFilters("Date", true, func(r *event) int64 { return r.at })

// auditEvent is one sort of event: what was done, to what, and what of it changed.
type auditEvent struct {
	name, resource  string
	field           string // what changed, empty for a creation or deletion
	previous, after string
}

var auditEvents = []auditEvent{
	{"account.updated", "account", "friendly_name", "Slow & Steady", "Slow & Steady Telephony"},
	{"phone-number.updated", "phone-number", "voice_url", "https://example.com/old", "https://example.com/voice"},
	{"phone-number.updated", "phone-number", "friendly_name", "Line 2", "Büro Köln & Bonn"},
	{"application.created", "application", "", "", ""},
	{"application.updated", "application", "sms_method", "GET", "POST"},
	{"api-key.created", "api-key", "", "", ""},
	{"api-key.deleted", "api-key", "", "", ""},
}

// event is one event, drawn whole when it is loaded.
type event struct {
	s  *world.Sequence
	i  int64
	at int64

	what, who, from, which int
}

// Load reads the event with an index.
func (e *event) Load(_ *world.World, s *world.Sequence, i int64) {
	d := s.Draw(i)
	*e = event{s: s, i: i, at: s.Created(i), what: d.Below(len(auditEvents)), who: d.Below(6), from: d.Below(20),
		which: d.Below(world.OwnNumbers)}
}

func (e *event) doing() auditEvent { return auditEvents[e.what] }

// actorSID is the user of the event: one of six, in no other record.
func (e *event) actorSID() string {
	return drawHex("US", e.s.Kind.Tag<<8, e.s, int64(e.who))
}

// address is where it was done from, in the range kept for documentation.
func (e *event) address() string { return "203.0.113." + strconv.Itoa(7+e.from) }

// resource is what it was done to, and its path. A key is one that is no more.
func (e *event) resource(w *world.World) (sid, path string) {
	account := w.AccountSID(e.s.Account)
	path = format.Version + "/Accounts/" + account
	switch e.doing().resource {
	case "phone-number":
		sid = ownSID(w, int64(e.which))
		return sid, path + "/IncomingPhoneNumbers/" + sid
	case "application":
		sid = string(w.Cipher.AppendSID(nil, "AP", e.s.Account, tagApplications, int64(e.which%len(allRules()["applications"].First))))
		return sid, path + "/Applications/" + sid
	case "api-key":
		sid = drawHex("SK", e.s.Kind.Tag<<8|1, e.s, int64(e.which))
		return sid, path + "/Keys/" + sid
	}
	return account, path
}

func eventResourceFilter(x *world.Search, value string) (world.Condition, *format.Refusal) {
	return world.Everywhere(func(r world.Row) bool {
		sid, _ := r.(*event).resource(x.W)
		return sid == value
	}), nil
}

// Values are the event as its template shows it.
func (e *event) Values(w *world.World) table.Values {
	does, changes := e.doing(), table.Members{}
	if does.field != "" {
		change := table.Members{{Name: "previous", Value: does.previous}, {Name: "updated", Value: does.after}}
		changes = append(changes, table.Member{Name: does.field, Value: change})
	}
	resource, path := e.resource(w)
	return table.Values{
		"actor": e.actorSID(), "changes": changes, "created": e.at, "type": does.name, "resource": resource, "resource_path": path,
		"resource_type": does.resource, "source": [...]string{"web", "api", "twilio"}[e.i%3], "address": e.address(),
	}
}
