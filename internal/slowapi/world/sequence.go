// Sequences: the records of one kind with index, creation time, status and changes.
package world

import (
	"slices"
	"sort"

	"understudy/internal/slowapi/fake"
)

// Sequence has the records of one kind in one account. The index of a record is its position in the order
// of creation, from 0. Lists show the highest index first. Seeded records are computed when they are
// needed, so only changes use memory.
type Sequence struct {
	Kind     *Kind
	w        *World
	Account  int
	Seed     uint64
	Siblings map[*Kind]*Sequence // all sequences of the account, including this one

	SeededCount int64 // the number of seeded records, which have the indexes from 0
	Newest      int64 // the creation time of the newest seeded record, in Unix seconds
	span        int64 // the seconds between the oldest and the newest seeded record

	createdAt      []int64            // the creation time of each record after the seeded ones, in Unix seconds
	History        map[int64]*history // the changes of each changed record, by index
	DeletedIndexes []int64            // the indexes of deleted records, ascending
	unfinished     []int64            // the indexes of records that are not in a final state, ascending
	late           []int64            // the indexes of records changed more than maxLag after their creation, ascending
}

// history has the changes of one record after its creation.
type history struct {
	stepTimes      []int64           // when each step after the first was reached, in Unix seconds
	plan           []string          // the statuses of the record if a write changed them, or nil
	Fields         map[string]string // the values that writes set, by form field
	createdByWrite bool              // a write created the record, so its values do not come from the seed
	LastWrite      int64             // when the record was last written to, in Unix seconds
}

// maxLag is the number of seconds after the creation of a record in which it usually reaches its
// final state. Time filters search a window of this length and also all late records.
const maxLag = 2 * 3600

// Count returns the number of records ever created, including deleted records.
func (s *Sequence) Count() int64 {
	if s.Kind.Owner != nil {
		return s.Kind.SlotsPerOwner * s.Siblings[s.Kind.Owner].Count()
	}
	return s.SeededCount + int64(len(s.createdAt))
}

// CreationTime returns when a record was created, in Unix seconds. It never decreases as the index increases.
func (s *Sequence) CreationTime(i int64) int64 {
	switch {
	case s.Kind.Owner != nil:
		return s.Siblings[s.Kind.Owner].CreationTime(i / s.Kind.SlotsPerOwner)
	case i < s.SeededCount && s.Kind.CreationTime != nil:
		return s.Kind.CreationTime(s, i)
	case i >= s.SeededCount:
		return s.createdAt[i-s.SeededCount]
	}
	return s.Newest - s.age(s.SeededCount-1-i)
}

// age returns the seconds between the creation of the k-th newest and the newest seeded record. One record
// in a hundred has the same creation time as the next newer record.
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
	gaps := max(s.SeededCount-1, 1)
	return s.span*k/gaps + int64(chance>>8)%(s.span/gaps/2+1)
}

// FirstSince returns the lowest index of the records created at or after t, or Count if there is none.
func (s *Sequence) FirstSince(t int64) int64 {
	return int64(sort.Search(int(s.Count()), func(i int) bool { return s.CreationTime(int64(i)) >= t }))
}

// IsDeleted reports whether a record was deleted.
func (s *Sequence) IsDeleted(i int64) bool {
	_, gone := slices.BinarySearch(s.DeletedIndexes, i)
	return gone
}

// HasRecord reports whether there is a record with this index that was not deleted.
func (s *Sequence) HasRecord(i int64) bool {
	return i >= 0 && i < s.Count() && !s.IsDeleted(i) && (s.Kind.IsUsed == nil || s.Kind.IsUsed(s.w, s, i))
}

// IsRecentlyDeleted reports whether requests for deleted records still show a record. Twilio keeps the
// metadata of a deleted recording for 40 days.
func (s *Sequence) IsRecentlyDeleted(i int64, now int64) bool {
	if !s.Kind.Writes.ShowsDeleted || !s.IsDeleted(i) {
		return false
	}
	m := s.History[i]
	return m != nil && now-m.LastWrite <= 40*86400
}

// nthNewest returns the index of the n-th newest record, counted from 0, or -1 if there are not so many. It needs
// a binary search for each step of a binary search, so its cost does not depend on n.
func (s *Sequence) nthNewest(n int64) int64 {
	above := func(i int64) int64 { // the number of records newer than i
		pos, _ := slices.BinarySearch(s.DeletedIndexes, i+1)
		return s.Count() - 1 - i - int64(len(s.DeletedIndexes)-pos)
	}
	count := s.Count()
	k := sort.Search(int(count), func(k int) bool {
		i := count - 1 - int64(k)
		return above(i) >= n && !s.IsDeleted(i) || above(i) > n
	})
	return count - 1 - int64(k)
}

// getHistory returns the history of a record and creates it if needed.
func (s *Sequence) getHistory(i int64) *history {
	m := s.History[i]
	if m == nil {
		m = &history{}
		s.History[i] = m
	}
	return m
}

// Random returns the random generator of a record. It depends only on the seed, the kind and the index.
func (s *Sequence) Random(i int64) fake.Rng { return fake.RngFor(s.Seed, s.Kind.Tag, i) }

// InitialProgress returns the progress of a record when the world began, or when the record was created.
// Its kind has a lifecycle.
func (s *Sequence) InitialProgress(i int64) Progress {
	p := s.Kind.Lifecycle(s, i)
	p.Created, p.newest = s.CreationTime(i), s.Newest
	if i < s.SeededCount {
		p.firstStep = min(int((s.SeededCount-1-i)/2), p.FinalStep())
	}
	p.step = p.firstStep
	return p
}

// Progress returns the progress of a record now. Its kind has a lifecycle.
func (s *Sequence) Progress(i int64) Progress {
	p := s.InitialProgress(i)
	if p.history = s.History[i]; p.history == nil {
		return p
	}
	if p.history.plan != nil {
		p.Plan = p.history.plan
	}
	p.step = min(p.firstStep+len(p.history.stepTimes), p.FinalStep())
	return p
}

// LastWrite returns when a write last changed a record, in Unix seconds, or 0 if none did.
func (s *Sequence) LastWrite(i int64) int64 {
	if m := s.History[i]; m != nil {
		return m.LastWrite
	}
	return 0
}

// UpdateTime returns when a record of a kind without lifecycle last changed, in Unix seconds.
func (s *Sequence) UpdateTime(i int64) int64 { return max(s.CreationTime(i), s.LastWrite(i)) }

// WrittenValue returns the value that a write set in a field of a record. The bool is false if none did.
func (s *Sequence) WrittenValue(i int64, field string) (string, bool) {
	m := s.History[i]
	if m == nil {
		return "", false
	}
	value, set := m.Fields[field]
	return value, set
}

// IsCreatedByWrite reports whether a write created the record.
func (s *Sequence) IsCreatedByWrite(i int64) bool {
	m := s.History[i]
	return m != nil && m.createdByWrite
}

// insert adds i to an ascending list if it is not in the list.
func insert(list []int64, i int64) []int64 {
	pos, there := slices.BinarySearch(list, i)
	if there {
		return list
	}
	return slices.Insert(list, pos, i)
}

// remove removes i from an ascending list.
func remove(list []int64, i int64) []int64 {
	pos, there := slices.BinarySearch(list, i)
	if !there {
		return list
	}
	return slices.Delete(list, pos, pos+1)
}

// Progress has the statuses that a record goes through, and its current step. If the last status
// is listed twice, the price of the record appears at the second one.
type Progress struct {
	Plan      []string // the status at each step
	Dwell     [8]int64 // the seconds in each step before the next
	Rest      fake.Rng // the random generator for the other values of the record
	step      int      // the current step, from 0
	firstStep int      // the step of the record when the world began
	history   *history // the changes of the record, or nil
	Created   int64    // when the record was created, in Unix seconds
	newest    int64    // the latest time of a seeded step, in Unix seconds
}

// FinalStep returns the last step of the plan.
func (p *Progress) FinalStep() int { return len(p.Plan) - 1 }

// Status returns the current status.
func (p *Progress) Status() string { return p.Plan[p.step] }

// isFinal reports whether the record has reached its last step.
func (p *Progress) isFinal() bool { return p.step >= p.FinalStep() }

// IsPriced reports whether the record has reached the step after its final status, where its price appears.
func (p *Progress) IsPriced() bool {
	n := len(p.Plan)
	return p.isFinal() && n >= 2 && p.Plan[n-1] == p.Plan[n-2]
}

// stepTime returns when a step was reached, in Unix seconds, or 0 if it was not.
func (p *Progress) stepTime(step int) int64 {
	switch {
	case step < 0 || step > p.step:
		return 0
	case step > p.firstStep:
		return p.history.stepTimes[step-p.firstStep-1]
	case step == 0:
		return p.Created
	}
	t := p.Created
	for _, d := range p.Dwell[:step] {
		t += d
	}
	return min(t, p.newest)
}

// StatusTime returns when a status was first reached, in Unix seconds, or 0 if it was not.
func (p *Progress) StatusTime(status string) int64 {
	return p.stepTime(slices.Index(p.Plan, status))
}

// nextStepTime returns when the next step is due, in Unix seconds.
func (p *Progress) nextStepTime() int64 { return p.stepTime(p.step) + p.Dwell[p.step] }

// UpdateTime returns when the record last changed, in Unix seconds.
func (p *Progress) UpdateTime() int64 {
	t := p.stepTime(p.step)
	if p.history != nil {
		t = max(t, p.history.LastWrite)
	}
	return t
}
