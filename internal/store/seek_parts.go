// What the terms of a question say of one shape, and the streams of it: tokens of
// the index of terms, and windows of time, which are stretches of places.

package store

import (
	"database/sql/driver"
	"math"
	"slices"

	"understudy/internal/query"
	"understudy/internal/store/inverted"
	"understudy/internal/store/postings"
	"understudy/internal/store/sqlite"
)

// shapePlan is what terms say of records in a shape: every part holds.
type shapePlan struct {
	shape *shapeRow
	parts []part
}

// part is what one term says: a record has one of the tokens, or one of its times
// is in its window.
type part struct {
	tokens  []int64
	windows []asked // none: no time is asked for
}

// asked is a time asked for: in [from, to), 0 = open.
type asked struct {
	far, near spanName
	from, to  int64
}

// ask says what terms say of a kind; none: no record of the kind can fulfil
// them.
func (db planner) ask(p *seekPlan, k *kindPlan) (none bool) {
	if p.q.Parent == "" && len(p.q.Predicates) == 0 {
		return false
	}
	terms, never := joinTimes(p.q.Predicates)
	if never {
		return true
	}
	if len(k.shapes) > 1 {
		p.exact = false // it is told in another shape than it may be found in
	}
	for _, s := range k.shapes {
		one := shapePlan{shape: s}
		if p.q.Parent != "" {
			one.parts = append(one.parts, part{tokens: []int64{tokenOf(s.number, parentTerm, p.q.Parent)}})
		}
		for i := range terms {
			says, exact, none := db.part(k.kindRow, s, &terms[i])
			if none {
				return true
			}
			if p.exact = p.exact && exact; len(says.tokens) > 0 || len(says.windows) > 0 {
				one.parts = append(one.parts, says)
			}
		}
		if len(one.parts) == 0 {
			k.asked = nil
			return false
		}
		k.asked = append(k.asked, one)
	}
	return false
}

// joinTimes makes one term of those that ask for a time of the same field, which
// has only one; never: it cannot be in all of them. A time after one moment and
// before another asked for apart would each be looked for under every day since
// or until then.
func joinTimes(terms []query.Predicate) (joined []query.Predicate, never bool) {
	for _, t := range terms {
		i := -1
		if t.Field != "" && len(t.Any) == 0 && t.Number == "" {
			i = slices.IndexFunc(joined, func(o query.Predicate) bool {
				return o.Field == t.Field && len(o.Any) == 0 && o.Number == ""
			})
		}
		if i < 0 {
			joined = append(joined, t)
			continue
		}
		one := &joined[i]
		if one.From == 0 || t.From != 0 && t.From > one.From {
			one.From = t.From
		}
		if one.To == 0 || t.To != 0 && t.To < one.To {
			one.To = t.To
		}
	}
	never = slices.ContainsFunc(joined, func(t query.Predicate) bool { return t.From != 0 && t.To != 0 && t.From >= t.To })
	return joined, never
}

// part is what a term says; when that is nothing the index does not help.
// exact: what has one of its words fulfils it.
func (db planner) part(k *kindRow, s *shapeRow, t *query.Predicate) (says part, exact, none bool) {
	add := func(field, value string) {
		says.tokens = append(says.tokens, tokenOf(s.number, field, value))
	}
	if t.Field == "" && t.Number == "" {
		fields := ownTimes(k.spec)
		for _, f := range fields {
			i := slices.IndexFunc(k.terms, func(of termField) bool { return of.name == f.Name && of.way == termTime })
			if i < 0 {
				return part{}, false, false
			}
			says.windows = append(says.windows, k.terms[i].window(s, t))
		}
		return says, false, len(fields) == 0
	}
	if t.Field == "" {
		fields := phones(k.spec)
		for _, f := range fields {
			if f.From == "" {
				add(f.Name, numberTerm(t.Number))
			}
		}
		return says, false, len(fields) == 0
	}
	if k.spec != nil && k.spec.Field(t.Field) == nil {
		return says, false, true
	}
	if k.spec != nil && t.Field == k.spec.Parent && len(t.Any) > 0 {
		for _, value := range t.Any {
			add(parentTerm, value)
		}
		return says, true, false
	}
	i := slices.IndexFunc(k.terms, func(f termField) bool { return f.name == t.Field })
	if i < 0 {
		return says, false, false
	}
	switch f := &k.terms[i]; {
	case f.way == termTime && (t.From != 0 || t.To != 0):
		return part{windows: []asked{f.window(s, t)}}, false, false
	case f.way == termTime || t.From != 0 || t.To != 0:
		return says, false, false
	case f.way == termNumber && t.Number != "":
		add(f.name, numberTerm(t.Number))
		return says, false, false
	case t.Number != "":
		return says, false, false
	}
	exact = true
	for _, value := range t.Any {
		if t := &k.terms[i]; t.way == termNumber {
			value, exact = numberTerm(value), false
		}
		add(k.terms[i].name, value)
	}
	return says, exact, false
}

// window is the time a term asks for of a field, in a shape.
func (f *termField) window(s *shapeRow, t *query.Predicate) asked {
	return asked{far: spanName{s.number, f.name}, near: spanName{s.number, f.near}, from: t.From, to: t.To}
}

// within are the first and the last position at which a record may stand whose
// time is near and in the window; none: there is no such.
func (w *asked) within(s *spans) (first, last int64, none bool) {
	off, ok := s.get(w.near)
	if !ok {
		return 0, 0, true
	}
	first, last = math.MinInt64, math.MaxInt64
	if w.from != 0 {
		if w.from > 2*mostSecond {
			return 0, 0, true
		}
		first, _ = secondBounds(max(w.from, 2*leastSecond) - off.most)
	}
	if w.to != 0 {
		if w.to < 2*leastSecond {
			return 0, 0, true
		}
		_, last = secondBounds(min(w.to, 2*mostSecond) - 1 - off.least)
	}
	return first, last, first > last
}

// maxSpread is how many days and months a time is looked for under.
const maxSpread = 120

// tokens are those of which a record has one whose time is in the window, and far
// from where it stands; none: there is no such time.
func (w *asked) tokens(s *spans) (all []int64) {
	add := func(value string) { all = append(all, tokenOf(w.far.shape, w.far.field, value)) }
	span, ok := s.get(w.far)
	if !ok {
		return nil
	}
	first, last := span.least, span.most
	if w.from != 0 && w.from > first {
		first = w.from
	}
	if w.to != 0 && w.to-1 < last {
		last = w.to - 1
	}
	if first > last {
		return nil
	}
	const day = 24 * 60 * 60
	for at := dayOf(first); at <= dayOf(last); {
		if len(all) == maxSpread {
			all = nil
			add(farTerm)
			return all
		}
		month := monthOf(at * day)
		next := monthStart(month + 1)
		if at == dayOf(monthStart(month)) && dayOf(next)-1 <= dayOf(last) {
			add(monthTerm(month))
			at = dayOf(next)
			continue
		}
		add(dayTerm(at))
		at++
	}
	return all
}

// tokenSpots are the postings of what has the tokens of all parts, less the
// records that have none of the times asked for; nil: no part has any.
func (s *shapePlan) tokenSpots(c *sqlite.Conn, up bool) postings.Iterator {
	var all, none []postings.Iterator
	for _, p := range s.parts {
		switch len(p.windows) {
		case 0:
			all = append(all, inverted.Find(c, up, p.tokens...))
		case 1:
			far := p.windows[0].far
			none = append(none, inverted.Find(c, up, tokenOf(far.shape, far.field, noTerm)))
		}
	}
	switch {
	case len(all) == 0:
		return nil
	case len(none) == 0:
		return postings.And(up, all...)
	}
	return postings.Without(up, postings.And(up, all...), postings.Or(up, none...))
}

// shapeSpots are the spots of what may fulfil the terms in a shape. Joined with
// a stream of records of that kind alone, windows need not name their records.
func (p *seekPlan) shapeSpots(c *sqlite.Conn, k *kindPlan, s *shapePlan, joined bool) postings.Iterator {
	up := p.q.Up
	var streams []postings.Iterator
	if found := s.tokenSpots(c, up); found != nil {
		streams = append(streams, found)
	} else if !joined {
		streams = append(streams, placeSpots(c, k.number, s.shape.number, p.q))
	}
	for _, one := range s.parts {
		if len(one.windows) == 0 {
			continue
		}
		var either []postings.Iterator
		for i := range one.windows {
			if first, last, none := one.windows[i].within(&p.db.spans); !none {
				either = append(either, postings.Between(up, first, last))
			}
			if tokens := one.windows[i].tokens(&p.db.spans); len(tokens) > 0 {
				either = append(either, inverted.Find(c, up, tokens...))
			}
		}
		if len(either) == 0 {
			return &postings.Slice{Up: up}
		}
		streams = append(streams, postings.Or(up, either...))
	}
	return postings.And(up, streams...)
}

var (
	placeDown = &sqlite.Statement{Head: "SELECT at << 10 | ?2 FROM place WHERE kind = ?1 AND at <= ?3 >> 10 ORDER BY at DESC LIMIT ?4"}
	placeUp   = &sqlite.Statement{Head: "SELECT at << 10 | ?2 FROM place WHERE kind = ?1 AND at >= ?3 >> 10 ORDER BY at ASC LIMIT ?4"}
)

// placeSpots are the spots of all records of a kind, as if all were in a shape.
func placeSpots(c *sqlite.Conn, kind, shape int64, q *query.RecordQuery) postings.Iterator {
	st := placeDown
	if q.Up {
		st = placeUp
	}
	return &postings.Scan{C: c, St: st, Args: []driver.Value{kind, shape}, Up: q.Up, Size: (q.Want + 1) / 2}
}
