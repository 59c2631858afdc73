// This file defines how hits are sorted, and keeps the first n hits.

package search

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"understudy"
	"understudy/internal/query"
	"understudy/internal/search/lang"
	"understudy/spec"
)

// The names of the orders that do not sort by a field.
const (
	newest = "newest"
	oldest = "oldest"
	rank   = "rank"
	near   = lang.NearName
)

// order is how hits are sorted. The zero value means newest first.
type order struct {
	oldestFirst bool
	window      bool // whether only a window of the newest matches is sorted
	rank        bool
	descending  bool                                            // whether the largest value comes first
	distance    func(*lang.Candidate) (meters float64, ok bool) // set if the nearest comes first
	fields      map[*lang.KindView]string
	sorts       map[*lang.KindView]lang.Sort
}

// orderOf parses the name of an order. If the order sorts by a field, the caller must fully see the field in every
// kind that has it.
func orderOf(q *lang.BoundQuery, name string) (o order, err error) {
	switch name {
	case "", newest:
		return o, nil
	case oldest:
		return order{oldestFirst: true}, nil
	case rank:
		return order{window: true, rank: true}, nil
	}
	field, down := strings.CutPrefix(name, "-")
	if distance := q.Cond.Distance(); field == near && distance != nil {
		return order{window: true, descending: down, distance: distance}, nil
	}
	if field == lang.DateName && !down {
		return order{oldestFirst: true}, nil
	} else if field == lang.DateName {
		return o, nil
	}
	if len(q.Views) > 0 && !slices.ContainsFunc(q.Views, func(s *lang.KindView) bool {
		f, several := s.Field(field)
		return f != nil ||
			len(several) > 0
	}) {
		known := []string{newest, oldest, rank}
		for _, s := range q.Views {
			known = slices.AppendSeq(known, maps.Keys(s.Fields))
		}
		slices.Sort(known)
		return o, newInvalid("sort=%s: these records have no field %s%s Write newest, oldest, rank or a field, with a minus before it for "+
			"the largest first", understudy.Clip(name), understudy.Clip(field), lang.EndSentence(lang.Hint(field, slices.Compact(known))))
	}
	b := &lang.Binder{Text: name, Now: q.Now, Views: q.Views, AllKinds: func(func(*spec.Kind, bool) bool) {}}
	in, _ := b.Fields(field, len(name)-len(field), len(name), q.Views)
	if b.Err != nil {
		if len(q.Views) == 0 {
			return order{window: true}, nil
		}
		return o, fmt.Errorf("search: %w: sort=%s: %s", b.Err.Kind, understudy.Clip(name), b.Err.Why)
	}
	o = order{window: true, descending: down, fields: in, sorts: map[*lang.KindView]lang.Sort{}}
	for s, name := range in {
		o.sorts[s] = lang.SortOf(s.Kind, s.Kind.Field(name))
	}
	return o, nil
}

// entry is a match in the sorted window.
type entry struct {
	position position
	record   lang.Candidate
}

// setKey sets the sort key of a match in its position.
func (o *order) setKey(q *lang.BoundQuery, c *lang.Candidate, m *position) {
	put := func(key []byte) { m.KeyLen = uint8(copy(m.Key[:], key)) }
	if o.rank {
		put(binary.BigEndian.AppendUint64(nil, score(q, c)))
		return
	}
	m.Missing = true
	if o.distance != nil {
		meters, ok := o.distance(c)
		if ok {
			put(binary.BigEndian.AppendUint64(nil, math.Float64bits(meters))) // the bits of positive numbers sort as the numbers do
		}
		m.Missing = !ok
		return
	}
	field := o.fields[c.View]
	if field == "" {
		return
	}
	text, ok := c.TextOf(field)
	if !ok {
		return
	}
	switch o.sorts[c.View] {
	case lang.SortNumber:
		d, ok := query.ParseDecimal(text)
		if !ok {
			return
		}
		put(d.Key(keyBytes))
	case lang.SortTime:
		t := spec.Unix(c.View.Kind.Field(field).Type, []byte(text))
		put(binary.BigEndian.AppendUint64(nil, uint64(t)^1<<63))
	default:
		put([]byte(strings.ToLower(text[:min(len(text), 4*keyBytes)])))
	}
	m.Missing = false
}

// compare returns a negative number if a comes before b.
func (o *order) compare(a, b *position) int {
	if a.Missing != b.Missing {
		if a.Missing {
			return 1
		}
		return -1
	}
	by := bytes.Compare(a.Key[:a.KeyLen], b.Key[:b.KeyLen])
	if o.rank || o.descending {
		by = -by
	}
	return cmp.Or(by, cmp.Compare(b.Place, a.Place)) // among equal keys the newest match comes first
}

// topN keeps the first n of many matches.
type topN struct {
	order   *order
	n       int
	entries []*entry // at most 2n
	last    *entry   // the last of the first n when the entries were last sorted; nil before
}

// offer adds a match if it can be among the first n.
func (b *topN) offer(e *entry) {
	if b.last != nil && b.order.compare(&e.position, &b.last.position) >= 0 {
		return
	}
	if b.entries = append(b.entries, e); len(b.entries) >= 2*b.n {
		b.last = b.sort()[b.n-1]
	}
}

// sort returns the first n matches in their order, and drops the others.
func (b *topN) sort() []*entry {
	slices.SortFunc(b.entries, func(x, y *entry) int { return b.order.compare(&x.position, &y.position) })
	b.entries = b.entries[:min(b.n, len(b.entries))]
	return b.entries
}

// How much an occurrence of a phrase, a word or the beginning of a word counts for the rank of a match.
const (
	phraseWeight, wordWeight, prefixWeight = 6, 4, 1
	wholeTextFactor                        = 4 // the factor for a match that is the whole text
	maxOccurrences                         = 8 // the maximum number of occurrences of a word that count in one text
)

// score returns how well a record matches the words of a query. It depends on how often the words occur in the
// fields that the role sees, how short those fields are, and whether the words are the whole field. The score
// depends on this record alone, so new records do not change it.
func score(q *lang.BoundQuery, c *lang.Candidate) uint64 {
	var all uint64
	for _, l := range q.Cond.WordPredicates(nil) {
		n := len(l.Words.Words())
		weight := uint64(wordWeight * n)
		switch {
		case l.Words.IsPrefix():
			weight = uint64(prefixWeight + wordWeight*(n-1))
		case n > 1:
			weight = uint64(phraseWeight * n)
		}
		for _, t := range c.Texts() {
			if field := l.Fields[c.View]; l.Fields != nil && field != t.Name {
				continue
			}
			often, covered := uint64(0), 0
			for start, end := range l.Words.Find(t.Text) {
				often++
				covered += end - start
				if often == maxOccurrences {
					break
				}
			}
			if often == 0 {
				continue
			}
			part := weight * often * 1000 / uint64(8+len(t.Text)/8)
			if covered >= len(t.Text) {
				part *= wholeTextFactor
			}
			all += part
		}
	}
	return all
}
