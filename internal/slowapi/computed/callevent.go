// Events of a call: requests and their responses.
package computed

import (
	"strconv"

	"understudy/internal/slowapi/fake"
	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/kinds"
	"understudy/internal/slowapi/table"
	"understudy/internal/slowapi/world"
)

// CallEvents answers the list of a call's events. They have no SIDs.
func CallEvents(r *world.Request) format.Answer {
	w := r.W
	w.Mu.RLock()
	defer w.Mu.RUnlock()
	var c kinds.Call
	c.Load(w, w.Below[r.Account][kinds.Calls], r.Parent)
	list := eventsOf(w, &c)
	l := numberedList{count: int64(len(list)), row: func(i int64) table.Part { return list[i] }}
	return l.page(r)
}

// eventsOf are those of a call: its creation when we called, the webhook once
// it was answered or rang, and the status callback when it was over.
func eventsOf(w *world.World, c *kinds.Call) (all []table.Part) {
	v := table.Values{
		"sid": w.SID(c.S, c.I), "account": w.AccountSID(c.S.Account), "status": c.Progress.Status(),
		"from": string(c.From.AppendTo(nil, w.Seed)), "to": string(c.To.AppendTo(nil, w.Seed)), "direction": c.Direction,
		"duration": strconv.FormatInt(c.Duration(), 10),
	}
	d := fake.RngFor(w.Seed, kinds.TagCallEvents, c.I)
	add := func(shape string, at int64) {
		all = append(all, table.Part{T: shapes()[shape], V: v.With(table.Values{"took": int64(20 + d.Below(900)), "at": at})})
	}
	if c.Direction == "outbound-api" {
		add("call_created", c.Progress.Created)
	}
	if c.Start != 0 && c.Direction != "outbound-dial" {
		add("call_webhook", c.Start)
	}
	if c.End != 0 {
		add("call_ended", c.End)
	}
	return all
}
