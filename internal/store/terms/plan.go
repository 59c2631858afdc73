// This file plans how to find records in one shape by the predicates of a query.

package terms

import (
	"math"
	"slices"
	"strings"

	"understudy/internal/query"
	"understudy/internal/store/db"
	"understudy/internal/store/inverted"
	"understudy/internal/store/postings"
	"understudy/spec"
)

// Plan is the conditions that some predicates set for records in a shape. A record must match all parts.
type Plan struct {
	Shape int64
	parts []part
}

// part is the condition of one predicate: a record has one of the tokens, or one of its times is in one of the windows.
type part struct {
	tokens  []int64
	endings []int64      // the first tokens of phone numbers with given last four digits
	windows []timeWindow // the time windows of the predicate; none if it has no time
}

// timeWindow is a range of times from from up to, but not including, to. 0 means no bound.
type timeWindow struct {
	far, near rangeName
	from, to  int64
}

// Join combines predicates on the times of the same field, because a field has only one time. Otherwise the predicates
// "after one time" and "before another time" would each search all days on their side. never is true if no time can
// match all predicates.
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

// Plan returns the conditions of a parent and of predicates in a shape, after Join. An empty plan means that the index
// cannot select records. exact means that every record that the plan finds matches all predicates. none means that no
// record of the kind can match.
func (k *Kind) Plan(shape int64, parent string, predicates []query.Predicate) (p Plan, exact, none bool) {
	p.Shape, exact = shape, true
	if parent != "" {
		p.parts = append(p.parts, part{tokens: []int64{tokenOf(shape, parentField, parent)}})
	}
	for i := range predicates {
		says, one, none := k.planPart(shape, &predicates[i])
		if none {
			return p, false, true
		}
		if exact = exact && one; len(says.tokens)+len(says.endings)+len(says.windows) > 0 {
			p.parts = append(p.parts, says)
		}
	}
	return p, exact, false
}

// IsEmpty reports whether the plan has no condition, so that any record may match.
func (p *Plan) IsEmpty() bool { return len(p.parts) == 0 }

// planPart returns the condition of one predicate. The condition is empty if the index cannot select records by it.
// exact means that every record with one of the tokens matches.
func (k *Kind) planPart(shape int64, t *query.Predicate) (says part, exact, none bool) {
	add := func(field, value string) { says.tokens = append(says.tokens, tokenOf(shape, field, value)) }
	number := func(field, text string) {
		to := &says.tokens
		if _, ending := query.LastFour(text); ending {
			to = &says.endings
		}
		*to = append(*to, numberToken(shape, field, text))
	}
	if t.Field == "" && t.Number == "" {
		fields := query.TimeFields(k.Spec)
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
		fields := query.PhoneFields(k.Spec)
		for _, f := range fields {
			if f.DerivedFrom == "" {
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
			if !strings.Contains(value, spec.IDSeparator) { // the name of a root contains no separator
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
		return part{windows: []timeWindow{f.window(shape, t)}}, false, false
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

// window returns the time window of a predicate on a field, in a shape.
func (f *Field) window(shape int64, t *query.Predicate) timeWindow {
	return timeWindow{far: rangeName{shape, f.name}, near: rangeName{shape, f.near}, from: t.From, to: t.To}
}

// positionRange returns the range of positions for the records whose time is near their position and in the window.
// none reports that there are no such records.
func (w *timeWindow) positionRange(r *Ranges) (first, last int64, none bool) {
	off, ok := r.get(w.near)
	if !ok {
		return 0, 0, true
	}
	first, last = math.MinInt64, math.MaxInt64
	if w.from != 0 {
		if w.from > 2*postings.MaxSecond {
			return 0, 0, true
		}
		first, _ = postings.SecondBounds(max(w.from, 2*postings.MinSecond) - off.last)
	}
	if w.to != 0 {
		if w.to < 2*postings.MinSecond {
			return 0, 0, true
		}
		_, last = postings.SecondBounds(min(w.to, 2*postings.MaxSecond) - 1 - off.first)
	}
	return first, last, first > last
}

// maxSpread is the maximum number of days and months for which one predicate searches separate tokens.
const maxSpread = 120

// tokens returns tokens for the times in the window. Each record with such a time far from its position has one of the
// tokens. There are none if no record has such a time.
func (w *timeWindow) tokens(r *Ranges) (all []int64) {
	add := func(value string) { all = append(all, tokenOf(w.far.shape, w.far.field, value)) }
	times, ok := r.get(w.far)
	if !ok {
		return nil
	}
	first, last := times.first, times.last
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

// findTokens returns the postings that have the tokens of all parts, but not records without any of the times. It
// returns nil if no part has tokens.
func (p *Plan) findTokens(c db.Conn, pending *inverted.Pending, up bool) postings.Iterator {
	var all, none []postings.Iterator
	for _, one := range p.parts {
		switch len(one.windows) {
		case 0:
			var either []postings.Iterator
			for _, least := range one.endings {
				either = append(either, pending.FindRange(c, up, least, least+perLastFour-1))
			}
			if len(one.tokens) > 0 {
				either = append(either, pending.Find(c, up, one.tokens...))
			}
			all = append(all, postings.Unite(up, either...))
		case 1:
			far := one.windows[0].far
			none = append(none, pending.Find(c, up, tokenOf(far.shape, far.field, noTerm)))
		}
	}
	switch {
	case len(all) == 0:
		return nil
	case len(none) == 0:
		return postings.Intersect(all...)
	}
	return postings.Exclude(up, postings.Intersect(all...), postings.Unite(up, none...))
}

// Find returns the postings that may match the plan, as if the pending entries were written, in ascending order if up
// is set. all are the postings of all records of the kind. Find searches times in them if nothing else selects records.
// If all is nil, the caller searches the times itself.
func (p *Plan) Find(c db.Conn, pending *inverted.Pending, r *Ranges, up bool, all postings.Iterator) postings.Iterator {
	var streams []postings.Iterator
	if found := p.findTokens(c, pending, up); found != nil {
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
			if first, last, none := one.windows[i].positionRange(r); !none {
				either = append(either, postings.Range(up, first, last))
			}
			if tokens := one.windows[i].tokens(r); len(tokens) > 0 {
				either = append(either, pending.Find(c, up, tokens...))
			}
		}
		if len(either) == 0 {
			return &postings.Slice{Up: up}
		}
		streams = append(streams, postings.Unite(up, either...))
	}
	return postings.Intersect(streams...)
}
