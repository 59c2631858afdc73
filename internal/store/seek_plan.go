// The plan of a question: which kinds it is about, and the stream of spots among
// which all that is meant is found.

package store

import (
	"database/sql/driver"
	"math"
	"slices"
	"strings"

	"understudy"
)

// seekPlan is a question with its numbers.
type seekPlan struct {
	q        *understudy.Seek
	kinds    []*kindPlan
	byShape  map[int64]*kindPlan
	from, to int64 // positions
	since    map[int64]bool
	said     bool // a text is asked for:
	text     *textPlan
	exact    bool // what the streams give is what is meant
}

// kindPlan is what is asked of one kind.
type kindPlan struct {
	*kindRow
	source string
	shapes []*shapeRow // those it is looked for in; the first is the one it is told in, if it can be
	match  string      // of terms; "": any record
}

// plan makes the plan of a question that was checked.
func (db *DB) plan(q *understudy.Seek) *seekPlan {
	p := &seekPlan{q: q, byShape: map[int64]*kindPlan{}, exact: true}
	p.from, p.to = positions(*q)
	db.catalog.mu.RLock()
	defer db.catalog.mu.RUnlock()
	for name, k := range db.catalog.kinds {
		if !wants(q, name.source, name.kind) {
			continue
		}
		one := &kindPlan{kindRow: k, source: name.source}
		for shape, s := range db.catalog.shapes {
			if s.kind == k && (q.Shape == "" || shape.shape == q.Shape) {
				one.shapes = append(one.shapes, s)
			}
		}
		first := firstShape(k.spec)
		slices.SortFunc(one.shapes, func(a, b *shapeRow) int {
			switch {
			case a.name == first:
				return -1
			case b.name == first:
				return 1
			}
			return int(a.slot - b.slot)
		})
		match, none := db.match(p, one)
		if none || len(one.shapes) == 0 {
			continue
		}
		one.match = match
		p.kinds = append(p.kinds, one)
		for _, s := range one.shapes {
			p.byShape[s.number] = one
		}
	}
	slices.SortFunc(p.kinds, func(a, b *kindPlan) int { return int(a.number - b.number) })
	return p
}

// match is what terms say of a kind, as FTS5 has it; none: no record of the
// kind can fulfil them.
func (db *DB) match(p *seekPlan, k *kindPlan) (match string, none bool) {
	if p.q.Parent == "" && len(p.q.Terms) == 0 {
		return "", false
	}
	if len(k.shapes) > 1 {
		p.exact = false // it is told in another shape than it may be found in
	}
	var shapes []string
	for _, s := range k.shapes {
		var parts []string
		if p.q.Parent != "" {
			parts = append(parts, string(appendToken(nil, s.number, parentTerm, p.q.Parent)))
		}
		for i := range p.q.Terms {
			words, exact, none := db.words(k.kindRow, s, &p.q.Terms[i])
			if none {
				return "", true
			}
			if p.exact = p.exact && exact; len(words) > 0 {
				parts = append(parts, "("+strings.Join(words, " OR ")+")")
			}
		}
		if len(parts) == 0 {
			return "", false
		}
		shapes = append(shapes, "("+strings.Join(parts, " AND ")+")")
	}
	return strings.Join(shapes, " OR "), false
}

// maxSpread is how many days and months a time is looked for under.
const maxSpread = 120

// words are the tokens of which a record has one that fulfils a term; without
// any the index says nothing. exact: what has one fulfils it.
func (db *DB) words(k *kindRow, s *shapeRow, t *understudy.Term) (words []string, exact, none bool) {
	add := func(field, value string) {
		words = append(words, string(appendToken(nil, s.number, field, value)))
	}
	if t.Field == "" {
		fields := phones(k.spec)
		for _, f := range fields {
			if f.From == "" {
				add(f.Name, numberTerm(t.Number))
			}
		}
		return words, false, len(fields) == 0
	}
	if k.spec != nil && k.spec.Field(t.Field) == nil {
		return nil, false, true
	}
	if k.spec != nil && t.Field == k.spec.Parent && len(t.Any) > 0 {
		for _, value := range t.Any {
			add(parentTerm, value)
		}
		return words, true, false
	}
	i := slices.IndexFunc(k.terms, func(f termField) bool { return f.name == t.Field })
	if i < 0 {
		return nil, false, false
	}
	switch f := &k.terms[i]; {
	case f.way == termTime && (t.From != 0 || t.To != 0):
		days, exact := db.days(spanName{s.number, f.name}, t.From, t.To)
		for _, day := range days {
			add(f.name, day)
		}
		return words, exact, days != nil && len(days) == 0
	case f.way == termTime || t.From != 0 || t.To != 0:
		return nil, false, false
	case f.way == termNumber && t.Number != "":
		add(f.name, numberTerm(t.Number))
		return words, false, false
	case t.Number != "":
		return nil, false, false
	}
	exact = true
	for _, value := range t.Any {
		if t := &k.terms[i]; t.way == termNumber {
			value, exact = numberTerm(value), false
		}
		add(k.terms[i].name, value)
	}
	return words, exact, false
}

// days are the days and months that hold a stretch of time, as far as the field
// has ever had one; nil when they are too many, empty when there are none.
func (db *DB) days(name spanName, from, to int64) (terms []string, exact bool) {
	span, ok := db.spans.get(name)
	if !ok {
		return []string{}, true
	}
	if from == 0 || from < span.least {
		from = span.least
	}
	last := span.most
	if to != 0 && to-1 < last {
		last = to - 1
	}
	terms = []string{}
	if from > last {
		return terms, true
	}
	exact = true
	const day = 24 * 60 * 60
	if from != span.least && from != dayOf(from)*day || last != span.most && last+1 != (dayOf(last)+1)*day {
		exact = false
	}
	for at := dayOf(from); at <= dayOf(last); {
		if len(terms) == maxSpread {
			return nil, false
		}
		month := monthOf(at * day)
		next := monthStart(month + 1)
		if at == dayOf(monthStart(month)) && dayOf(next)-1 <= dayOf(last) {
			terms = append(terms, monthTerm(month))
			at = dayOf(next)
			continue
		}
		terms = append(terms, dayTerm(at))
		at++
	}
	return terms, exact
}

var (
	matchDown = &statement{head: "SELECT rowid FROM terms WHERE terms MATCH ? AND rowid <= ? ORDER BY rowid DESC LIMIT ?"}
	matchUp   = &statement{head: "SELECT rowid FROM terms WHERE terms MATCH ? AND rowid >= ? ORDER BY rowid ASC LIMIT ?"}
	placeDown = &statement{head: "SELECT at << 10 | ?2 FROM place WHERE kind = ?1 AND at <= ?3 >> 10 ORDER BY at DESC LIMIT ?4"}
	placeUp   = &statement{head: "SELECT at << 10 | ?2 FROM place WHERE kind = ?1 AND at >= ?3 >> 10 ORDER BY at ASC LIMIT ?4"}
)

// stream is every spot at which something that is meant may stand.
func (p *seekPlan) stream(c *conn) (stream, error) {
	up := p.q.Up
	if !p.said {
		return p.termSpots(c), nil
	}
	text, err := c.wordSpots(p.text, up)
	if err != nil || p.q.Parent == "" && len(p.q.Terms) == 0 {
		return text, err
	}
	return allIn(up, p.termSpots(c), &everyShape{up: up, s: text, byShape: p.byShape}), nil
}

// termSpots are the spots of what may fulfil the terms.
func (p *seekPlan) termSpots(c *conn) stream {
	up := p.q.Up
	match, place := matchDown, placeDown
	if up {
		match, place = matchUp, placeUp
	}
	var matches []string
	var streams []stream
	for _, k := range p.kinds {
		if k.match == "" {
			streams = append(streams, &reading{c: c, st: place, args: []driver.Value{k.number, k.shapes[0].number}, up: up})
			continue
		}
		matches = append(matches, k.match)
	}
	if len(matches) > 0 {
		streams = append(streams, &reading{c: c, st: match, args: []driver.Value{strings.Join(matches, " OR ")}, up: up})
	}
	if len(streams) == 0 {
		return &listed{up: up}
	}
	return anyIn(up, streams...)
}

// first is where the plan's stream is to begin: at the first position after
// the place below, its own included, since other kinds may stand there.
func (p *seekPlan) first(below understudy.Place) int64 {
	at := int64(below) >> shapeBits
	if p.q.Up {
		if from := p.from; below == 0 || at < from {
			if from == math.MinInt64 {
				return from
			}
			return spotOf(from, 0)
		}
		return spotOf(at, 0)
	}
	if below == 0 || at > p.to {
		if p.to == math.MaxInt64 {
			return p.to
		}
		return spotOf(p.to, 1<<shapeBits-1)
	}
	return spotOf(at, 1<<shapeBits-1)
}
