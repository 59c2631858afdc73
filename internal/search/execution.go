// This file runs a search: it visits the matches one by one.

package search

import (
	"cmp"
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
	caller   understudy.Caller
	request  *query.SearchRequest
	q        *lang.BoundQuery
	order    order
	limit    int
	position position          // where the run starts; after the run, where it stopped
	byID     []*lang.Candidate // the records whose id is the whole search text
	result   query.SearchResult
}

// run collects matches ordered by place, with the newest or the oldest first.
func (v *execution) run(ctx context.Context) error {
	looked, more := 0, false
	last := v.position.Place
	err := v.s.scan(ctx, v.q, v.position.Place, v.order.oldestFirst, func(f foundRecord, c *lang.Candidate) bool {
		looked++
		if c != nil && !v.isFoundByID(c.Record) {
			if len(v.result.Hits) == v.limit {
				more = true
				return false
			}
			v.add(c)
		}
		last = f.order
		if looked >= v.s.o.Limits.MaxRecords {
			more = true
			if len(v.result.Hits) < v.limit {
				v.markPartial(looked, "that is the limit of one answer")
			}
			return false
		}
		return true
	})
	v.position.Place = last
	timedOut := errors.Is(err, context.DeadlineExceeded)
	if err != nil && !timedOut {
		return err
	}
	if more || timedOut {
		return errors.Join(v.setNextCursor(), err)
	}
	return nil
}

func (v *execution) setNextCursor() (err error) {
	v.result.Next, err = v.s.sealCursor(v.caller, v.request, v.position)
	return err
}

// scan calls yield for every record that the query's plan finds after the place below, newest first unless up is
// true. c is nil for a record that does not match. Both arguments of yield are valid until yield returns.
func (s *Searcher) scan(ctx context.Context, q *lang.BoundQuery, below query.OrderKey, up bool,
	yield func(f foundRecord, c *lang.Candidate) bool) error {
	var c lang.Candidate
	return s.stream(ctx, s.narrow(ctx, q, q.Plan()), below, up, func(f foundRecord) bool {
		if ctx.Err() != nil {
			return false
		}
		if !f.view.Read(&c, f.record) || !q.Cond.Match(&c) {
			return yield(f, nil)
		}
		return yield(f, &c)
	})
}

func (v *execution) isFoundByID(r *understudy.Record) bool {
	return slices.ContainsFunc(v.byID, func(c *lang.Candidate) bool {
		return r.ID == c.Record.ID && r.Kind == c.Record.Kind && r.Source == c.Record.Source
	})
}

// runWindow sorts the newest matches by rank or by a field and adds the first of them to the result.
func (v *execution) runWindow(ctx context.Context) error {
	first := topN{order: &v.order, n: v.limit + 1}
	matched, looked := 0, 0
	var timedOut bool
	top, bottom := v.position.Top, v.position.Bottom
	started := v.request.Cursor != ""
	err := v.s.scan(ctx, v.q, 0, v.order.oldestFirst, func(f foundRecord, c *lang.Candidate) bool {
		if top != 0 && f.order > top {
			return true
		}
		if bottom != 0 && f.order < bottom || matched == v.s.o.Limits.MaxSorted {
			v.result.More = true
			return false
		}
		if looked++; looked > v.s.o.Limits.MaxRecords && bottom == 0 {
			timedOut = true
			return false
		}
		if c == nil || v.isFoundByID(c.Record) {
			return true
		}
		matched++
		v.position.Top = cmp.Or(v.position.Top, f.order)
		if !started {
			v.position.Bottom = f.order
		}
		e := &entry{position: position{Place: f.order}}
		v.order.setKey(v.q, c, &e.position)
		if started && v.order.compare(&e.position, &v.position) <= 0 {
			return true // an earlier page already showed this match
		}
		e.record = *c
		e.record.TextFields, e.record.TextsRead = nil, false
		first.offer(e)
		return true
	})
	v.result.Window = matched
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if timedOut || err != nil {
		v.result.More = true
		v.markPartial(looked, "that is the limit of one answer; the matches so far are sorted")
	} else if v.result.More {
		v.result.Notes = append(v.result.Notes, fmt.Sprintf("Only the newest %d matches are sorted; there are older ones.", matched))
	}
	return v.addEntries(first.sort())
}

// addEntries adds as many entries as fit into the page and sets the next cursor if some are left.
func (v *execution) addEntries(all []*entry) error {
	room := v.limit - len(v.result.Hits)
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
	v.position.Place, v.position.Missing, v.position.KeyLen, v.position.Key = last.Place, last.Missing, last.KeyLen, last.Key
	return v.setNextCursor()
}

// add adds a record to the result. A record whose view cannot be made is left out.
func (v *execution) add(c *lang.Candidate) {
	if h, err := v.s.newHit(v.caller, v.q, c); err == nil {
		v.result.Hits = append(v.result.Hits, h)
	}
}

// canBeID reports whether word may be an id of the kind. It may if it has a known prefix, or if it consists of
// digits and ids of the kind have no prefix.
func canBeID(k *spec.Kind, word string) bool {
	return k.HasIDPrefix(word) || len(k.Prefixes) == 0 && strings.Trim(word, "0123456789") == ""
}

// findByID finds the records whose id is the whole search text and puts them first. Several sources or kinds may
// have a record with the same id.
func (v *execution) findByID(ctx context.Context) error {
	if n, _ := v.q.Tree.Number(); n != nil {
		if p := understudy.ParsePhone(n.Values[0].Text); p.HasCountryCode {
			v.result.Named.Number = "+" + p.Digits
		} else {
			v.result.Named.Number = p.Digits
		}
	}
	if v.q.ID == "" {
		return nil
	}
	for _, s := range v.q.IDViews {
		parts := strings.Split(v.q.ID, spec.IDSeparator)
		if !s.CanSeeID() || len(parts) != len(s.Kind.ID) || len(parts) == 1 && !canBeID(s.Kind, v.q.ID) {
			continue
		}
		if s.Rule != nil && !s.Rule.CanFindID(v.q.ID) {
			continue
		}
		seek := query.RecordQuery{Source: s.Source, Kinds: []string{s.Kind.Name}, IDs: []string{v.q.ID}, ConstantEffort: true}
		err := v.s.o.Store.Seek(ctx, seek, func(f query.Hit) bool {
			var c lang.Candidate
			if s.Read(&c, f.Record) {
				v.byID = append(v.byID, &c)
			}
			return false
		})
		if err != nil {
			return err
		}
	}
	if len(v.byID) == 1 {
		c := v.byID[0]
		v.result.Named.Source, v.result.Named.Kind, v.result.Named.ID = c.Record.Source, c.Record.Kind, c.Record.ID
	}
	if len(v.byID) == 0 || v.position.ShownByID {
		return nil
	}
	v.position.ShownByID = true
	for _, c := range v.byID {
		v.add(c)
	}
	for i := range v.result.Hits {
		v.result.Hits[i].Exact = true
	}
	v.limit = max(v.limit, len(v.result.Hits))
	return nil
}
