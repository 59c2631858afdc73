// Events of a call: requests and their responses.
package computed

import (
	"strconv"

	"understudy/internal/slowapi/fake"
	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/kinds"
	"understudy/internal/slowapi/world"
)

// CallEvents answers the list of a call's events. They have no SIDs.
func CallEvents(r *Request) format.Answer {
	w := r.W
	w.Mu.RLock()
	defer w.Mu.RUnlock()
	var c kinds.Call
	c.Load(w, w.Below[r.Account][kinds.Calls], r.Parent)
	list := eventsOf(w, &c)
	l := numberedList{count: int64(len(list)), row: func(dst []byte, i int64) []byte { return list[i].append(dst) }}
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
// it was answered or rang, and the status callback when it was over.
func eventsOf(w *world.World, c *kinds.Call) (all []callEvent) {
	sid, account := string(w.AppendSID(nil, c.S, c.I)), w.AccountSID(c.S.Account)
	from, to := string(c.From.AppendTo(nil, w.Seed)), string(c.To.AppendTo(nil, w.Seed))
	d := fake.RngFor(w.Seed, kinds.TagCallEvents, c.I)
	took := func() int64 { return int64(20 + d.Below(900)) }
	told := []string{"account_sid", account, "api_version", format.ApiVersion, "call_sid", sid, "call_status", c.Progress.Status(),
		"direction",
		c.Direction, "from", from, "to", to}

	if c.Direction == "outbound-api" {
		all = append(all, callEvent{
			url: "https://api.twilio.com" + format.Version + "/Accounts/" + account + "/Calls/" + sid + ".json",
			names: []string{"account_sid", account, "from", from, "method", "POST", "timeout", "55", "to", to, "url",
				"https://hooks.example.com/voice"},
			status: 201, took: took(), kind: "application/json", body: `{"sid": "` + sid + `"}`, happening: c.Progress.Created,
		})
	}
	if c.Start != 0 && c.Direction != "outbound-dial" {
		all = append(all, callEvent{
			url: "https://hooks.example.com/voice", names: told,
			status: 200, took: took(), kind: "text/xml", body: "<Response><Dial>" + to + "</Dial></Response>", happening: c.Start,
		})
	}
	if c.End != 0 {
		all = append(all, callEvent{
			url: "https://hooks.example.com/status", names: append(told[:len(told):len(told)], "call_duration", strconv.FormatInt(c.Duration(), 10)),
			status: 204, took: took(), kind: "text/plain", happening: c.End,
		})
	}
	return all
}

// append writes the event.
func (e *callEvent) append(dst []byte) []byte {
	o := format.Object{B: dst}
	o.Open()
	o.Name("request")
	o.Open()
	o.Text("method", "POST")
	o.Text("url", e.url)
	o.Name("parameters")
	o.Open()
	for i := 0; i < len(e.names); i += 2 {
		o.Text(e.names[i], e.names[i+1])
	}
	o.Close()
	o.Close()
	o.Name("response")
	o.Open()
	o.Number("response_code", e.status)
	o.Number("request_duration", e.took)
	o.Text("content_type", e.kind)
	o.Text("response_body", e.body)
	o.Date("date_created", e.happening)
	o.Close()
	o.Close()
	return o.B
}
