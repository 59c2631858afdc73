// Lists: what a page of records looks like.
package slowapi

import (
	"context"
	"understudy/internal/slowapi/format"
)

// page builds a list's answer.
func (s *Server) page(ctx context.Context, t target, q format.Query) (format.Answer, error) {
	w := s.world
	w.mu.RLock()
	x, r := newSearch(w, t.seq, t.narrow, t.route.listFilters(), s.quirks, q)
	var p place
	if r == nil {
		p, r = x.readPlace(q)
	}
	w.mu.RUnlock()
	if r != nil {
		return r.Answer(), nil
	}
	found, err := x.indexes(ctx, p)
	if err != nil {
		return format.Answer{}, err
	}
	more := false
	if len(found) > 0 {
		after, err := x.down(ctx, found[len(found)-1]-1, 0, 1)
		if err != nil {
			return format.Answer{}, err
		}
		more = len(after) > 0
	}
	return format.Answer{Status: 200, Body: t.render(x, q, p, found, more)}, nil
}

// render writes the page. The order of its keys is that of Twilio's lists.
func (t *target) render(x *search, q format.Query, p place, found []int64, more bool) []byte {
	e := format.Envelope{Base: t.path, Key: t.route.listKey(), Size: p.size, Page: p.page, Token: p.token, Rows: len(found)}
	e.Base = string(q.Echo([]byte(e.Base+"?"), keysOf(t.route.listFilters())))
	if more {
		e.Next = "PA" + x.sid(found[len(found)-1])
	}
	if p.page > 0 && len(found) > 0 {
		e.Previous = "PB" + x.sid(found[0])
	}
	rows := x.rows(make([]byte, 0, 2200*len(found)), found, t.dress)
	if t.route.monitor {
		e.Base = t.here + e.Base
		return e.Monitor(rows)
	}
	return e.List(rows)
}
