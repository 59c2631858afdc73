// How a call looks: its row, which is its instance too.
package kinds

import (
	"strconv"

	"understudy/internal/slowapi/fake"
	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/world"
)

// Made turns the call into what its creation answers: without dates, as
// Twilio answers before the call is under way.
func (c *Call) Made() { c.justMade = true }

// Append writes the call's row, which is its instance too.
func (c *Call) Append(dst []byte, w *world.World) []byte {
	var from, to [64]byte
	fromText := string(c.From.AppendTo(from[:0], w.Seed))
	toText := string(c.To.AppendTo(to[:0], w.Seed))
	sid := string(w.AppendSID(nil, c.S, c.I))
	account := w.AccountSID(c.S.Account)
	base := format.Version + "/Accounts/" + account + "/Calls/" + sid
	d := c.rest
	p := &c.Progress
	created, updated := p.Created, p.Updated()
	if c.justMade {
		created, updated = 0, 0
	}

	o := format.Object{B: dst}
	o.Open()
	o.Text("account_sid", account)
	o.TextOrNull("answered_by", c.answeredBy(&d))
	o.Text("api_version", format.ApiVersion)
	o.TextOrNull("caller_name", c.callerName(&d))
	o.Date("date_created", created)
	o.Date("date_updated", updated)
	o.Text("direction", c.Direction)
	c.appendDuration(&o)
	o.Date("end_time", c.End)
	o.TextOrNull("forwarded_from", c.forwardedFrom(w, &d))
	o.Text("from", fromText)
	o.Text("from_formatted", format.Formatted(fromText))
	o.TextOrNull("group_sid", rareSID("GP", 33, &d))
	if c.parent {
		o.Text("parent_call_sid", string(w.AppendSID(nil, c.S, c.I-1)))
	} else {
		o.Null("parent_call_sid")
	}
	if c.own >= 0 {
		o.Text("phone_number_sid", ownSID(w, c.own))
	} else {
		o.Null("phone_number_sid")
	}
	o.TextOrNull("price", c.price(w))
	o.Text("price_unit", "USD")
	o.Text("queue_time", queueTime(&d))
	o.Text("sid", sid)
	o.Date("start_time", c.Start)
	o.Text("status", p.Status())
	o.Name("subresource_uris")
	o.Open()
	for _, sub := range callSubresources {
		o.Text(sub[0], base+sub[1])
	}
	o.Close()
	o.Text("to", toText)
	o.Text("to_formatted", format.Formatted(toText))
	o.TextOrNull("trunk_sid", rareSID("TK", 100, &d))
	o.Text("uri", base+".json")
	o.Close()
	return o.B
}

var callSubresources = [][2]string{
	{"notifications", "/Notifications.json"},
	{"recordings", "/Recordings.json"},
	{"payments", "/Payments.json"},
	{"events", "/Events.json"},
	{"siprec", "/Siprec.json"},
	{"streams", "/Streams.json"},
	{"transcriptions", "/Transcriptions.json"},
	{"user_defined_message_subscriptions", "/UserDefinedMessageSubscriptions.json"},
	{"user_defined_messages", "/UserDefinedMessages.json"},
}

func (c *Call) appendDuration(o *format.Object) {
	if c.End == 0 {
		o.Null("duration")
		return
	}
	o.Text("duration", strconv.FormatInt(c.Duration(), 10))
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
	pick, name := d.Below(100), d.Below(len(fake.Names))
	if c.Direction != "inbound" || pick >= 15 {
		return ""
	}
	return fake.Names[name]
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
