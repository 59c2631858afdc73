// Events of a call: requests and their responses.
package slowapi

import (
	"strconv"
	"understudy/internal/slowapi/fake"
)

// callEvents answers the list of a call's events. They have no SIDs.
func callEvents(r *computedRequest) answer {
	w := r.w
	w.mu.RLock()
	defer w.mu.RUnlock()
	var c call
	c.Load(w, w.below[r.account][calls], r.parent)
	list := eventsOf(w, &c)
	l := computedList{count: int64(len(list)), row: func(dst []byte, i int64) []byte { return list[i].append(dst) }}
	return l.page(r)
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

// eventsOf are those of a call: its creation when we called, the webhook once
// somebody answered or rang, and the status callback when it was over.
func eventsOf(w *world, c *call) (all []callEvent) {
	sid, account := string(w.appendSID(nil, c.s, c.i)), w.accountSID(c.s.account)
	from, to := string(c.from.AppendTo(nil, w.seed)), string(c.to.AppendTo(nil, w.seed))
	d := fake.RngFor(w.seed, tagCallEvents, c.i)
	took := func() int64 { return int64(20 + d.Below(900)) }
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
