// How a call looks: its row, which is its instance too.
package kinds

import (
	"strconv"

	"understudy/internal/slowapi/fake"
	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/table"
	"understudy/internal/slowapi/world"
)

// Values are the call as its template shows it.
func (c *Call) Values(w *world.World) table.Values {
	from, to := string(c.From.AppendTo(nil, w.Seed)), string(c.To.AppendTo(nil, w.Seed))
	d := c.Progress.Rest
	v := table.Values{
		// These draw, in this order.
		"answered_by": c.answeredBy(&d), "caller_name": c.callerName(&d), "forwarded_from": c.forwardedFrom(w, &d),
		"group_sid": rareSID("GP", 33, &d), "queue_time": queueTime(&d), "trunk_sid": rareSID("TK", 100, &d),

		"created": c.Progress.Created, "updated": c.Progress.Updated(), "start": c.Start, "end": c.End, "status": c.Progress.Status(),
		"direction": c.Direction, "from": from, "from_formatted": format.Formatted(from), "to": to, "to_formatted": format.Formatted(to),
		"price": c.price(w),
	}
	if c.End != 0 {
		v["duration"] = strconv.FormatInt(c.Duration(), 10)
	}
	if c.parent {
		v["parent"] = w.SID(c.S, c.I-1)
	}
	if c.own >= 0 {
		v["number"] = ownSID(w, c.own)
	}
	return v
}

// Duration is how long the two talked, in seconds; nothing when it was not answered.
func (c *Call) Duration() int64 {
	answered := c.Progress.Reached("in-progress")
	if answered == 0 || c.End == 0 {
		return 0
	}
	return max(c.End-answered, 0)
}

// price is for begun minutes, once the step after the final state is reached.
func (c *Call) price(w *world.World) string {
	if text, set := c.S.Form(c.I, world.EditedPrice); set {
		return text
	}
	if !c.settled() {
		return ""
	}
	return format.Money(c.charge(w))
}

// charge is the price of a call by its rate.
func (c *Call) charge(w *world.World) int64 {
	rate := int64(850)
	if c.Direction != "inbound" {
		rate = 1400
		if c.To.Text == "" && !c.To.Own {
			rate = fake.HomeOf(w.Seed, c.To.Index).Cents
		}
	}
	return rate * max((c.Duration()+59)/60, 1)
}

func (c *Call) answeredBy(d *fake.Rng) string {
	pick := d.Below(100)
	switch {
	case c.Direction != "outbound-api" || c.Progress.Reached("in-progress") == 0 || pick >= 30:
		return ""
	case pick < 24:
		return "human"
	}
	return "machine_start"
}

func (c *Call) callerName(d *fake.Rng) string {
	pick, name := d.Below(100), d.Below(len(fake.Names()))
	if c.Direction != "inbound" || pick >= 15 {
		return ""
	}
	return fake.Names()[name]
}

func (c *Call) forwardedFrom(w *world.World, d *fake.Rng) string {
	pick, person := d.Below(100), fake.Somebody(d, w.People)
	if c.Direction != "inbound" || pick >= 5 {
		return ""
	}
	return string(person.AppendTo(nil, w.Seed))
}

// rareSID names something outside this world for one record in so many.
func rareSID(prefix string, oneIn int, d *fake.Rng) string {
	if d.Below(oneIn) != 0 {
		d.Next()
		d.Next()
		return ""
	}
	return string(d.Hex([]byte(prefix), 16))
}

func queueTime(d *fake.Rng) string {
	if d.Below(12) != 0 {
		return "0"
	}
	return strconv.Itoa(d.Below(4000))
}
