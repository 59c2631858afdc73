// Package writes remembers for one kind which earlier reads are outdated by writes and purges. Invalidations
// that the store has not recorded yet are kept here and in a journal that survives a crash.
package writes

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"understudy"
	"understudy/request"
)

const (
	// MaxPending is the maximum number of records of a kind with pending invalidations. Further writes are
	// refused.
	MaxPending = 4096

	maxPendingBytes = 16 << 20 // maximum bytes of pending bodies of a kind; beyond it records are fetched again instead
	maxLastWrites   = 4096     // maximum number of records with a known last write; beyond it all records count as written
	maxUnseen       = 64       // maximum number of written records that were not seen since
)

// Journal stores the writes under way so that they survive a crash.
type Journal interface {
	// Begin notes a write before it is sent. It returns the number for End.
	Begin(request.Invalidation) (n int64, err error)
	// End notes that the store has recorded the write, or that the write did not happen.
	End(n int64)
	// UnendedWrites returns the writes that have not ended, with their numbers.
	UnendedWrites() (numbers []int64, touched []request.Invalidation)
}

// Set is what is known about writes to the records of one kind. Many goroutines may use it at once.
type Set struct {
	about   request.Invalidation // the source and kind of the records; without a kind, pages are not stored
	journal Journal              // nil if writes under way may be lost in a crash

	generation atomic.Int64 // increases with every write, before the write is answered
	changes    atomic.Int64 // increases with everything that outdates pages in memory
	purges     atomic.Int64 // counts the purges

	mu             sync.Mutex
	lastWrites     map[string]int64  // the generation of the last write to each record
	floor          int64             // a write of this generation may have touched any record
	underWay       map[string]*group // writes that are under way, by record
	lastWrite      time.Time         // time of the last write
	unseen         map[string]bool   // records that were written and not seen since
	unseenOverflow bool              // more records were written than unseen can hold
	pending        map[string]*Pending
	pendingBytes   int // the size of all pending bodies in bytes
}

// group is the overlapping writes to one record.
type group struct {
	running    int
	overlapped bool // two writes overlapped, so upstream's order is unknown
}

// Pending are the writes to one record that the store has not recorded yet.
type Pending struct {
	ID         string             // "" if only lists are outdated
	Generation int64              // the generation of the last write
	Versions   []*understudy.Page // the pages that the writes' responses show, oldest first
	intents    []int64            // the numbers of the writes in the journal of intents
	recheck    bool               // upstream must be asked for the present state of the record
}

// New returns the set of a kind with its stored generation. The journal may be nil.
func New(source, kind string, generation int64, journal Journal) *Set {
	s := &Set{
		about: request.Invalidation{Source: source, Kind: kind}, journal: journal, lastWrites: map[string]int64{},
		underWay: map[string]*group{}, unseen: map[string]bool{}, pending: map[string]*Pending{},
	}
	s.generation.Store(generation)
	return s
}

// Moment is the state of writes, changes and purges when something was read.
type Moment struct{ Generation, Changes, Purges int64 }

// Now returns the present moment, for a read that starts now.
func (s *Set) Now() Moment { return Moment{s.generation.Load(), s.changes.Load(), s.purges.Load()} }

// Generation returns the number of writes.
func (s *Set) Generation() int64 { return s.generation.Load() }

// Changes returns how often pages in memory were outdated. A caller that puts a page into memory compares the
// number before and after. Either the search for outdated pages finds the new page, or the caller notices
// that there was a search.
func (s *Set) Changes() int64 { return s.changes.Load() }

// AddChange notes that pages in memory become outdated.
func (s *Set) AddChange() { s.changes.Add(1) }

// Purge outdates everything that is being read. Stored pages are not affected.
func (s *Set) Purge() { s.purges.Add(1) }

// IsPurged reports whether a purge came after a moment.
func (s *Set) IsPurged(since Moment) bool { return since.Purges < s.purges.Load() }

// IsStale reports whether a write or a purge came after a moment. The page of a record is outdated only by
// writes to that record; id is "" for any other page.
func (s *Set) IsStale(id string, since Moment) bool {
	if s.IsPurged(since) {
		return true
	}
	if since.Generation == s.generation.Load() {
		return false
	}
	return id == "" || s.IsWritten(id, since)
}

// IsWritten reports whether a write after a moment may have touched a record.
func (s *Set) IsWritten(id string, since Moment) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(s.floor, s.lastWrites[id]) > since.Generation
}

// Write is a write that is being sent.
type Write struct {
	set    *Set
	id     string
	began  Moment
	group  *group
	intent int64
}

// Begin notes a write to a record before it is sent; id is "" if the record is unknown. The caller must end
// it with Drop or End. After an error, a crash would leave the record unchecked.
func (s *Set) Begin(id string) (w *Write, err error) {
	w = &Write{set: s, id: id, began: s.Now(), group: &group{}}
	w.intent, err = s.beginIntent(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if have := s.underWay[id]; have != nil {
		w.group = have
	} else if id != "" {
		s.underWay[id] = w.group
	}
	w.group.running++
	w.group.overlapped = w.group.overlapped || w.group.running > 1
	return w, err
}

// Drop ends a write that certainly changed nothing.
func (w *Write) Drop() {
	w.set.mu.Lock()
	w.leaveGroup()
	w.set.mu.Unlock()
	w.set.endIntents(w.intent)
}

func (w *Write) leaveGroup() {
	if w.group.running--; w.group.running == 0 {
		delete(w.set.underWay, w.id)
	}
}

// End ends a write that may have changed a record. Its id may be known only now. Everything read before is
// outdated from now on. shows is the page that the response shows, or nil. kept reports whether that page is
// pending for the store.
func (w *Write) End(now time.Time, id string, shows *understudy.Page) (kept bool) {
	s := w.set
	s.Note(now, w.id)
	s.mu.Lock()
	defer s.mu.Unlock()
	w.leaveGroup()
	intents, overtaken := []int64{w.intent}, w.id == "" && max(s.floor, s.lastWrites[id]) > w.began.Generation
	if overtaken && id != "" { // after a crash upstream must be asked, and the write's own intent has no id
		named, err := s.beginIntent(id)
		if intents = append(intents, named); err != nil {
			shows = nil
		}
	}
	return s.add(id, shows, w.group.overlapped || overtaken, intents...)
}

// Restore adds a write that the journal has from a killed process.
func (s *Set) Restore(now time.Time, id string, intent int64) {
	s.Note(now, id)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(id, nil, false, intent)
}

// add counts a write and adds it to the pending ones. The caller has the lock.
func (s *Set) add(id string, shows *understudy.Page, overlapped bool, intents ...int64) (kept bool) {
	n := s.generation.Add(1)
	if id == "" || len(s.lastWrites) >= maxLastWrites {
		s.floor = n
		clear(s.lastWrites)
	} else {
		s.lastWrites[id] = n
	}
	if s.about.Kind == "" {
		return false
	}
	p := s.pending[id]
	if p == nil {
		p = &Pending{ID: id}
		s.pending[id] = p
	}
	p.Generation, p.intents = n, append(p.intents, intents...)
	if kept = shows != nil && s.pendingBytes+len(shows.Body) <= maxPendingBytes; kept {
		p.Versions = append(p.Versions, shows)
		s.pendingBytes += len(shows.Body)
	}
	p.recheck = p.recheck || id != "" && (!kept || overlapped)
	return kept
}

func (s *Set) beginIntent(id string) (intent int64, err error) {
	if s.journal == nil || s.about.Kind == "" {
		return 0, nil
	}
	return s.journal.Begin(request.Invalidation{Source: s.about.Source, Kind: s.about.Kind, ID: id})
}

func (s *Set) endIntents(intents ...int64) {
	for _, n := range intents {
		if s.journal != nil && n != 0 {
			s.journal.End(n)
		}
	}
}

// IsFull reports whether no more records can be pending.
func (s *Set) IsFull() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.pending) >= MaxPending
}

// IsPending reports whether the store has not recorded yet that a record is invalid.
func (s *Set) IsPending(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pending[id] != nil
}

// Pending returns what the store has to record, with the oldest write first.
func (s *Set) Pending() []Pending {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]Pending, 0, len(s.pending))
	for p := range maps.Values(s.pending) {
		all = append(all, Pending{ID: p.ID, Generation: p.Generation, Versions: slices.Clone(p.Versions)})
	}
	slices.SortFunc(all, func(a, b Pending) int { return cmp.Compare(a.Generation, b.Generation) })
	return all
}

// RemoveShown drops the oldest page that writes to a record show. Either the store has it now, or it can
// never store it; then upstream must be asked.
func (s *Set) RemoveShown(id string, kept bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.pending[id]
	p.recheck = p.recheck || !kept
	s.pendingBytes -= len(p.Versions[0].Body)
	p.Versions = p.Versions[1:]
}

// NoteTold notes that the store has recorded the writes to a record up to a generation. The record is then no
// longer pending, unless it was written meanwhile. If upstream must be asked, confirm is called with a
// function that ends these writes after upstream's answer.
func (s *Set) NoteTold(id string, generation int64, confirm func(end func())) {
	s.mu.Lock()
	p := s.pending[id]
	if p == nil || p.Generation != generation || len(p.Versions) > 0 {
		s.mu.Unlock()
		return
	}
	delete(s.pending, id)
	s.mu.Unlock()
	if p.recheck {
		confirm(func() { s.endIntents(p.intents...) })
	} else {
		s.endIntents(p.intents...)
	}
}

// AdvanceTo sets the generation to the store's. If the store's is higher, another process wrote unknown
// records.
func (s *Set) AdvanceTo(generation int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.generation.Load() < generation {
		s.generation.Store(generation)
		s.floor = generation
	}
}

// Note notes a write that lists may not show yet; id is "" if the record is unknown.
func (s *Set) Note(now time.Time, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastWrite = now
	switch {
	case id == "" || s.unseen[id]:
	case len(s.unseen) < maxUnseen:
		s.unseen[id] = true
	default:
		s.unseenOverflow = true
	}
}

// LastWrite returns the time of the last write, or zero.
func (s *Set) LastWrite() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lastWrite
}

// UnseenWrites returns the time of the last write and the written records that were not seen since. many says
// that there are more such records.
func (s *Set) UnseenWrites() (at time.Time, unseen []string, many bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lastWrite, slices.Collect(maps.Keys(s.unseen)), s.unseenOverflow
}

// NoteSeen notes that a record was seen after its write, unless there was a write after that time.
func (s *Set) NoteSeen(at time.Time, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lastWrite.Equal(at) {
		delete(s.unseen, id)
	}
}
