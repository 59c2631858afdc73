// Order: how hits are sorted, and the first of the newest matches in that order.

package search

import (
	"bytes"
	"cmp"
	"container/heap"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"

	"understudy"
	"understudy/internal/query"
	"understudy/internal/search/lang"
	"understudy/spec"
)

// The orders that are no fields.
const (
	newest = "newest"
	oldest = "oldest"
	rank   = "rank"
)

// order says how hits are sorted. The zero value is newest first.
type order struct {
	up     bool // oldest first
	window bool // of the newest matches only
	rank   bool
	down   bool // by a field, the largest first
	in     map[*lang.KindView]string
	sorts  map[*lang.KindView]lang.Sort
}

// orderOf reads the name of an order. A field in it must be fully seen in every kind that has it.
func orderOf(q *lang.BoundQuery, name string) (o order, err error) {
	switch name {
	case "", newest:
		return o, nil
	case oldest:
		return order{up: true}, nil
	case rank:
		return order{window: true, rank: true}, nil
	}
	field, down := strings.CutPrefix(name, "-")
	if field == lang.DateName && !down {
		return order{up: true}, nil
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
		return o, invalid("sort=%s: what is looked in has no field %s%s Write newest, oldest, rank or a field, with a minus before it for the "+
			"largest first", understudy.Clip(name), understudy.Clip(field), lang.Stopped(lang.Hint(field, slices.Compact(known))))
	}
	b := &lang.Binder{Text: name, Now: q.Now, Views: q.Views, Every: func(func(*spec.Kind, bool) bool) {}}
	in, _ := b.Fields(field, len(name)-len(field), len(name), q.Views)
	if b.Err != nil {
		if len(q.Views) == 0 {
			return order{window: true}, nil
		}
		return o, fmt.Errorf("search: %w: sort=%s: %s", b.Err.Kind, understudy.Clip(name), b.Err.Why)
	}
	o = order{window: true, down: down, in: in, sorts: map[*lang.KindView]lang.Sort{}}
	for s, name := range in {
		o.sorts[s] = lang.SortOf(s.Kind, s.Kind.Field(name))
	}
	return o, nil
}

// entry is a match in a window.
type entry struct {
	position position
	record   lang.Candidate
}

// key fills in the position of a match in the order.
func (o *order) key(q *lang.BoundQuery, c *lang.Candidate, m *position) {
	put := func(key []byte) { m.Used = uint8(copy(m.Key[:], key)) }
	if o.rank {
		put(binary.BigEndian.AppendUint64(nil, score(q, c)))
		return
	}
	m.Missing = true
	field := o.in[c.View]
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

// compare is negative when a comes before b.
func (o *order) compare(a, b *position) int {
	if a.Missing != b.Missing {
		if a.Missing {
			return 1
		}
		return -1
	}
	by := bytes.Compare(a.Key[:a.Used], b.Key[:b.Used])
	if o.rank || o.down {
		by = -by
	}
	if by != 0 {
		return by
	}
	return cmp.Compare(b.Place, a.Place) // the newest first
}

// topN keeps the first few of many matches: the last of them is on top.
type topN struct {
	order *order
	all   []*entry
}

func (b *topN) Len() int { return len(b.all) }
func (b *topN) Less(i, j int) bool {
	return b.order.compare(&b.all[i].position, &b.all[j].position) > 0
}
func (b *topN) Swap(i, j int) { b.all[i], b.all[j] = b.all[j], b.all[i] }
func (b *topN) Push(x any)    { b.all = append(b.all, x.(*entry)) }
func (b *topN) Pop() any {
	last := b.all[len(b.all)-1]
	b.all = b.all[:len(b.all)-1]
	return last
}

// offer adds a match when it is among the first n.
func (b *topN) offer(e *entry, n int) {
	if len(b.all) < n {
		heap.Push(b, e)
		return
	}
	if b.order.compare(&e.position, &b.all[0].position) < 0 {
		b.all[0] = e
		heap.Fix(b, 0)
	}
}

// sorted empties it, the first one first.
func (b *topN) sorted() []*entry {
	all := make([]*entry, len(b.all))
	for i := len(all) - 1; i >= 0; i-- {
		all[i] = heap.Pop(b).(*entry)
	}
	return all
}

// Weights of a match: by how it was found, and in what.
const (
	weighPhrase, weighWord, weighPrefix = 6, 4, 1
	weighWhole                          = 4 // times more when it is the whole text
	mostOften                           = 8 // times a word counts in one text
)

// score is how well a record fits the words of a query: how often they stand in what the role sees, how short that
// is, and whether they are all of it. It is of this record alone, so that it stays when others come.
func score(q *lang.BoundQuery, c *lang.Candidate) uint64 {
	var all uint64
	for _, l := range q.Cond.Wanted(nil) {
		n := len(l.Words.Words())
		weight := uint64(weighWord * n)
		switch {
		case l.Words.IsPrefix():
			weight = uint64(weighPrefix + weighWord*(n-1))
		case n > 1:
			weight = uint64(weighPhrase * n)
		}
		for _, t := range c.Text() {
			if field := l.In[c.View]; l.In != nil && field != t.Name {
				continue
			}
			often, covered := uint64(0), 0
			for start, end := range l.Words.Find(t.Text) {
				often++
				covered += end - start
				if often == mostOften {
					break
				}
			}
			if often == 0 {
				continue
			}
			part := weight * often * 1000 / uint64(8+len(t.Text)/8)
			if covered >= len(t.Text) {
				part *= weighWhole
			}
			all += part
		}
	}
	return all
}
