// Alerts of the Monitor API.
package kinds

import (
	"understudy/internal/slowapi/fake"
	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/table"
	"understudy/internal/slowapi/world"
)

// Alerts are the alerts of the Monitor API.
var Alerts = &world.Kind{
	Name: "alerts", Prefix: "NO", Tag: 0x4e4c,
	Blank: func() world.Row { return new(alert) }, Shape: "alert",
	Seed: seedAlerts,
	Filters: []world.Filter{
		world.TextFilter("LogLevel", func(r *alert) string { return r.trouble().Level }),
		{Key: "StartDate", Read: monthLong(alertDates[2].Read)},
		{Key: "EndDate", Read: monthLong(alertDates[1].Read)},
		{Key: "ResourceSid", Read: resourceFilter},
	},
	Arrives: true,
}

// alertDates are "at it", "at its end or earlier" and "at its beginning or later".
var alertDates = world.ClockFilters("Date", true, func(r *alert) int64 { return r.at })

// alert is one alert. It is of one of the hundred messages or fifty calls that
// came when it did; one made by an advance is of any of them.
type alert struct {
	s       *world.Sequence
	i       int64
	at      int64
	d       fake.Rng
	message bool
	subject int64
}

// seedAlerts dates each alert two seconds after what it is of.
func seedAlerts(w *world.World, k *world.Kind) *world.Sequence {
	s := w.Sequence(k, 0, w.Records/troubled, w.Epoch.Unix(), 0)
	s.At = func(i int64) int64 {
		a := alert{s: s, i: i}
		a.find(w)
		return min(a.of(w).Created(a.subject)+2, s.Newest)
	}
	return s
}

// find draws what the alert is of. The last ten calls of fifty have none, so
// that the order of calls and messages is that of their alerts.
func (a *alert) find(w *world.World) {
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
func (a *alert) of(w *world.World) *world.Sequence {
	if a.message {
		return w.Below[a.s.Account][Messages]
	}
	return w.Below[a.s.Account][Calls]
}

// Load reads the alert with an index.
func (a *alert) Load(w *world.World, s *world.Sequence, i int64) {
	*a = alert{s: s, i: i, at: s.Created(i)}
	a.find(w)
}

// trouble is what it is about.
func (a *alert) trouble() incident {
	d, all := a.d, incidents().Calls
	if a.message {
		all = incidents().Messages
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
		a := r.(*alert)
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

// Values are the alert as its templates show it: alone it says more than in a list.
func (a *alert) Values(w *world.World) table.Values {
	c := callScene
	if a.message {
		c = messageScene
	}
	of := c(w, a.of(w), a.subject, a.d)
	v := of.values()
	v["created"], v["text"] = a.at, of.text()
	if a.i%4 == 0 {
		v["text"] = of.sentence()
	}
	return v
}
