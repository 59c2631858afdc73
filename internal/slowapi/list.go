// Lists: what a page of records looks like.
package slowapi

import (
	"net/http"
	"net/url"

	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/world"
)

// page builds a list's answer.
func (s *Server) page(req *http.Request, t target, _ url.Values) (format.Answer, error) {
	w, ctx, q := s.world, req.Context(), format.ReadQuery(req.URL.RawQuery)
	w.Mu.RLock()
	x, r := world.NewSearch(w, t.seq, t.narrow, t.route.listFilters(), s.quirks, q)
	var p world.Place
	if r == nil {
		p, r = x.ReadPlace(q)
	}
	w.Mu.RUnlock()
	if r != nil {
		return r.Answer(), nil
	}
	found, err := x.Indexes(ctx, p)
	if err != nil {
		return format.Answer{}, err
	}
	more := false
	if len(found) > 0 {
		after, err := x.Down(ctx, found[len(found)-1]-1, 0, 1)
		if err != nil {
			return format.Answer{}, err
		}
		more = len(after) > 0
	}
	return format.Answer{Status: 200, Body: t.render(x, q, p, found, more)}, nil
}

// render writes the page. The order of its keys is that of Twilio's lists.
func (t *target) render(x *world.Search, q format.Query, p world.Place, found []int64, more bool) []byte {
	e := format.Envelope{Base: t.path, Key: t.route.listKey(), Size: p.Size, Page: p.Page, Token: p.Token, Rows: len(found)}
	e.Base = string(q.Echo([]byte(e.Base+"?"), world.KeysOf(t.route.listFilters())))
	if more {
		e.Next = "PA" + x.Sid(found[len(found)-1])
	}
	if p.Page > 0 && len(found) > 0 {
		e.Previous = "PB" + x.Sid(found[0])
	}
	rows := x.Rows(make([]byte, 0, 2200*len(found)), found, t.route.shown(), t.here)
	if t.route.monitor {
		e.Base = t.here + e.Base
		return e.Monitor(rows)
	}
	return e.List(rows)
}
