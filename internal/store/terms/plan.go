// Plans: what the predicates of a question say of one shape of a kind.

package terms

import (
	"math"
	"slices"
	"strings"

	"understudy/internal/query"
	"understudy/internal/store/inverted"
	"understudy/internal/store/postings"
	"understudy/internal/store/sqlite"
	"understudy/spec"
)

// Plan is what predicates say of records in a shape: every part holds.
type Plan struct {
	Shape int64
	parts []part
}

// part is what one predicate says: a record has one of the tokens, or one of its times is in its window.
type part struct {
	tokens  []int64
	endings []int64 // the least tokens of numbers that end in four digits
	windows []asked // none: no time is asked for
}

// asked is a time asked for: in [from, to), 0 = open.
type asked struct {
	far, near rangeName
	from, to  int64
}

// Join makes one predicate of those that ask for a time of the same field, which has only one; never: it cannot be in
// all of them. A time after one moment and before another asked for apart would each be looked for under every day
// since or until then.
func Join(predicates []query.Predicate) (joined []query.Predicate, never bool) {
	for _, t := range predicates {
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

// Plan is what a parent and predicates, which Join has joined, say of the kind in a shape; nothing: the index does
// not help. exact: what it finds fulfils them all; none: no record of the kind can.
func (k *Kind) Plan(shape int64, parent string, predicates []query.Predicate) (p Plan, exact, none bool) {
	p.Shape, exact = shape, true
	if parent != "" {
		p.parts = append(p.parts, part{tokens: []int64{tokenOf(shape, parentField, parent)}})
	}
	for i := range predicates {
		says, one, none := k.part(shape, &predicates[i])
		if none {
			return p, false, true
		}
		if exact = exact && one; len(says.tokens)+len(says.endings)+len(says.windows) > 0 {
			p.parts = append(p.parts, says)
		}
	}
	return p, exact, false
}

// Empty reports that the plan says nothing: any record may be meant.
func (p *Plan) Empty() bool { return len(p.parts) == 0 }

// part is what a predicate says; when that is nothing the index does not help.
// exact: what has one of its words fulfils it.
func (k *Kind) part(shape int64, t *query.Predicate) (says part, exact, none bool) {
	add := func(field, value string) { says.tokens = append(says.tokens, tokenOf(shape, field, value)) }
	number := func(field, text string) {
		to := &says.tokens
		if _, ending := query.LastFour(text); ending {
			to = &says.endings
		}
		*to = append(*to, numberToken(shape, field, text))
	}
	if t.Field == "" && t.Number == "" {
		fields := query.OwnTimes(k.Spec)
		for _, f := range fields {
			i := slices.IndexFunc(k.Fields, func(of Field) bool { return of.name == f.Name && of.way == byTime })
			if i < 0 {
				return part{}, false, false
			}
			says.windows = append(says.windows, k.Fields[i].window(shape, t))
		}
		return says, false, len(fields) == 0
	}
	if t.Field == "" {
		fields := query.Phones(k.Spec)
		for _, f := range fields {
			if f.From == "" {
				number(f.Name, t.Number)
			}
		}
		return says, false, len(fields) == 0
	}
	if k.Spec != nil && k.Spec.Field(t.Field) == nil {
		return says, false, true
	}
	if k.Spec != nil && t.Field == k.Spec.Parent && len(t.Any) > 0 {
		for _, value := range t.Any {
			add(parentField, value)
		}
		return says, true, false
	}
	if k.Spec != nil && k.Spec.ParentRule() != "" && k.Spec.Field(t.Field).RootPath() != "" && len(t.Any) > 0 {
		for _, value := range t.Any {
			if !strings.Contains(value, spec.IDSeparator) { // no name of a root has it
				add(parentField, spec.ParseRoot(value))
			}
		}
		return says, true, false
	}
	i := slices.IndexFunc(k.Fields, func(f Field) bool { return f.name == t.Field })
	if i < 0 {
		return says, false, false
	}
	switch f := &k.Fields[i]; {
	case f.way == byTime && (t.From != 0 || t.To != 0):
		return part{windows: []asked{f.window(shape, t)}}, false, false
	case f.way == byTime || t.From != 0 || t.To != 0:
		return says, false, false
	case f.way == byNumber && t.Number != "":
		number(f.name, t.Number)
		return says, false, false
	case t.Number != "":
		return says, false, false
	}
	exact = true
	for _, value := range t.Any {
		if k.Fields[i].way == byNumber {
			number(t.Field, value)
			exact = false
			continue
		}
		add(t.Field, value)
	}
	return says, exact, false
}

// window is the time a predicate asks for of a field, in a shape.
func (f *Field) window(shape int64, t *query.Predicate) asked {
	return asked{far: rangeName{shape, f.name}, near: rangeName{shape, f.near}, from: t.From, to: t.To}
}

// within are the first and the last position at which a record may stand whose
// time is near and in the window; none: there is no such.
func (w *asked) within(r *Ranges) (first, last int64, none bool) {
	off, ok := r.get(w.near)
	if !ok {
		return 0, 0, true
	}
	first, last = math.MinInt64, math.MaxInt64
	if w.from != 0 {
		if w.from > 2*postings.MostSecond {
			return 0, 0, true
		}
		first, _ = postings.SecondBounds(max(w.from, 2*postings.LeastSecond) - off.most)
	}
	if w.to != 0 {
		if w.to < 2*postings.LeastSecond {
			return 0, 0, true
		}
		_, last = postings.SecondBounds(min(w.to, 2*postings.MostSecond) - 1 - off.least)
	}
	return first, last, first > last
}

// maxSpread is how many days and months a time is looked for under.
const maxSpread = 120

// tokens are those of which a record has one whose time is in the window, and far
// from where it stands; none: there is no such time.
func (w *asked) tokens(r *Ranges) (all []int64) {
	add := func(value string) { all = append(all, tokenOf(w.far.shape, w.far.field, value)) }
	times, ok := r.get(w.far)
	if !ok {
		return nil
	}
	first, last := times.least, times.most
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

// tokens are the postings of what has the tokens of all parts, less the
// records that have none of the times asked for; nil: no part has any.
func (p *Plan) tokens(c *sqlite.Conn, pending *inverted.Pending, up bool) postings.Iterator {
	var all, none []postings.Iterator
	for _, one := range p.parts {
		switch len(one.windows) {
		case 0:
			var either []postings.Iterator
			for _, least := range one.endings {
				either = append(either, pending.Between(c, up, least, least+perLastFour-1))
			}
			if len(one.tokens) > 0 {
				either = append(either, pending.Find(c, up, one.tokens...))
			}
			all = append(all, postings.Or(up, either...))
		case 1:
			far := one.windows[0].far
			none = append(none, pending.Find(c, up, tokenOf(far.shape, far.field, noTerm)))
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

// Find is the postings of what may fulfil the plan, once what is pending is written; up from the least. all are those of
// all records of the kind, among which a time is looked for when nothing else names
// the records; nil: the caller looks among them itself.
func (p *Plan) Find(c *sqlite.Conn, pending *inverted.Pending, r *Ranges, up bool, all postings.Iterator) postings.Iterator {
	var streams []postings.Iterator
	if found := p.tokens(c, pending, up); found != nil {
		streams = append(streams, found)
	} else if all != nil {
		streams = append(streams, all)
	}
	for _, one := range p.parts {
		if len(one.windows) == 0 {
			continue
		}
		var either []postings.Iterator
		for i := range one.windows {
			if first, last, none := one.windows[i].within(r); !none {
				either = append(either, postings.Between(up, first, last))
			}
			if tokens := one.windows[i].tokens(r); len(tokens) > 0 {
				either = append(either, pending.Find(c, up, tokens...))
			}
		}
		if len(either) == 0 {
			return &postings.Slice{Up: up}
		}
		streams = append(streams, postings.Or(up, either...))
	}
	return postings.And(up, streams...)
}
