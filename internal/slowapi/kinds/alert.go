// Alerts of the Monitor API.
package kinds

import (
	"strconv"

	"understudy/internal/slowapi/fake"
	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/world"
)

// Alerts are the alerts of the Monitor API.
var Alerts = &world.Kind{
	Name: "alerts", Prefix: "NO", Tag: 0x4e4c,
	Blank: func() world.Row { return new(Alert) },
	Seed:  seedAlerts,
	Filters: []world.Filter{
		{Key: "LogLevel", Read: world.TextFilter(func(r world.Row) string { return r.(*Alert).trouble().level })},
		{Key: "StartDate", Read: monthLong(alertDates[2].Read)},
		{Key: "EndDate", Read: monthLong(alertDates[1].Read)},
		{Key: "ResourceSid", Read: resourceFilter},
	},
	Arrives: true,
}

// alertDates are "at it", "at its end or earlier" and "at its beginning or later".
var alertDates = world.ClockFilters("Date", true, func(r world.Row) int64 { return r.(*Alert).at })

// Alert is one alert. It is of one of the hundred messages or fifty calls that
// came when it did; one made by an advance is of any of them.
type Alert struct {
	s       *world.Sequence
	i       int64
	at      int64
	d       fake.Rng
	message bool
	subject int64
	Here    string
	Whole   bool
}

// seedAlerts dates each alert two seconds after what it is of.
func seedAlerts(w *world.World, k *world.Kind) *world.Sequence {
	s := w.Sequence(k, 0, w.Records/troubled, w.Epoch.Unix(), 0)
	s.At = func(i int64) int64 {
		a := Alert{s: s, i: i}
		a.find(w)
		return min(a.of(w).Created(a.subject)+2, s.Newest)
	}
	return s
}

// find draws what the alert is of. The last ten calls of fifty have none, so
// that the order of calls and messages is that of their alerts.
func (a *Alert) find(w *world.World) {
	a.d = fake.RngFor(w.Seed, a.s.Kind.Tag, a.i)
	a.message = a.d.Below(3) == 0
	place, each := int64(a.d.Below(troubled-10)), int64(1)
	if a.message {
		each = 2
	}
	a.subject = (a.i*troubled + place) * each
	if a.i >= a.s.Base {
		a.subject = int64(a.d.Next() % uint64(a.of(w).Base))
	}
}

// of is the sequence the alert's subject stands in.
func (a *Alert) of(w *world.World) *world.Sequence {
	if a.message {
		return w.Below[a.s.Account][Messages]
	}
	return w.Below[a.s.Account][Calls]
}

// Load reads the alert with an index.
func (a *Alert) Load(w *world.World, s *world.Sequence, i int64) {
	*a = Alert{s: s, i: i, at: s.Created(i)}
	a.find(w)
}

// trouble is what it is about.
func (a *Alert) trouble() incident {
	d, all := a.d, callIncidents
	if a.message {
		all = messageIncidents
	}
	return all[d.Below(len(all))]
}

// resourceFilter asks for the alerts of one call or message. Twilio does not
// document it; Logrole uses it.
func resourceFilter(x *world.Search, value string) (world.Condition, *format.Refusal) {
	own := x.W.Below[x.S.Account]
	call, isCall := x.W.Find(own[Calls], value)
	message, isMessage := x.W.Find(own[Messages], value)
	return world.Everywhere(func(r world.Row) bool {
		a := r.(*Alert)
		return a.message && isMessage && a.subject == message || !a.message && isCall && a.subject == call
	}), nil
}

// monthLong refuses a range of more than 30 days, to now where EndDate is
// missing. Twilio says of both dates that queries for alerts older than 30 days
// are not supported, not what becomes of them; the quirk range-forgiven answers.
func monthLong(read func(*world.Search, string) (world.Condition, *format.Refusal)) func(*world.Search, string) (world.Condition,
	*format.Refusal) {
	return func(x *world.Search, value string) (world.Condition, *format.Refusal) {
		from, begins := format.ParseDate(x.Q.Given["StartDate"].Value)
		to, ends := format.ParseDate(x.Q.Given["EndDate"].Value)
		last := x.W.Now().Unix()
		if ends {
			last = to.From
		}
		if begins && last/86400-from.From/86400 > 30 && !x.Quirks.On(world.RangeForgiven) {
			return world.Condition{}, format.Invalid("The range from StartDate to EndDate must not be longer than 30 days")
		}
		return read(x, value)
	}
}

// Append writes the alert's row, or its instance, which says more.
func (a *Alert) Append(dst []byte, w *world.World) []byte {
	var c scene
	if a.message {
		c = messageScene(w, a.of(w), a.subject, a.d)
	} else {
		c = callScene(w, a.of(w), a.subject, a.d)
	}
	sid := string(w.AppendSID(nil, a.s, a.i))
	text := c.text()
	if a.i%4 == 0 {
		text = c.sentence()
	}

	o := format.Object{B: dst}
	o.Open()
	o.Text("account_sid", c.account)
	o.Text("alert_text", text)
	o.Text("api_version", format.ApiVersion)
	o.Stamp("date_created", a.at)
	o.Stamp("date_generated", a.at)
	o.Stamp("date_updated", a.at)
	o.Text("error_code", strconv.FormatInt(c.trouble.code, 10))
	o.Text("log_level", c.trouble.level)
	o.Text("more_info", c.moreInfo())
	o.TextOrNull("request_method", c.method())
	o.Text("request_url", c.url())
	if a.Whole {
		o.Text("request_headers", c.requestHeaders())
		o.Text("request_variables", c.variables())
		o.Text("response_body", c.responseBody())
		o.Text("response_headers", c.responseHeaders())
	}
	o.Text("resource_sid", c.sid)
	o.TextOrNull("service_sid", c.service)
	o.Text("sid", sid)
	o.Text("url", a.Here+format.MonitorVersion+"/Alerts/"+sid)
	o.Close()
	return o.B
}

// EventHere tells an event where this server is.
func EventHere(r world.Row, here string) { r.(*event).here = here }
