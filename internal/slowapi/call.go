// Calls: who called whom, how it went, and what was asked about it.
package slowapi

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
)

var calls = &kind{
	name: "calls", prefix: "CA", tag: 'C',
	blank: func() row { return new(call) },
	seed:  func(w *world, k *kind) *sequence { return w.sequence(k, 0, w.records, w.epoch.Unix(), days*86400) },
	life:  callLife,
	filters: slices.Concat(
		[]filter{
			{"To", partyFilter(func(r row) *party { return &r.(*call).to })},
			{"From", partyFilter(func(r row) *party { return &r.(*call).from })},
			{"ParentCallSid", parentFilter},
			{"Status", textFilter(func(r row) string { return r.(*call).progress.status() })},
		},
		clockFilters("StartTime", false, func(r row) int64 { return r.(*call).start }),
		clockFilters("EndTime", false, func(r row) int64 { return r.(*call).end }),
	),
	create: createCall, update: updateCall, remove: true, arrives: true,
}

// call is one call, read from the seed and its mark.
type call struct {
	progress   progress
	s          *sequence
	i          int64
	rest       rng // what only the row needs
	direction  string
	from, to   party
	own        int64 // which of our numbers it went over, -1 for none
	parent     bool  // the call before it is its parent
	start, end int64
	justMade   bool // the answer to its creation: without dates
}

// roles within every five neighbours: one inbound call with one child after it.
const (
	alone = iota
	parent
	child
)

func callRole(seed uint64, i int64) int {
	d := rngFor(seed, tagRoles, i/5)
	place := 1 + int64(d.below(4))
	switch i % 5 {
	case place:
		return child
	case place - 1:
		return parent
	}
	return alone
}

// callPlan draws what becomes of a call, and whether somebody calls us.
func callPlan(seed uint64, i int64, d *rng) (plan []string, inbound bool) {
	role, luck, side := callRole(seed, i), d.below(10000), d.below(100)
	inbound = role == parent || role == alone && side < 55
	switch {
	case role == parent:
		return answeredInbound, true
	case luck < 188: // 3 % of all never started; parents always did
		return canceledUnstarted, false
	case luck < 375:
		return failedUnstarted, false
	case luck < 775 && inbound:
		return busyInbound, true
	case luck < 775:
		return busyOutbound, false
	case luck < 1575 && inbound:
		return missedInbound, true
	case luck < 1575:
		return missedOutbound, false
	case luck < 1775 && !inbound:
		return failedOutbound, false
	case inbound:
		return answeredInbound, true
	}
	return answeredOutbound, false
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
func callLife(s *sequence, i int64) lifecycle {
	d := rngFor(s.seed, s.kind.tag, i)
	plan, _ := callPlan(s.seed, i, &d)
	if s.written(i) {
		plan = answeredOutbound
	}
	return lifecycle{plan, callDwell(&d, plan)}
}

// callDwell draws how long each state lasts. Most calls are short, few are long.
func callDwell(d *rng, plan []string) (dwell [8]int64) {
	talk := int64(5 + min(d.below(600), d.below(600)))
	if d.below(50) == 0 {
		talk = int64(600 + d.below(3000))
	}
	ring, wait, bill := int64(2+d.below(24)), int64(1+d.below(3)), int64(5+d.below(55))
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

// load reads the call with an index. Strings are left for later: a scan reads
// many calls and shows few.
func (c *call) load(w *world, s *sequence, i int64) {
	d := rngFor(s.seed, s.kind.tag, i)
	plan, inbound := callPlan(s.seed, i, &d)
	role := callRole(s.seed, i)
	written := s.written(i)
	if written {
		plan = answeredOutbound
	}
	*c = call{s: s, i: i, own: -1, progress: progressOf(s, i, lifecycle{plan, callDwell(&d, plan)})}
	c.start, c.end = c.times()
	if written {
		c.fromForm(w)
		c.rest = d
		return
	}
	c.sides(w, role, inbound, &d)
	c.rest = d
	c.parent = role == child && !s.written(i-1)
}

// sides draws who called whom.
func (c *call) sides(w *world, role int, inbound bool, d *rng) {
	c.own = int64(d.below(ownNumbers))
	us, them := party{own: true, index: c.own}, w.somebody(d)
	odd, which := d.below(200), d.next()
	c.direction, c.from, c.to = "outbound-api", us, them
	switch {
	case inbound:
		c.direction, c.from, c.to = "inbound", them, us
		if odd == 0 {
			c.from.text = "+266696687" // how Twilio shows a hidden caller
		}
	case role == child:
		c.direction = "outbound-dial"
		if odd < 6 {
			c.to.text = "client:" + clients[which%uint64(len(clients))]
		}
	case odd == 0:
		c.to.text = "sip:desk" + strconv.FormatUint(which%40, 10) + "@pbx.example.com"
	}
}

var clients = []string{"support_anna", "support_bela", "nightshift", "sales.desk", "ops-1"}

// fromForm takes who calls whom from the write that created the call.
func (c *call) fromForm(w *world) {
	form := c.s.marks[c.i].form
	c.direction = "outbound-api"
	c.to, c.from = party{given: true, text: form["To"]}, party{given: true, text: form["From"]}
	for own := range int64(ownNumbers) {
		if ownNumber(w.seed, own) == c.from.text {
			c.own = own
		}
	}
}

// times are when the call started and ended. One that went from the queue to
// its end never started.
func (c *call) times() (start, end int64) {
	p := &c.progress
	start = p.reached("in-progress")
	last := p.status()
	over := last == "completed" || last == "busy" || last == "no-answer" || last == "failed" || last == "canceled"
	if start == 0 && over {
		start = p.reached("ringing")
	}
	if start != 0 && over {
		end = p.reached(last)
	}
	return start, end
}

// callEvents answers the list of a call's events. They have no SIDs.
func (s *Server) callEvents(r *http.Request, t target, _ url.Values) (answer, error) {
	w := s.world
	w.mu.RLock()
	defer w.mu.RUnlock()
	var c call
	c.load(w, w.below[t.account][calls], t.parent)
	list := c.events(w)
	l := computedList{count: int64(len(list)), row: func(dst []byte, i int64) []byte { return list[i].append(dst) }}
	return l.page(t, readQuery(r.URL.RawQuery), s.quirks), nil
}

// callEvent is one request and its response.
type callEvent struct {
	url       string
	names     []string // of the parameters, each followed by its value
	status    int64
	took      int64 // milliseconds
	kind      string
	body      string
	happening int64
}

// events are those of the call: its creation when we called, the webhook once
// somebody answered or rang, and the status callback when it was over.
func (c *call) events(w *world) (all []callEvent) {
	sid, account := string(w.appendSID(nil, c.s, c.i)), w.accountSID(c.s.account)
	from, to := string(c.from.appendTo(nil, w)), string(c.to.appendTo(nil, w))
	d := rngFor(w.seed, tagCallEvents, c.i)
	took := func() int64 { return int64(20 + d.below(900)) }
	told := []string{"account_sid", account, "api_version", apiVersion, "call_sid", sid, "call_status", c.progress.status(), "direction",
		c.direction, "from", from, "to", to}

	if c.direction == "outbound-api" {
		all = append(all, callEvent{
			url: "https://api.twilio.com" + version + "/Accounts/" + account + "/Calls/" + sid + ".json",
			names: []string{"account_sid", account, "from", from, "method", "POST", "timeout", "55", "to", to, "url",
				"https://hooks.example.com/voice"},
			status: 201, took: took(), kind: "application/json", body: `{"sid": "` + sid + `"}`, happening: c.progress.created,
		})
	}
	if c.start != 0 && c.direction != "outbound-dial" {
		all = append(all, callEvent{
			url: "https://hooks.example.com/voice", names: told,
			status: 200, took: took(), kind: "text/xml", body: "<Response><Dial>" + to + "</Dial></Response>", happening: c.start,
		})
	}
	if c.end != 0 {
		all = append(all, callEvent{
			url: "https://hooks.example.com/status", names: append(told[:len(told):len(told)], "call_duration", strconv.FormatInt(c.duration(), 10)),
			status: 204, took: took(), kind: "text/plain", happening: c.end,
		})
	}
	return all
}

// append writes the event.
func (e *callEvent) append(dst []byte) []byte {
	o := object{b: dst}
	o.open()
	o.name("request")
	o.open()
	o.text("method", "POST")
	o.text("url", e.url)
	o.name("parameters")
	o.open()
	for i := 0; i < len(e.names); i += 2 {
		o.text(e.names[i], e.names[i+1])
	}
	o.close()
	o.close()
	o.name("response")
	o.open()
	o.number("response_code", e.status)
	o.number("request_duration", e.took)
	o.text("content_type", e.kind)
	o.text("response_body", e.body)
	o.date("date_created", e.happening)
	o.close()
	o.close()
	return o.b
}

var callEventRoutes = []route{
	{pattern: "Accounts/*/Calls/*/Events", parent: calls, key: "events", serve: (*Server).callEvents, methods: "GET, HEAD"},
}
