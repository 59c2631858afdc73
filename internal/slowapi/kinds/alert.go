// Alerts of the Monitor API.
package kinds

import (
	"understudy/internal/slowapi/fake"
	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/table"
	"understudy/internal/slowapi/world"
)

// Alerts are the alerts of the Monitor API. Twilio does not document ResourceSid; Logrole uses it.
var Alerts = &world.Kind{
	Name: "alerts", Prefix: "NO", Tag: 0x4e4c, Draw: drawAlert, Shape: "alert",
	Seed: seedAlerts,
	Filters: []world.Filter{
		world.TextFilter("LogLevel", "log_level"),
		{Key: "StartDate", Read: monthLong(createdFilters[2].Read)},
		{Key: "EndDate", Read: monthLong(createdFilters[1].Read)},
		world.TextFilter("ResourceSid", "subject"),
	},
	Arrives: true,
}

// seedAlerts dates each alert two seconds after what it is of.
func seedAlerts(w *world.World, k *world.Kind) *world.Sequence {
	s := w.Sequence(k, 0, w.Records/troubled, w.Epoch.Unix(), 0)
	s.At = func(i int64) int64 {
		of, subject, _ := alerted(w, s, i)
		return min(of.Created(subject)+2, s.Newest)
	}
	return s
}

// alerted draws what an alert is of: one of the hundred messages or fifty calls that came
// when it did; one made by an advance is of any of them. The last ten calls of fifty have
// none, so that the order of calls and messages is that of their alerts. d decides on the rest.
func alerted(w *world.World, s *world.Sequence, i int64) (of *world.Sequence, subject int64, d fake.Rng) {
	d = s.Draw(i)
	of, each := w.Below[s.Account][Calls], int64(1)
	if d.Below(3) == 0 {
		of, each = w.Below[s.Account][Messages], 2
	}
	subject = (i*troubled + int64(d.Below(troubled-10))) * each
	if i >= s.Base {
		subject = int64(d.Next() % uint64(of.Base))
	}
	return of, subject, d
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

// drawAlert draws an alert: alone it says more than in a list.
func drawAlert(w *world.World, s *world.Sequence, i int64) table.Values {
	of, subject, d := alerted(w, s, i)
	c := sceneOf(w, of, subject, d)
	v := c.values()
	v["created"], v["text"] = s.Created(i), c.text()
	if i%4 == 0 {
		v["text"] = c.sentence()
	}
	return v
}
