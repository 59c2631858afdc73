// Monitor events: who changed what, from where.
package slowapi

import (
	"strconv"
	"understudy/internal/slowapi/fake"
	"understudy/internal/slowapi/format"
)

var events = &kind{
	name: "monitor_events", key: "events", prefix: "AE", tag: 0x4145,
	blank: func() row { return new(event) },
	seed: func(w *world, k *kind) *sequence {
		return w.sequence(k, 0, w.records/troubled, w.epoch.Unix(), days*86400)
	},
	filters: []filter{
		{key: "ActorSid", read: textFilter(func(r row) string { return r.(*event).actorSID() })},
		{key: "EventType", read: textFilter(func(r row) string { return r.(*event).doing().name })},
		{key: "ResourceSid", read: eventResourceFilter},
		{key: "SourceIpAddress", read: textFilter(func(r row) string { return r.(*event).address() })},
		{key: "StartDate", read: eventDates[2].read},
		{key: "EndDate", read: eventDates[1].read},
	},
}

// eventDates are "at it", "at its end or earlier" and "at its beginning or later".
var eventDates = clockFilters("Date", true, func(r row) int64 { return r.(*event).at })

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
	s    *sequence
	i    int64
	at   int64
	here string

	what, who, from, which int
}

// load reads the event with an index.
func (e *event) Load(_ *world, s *sequence, i int64) {
	d := fake.RngFor(s.seed, s.kind.tag, i)
	*e = event{s: s, i: i, at: s.created(i), what: d.Below(len(auditEvents)), who: d.Below(6), from: d.Below(20), which: d.Below(ownNumbers)}
}

func (e *event) doing() auditEvent { return auditEvents[e.what] }

// actorSID is who did it: one of six, whom nothing else knows of.
func (e *event) actorSID() string {
	d := fake.RngFor(e.s.seed, e.s.kind.tag<<8, int64(e.who))
	return string(d.Hex([]byte("US"), 16))
}

// address is where it was done from, in the range kept for documentation.
func (e *event) address() string { return "203.0.113." + strconv.Itoa(7+e.from) }

// resource is what it was done to, and its path. A key is one that is no more.
func (e *event) resource(w *world) (sid, path string) {
	account := w.accountSID(e.s.account)
	path = format.Version + "/Accounts/" + account
	switch e.doing().resource {
	case "phone-number":
		sid = ownSID(w, int64(e.which))
		return sid, path + "/IncomingPhoneNumbers/" + sid
	case "application":
		sid = string(w.cipher.AppendSID(nil, "AP", e.s.account, tagApplications, int64(e.which%seededApplications)))
		return sid, path + "/Applications/" + sid
	case "api-key":
		d := fake.RngFor(e.s.seed, e.s.kind.tag<<8|1, int64(e.which))
		sid = string(d.Hex([]byte("SK"), 16))
		return sid, path + "/Keys/" + sid
	}
	return account, path
}

func eventResourceFilter(x *search, value string) (condition, *format.Refusal) {
	return everywhere(func(r row) bool {
		sid, _ := r.(*event).resource(x.w)
		return sid == value
	}), nil
}

// append writes the event's row, which is its instance too.
func (e *event) Append(dst []byte, w *world) []byte {
	sid := string(w.appendSID(nil, e.s, e.i))
	account, does := w.accountSID(e.s.account), e.doing()
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
