// Calls: their parties, statuses, filters and writes.
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
	Name: "calls", Prefix: "CA", Tag: 'C', Generate: generateCall, Value: callValue, Shape: "call",
	Count:     func(w *world.World) int64 { return w.Records },
	Lifecycle: callLifecycle,
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

// call has the parties and the current status of a call. They are computed from the seed and from the changes to the call.
type call struct {
	progress  world.Progress
	direction string
	from, to  fake.Party
	own       int64 // the index of the account's own phone number that was used; -1 if none was
	isChild   bool  // whether the call is a child of the call with the index before
}

// The roles of calls. Of every five consecutive calls, one is an inbound parent call, and the next is its child.
const (
	roleAlone = iota
	roleParent
	roleChild
)

func callRole(seed uint64, i int64) int {
	d := fake.RngFor(seed, tagRoles, i/5)
	place := 1 + int64(d.IntBelow(4))
	switch i % 5 {
	case place:
		return roleChild
	case place - 1:
		return roleParent
	}
	return roleAlone
}

// outcomes are the possible sequences of statuses of a record, with their probabilities.
type outcomes []struct {
	Below int      // the sequence is chosen if a random number is below this and not below the limits before
	Plan  []string // the statuses of the record in their order
}

// pick returns the sequence of statuses for a random number.
func (all outcomes) pick(luck int) []string {
	for _, way := range all {
		if luck < way.Below {
			return way.Plan
		}
	}
	return nil
}

//go:embed lives.json
var rawLives []byte

// lifecycles are the possible sequences of statuses of calls and messages. An inbound call begins with ringing, and
// any other call with queued. 3 % of all calls never start.
var lifecycles = format.DecodeEmbedded[*struct {
	InboundCalls, OutboundCalls      outcomes // the outcomes are chosen by random numbers below 10,000
	Received, WhatsApp, ByAPI, Sent  outcomes // the outcomes are chosen by random numbers below 1000
	Scheduled, ForService, Delivered []string
}](rawLives)

// stateDuration says how many seconds a record stays in a status.
type stateDuration struct {
	status  string
	seconds int64
}

// stateDurations returns how many seconds each status of a plan lasts. A status that is not among named lasts other seconds.
func stateDurations(plan []string, other int64, named ...stateDuration) (dwell [8]int64) {
	for i, status := range plan {
		dwell[i] = other
		for _, n := range named {
			if n.status == status {
				dwell[i] = n.seconds
				break
			}
		}
	}
	return dwell
}

// callLifecycle computes the statuses of a call and how long they last. A parent call is always answered. Most calls
// are short, and a few are long.
func callLifecycle(s *world.Sequence, i int64) world.Progress {
	d := s.Random(i)
	role, luck, side := callRole(s.Seed, i), d.IntBelow(10000), d.IntBelow(100)
	plan := lifecycles().OutboundCalls.pick(luck)
	switch {
	case s.IsCreatedByWrite(i):
		plan = lifecycles().OutboundCalls.pick(9999)
	case role == roleParent:
		plan = lifecycles().InboundCalls.pick(9999)
	case role == roleAlone && side < 55:
		plan = lifecycles().InboundCalls.pick(luck)
	}
	talk := int64(5 + min(d.IntBelow(600), d.IntBelow(600)))
	if d.IntBelow(50) == 0 {
		talk = int64(600 + d.IntBelow(3000))
	}
	ring, wait, bill := int64(2+d.IntBelow(24)), int64(1+d.IntBelow(3)), int64(5+d.IntBelow(55))
	dwell := stateDurations(plan, bill, stateDuration{"queued", wait}, stateDuration{"ringing", ring}, stateDuration{"in-progress", talk})
	return world.Progress{Plan: plan, SecondsPerStep: dwell, Random: d}
}

// readCall returns a call. If a write created the call, its parties come from the write, otherwise from the seed.
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
	d := &c.progress.Random
	c.own = int64(d.IntBelow(world.OwnNumbers))
	us, them := fake.Party{Own: true, Index: c.own}, fake.PickPerson(d, w.People)
	odd, which := d.IntBelow(200), d.Next()
	c.from, c.to, c.isChild = us, them, role == roleChild && !s.IsCreatedByWrite(i-1)
	switch {
	case c.progress.Plan[0] == "ringing":
		c.direction, c.from, c.to = "inbound", them, us
		if odd == 0 {
			c.from.Text = "+266696687" // the number that Twilio shows for an anonymous caller
		}
	case role == roleChild:
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

// callValue returns the status or a time of a call, because most filters need one of these. It returns nil for all
// other values.
func callValue(_ *world.World, s *world.Sequence, i int64, name string) any {
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

// callTimes returns when a call started and ended, in Unix seconds. Both are 0 for a call that was
// queued and ended without ringing.
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

// createCall parses the form of a POST that creates a call.
func createCall(_ *world.World, _ *world.Sequence, form url.Values) (map[string]string, *format.Answer) {
	to, from := form.Get("To"), form.Get("From")
	switch {
	case to == "":
		return nil, format.Refuse(http.StatusBadRequest, 21201, "No 'To' number is specified")
	case from == "":
		return nil, format.Refuse(http.StatusBadRequest, 21213, "No 'From' number is specified")
	case !isCallable(to):
		return nil, format.Refuse(http.StatusBadRequest, 21211, "Invalid 'To' Phone Number: "+to)
	case !isCallable(from):
		return nil, format.Refuse(http.StatusBadRequest, 21212, "Invalid 'From' Phone Number: "+from)
	}
	return map[string]string{"To": to, "From": from}, nil
}

// isCallable reports whether a text can be called: a number in E.164, or a name that does not begin with a plus sign
// (client:, sip:, short codes).
func isCallable(party string) bool {
	return len(party) <= 256 && (party[0] != '+' || format.IsNumber(party))
}

// updateCall parses the form of a POST to a call. Such a POST can end the call. It can also continue the call with
// other instructions, which no record shows.
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

// partyFilter returns a filter for the sender or the receiver of a call or message.
func partyFilter(key string, party func(*world.Row) fake.Party) world.Filter {
	return world.Filter{Key: key, Read: func(_ *world.Request, value string) (world.Condition, *format.Answer) {
		return world.NewCondition(func(r *world.Row) bool { p := party(r); return p.Is(r.World.Seed, value) }), nil
	}}
}

// parentFilter parses the SID of a parent call. The indexes of the call's children are at most 5 higher than its own.
func parentFilter(x *world.Request, value string) (world.Condition, *format.Answer) {
	index, ok := x.World.Find(x.Sequence, value)
	if !ok {
		return matchNone, nil
	}
	return world.Condition{Test: func(r *world.Row) bool { return r.Value("parent") == value }, Lo: index, Hi: index + 5}, nil
}

// generateCall computes the values of a call. The order in which it takes random numbers must not change, because
// tests compare the responses. The price appears at the step after the final status.
func generateCall(w *world.World, s *world.Sequence, i int64) table.Values {
	c := readCall(w, s, i)
	start, end := callTimes(&c.progress)
	from, to := c.from.Name(w.Seed), c.to.Name(w.Seed)
	d, price := c.progress.Random, ""
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

// duration returns the time from the answer to the end of a call, in seconds. It returns 0 if nobody answered.
func (c *call) duration() int64 {
	_, end := callTimes(&c.progress)
	answered := c.progress.StatusTime("in-progress")
	if answered == 0 || end == 0 {
		return 0
	}
	return max(end-answered, 0)
}

// charge returns the price of a call in hundred-thousandths of a dollar. Each minute that has begun costs the same.
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

// rareSID returns a SID for one in oneIn records, and "" for the others. The SID belongs to no simulated record.
func rareSID(prefix string, oneIn int, d *fake.Rng) string {
	if d.IntBelow(oneIn) != 0 {
		d.Next()
		d.Next()
		return ""
	}
	return string(d.Hex([]byte(prefix), 16))
}
