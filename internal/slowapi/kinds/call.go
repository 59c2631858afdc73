// Calls: who called whom, how it went, what was asked about it, and how a row of them looks.
package kinds

import (
	_ "embed"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"understudy/internal/slowapi/fake"
	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/table"
	"understudy/internal/slowapi/world"
)

// Calls are the calls of an account.
var Calls = &world.Kind{
	Name: "calls", Prefix: "CA", Tag: 'C', Generate: drawCall, Value: peekCall, Shape: "call",
	Count:     func(w *world.World) int64 { return w.Records },
	Lifecycle: callLife,
	Filters: slices.Concat(
		[]world.Filter{
			partyFilter("To", func(r *world.Row) fake.Party { return readCall(r.World, r.Sequence, r.Index).to }),
			partyFilter("From", func(r *world.Row) fake.Party { return readCall(r.World, r.Sequence, r.Index).from }),
			{Key: "ParentCallSid", Read: parentFilter},
			world.TextFilter("Status", "status"),
		},
		world.TimeFilters("StartTime", false, "start"), world.TimeFilters("EndTime", false, "end"),
	),
	Writes: world.Writes{Create: createCall, Update: updateCall, CanDelete: true}, Arrives: true,
	Edits: world.Edits{Finals: []string{"completed", "busy", "failed", "no-answer", "canceled"}},
}

// call is who called whom, read from the seed and the call's mark.
type call struct {
	progress  world.Progress
	direction string
	from, to  fake.Party
	own       int64 // which of our numbers it went over, -1 for none
	isChild   bool  // the call before it is its parent
}

// roles within every five neighbours: one inbound call with one child after it.
const (
	alone = iota
	parent
	child
)

func callRole(seed uint64, i int64) int {
	d := fake.RngFor(seed, tagRoles, i/5)
	place := 1 + int64(d.IntBelow(4))
	switch i % 5 {
	case place:
		return child
	case place - 1:
		return parent
	}
	return alone
}

// ways are what can become of a record, each with the luck below which it does.
type ways []struct {
	Below int
	Plan  []string
}

// pick returns the plan of a luck.
func (all ways) pick(luck int) []string {
	for _, way := range all {
		if luck < way.Below {
			return way.Plan
		}
	}
	return nil
}

//go:embed lives.json
var rawLives []byte

// lives are what becomes of calls and messages. An inbound call rings first, any other is queued
// first; 3 % of all never start.
var lives = format.DecodeEmbedded[*struct {
	InboundCalls, OutboundCalls      ways // of 10,000
	Received, WhatsApp, ByAPI, Sent  ways // of 1000
	Scheduled, ForService, Delivered []string
}](rawLives)

// lasting is how many seconds a record stays in a state.
type lasting struct {
	status  string
	seconds int64
}

// spend returns how long each state of a plan lasts; those that are not named last so long as any other.
func spend(plan []string, other int64, named ...lasting) (dwell [8]int64) {
	for i, status := range plan {
		dwell[i] = other
		for _, one := range named {
			if one.status == status {
				dwell[i] = one.seconds
				break
			}
		}
	}
	return dwell
}

// callLife draws what a call goes through. A parent is answered. Most calls are short, few are long.
func callLife(s *world.Sequence, i int64) world.Progress {
	d := s.Random(i)
	role, luck, side := callRole(s.Seed, i), d.IntBelow(10000), d.IntBelow(100)
	plan := lives().OutboundCalls.pick(luck)
	switch {
	case s.IsCreatedByWrite(i):
		plan = lives().OutboundCalls.pick(9999)
	case role == parent:
		plan = lives().InboundCalls.pick(9999)
	case role == alone && side < 55:
		plan = lives().InboundCalls.pick(luck)
	}
	talk := int64(5 + min(d.IntBelow(600), d.IntBelow(600)))
	if d.IntBelow(50) == 0 {
		talk = int64(600 + d.IntBelow(3000))
	}
	ring, wait, bill := int64(2+d.IntBelow(24)), int64(1+d.IntBelow(3)), int64(5+d.IntBelow(55))
	dwell := spend(plan, bill, lasting{"queued", wait}, lasting{"ringing", ring}, lasting{"in-progress", talk})
	return world.Progress{Plan: plan, Dwell: dwell, Rest: d}
}

// readCall reads a call that a write created, or draws who called whom.
func readCall(w *world.World, s *world.Sequence, i int64) (c call) {
	role := callRole(s.Seed, i)
	c.own, c.progress, c.direction = -1, s.Progress(i), "outbound-api"
	if s.IsCreatedByWrite(i) {
		form := s.History[i].Fields
		c.to, c.from = fake.Party{Given: true, Text: form["To"]}, fake.Party{Given: true, Text: form["From"]}
		for own := range int64(world.OwnNumbers) {
			if fake.OwnNumber(w.Seed, own) == c.from.Text {
				c.own = own
			}
		}
		return c
	}
	d := &c.progress.Rest
	c.own = int64(d.IntBelow(world.OwnNumbers))
	us, them := fake.Party{Own: true, Index: c.own}, fake.PickPerson(d, w.People)
	odd, which := d.IntBelow(200), d.Next()
	c.from, c.to, c.isChild = us, them, role == child && !s.IsCreatedByWrite(i-1)
	switch {
	case c.progress.Plan[0] == "ringing":
		c.direction, c.from, c.to = "inbound", them, us
		if odd == 0 {
			c.from.Text = "+266696687" // how Twilio shows a hidden caller
		}
	case role == child:
		c.direction = "outbound-dial"
		if odd < 6 {
			c.to.Text = "client:" + clients[which%uint64(len(clients))]
		}
	case odd == 0:
		c.to.Text = "sip:desk" + strconv.FormatUint(which%40, 10) + "@pbx.example.com"
	}
	return c
}

var clients = []string{"support_anna", "support_bela", "nightshift", "sales.desk", "ops-1"}

// peekCall returns what most filters ask of a call, and nil for anything else.
func peekCall(_ *world.World, s *world.Sequence, i int64, name string) any {
	p := s.Progress(i)
	switch start, end := callTimes(&p); name {
	case "status":
		return p.Status()
	case "start":
		return start
	case "end":
		return end
	}
	return nil
}

// callTimes returns when a call started and ended. One that went from the queue to its end
// never started.
func callTimes(p *world.Progress) (start, end int64) {
	start = p.StatusTime("in-progress")
	last := p.Status()
	over := last == "completed" || last == "busy" || last == "no-answer" || last == "failed" || last == "canceled"
	if start == 0 && over {
		start = p.StatusTime("ringing")
	}
	if start != 0 && over {
		end = p.StatusTime(last)
	}
	return start, end
}

// createCall reads what POST to Calls asks for.
func createCall(_ *world.World, _ *world.Sequence, form url.Values) (map[string]string, *format.Answer) {
	to, from := form.Get("To"), form.Get("From")
	switch {
	case to == "":
		return nil, format.Refuse(http.StatusBadRequest, 21201, "No 'To' number is specified")
	case from == "":
		return nil, format.Refuse(http.StatusBadRequest, 21213, "No 'From' number is specified")
	case !callable(to):
		return nil, format.Refuse(http.StatusBadRequest, 21211, "Invalid 'To' Phone Number: "+to)
	case !callable(from):
		return nil, format.Refuse(http.StatusBadRequest, 21212, "Invalid 'From' Phone Number: "+from)
	}
	return map[string]string{"To": to, "From": from}, nil
}

// callable tells whether one may call it: a number in E.164, or anything else
// that does not pretend to be one (client:, sip:, short codes).
func callable(party string) bool {
	return len(party) <= 256 && (party[0] != '+' || format.IsNumber(party))
}

// updateCall reads what POST to a call asks for: to end it, or to go on with
// other instructions, which no row shows.
func updateCall(_ *world.World, s *world.Sequence, i int64, form url.Values) (map[string]string, []string, *format.Answer) {
	p := s.Progress(i)
	begun := p.StatusTime("in-progress") != 0
	over := p.Status() == p.Plan[p.FinalStep()]
	switch status := form.Get("Status"); {
	case status != "" && status != "canceled" && status != "completed":
		return nil, nil, format.Refuse(http.StatusBadRequest, 21218, "Status is not valid: "+status)
	case over:
		return nil, nil, format.Refuse(http.StatusBadRequest, 21220, "Call is not in-progress. Cannot redirect.")
	case status == "canceled" && begun:
		return nil, nil, format.Refuse(http.StatusBadRequest, 21220, "Call is in-progress. Cannot cancel.")
	case status == "canceled":
		return nil, []string{"canceled"}, nil
	case status == "completed":
		return nil, []string{"completed", "completed"}, nil
	}
	return nil, nil, nil
}

// partyFilter asks for one side of a call or message.
func partyFilter(key string, party func(*world.Row) fake.Party) world.Filter {
	return world.Filter{Key: key, Read: func(_ *world.Request, value string) (world.Condition, *format.Answer) {
		return world.NewCondition(func(r *world.Row) bool { p := party(r); return p.Is(r.World.Seed, value) }), nil
	}}
}

// parentFilter asks for the children of a call; they stand within five of it.
func parentFilter(x *world.Request, value string) (world.Condition, *format.Answer) {
	index, ok := x.World.Find(x.Sequence, value)
	if !ok {
		return nothing, nil
	}
	return world.Condition{Test: func(r *world.Row) bool { return r.Value("parent") == value }, Lo: index, Hi: index + 5}, nil
}

// drawCall draws a call: the rest of it in this order. Its price appears with the step after
// the final state.
func drawCall(w *world.World, s *world.Sequence, i int64) table.Values {
	c := readCall(w, s, i)
	start, end := callTimes(&c.progress)
	from, to := c.from.Name(w.Seed), c.to.Name(w.Seed)
	d, price := c.progress.Rest, ""
	if text, set := s.WrittenValue(i, world.EditedPrice); set {
		price = text
	} else if c.progress.IsPriced() {
		price = format.Money(c.charge(w))
	}
	v := table.Values{
		"created": c.progress.Created, "updated": c.progress.UpdateTime(), "start": start, "end": end, "status": c.progress.Status(),
		"direction": c.direction, "from": from, "from_formatted": format.DisplayNumber(from), "to": to, "to_formatted": format.DisplayNumber(to),
		"price": price, "queue_time": "0",
	}
	if pick := d.IntBelow(100); c.direction == "outbound-api" && c.progress.StatusTime("in-progress") != 0 && pick < 30 {
		v["answered_by"] = map[bool]string{true: "human", false: "machine_start"}[pick < 24]
	}
	if pick, name := d.IntBelow(100), d.IntBelow(len(fake.Names())); c.direction == "inbound" && pick < 15 {
		v["caller_name"] = fake.Names()[name]
	}
	if pick, person := d.IntBelow(100), fake.PickPerson(&d, w.People); c.direction == "inbound" && pick < 5 {
		v["forwarded_from"] = person.Name(w.Seed)
	}
	v["group_sid"] = rareSID("GP", 33, &d)
	if d.IntBelow(12) == 0 {
		v["queue_time"] = strconv.Itoa(d.IntBelow(4000))
	}
	v["trunk_sid"] = rareSID("TK", 100, &d)
	if end != 0 {
		v["duration"] = strconv.FormatInt(c.duration(), 10)
	}
	if c.isChild {
		v["parent"] = w.SID(s, i-1)
	}
	if c.own >= 0 {
		v["number"] = ownSID(w, c.own)
	}
	return v
}

// duration returns how long the two talked, in seconds; 0 when nobody answered.
func (c *call) duration() int64 {
	_, end := callTimes(&c.progress)
	answered := c.progress.StatusTime("in-progress")
	if answered == 0 || end == 0 {
		return 0
	}
	return max(end-answered, 0)
}

// charge returns the price of a call: its rate for each begun minute.
func (c *call) charge(w *world.World) int64 {
	rate := int64(850)
	if c.direction != "inbound" {
		rate = 1400
		if c.to.Text == "" && !c.to.Own {
			rate = fake.HomeOf(w.Seed, c.to.Index).Cents
		}
	}
	return rate * max((c.duration()+59)/60, 1)
}

// rareSID names something outside this world for one record in so many.
func rareSID(prefix string, oneIn int, d *fake.Rng) string {
	if d.IntBelow(oneIn) != 0 {
		d.Next()
		d.Next()
		return ""
	}
	return string(d.Hex([]byte(prefix), 16))
}
