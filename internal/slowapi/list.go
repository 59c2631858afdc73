// Lists: what a page of records looks like.
package slowapi

import "context"

// page builds a list's answer.
func (s *Server) page(ctx context.Context, t target, q query) (answer, error) {
	w := s.world
	w.mu.RLock()
	x, r := newSearch(w, t.seq, t.narrow, t.route.listFilters(), s.quirks, q)
	var p place
	if r == nil {
		p, r = x.readPlace(q)
	}
	w.mu.RUnlock()
	if r != nil {
		return r.answer(), nil
	}
	found, err := x.indexes(ctx, p)
	if err != nil {
		return answer{}, err
	}
	more := false
	if len(found) > 0 {
		after, err := x.down(ctx, found[len(found)-1]-1, 0, 1)
		if err != nil {
			return answer{}, err
		}
		more = len(after) > 0
	}
	return answer{status: 200, body: t.render(x, q, p, found, more)}, nil
}

// render writes the page. The order of its keys is that of Twilio's lists.
func (t *target) render(x *search, q query, p place, found []int64, more bool) []byte {
	e := envelope{base: t.path, key: t.route.listKey(), size: p.size, page: p.page, token: p.token, rows: len(found)}
	e.base = string(q.echo([]byte(e.base+"?"), keysOf(t.route.listFilters())))
	if more {
		e.next = "PA" + x.sid(found[len(found)-1])
	}
	if p.page > 0 && len(found) > 0 {
		e.previous = "PB" + x.sid(found[0])
	}
	rows := x.rows(make([]byte, 0, 2200*len(found)), found, t.dress)
	if t.route.monitor {
		e.base = t.here + e.base
		return e.monitor(rows)
	}
	return e.list(rows)
}
