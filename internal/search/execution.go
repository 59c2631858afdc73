// Execution: one run of a search, match by match.

package search

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"understudy"
	"understudy/internal/query"
	"understudy/internal/search/lang"
	"understudy/spec"
)

// execution is one run of a search.
type execution struct {
	s        *Searcher
	c        understudy.Caller
	request  *query.SearchRequest
	q        *lang.BoundQuery
	order    order
	limit    int
	position position          // where it starts, then where it ended
	meant    []*lang.Candidate // the records whose id is the whole text
	out      query.SearchResult
}

// run finds matches in the order of places, newest or oldest first.
func (v *execution) run(ctx context.Context) error {
	looked, more := 0, false
	last := v.position.Place
	err := v.s.each(ctx, v.q, v.position.Place, v.order.up, func(f found, c *lang.Candidate) bool {
		looked++
		if c != nil && !v.isMeant(c.Record) {
			if len(v.out.Hits) == v.limit {
				more = true
				return false
			}
			v.add(c)
		}
		last = f.order
		if looked >= v.s.o.Limits.Look {
			more = true
			if len(v.out.Hits) < v.limit {
				v.part(looked, "that is the most for one answer")
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

// each calls yield for every record of a query's plan after a place, the newest first, with up the oldest; c is nil for a
// record that does not match. Both arguments are valid until yield returns.
func (s *Searcher) each(ctx context.Context, q *lang.BoundQuery, below query.OrderKey, up bool,
	yield func(f found, c *lang.Candidate) bool) error {
	var c lang.Candidate
	return s.stream(ctx, q.Plan(), below, up, func(f found) bool {
		if ctx.Err() != nil {
			return false
		}
		if !f.view.See(&c, f.record) || !q.Cond.Holds(&c) {
			return yield(f, nil)
		}
		c.Place = f.order
		return yield(f, &c)
	})
}

func (v *execution) isMeant(r *understudy.Record) bool {
	return slices.ContainsFunc(v.meant, func(c *lang.Candidate) bool {
		return r.ID == c.Record.ID && r.Kind == c.Record.Kind && r.Source == c.Record.Source
	})
}

// window sorts the newest matches by rank or by a field.
func (v *execution) window(ctx context.Context) error {
	first := topN{order: &v.order}
	matched, looked := 0, 0
	var late bool
	top, bottom := v.position.Top, v.position.Bottom
	started := v.request.Cursor != ""
	err := v.s.each(ctx, v.q, 0, v.order.up, func(f found, c *lang.Candidate) bool {
		if top != 0 && f.order > top {
			return true
		}
		if bottom != 0 && f.order < bottom || matched == v.s.o.Limits.Window {
			v.out.More = true
			return false
		}
		if looked++; looked > v.s.o.Limits.Look && bottom == 0 {
			late = true
			return false
		}
		if c == nil || v.isMeant(c.Record) {
			return true
		}
		matched++
		if v.position.Top == 0 {
			v.position.Top = f.order
		}
		if !started {
			v.position.Bottom = f.order
		}
		e := &entry{position: position{Place: f.order}}
		v.order.key(v.q, c, &e.position)
		if started && v.order.compare(&e.position, &v.position) <= 0 {
			return true // an earlier page had it
		}
		e.record = *c
		e.record.Held, e.record.Read = nil, false
		first.offer(e, v.limit+1)
		return true
	})
	v.out.Window = matched
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if late || err != nil {
		v.out.More = true
		v.part(looked, "that is the most for one answer; what was found was put in order")
	} else if v.out.More {
		v.out.Notes = append(v.out.Notes, fmt.Sprintf("Only the newest %d matches were put in order; there are older ones.", matched))
	}
	return v.give(first.sorted())
}

// give adds the entries that fit to the answer and makes the next cursor.
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
	last := all[room-1].position
	v.position.Place, v.position.Missing, v.position.Used, v.position.Key = last.Place, last.Missing, last.Used, last.Key
	return v.next()
}

// add adds a record to the answer, unless its view cannot be made.
func (v *execution) add(c *lang.Candidate) {
	if h, err := v.s.hit(v.c, v.q, c); err == nil {
		v.out.Hits = append(v.out.Hits, h)
	}
}

// mayBeID reports whether a word is worth a look for the record of that id: it has the
// kind's prefix, or is a number where ids have none.
func mayBeID(k *spec.Kind, word string) bool {
	return k.HasIDPrefix(word) || len(k.Prefixes) == 0 && strings.Trim(word, "0123456789") == ""
}

// exact finds the records whose id is the whole text, and puts them first. Sources and kinds may share an id.
func (v *execution) exact(ctx context.Context) error {
	if n, _ := v.q.Tree.Number(); n != nil {
		if p := understudy.ParsePhone(n.Values[0].Text); p.HasCountryCode {
			v.out.Named.Number = "+" + p.Digits
		} else {
			v.out.Named.Number = p.Digits
		}
	}
	if v.q.ID == "" {
		return nil
	}
	for _, s := range v.q.Asked {
		parts := strings.Split(v.q.ID, spec.IDSeparator)
		if !s.SeesID() || len(parts) != len(s.Kind.ID) || len(parts) == 1 && !mayBeID(s.Kind, v.q.ID) {
			continue
		}
		if s.Rule != nil && !s.Rule.CanFindID(v.q.ID) {
			continue
		}
		seek := query.RecordQuery{Source: s.Source, Kinds: []string{s.Kind.Name}, IDs: []string{v.q.ID}}
		err := v.s.o.Store.Seek(ctx, seek, func(f query.Hit) bool {
			var c lang.Candidate
			if s.See(&c, f.Record) {
				v.meant = append(v.meant, &c)
			}
			return false
		})
		if err != nil {
			return err
		}
	}
	if len(v.meant) == 1 {
		c := v.meant[0]
		v.out.Named.Source, v.out.Named.Kind, v.out.Named.ID = c.Record.Source, c.Record.Kind, c.Record.ID
	}
	if len(v.meant) == 0 || v.position.Met {
		return nil
	}
	v.position.Met = true
	for _, c := range v.meant {
		v.add(c)
	}
	for i := range v.out.Hits {
		v.out.Hits[i].Exact = true
	}
	v.limit = max(v.limit, len(v.out.Hits))
	return nil
}
