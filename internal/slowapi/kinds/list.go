// Lists whose rows have no SIDs and are numbered instead, and the events of calls.
package kinds

import (
	"encoding/base64"
	"strconv"
	"strings"

	"understudy/internal/slowapi/fake"
	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/table"
	"understudy/internal/slowapi/world"
)

// listToken begins the page tokens of lists whose rows are numbered.
const listToken = "AP"

// numberedPage answers with a page of a list that has count rows without SIDs. Its page token contains the number of
// the page, as in Twilio's usage records: APMQ== is page 1.
func numberedPage(r *world.Request, count int64, row func(place int64) table.Part) format.Answer {
	p, refused := r.ReadPageSize()
	if refused != nil {
		return *refused
	}
	at := p.Page
	if p.Token != "" {
		plain, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(p.Token, listToken))
		page, ok := format.ParseWhole(string(plain))
		if err != nil || !ok || !strings.HasPrefix(p.Token, listToken) {
			return *format.NewInvalid("Page token is invalid.")
		}
		at = page
	}
	first := min(at*p.Size, count)
	last := min(first+p.Size, count)
	var rows []table.Part
	for place := first; place < last; place++ {
		rows = append(rows, row(place))
	}
	next := ""
	if last < count {
		next = pageToken(at + 1)
	}
	return r.List(p, table.AppendParts(nil, rows, ""), int(last-first), next, pageToken(at-1))
}

// pageToken returns the page token for the page of a number.
func pageToken(number int64) string {
	return listToken + base64.StdEncoding.EncodeToString([]byte(strconv.FormatInt(max(number, 0), 10)))
}

// CallEvents answers with the list of a call's events. These have no SIDs. They are the creation of an outbound call,
// the webhook request at the start of the call, and the status callback at its end.
func CallEvents(r *world.Request) format.Answer {
	w := r.World
	all := w.Sequences[r.Account][Calls]
	v := generateCall(w, all, r.Parent)
	v["sid"], v["account"] = w.SID(all, r.Parent), w.AccountSID(r.Account)
	created, start, end := v["created"].(int64), v["start"].(int64), v["end"].(int64)
	var list []table.Part
	d := fake.RngFor(w.Seed, tagCallEvents, r.Parent)
	add := func(shape string, at int64) {
		list = append(list, table.Part{Template: Shapes()[shape], Values: v.With(table.Values{"took": int64(20 + d.IntBelow(900)), "at": at})})
	}
	if v["direction"] == "outbound-api" {
		add("call_created", created)
	}
	if start != 0 && v["direction"] != "outbound-dial" {
		add("call_webhook", start)
	}
	if end != 0 {
		add("call_ended", end)
	}
	return numberedPage(r, int64(len(list)), func(i int64) table.Part { return list[i] })
}
