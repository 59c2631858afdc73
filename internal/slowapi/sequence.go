// Where the records of one kind stand: index, time, states, and what happened to them.
package slowapi

import (
	"slices"
	"sort"
	"understudy/internal/slowapi/fake"
)

// sequence holds the records of one kind in one account. A record's index is
// its place in the order of creation; lists show the highest index first.
// What the seed makes is computed, so only what happened since costs memory.
type sequence struct {
	kind    *kind
	account int
	seed    uint64
	among   map[*kind]*sequence // all those of the account, this one included

	base   int64 // how many records the seed makes: indexes 0 to base-1
	newest int64 // when the newest of them was created, in Unix seconds
	span   int64 // how many seconds lie between the oldest and the newest

	// at is when a seeded record was created, where that follows from another
	// record; nil where newest and span say it. It never falls as the index rises.
	at func(i int64) int64
	// size and has are how many indexes there are and which of them hold records,
	// where all of that follows from other records; nil where base and born say it.
	size func() int64
	has  func(i int64) bool

	born  []int64         // when each later record was created, never falling
	marks map[int64]*mark // what writes and the passing of time did
	gone  []int64         // deleted, rising
	live  []int64         // not in a final state, rising
	late  []int64         // whose times lie more than slack after creation, rising
}

// mark is what happened to one record since it was created.
type mark struct {
	when    []int64           // when each step after the first was reached
	plan    []string          // the statuses it goes through when a write changed them
	form    map[string]string // what writes set, by the name of the form field
	written bool              // created by a write, so the seed says nothing about it
	touched int64             // when it was last written to
}

// slack is how long after its creation a record's other times may lie before
// the sequence keeps it among the late ones.
const slack = 2 * 3600

// count is how many records there ever were, deleted ones included.
func (s *sequence) count() int64 {
	if s.size != nil {
		return s.size()
	}
	return s.base + int64(len(s.born))
}

// created is when a record was created. It never falls as the index rises.
func (s *sequence) created(i int64) int64 {
	switch {
	case s.size != nil, i < s.base && s.at != nil:
		return s.at(i)
	case i >= s.base:
		return s.born[i-s.base]
	}
	return s.newest - s.age(s.base-1-i)
}

// age is how long before the newest record the k-th newest was created. One
// neighbour in a hundred shares its second with the one created after it.
func (s *sequence) age(k int64) int64 {
	var chance uint64
	for k > 0 {
		d := fake.RngFor(s.seed, s.kind.tag<<8|0xa6e, k)
		chance = d.Next()
		if chance%100 != 0 {
			break
		}
		k--
	}
	if k == 0 {
		return 0
	}
	gaps := max(s.base-1, 1)
	return s.span*k/gaps + int64(chance>>8)%(s.span/gaps/2+1)
}

// firstSince is the lowest index created at or after t, count when there is none.
func (s *sequence) firstSince(t int64) int64 {
	return int64(sort.Search(int(s.count()), func(i int) bool { return s.created(int64(i)) >= t }))
}

// deleted tells whether a record was deleted.
func (s *sequence) deleted(i int64) bool {
	_, gone := slices.BinarySearch(s.gone, i)
	return gone
}

// exists tells whether there is a record with this index now.
func (s *sequence) exists(i int64) bool {
	return i >= 0 && i < s.count() && !s.deleted(i) && (s.has == nil || s.has(i))
}

// buried tells whether a record was deleted so lately that it still shows to
// those who ask for what was deleted: Twilio keeps a recording's data 40 days.
func (s *sequence) buried(i int64, now int64) bool {
	if !s.kind.buries || !s.deleted(i) {
		return false
	}
	m := s.marks[i]
	return m != nil && now-m.touched <= 40*86400
}

// nth is the index of the n-th newest record, -1 when there are not so many.
// It costs a binary search in a binary search, whatever n.
func (s *sequence) nth(n int64) int64 {
	above := func(i int64) int64 { // how many records are newer than i
		pos, _ := slices.BinarySearch(s.gone, i+1)
		return s.count() - 1 - i - int64(len(s.gone)-pos)
	}
	count := s.count()
	k := sort.Search(int(count), func(k int) bool {
		i := count - 1 - int64(k)
		return above(i) >= n && !s.deleted(i) || above(i) > n
	})
	return count - 1 - int64(k)
}

// markFor is the mark of a record, made when there is none.
func (s *sequence) markFor(i int64) *mark {
	m := s.marks[i]
	if m == nil {
		m = &mark{}
		s.marks[i] = m
	}
	return m
}

// form is what writes set in a field of a record.
func (s *sequence) form(i int64, field string) (string, bool) {
	m := s.marks[i]
	if m == nil {
		return "", false
	}
	value, set := m.form[field]
	return value, set
}

// written tells whether a record was created by a write.
func (s *sequence) written(i int64) bool {
	m := s.marks[i]
	return m != nil && m.written
}

// insert adds i to a rising list, once.
func insert(list []int64, i int64) []int64 {
	pos, there := slices.BinarySearch(list, i)
	if there {
		return list
	}
	return slices.Insert(list, pos, i)
}

// without takes i from a rising list.
func without(list []int64, i int64) []int64 {
	pos, there := slices.BinarySearch(list, i)
	if !there {
		return list
	}
	return slices.Delete(list, pos, pos+1)
}

// lifecycle is what a record goes through. The last status stands twice when a
// price appears one step after the final state.
type lifecycle struct {
	plan  []string
	dwell [8]int64 // seconds spent in each step before the next
}

// final is the step after which nothing happens.
func (l *lifecycle) final() int { return len(l.plan) - 1 }

// progress is one record's life together with how far it has come.
type progress struct {
	lifecycle
	step    int
	start   int // the step the seed left it at
	m       *mark
	created int64
	newest  int64 // no seeded time lies after it
}

// progressOf reads how far a record has come.
func progressOf(s *sequence, i int64, l lifecycle) progress {
	p := progress{lifecycle: l, m: s.marks[i], created: s.created(i), newest: s.newest}
	if i < s.base {
		p.start = min(int((s.base-1-i)/2), l.final())
	}
	p.step = p.start
	if p.m == nil {
		return p
	}
	if p.m.plan != nil {
		p.plan = p.m.plan
	}
	p.step = min(p.start+len(p.m.when), p.final())
	return p
}

// status is the status now.
func (p *progress) status() string { return p.plan[p.step] }

// done tells whether nothing more happens to the record by itself.
func (p *progress) done() bool { return p.step >= p.final() }

// settled tells whether the step after the final state is reached too.
func (p *progress) settled() bool {
	n := len(p.plan)
	return p.done() && n >= 2 && p.plan[n-1] == p.plan[n-2]
}

// at is when a step was reached, 0 when it was not.
func (p *progress) at(step int) int64 {
	switch {
	case step < 0 || step > p.step:
		return 0
	case step > p.start:
		return p.m.when[step-p.start-1]
	case step == 0:
		return p.created
	}
	t := p.created
	for _, d := range p.dwell[:step] {
		t += d
	}
	return min(t, p.newest)
}

// reached is when a status was first reached, 0 when it was not.
func (p *progress) reached(status string) int64 {
	return p.at(slices.Index(p.plan, status))
}

// due is when the next step comes by itself.
func (p *progress) due() int64 { return p.at(p.step) + p.dwell[p.step] }

// updated is when the record last changed.
func (p *progress) updated() int64 {
	t := p.at(p.step)
	if p.m != nil {
		t = max(t, p.m.touched)
	}
	return t
}

// cut ends a life early: what was reached stays, then the given steps follow.
func (p *progress) cut(steps ...string) []string {
	return append(slices.Clone(p.plan[:p.step+1]), steps...)
}
