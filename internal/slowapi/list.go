// Lists: what a page of records looks like.
package slowapi

import (
	"net/http"

	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/world"
)

// noAnswer stands for the answer to a client that left.
var noAnswer = format.Answer{}

// page builds a list's answer.
func (t *twilio) page(x *world.Request) format.Answer {
	ctx := x.In.Ctx
	x.W.Mu.RLock()
	found, r := world.NewSearch(x.W, x.S, x.Narrow, x.Filters, x.Quirks, x.Q)
	var p world.Place
	if r == nil {
		p, r = found.ReadPlace(x.Q)
	}
	x.W.Mu.RUnlock()
	if r != nil {
		return *r
	}
	some, err := found.Indexes(ctx, p)
	if err != nil {
		return noAnswer
	}
	if len(some) == 0 {
		return x.List(p, nil, 0, "", "")
	}
	next := ""
	after, err := found.Down(ctx, some[len(some)-1]-1, 0, 1)
	if err != nil {
		return noAnswer
	}
	if len(after) > 0 {
		next = "PA" + found.Sid(some[len(some)-1])
	}
	rows := found.Rows(make([]byte, 0, 2200*len(some)), some, x.Shape, x.In.Here)
	return x.List(p, rows, len(some), next, "PB"+found.Sid(some[0]))
}

// instance shows one record.
func (t *twilio) instance(x *world.Request) format.Answer {
	w := x.W
	w.Mu.RLock()
	defer w.Mu.RUnlock()
	if !x.Shows() {
		return x.NotFound()
	}
	return format.Answer{Status: http.StatusOK, Body: w.Show(nil, x.S, x.Index, x.Shape, x.In.Here)}
}
