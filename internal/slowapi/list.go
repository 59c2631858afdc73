// Lists: what a page of records looks like.
package slowapi

import (
	"net/http"
	"strings"

	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/world"
)

// noAnswer stands for the answer to a client that left.
var noAnswer = format.Answer{}

// page builds a list's answer.
func (t *twilio) page(x *world.Request) format.Answer {
	w, ctx := x.W, x.In.Ctx
	w.Mu.RLock()
	found, r := world.NewSearch(w, x.S, x.Narrow, x.Filters, x.Quirks, x.Q)
	var p world.Place
	if r == nil {
		p, r = found.ReadPlace(x.Q)
	}
	w.Mu.RUnlock()
	if r != nil {
		return *r
	}
	some, err := found.Indexes(ctx, p)
	if err != nil {
		return noAnswer
	}
	more := false
	if len(some) > 0 {
		after, err := found.Down(ctx, some[len(some)-1]-1, 0, 1)
		if err != nil {
			return noAnswer
		}
		more = len(after) > 0
	}
	return format.Answer{Status: http.StatusOK, Body: render(x, found, p, some, more)}
}

// render writes the page. The order of its keys is that of Twilio's lists.
func render(x *world.Request, s *world.Search, p world.Place, found []int64, more bool) []byte {
	e := format.Envelope{Key: x.Key, Size: p.Size, Page: p.Page, Token: p.Token, Rows: len(found)}
	e.Base = string(x.Q.Echo([]byte(x.In.Path+"?"), world.KeysOf(x.Filters)))
	if more {
		e.Next = "PA" + s.Sid(found[len(found)-1])
	}
	if p.Page > 0 && len(found) > 0 {
		e.Previous = "PB" + s.Sid(found[0])
	}
	rows := s.Rows(make([]byte, 0, 2200*len(found)), found, x.Shape, x.In.Here)
	if strings.HasPrefix(x.In.Path, format.MonitorVersion+"/") {
		e.Base = x.In.Here + e.Base
		return e.Monitor(rows)
	}
	return e.List(rows)
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
