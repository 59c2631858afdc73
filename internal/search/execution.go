// Execution: one search that runs, match by match.

package search

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"understudy"
	"understudy/internal/query"
	"understudy/spec"
)

// execution is one search on its way.
type execution struct {
	s        *Searcher
	c        understudy.Caller
	request  *query.SearchRequest
	q        *boundQuery
	order    order
	limit    int
	began    time.Time
	position position // where it goes on, then where it ended
	meant    *candidate
	out      query.SearchResult
}

// run finds by place: newest or oldest first.
func (v *execution) run(ctx context.Context) error {
	looked, more := 0, false
	last := v.position.Place
	err := v.each(ctx, v.position.Place, func(f found, c *candidate) bool {
		looked++
		if c != nil {
			if len(v.out.Hits) == v.limit {
				more = true
				return false
			}
			v.add(c)
		}
		last = f.Order
		if looked >= v.s.o.Limits.Look {
			more = true
			if len(v.out.Hits) < v.limit {
				_ = v.part(looked, "that is the most for one answer")
			}
			return false
		}
		return true
	})
	v.position.Place = last
	late := errors.Is(err, context.DeadlineExceeded)
	if err != nil && !late {
		return err
	}
	if more || late {
		return errors.Join(v.next(), err)
	}
	return nil
}

func (v *execution) next() (err error) {
	v.out.Next, err = v.s.cursor(v.c, v.request, v.position)
	return err
}

// each calls yield for every record of the plan; c is nil for a record that does
// not match. Both arguments are valid until yield returns.
func (v *execution) each(ctx context.Context, below query.OrderKey, yield func(f found, c *candidate) bool) error {
	var c candidate
	return v.s.stream(ctx, v.q.plan(), below, v.order.up, func(f found) bool {
		if ctx.Err() != nil {
			return false
		}
		if !f.view.see(&c, f.Record) || !v.q.cond.holds(&c) || v.isMeant(f.Record) {
			return yield(f, nil)
		}
		c.place = f.Order
		return yield(f, &c)
	})
}

func (v *execution) isMeant(r *understudy.Record) bool {
	return v.meant != nil && r.ID == v.meant.ID && r.Kind == v.meant.Kind && r.Source == v.meant.Source
}

// window finds among the newest matches, in another order than that of places.
func (v *execution) window(ctx context.Context) error {
	first := topN{order: &v.order}
	matched, looked := 0, 0
	var late bool
	top, bottom := v.position.Top, v.position.Bottom
	started := v.request.Cursor != ""
	err := v.each(ctx, 0, func(f found, c *candidate) bool {
		if top != 0 && f.Order > top {
			return true
		}
		if bottom != 0 && f.Order < bottom || matched == v.s.o.Limits.Window {
			v.out.More = true
			return false
		}
		if looked++; looked > v.s.o.Limits.Look && bottom == 0 {
			late = true
			return false
		}
		if c == nil {
			return true
		}
		matched++
		if v.position.Top == 0 {
			v.position.Top = f.Order
		}
		if !started {
			v.position.Bottom = f.Order
		}
		e := &entry{position: position{Place: f.Order}}
		v.order.key(v.q, c, &e.position)
		if started && v.order.compare(&e.position, &v.position) <= 0 {
			return true // it was given out before
		}
		e.record = *c
		e.record.held, e.record.read = nil, false
		first.offer(e, v.limit+1)
		return true
	})
	v.out.Window = matched
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if late || err != nil {
		v.out.More = true
		_ = v.part(looked, "that is the most for one answer; what was found was put in order")
	} else if v.out.More {
		v.out.Notes = append(v.out.Notes, fmt.Sprintf("Only the newest %d matches were put in order; there are older ones.", matched))
	}
	return v.give(first.sorted())
}

// give shows the entries that fit, and makes the cursor behind them.
func (v *execution) give(all []*entry) error {
	room := v.limit - len(v.out.Hits)
	if len(all) <= room {
		for _, e := range all {
			v.add(&e.record)
		}
		return nil
	}
	for _, e := range all[:room] {
		v.add(&e.record)
	}
	if room == 0 {
		return nil
	}
	last := all[room-1]
	v.position.Place, v.position.Missing, v.position.Used, v.position.Key = last.Place, last.Missing, last.Used, last.Key
	return v.next()
}

// add shows a record. One whose view cannot be made is not shown.
func (v *execution) add(c *candidate) {
	if h, err := v.s.hit(v.c, v.q, c); err == nil {
		v.out.Hits = append(v.out.Hits, h)
	}
}

// exact looks for the one record whose id is the whole text, and puts it before
// all others.
func (v *execution) exact(ctx context.Context) error {
	n := v.q.tree
	if n.op == opField && n.name == numberName || n.op == opOr && n.of[0].op == opField && n.of[0].name == numberName && len(n.of[0].values) == 1 {
		if n.op == opOr {
			n = n.of[0]
		}
		if p := understudy.ReadPhone(n.values[0].text); p.Country {
			v.out.Meant.Number = "+" + p.Digits
		} else {
			v.out.Meant.Number = p.Digits
		}
		return nil
	}
	if v.q.id == "" {
		return nil
	}
	for _, s := range v.q.views {
		parts := strings.Split(v.q.id, spec.IDSeparator)
		if !s.seesID() || len(parts) != len(s.kind.ID) || len(parts) == 1 && !s.kind.HasPrefix(v.q.id) {
			continue
		}
		seek := query.RecordQuery{Source: s.source, Kinds: []string{s.kind.Name}, IDs: []string{v.q.id}}
		err := v.s.o.Store.Seek(ctx, seek, func(f query.Hit) bool {
			var c candidate
			if s.see(&c, f.Record) {
				v.meant = &c
			}
			return v.meant == nil
		})
		if err != nil {
			return err
		}
		if v.meant != nil {
			break
		}
	}
	if v.meant == nil {
		return nil
	}
	v.out.Meant = query.SearchMeant{Source: v.meant.Source, Kind: v.meant.Kind, ID: v.meant.ID}
	if !v.position.Met {
		v.position.Met = true
		v.add(v.meant)
		if len(v.out.Hits) > 0 {
			v.out.Hits[0].Exact = true
		}
	}
	return nil
}
