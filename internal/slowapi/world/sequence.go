// Sequences: the records of one kind, with their index, creation time, status and changes.
package world

import (
	"slices"
	"sort"

	"understudy/internal/slowapi/fake"
)

// Sequence has the records of one kind in one account. The index of a record is its place in the order of creation, beginning
// with 0. Lists show the highest index first. Seeded records are computed when they are needed, so only changes take memory.
type Sequence struct {
	Kind     *Kind
	w        *World
	Account  int
	Seed     uint64
	Siblings map[*Kind]*Sequence // all sequences of the account by kind, including this one

	SeededCount int64 // the number of seeded records, whose indexes begin with 0
	Newest      int64 // the creation time of the newest seeded record, in Unix seconds
	span        int64 // the time between the oldest and the newest seeded record, in seconds

	createdAt      []int64            // when each record after the seeded ones was created, in Unix seconds
	History        map[int64]*history // what has changed in each record, by index; records without changes have none
	DeletedIndexes []int64            // the indexes of deleted records in ascending order
	unfinished     []int64            // the indexes of records that are not in a final status, in ascending order
	late           []int64            // the indexes of records that changed more than maxFinalDelay after their creation, in ascending order
}

// history has what has changed in a record since its creation.
type history struct {
	stepTimes      []int64           // when the record reached each of its statuses after the first, in Unix seconds
	plan           []string          // the statuses that the record goes through, if a write has changed them; else nil
	Fields         map[string]string // the values that writes have set, by the name of the form field
	createdByWrite bool              // whether a write created the record, so that its values do not come from the seed
	LastWrite      int64             // when a write last changed the record, in Unix seconds
}

// maxFinalDelay is the time in seconds after its creation in which a record usually reaches its final status. Time filters
// search only records created in a window of this length, and all late records.
const maxFinalDelay = 2 * 3600

// Count returns the number of records ever created, including deleted records.
func (s *Sequence) Count() int64 {
	if s.Kind.Owner != nil {
		return s.Kind.SlotsPerOwner * s.Siblings[s.Kind.Owner].Count()
	}
	return s.SeededCount + int64(len(s.createdAt))
}

// CreationTime returns when a record was created, in Unix seconds. It is never lower than that of a lower index.
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

// age returns how many seconds before the newest seeded record the k-th newest was created. One record in a hundred
// has the same creation time as the next newer record.
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

// FirstSince returns the lowest index of a record that was created at or after t. It returns Count if there is none.
func (s *Sequence) FirstSince(t int64) int64 {
	return int64(sort.Search(int(s.Count()), func(i int) bool { return s.CreationTime(int64(i)) >= t }))
}

// IsDeleted reports whether a record was deleted.
func (s *Sequence) IsDeleted(i int64) bool {
	_, gone := slices.BinarySearch(s.DeletedIndexes, i)
	return gone
}

// HasRecord reports whether there is a record at an index and it was not deleted.
func (s *Sequence) HasRecord(i int64) bool {
	return i >= 0 && i < s.Count() && !s.IsDeleted(i) && (s.Kind.IsUsed == nil || s.Kind.IsUsed(s.w, s, i))
}

// IsRecentlyDeleted reports whether a deleted record can still be requested. Twilio keeps the metadata of a deleted
// recording for 40 days.
func (s *Sequence) IsRecentlyDeleted(i int64, now int64) bool {
	if !s.Kind.Writes.ShowsDeleted || !s.IsDeleted(i) {
		return false
	}
	m := s.History[i]
	return m != nil && now-m.LastWrite <= 40*86400
}

// nthNewest returns the index of the n-th newest record that was not deleted, counted from 0. It returns -1 if there
// are not so many. Its time does not depend on n, because it uses binary search.
func (s *Sequence) nthNewest(n int64) int64 {
	above := func(i int64) int64 { // above returns the number of records that are newer than i
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

// getHistory returns the history of a record, and creates it if needed.
func (s *Sequence) getHistory(i int64) *history {
	m := s.History[i]
	if m == nil {
		m = &history{}
		s.History[i] = m
	}
	return m
}

// Random returns the random numbers for a record. They depend only on the seed, the kind and the index.
func (s *Sequence) Random(i int64) fake.Rng { return fake.RngFor(s.Seed, s.Kind.Tag, i) }

// InitialProgress returns the statuses of a record, as they were planned when the simulated world began or when the
// record was created. The kind must have a Lifecycle.
func (s *Sequence) InitialProgress(i int64) Progress {
	p := s.Kind.Lifecycle(s, i)
	p.Created, p.newest = s.CreationTime(i), s.Newest
	if i < s.SeededCount {
		p.firstStep = min(int((s.SeededCount-1-i)/2), p.FinalStep())
	}
	p.step = p.firstStep
	return p
}

// Progress returns the statuses of a record, with the current one. The kind must have a Lifecycle.
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

// LastWrite returns when a write last changed a record, in Unix seconds. It returns 0 if no write has.
func (s *Sequence) LastWrite(i int64) int64 {
	if m := s.History[i]; m != nil {
		return m.LastWrite
	}
	return 0
}

// UpdateTime returns when a record last changed, in Unix seconds. It is for kinds without a Lifecycle.
func (s *Sequence) UpdateTime(i int64) int64 { return max(s.CreationTime(i), s.LastWrite(i)) }

// WrittenValue returns the value that a write has set in a field of a record. It returns false if no write has.
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

// insert adds i to an ascending list, unless the list contains it already.
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

// Progress has the statuses that a record goes through, and which of them it has now. If the last status is listed
// twice, the price of the record appears at the second.
type Progress struct {
	Plan           []string // the statuses of the record in their order
	SecondsPerStep [8]int64 // how many seconds the record stays in each status
	Random         fake.Rng // the random numbers for the other values of the record
	step           int      // the index of the current status in Plan
	firstStep      int      // the index of the status that the record had when the simulated world began
	history        *history // what has changed in the record; nil if nothing has
	Created        int64    // when the record was created, in Unix seconds
	newest         int64    // the latest time, in Unix seconds, that a seeded record may have for a status change
}

// FinalStep returns the index of the last status in Plan.
func (p *Progress) FinalStep() int { return len(p.Plan) - 1 }

// Status returns the current status.
func (p *Progress) Status() string { return p.Plan[p.step] }

// isFinal reports whether the record has its last status.
func (p *Progress) isFinal() bool { return p.step >= p.FinalStep() }

// IsPriced reports whether the record has reached the step after its final status, at which its price appears.
func (p *Progress) IsPriced() bool {
	n := len(p.Plan)
	return p.isFinal() && n >= 2 && p.Plan[n-1] == p.Plan[n-2]
}

// stepTime returns when the record reached the status at an index in Plan, in Unix seconds. It returns 0 if it has not.
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
	for _, d := range p.SecondsPerStep[:step] {
		t += d
	}
	return min(t, p.newest)
}

// StatusTime returns when the record first reached a status, in Unix seconds. It returns 0 if it has not.
func (p *Progress) StatusTime(status string) int64 {
	return p.stepTime(slices.Index(p.Plan, status))
}

// nextStepTime returns when the next status change is due, in Unix seconds.
func (p *Progress) nextStepTime() int64 { return p.stepTime(p.step) + p.SecondsPerStep[p.step] }

// UpdateTime returns when the record last changed, in Unix seconds.
func (p *Progress) UpdateTime() int64 {
	t := p.stepTime(p.step)
	if p.history != nil {
		t = max(t, p.history.LastWrite)
	}
	return t
}
