// Calls: who called whom, how it went, what was asked about it, and how a row of them looks.
package kinds

import (
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
	Name: "calls", Prefix: "CA", Tag: 'C',
	Blank: func() world.Row { return new(Call) }, Shape: "call",
	Count: func(w *world.World) int64 { return w.Records },
	Life:  callLife,
	Filters: slices.Concat(
		[]world.Filter{
			partyFilter("To", func(r *Call) *fake.Party { return &r.To }),
			partyFilter("From", func(r *Call) *fake.Party { return &r.From }),
			{Key: "ParentCallSid", Read: parentFilter},
			world.TextFilter("Status", "status"),
		},
		world.ClockFilters("StartTime", false, "start"), world.ClockFilters("EndTime", false, "end"),
	),
	Create: createCall, Update: updateCall, Remove: true, Arrives: true,
	Fresh: world.Fresh{Shape: "new_call"}, // Twilio answers before the call is under way
	Edits: world.Edits{Finals: []string{"completed", "busy", "failed", "no-answer", "canceled"}},
}

// Call is one call, read from the seed and its mark.
type Call struct {
	Progress   world.Progress
	S          *world.Sequence
	I          int64
	Direction  string
	From, To   fake.Party
	own        int64 // which of our numbers it went over, -1 for none
	parent     bool  // the call before it is its parent
	Start, End int64
}

// roles within every five neighbours: one inbound call with one child after it.
const (
	alone = iota
	parent
	child
)

func callRole(seed uint64, i int64) int {
	d := fake.RngFor(seed, tagRoles, i/5)
	place := 1 + int64(d.Below(4))
	switch i % 5 {
	case place:
		return child
	case place - 1:
		return parent
	}
	return alone
}

// callPlan draws what becomes of a call. It rings first if it is inbound, and is queued first if not.
func callPlan(seed uint64, i int64, d *fake.Rng) (plan []string) {
	role, luck, side := callRole(seed, i), d.Below(10000), d.Below(100)
	inbound := role == parent || role == alone && side < 55
	switch {
	case role == parent:
		return answeredInbound
	case luck < 188: // 3 % of all never started; parents always did
		return canceledUnstarted
	case luck < 375:
		return failedUnstarted
	case luck < 775 && inbound:
		return busyInbound
	case luck < 775:
		return busyOutbound
	case luck < 1575 && inbound:
		return missedInbound
	case luck < 1575:
		return missedOutbound
	case luck < 1775 && !inbound:
		return failedOutbound
	case inbound:
		return answeredInbound
	}
	return answeredOutbound
}

var (
	answeredInbound   = []string{"ringing", "in-progress", "completed", "completed"}
	answeredOutbound  = []string{"queued", "ringing", "in-progress", "completed", "completed"}
	busyInbound       = []string{"ringing", "busy"}
	busyOutbound      = []string{"queued", "ringing", "busy"}
	missedInbound     = []string{"ringing", "no-answer"}
	missedOutbound    = []string{"queued", "ringing", "no-answer"}
	failedOutbound    = []string{"queued", "ringing", "failed"}
	canceledUnstarted = []string{"queued", "canceled"}
	failedUnstarted   = []string{"queued", "failed"}
)

// callLife is what a call goes through.
func callLife(s *world.Sequence, i int64) world.Lifecycle {
	d := s.Draw(i)
	plan := callPlan(s.Seed, i, &d)
	if s.Written(i) {
		plan = answeredOutbound
	}
	dwell := callDwell(&d, plan)
	return world.Lifecycle{Plan: plan, Dwell: dwell, Rest: d}
}

// callDwell draws how long each state lasts. Most calls are short, few are long.
func callDwell(d *fake.Rng, plan []string) (dwell [8]int64) {
	talk := int64(5 + min(d.Below(600), d.Below(600)))
	if d.Below(50) == 0 {
		talk = int64(600 + d.Below(3000))
	}
	ring, wait, bill := int64(2+d.Below(24)), int64(1+d.Below(3)), int64(5+d.Below(55))
	for i, status := range plan {
		switch status {
		case "queued":
			dwell[i] = wait
		case "ringing":
			dwell[i] = ring
		case "in-progress":
			dwell[i] = talk
		default:
			dwell[i] = bill
		}
	}
	return dwell
}

// Load reads the call with an index. Strings are left for later: a scan reads
// many calls and shows few.
func (c *Call) Load(w *world.World, s *world.Sequence, i int64) {
	*c = Call{S: s, I: i, own: -1, Progress: s.Progress(i)}
	c.Start, c.End = c.times()
	if s.Written(i) {
		c.fromForm(w)
		return
	}
	role := callRole(s.Seed, i)
	c.sides(w, role, c.Progress.Plan[0] == "ringing", &c.Progress.Rest)
	c.parent = role == child && !s.Written(i-1)
}

// Value returns what filters ask of a call.
func (c *Call) Value(name string) any {
	switch name {
	case "start":
		return c.Start
	case "end":
		return c.End
	}
	return c.Progress.Status()
}

// sides draws who called whom.
func (c *Call) sides(w *world.World, role int, inbound bool, d *fake.Rng) {
	c.own = int64(d.Below(world.OwnNumbers))
	us, them := fake.Party{Own: true, Index: c.own}, fake.Somebody(d, w.People)
	odd, which := d.Below(200), d.Next()
	c.Direction, c.From, c.To = "outbound-api", us, them
	switch {
	case inbound:
		c.Direction, c.From, c.To = "inbound", them, us
		if odd == 0 {
			c.From.Text = "+266696687" // how Twilio shows a hidden caller
		}
	case role == child:
		c.Direction = "outbound-dial"
		if odd < 6 {
			c.To.Text = "client:" + clients[which%uint64(len(clients))]
		}
	case odd == 0:
		c.To.Text = "sip:desk" + strconv.FormatUint(which%40, 10) + "@pbx.example.com"
	}
}

var clients = []string{"support_anna", "support_bela", "nightshift", "sales.desk", "ops-1"}

// fromForm takes who calls whom from the write that created the call.
func (c *Call) fromForm(w *world.World) {
	form := c.S.Marks[c.I].Form
	c.Direction = "outbound-api"
	c.To, c.From = fake.Party{Given: true, Text: form["To"]}, fake.Party{Given: true, Text: form["From"]}
	for own := range int64(world.OwnNumbers) {
		if fake.OwnNumber(w.Seed, own) == c.From.Text {
			c.own = own
		}
	}
}

// times are when the call started and ended. One that went from the queue to
// its end never started.
func (c *Call) times() (start, end int64) {
	p := &c.Progress
	start = p.Reached("in-progress")
	last := p.Status()
	over := last == "completed" || last == "busy" || last == "no-answer" || last == "failed" || last == "canceled"
	if start == 0 && over {
		start = p.Reached("ringing")
	}
	if start != 0 && over {
		end = p.Reached(last)
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
	begun := p.Reached("in-progress") != 0
	over := p.Status() == p.Plan[p.Final()]
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
func partyFilter[R world.Row](key string, get func(R) *fake.Party) world.Filter {
	return world.Filter{Key: key, Read: func(x *world.Search, value string) (world.Condition, *format.Answer) {
		return world.Everywhere(func(r world.Row) bool { return get(r.(R)).Is(x.W.Seed, value) }), nil
	}}
}

// parentFilter asks for the children of a call; they stand within five of it.
func parentFilter(x *world.Search, value string) (world.Condition, *format.Answer) {
	index, ok := x.W.Find(x.S, value)
	if !ok {
		return world.Condition{Test: func(world.Row) bool { return false }, Hi: -1}, nil
	}
	test := func(r world.Row) bool { c := r.(*Call); return c.parent && c.I-1 == index }
	return world.Condition{Test: test, Lo: index, Hi: index + 5}, nil
}

// Values are the call as its template shows it. What is drawn is drawn in this order.
func (c *Call) Values(w *world.World) table.Values {
	from, to := string(c.From.AppendTo(nil, w.Seed)), string(c.To.AppendTo(nil, w.Seed))
	d := c.Progress.Rest
	v := table.Values{
		"created": c.Progress.Created, "updated": c.Progress.Updated(), "start": c.Start, "end": c.End, "status": c.Progress.Status(),
		"direction": c.Direction, "from": from, "from_formatted": format.Formatted(from), "to": to, "to_formatted": format.Formatted(to),
		"price": c.price(w), "queue_time": "0",
	}
	if pick := d.Below(100); c.Direction == "outbound-api" && c.Progress.Reached("in-progress") != 0 && pick < 30 {
		v["answered_by"] = map[bool]string{true: "human", false: "machine_start"}[pick < 24]
	}
	if pick, name := d.Below(100), d.Below(len(fake.Names())); c.Direction == "inbound" && pick < 15 {
		v["caller_name"] = fake.Names()[name]
	}
	if pick, person := d.Below(100), fake.Somebody(&d, w.People); c.Direction == "inbound" && pick < 5 {
		v["forwarded_from"] = string(person.AppendTo(nil, w.Seed))
	}
	v["group_sid"] = rareSID("GP", 33, &d)
	if d.Below(12) == 0 {
		v["queue_time"] = strconv.Itoa(d.Below(4000))
	}
	v["trunk_sid"] = rareSID("TK", 100, &d)
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
	text, set := c.S.Form(c.I, world.EditedPrice)
	if !set && c.Progress.Settled() {
		text = format.Money(c.charge(w))
	}
	return text
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

// rareSID names something outside this world for one record in so many.
func rareSID(prefix string, oneIn int, d *fake.Rng) string {
	if d.Below(oneIn) != 0 {
		d.Next()
		d.Next()
		return ""
	}
	return string(d.Hex([]byte(prefix), 16))
}
