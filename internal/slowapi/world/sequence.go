// Where the records of one kind stand: index, time, states, and what happened to them.
package world

import (
	"slices"
	"sort"

	"understudy/internal/slowapi/fake"
)

// Sequence holds the records of one kind in one account. A record's index is
// its place in the order of creation; lists show the highest index first.
// What the seed makes is computed, so only what happened since costs memory.
type Sequence struct {
	Kind    *Kind
	w       *World
	Account int
	Seed    uint64
	Among   map[*Kind]*Sequence // all those of the account, this one included

	Base   int64 // how many records the seed makes: indexes 0 to base-1
	Newest int64 // when the newest of them was created, in Unix seconds
	span   int64 // how many seconds lie between the oldest and the newest

	born  []int64         // when each later record was created, never falling
	Marks map[int64]*mark // what writes and the passing of time did
	Gone  []int64         // deleted, rising
	live  []int64         // not in a final state, rising
	late  []int64         // whose times lie more than slack after creation, rising
}

// mark is what happened to one record since it was created.
type mark struct {
	when    []int64           // when each step after the first was reached
	plan    []string          // the statuses it goes through when a write changed them
	Form    map[string]string // what writes set, by the name of the form field
	written bool              // created by a write, so the seed says nothing about it
	Touched int64             // when it was last written to
}

// slack is how long after its creation a record's other times may lie before
// the sequence keeps it among the late ones.
const slack = 2 * 3600

// Count is how many records there ever were, deleted ones included.
func (s *Sequence) Count() int64 {
	if s.Kind.Owner != nil {
		return s.Kind.Places * s.Among[s.Kind.Owner].Count()
	}
	return s.Base + int64(len(s.born))
}

// Created is when a record was created. It never falls as the index rises.
func (s *Sequence) Created(i int64) int64 {
	switch {
	case s.Kind.Owner != nil:
		return s.Among[s.Kind.Owner].Created(i / s.Kind.Places)
	case i < s.Base && s.Kind.At != nil:
		return s.Kind.At(s, i)
	case i >= s.Base:
		return s.born[i-s.Base]
	}
	return s.Newest - s.age(s.Base-1-i)
}

// age is how long before the newest record the k-th newest was created. One
// neighbour in a hundred shares its second with the one created after it.
func (s *Sequence) age(k int64) int64 {
	var chance uint64
	for k > 0 {
		d := fake.RngFor(s.Seed, s.Kind.Tag<<8|0xa6e, k)
		chance = d.Next()
		if chance%100 != 0 {
			break
		}
		k--
	}
	if k == 0 {
		return 0
	}
	gaps := max(s.Base-1, 1)
	return s.span*k/gaps + int64(chance>>8)%(s.span/gaps/2+1)
}

// FirstSince is the lowest index created at or after t, count when there is none.
func (s *Sequence) FirstSince(t int64) int64 {
	return int64(sort.Search(int(s.Count()), func(i int) bool { return s.Created(int64(i)) >= t }))
}

// Deleted tells whether a record was deleted.
func (s *Sequence) Deleted(i int64) bool {
	_, gone := slices.BinarySearch(s.Gone, i)
	return gone
}

// Exists tells whether there is a record with this index now.
func (s *Sequence) Exists(i int64) bool {
	return i >= 0 && i < s.Count() && !s.Deleted(i) && (s.Kind.Has == nil || s.Kind.Has(s.w, s, i))
}

// Buried tells whether a record was deleted so lately that it still shows to
// requests for deleted records: Twilio keeps the data of a recording 40 days.
func (s *Sequence) Buried(i int64, now int64) bool {
	if !s.Kind.Writes.Buries || !s.Deleted(i) {
		return false
	}
	m := s.Marks[i]
	return m != nil && now-m.Touched <= 40*86400
}

// nth is the index of the n-th newest record, -1 when there are not so many.
// It costs a binary search in a binary search, whatever n.
func (s *Sequence) nth(n int64) int64 {
	above := func(i int64) int64 { // how many records are newer than i
		pos, _ := slices.BinarySearch(s.Gone, i+1)
		return s.Count() - 1 - i - int64(len(s.Gone)-pos)
	}
	count := s.Count()
	k := sort.Search(int(count), func(k int) bool {
		i := count - 1 - int64(k)
		return above(i) >= n && !s.Deleted(i) || above(i) > n
	})
	return count - 1 - int64(k)
}

// markFor is the mark of a record, made when there is none.
func (s *Sequence) markFor(i int64) *mark {
	m := s.Marks[i]
	if m == nil {
		m = &mark{}
		s.Marks[i] = m
	}
	return m
}

// Draw begins the stream of numbers of a record.
func (s *Sequence) Draw(i int64) fake.Rng { return fake.RngFor(s.Seed, s.Kind.Tag, i) }

// First returns how far a record of a kind that has a life had come when the world began, or
// when it was created.
func (s *Sequence) First(i int64) Progress {
	p := s.Kind.Life(s, i)
	p.Created, p.newest = s.Created(i), s.Newest
	if i < s.Base {
		p.start = min(int((s.Base-1-i)/2), p.Final())
	}
	p.step = p.start
	return p
}

// Progress returns how far a record of a kind that has a life has come.
func (s *Sequence) Progress(i int64) Progress {
	p := s.First(i)
	if p.m = s.Marks[i]; p.m == nil {
		return p
	}
	if p.m.plan != nil {
		p.Plan = p.m.plan
	}
	p.step = min(p.start+len(p.m.when), p.Final())
	return p
}

// Touched is when a write last changed a record, 0 when none did.
func (s *Sequence) Touched(i int64) int64 {
	if m := s.Marks[i]; m != nil {
		return m.Touched
	}
	return 0
}

// Updated is when a record that nothing happens to by itself last changed.
func (s *Sequence) Updated(i int64) int64 { return max(s.Created(i), s.Touched(i)) }

// Form is what writes set in a field of a record.
func (s *Sequence) Form(i int64, field string) (string, bool) {
	m := s.Marks[i]
	if m == nil {
		return "", false
	}
	value, set := m.Form[field]
	return value, set
}

// Written tells whether a record was created by a write.
func (s *Sequence) Written(i int64) bool {
	m := s.Marks[i]
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

// Progress is what a record goes through, and how far it has come. The last status stands
// twice when a price appears one step after the final state.
type Progress struct {
	Plan    []string
	Dwell   [8]int64 // seconds spent in each step before the next
	Rest    fake.Rng // decides on what the record is beside its life
	step    int
	start   int // the step the seed left it at
	m       *mark
	Created int64
	newest  int64 // no seeded time lies after it
}

// Final returns the step after which nothing happens.
func (p *Progress) Final() int { return len(p.Plan) - 1 }

// Status is the status now.
func (p *Progress) Status() string { return p.Plan[p.step] }

// done tells whether nothing more happens to the record by itself.
func (p *Progress) done() bool { return p.step >= p.Final() }

// Settled tells whether the step after the final state is reached too.
func (p *Progress) Settled() bool {
	n := len(p.Plan)
	return p.done() && n >= 2 && p.Plan[n-1] == p.Plan[n-2]
}

// at is when a step was reached, 0 when it was not.
func (p *Progress) at(step int) int64 {
	switch {
	case step < 0 || step > p.step:
		return 0
	case step > p.start:
		return p.m.when[step-p.start-1]
	case step == 0:
		return p.Created
	}
	t := p.Created
	for _, d := range p.Dwell[:step] {
		t += d
	}
	return min(t, p.newest)
}

// Reached is when a status was first reached, 0 when it was not.
func (p *Progress) Reached(status string) int64 {
	return p.at(slices.Index(p.Plan, status))
}

// due is when the next step comes by itself.
func (p *Progress) due() int64 { return p.at(p.step) + p.Dwell[p.step] }

// Updated is when the record last changed.
func (p *Progress) Updated() int64 {
	t := p.at(p.step)
	if p.m != nil {
		t = max(t, p.m.Touched)
	}
	return t
}
