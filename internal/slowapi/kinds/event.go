// Monitor events: who changed what, from where.
package kinds

import (
	"strconv"

	"understudy/internal/slowapi/fake"
	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/world"
)

// Events are the audit events of the Monitor API.
var Events = &world.Kind{
	Name: "monitor_events", Key: "events", Prefix: "AE", Tag: 0x4145,
	Blank: func() world.Row { return new(event) },
	Seed: func(w *world.World, k *world.Kind) *world.Sequence {
		return w.Sequence(k, 0, w.Records/troubled, w.Epoch.Unix(), world.Days*86400)
	},
	Filters: []world.Filter{
		{Key: "ActorSid", Read: world.TextFilter(func(r world.Row) string { return r.(*event).actorSID() })},
		{Key: "EventType", Read: world.TextFilter(func(r world.Row) string { return r.(*event).doing().name })},
		{Key: "ResourceSid", Read: eventResourceFilter},
		{Key: "SourceIpAddress", Read: world.TextFilter(func(r world.Row) string { return r.(*event).address() })},
		{Key: "StartDate", Read: eventDates[2].Read},
		{Key: "EndDate", Read: eventDates[1].Read},
	},
}

// eventDates are "at it", "at its end or earlier" and "at its beginning or later".
var eventDates = world.ClockFilters("Date", true, func(r world.Row) int64 { return r.(*event).at })

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
	s    *world.Sequence
	i    int64
	at   int64
	here string

	what, who, from, which int
}

// Load reads the event with an index.
func (e *event) Load(_ *world.World, s *world.Sequence, i int64) {
	d := fake.RngFor(s.Seed, s.Kind.Tag, i)
	*e = event{s: s, i: i, at: s.Created(i), what: d.Below(len(auditEvents)), who: d.Below(6), from: d.Below(20),
		which: d.Below(world.OwnNumbers)}
}

func (e *event) doing() auditEvent { return auditEvents[e.what] }

// actorSID is the user of the event: one of six, in no other record.
func (e *event) actorSID() string {
	d := fake.RngFor(e.s.Seed, e.s.Kind.Tag<<8, int64(e.who))
	return string(d.Hex([]byte("US"), 16))
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
		sid = string(w.Cipher.AppendSID(nil, "AP", e.s.Account, tagApplications, int64(e.which%seededApplications)))
		return sid, path + "/Applications/" + sid
	case "api-key":
		d := fake.RngFor(e.s.Seed, e.s.Kind.Tag<<8|1, int64(e.which))
		sid = string(d.Hex([]byte("SK"), 16))
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

// Append writes the event's row, which is its instance too.
func (e *event) Append(dst []byte, w *world.World) []byte {
	sid := string(w.AppendSID(nil, e.s, e.i))
	account, does := w.AccountSID(e.s.Account), e.doing()
	resource, path := e.resource(w)

	o := format.Object{B: dst}
	o.Open()
	o.Text("account_sid", account)
	o.Text("actor_sid", e.actorSID())
	o.Text("actor_type", "user")
	o.Null("description")
	o.Name("event_data")
	o.Open()
	if does.field != "" {
		o.Name(does.field)
		o.Open()
		o.Text("previous", does.previous)
		o.Text("updated", does.after)
		o.Close()
	}
	o.Close()
	o.Stamp("event_date", e.at)
	o.Text("event_type", does.name)
	o.Name("links")
	o.Open()
	o.Text("actor", e.here+format.Version+"/Accounts/"+account)
	o.Text("resource", e.here+path)
	o.Close()
	o.Text("resource_sid", resource)
	o.Text("resource_type", does.resource)
	o.Text("sid", sid)
	o.Text("source", [...]string{"web", "api", "twilio"}[e.i%3])
	o.Text("source_ip_address", e.address())
	o.Text("url", e.here+format.MonitorVersion+"/Events/"+sid)
	o.Close()
	return o.B
}
