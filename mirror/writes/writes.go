// Package writes remembers, for one kind, which pages read earlier are outdated by writes and purges. It also
// remembers which writes the store does not know of yet: in memory, and in a journal that survives a crash.
package writes

import (
	"cmp"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"understudy"
	"understudy/kit/lockwatch"
	"understudy/request"
)

const (
	// MaxPending is the maximum number of records of a kind that have pending writes. Further writes are refused.
	MaxPending = 4096

	// the maximum size in bytes of the response bodies that wait to be stored, for each kind; records beyond it are
	// fetched again instead
	maxPendingBytes = 16 << 20
	// the maximum number of records whose last write is remembered; if there are more, every record counts as written
	maxLastWrites = 4096
	maxUnseen     = 64 // the maximum number of written records that are remembered until a fetch has shown them
)

// Journal stores the writes under way, so that they are known after a crash.
type Journal interface {
	// Begin stores a write before it is sent. It returns the number to pass to End.
	Begin(request.Invalidation) (n int64, err error)
	// End notes that the store knows of the write, or that the write did not happen.
	End(n int64)
	// UnendedWrites returns the writes for which End has not been called, with their numbers.
	UnendedWrites() (numbers []int64, touched []request.Invalidation)
}

// Set is what is known about writes to the records of one kind. It is safe for concurrent use.
type Set struct {
	subject request.Invalidation // the source and the kind of the records; if the kind is empty, its pages are not stored
	journal Journal              // the journal of writes under way; nil if they may be forgotten in a crash

	generation atomic.Int64 // a number that increases with every write, before the write is answered
	changes    atomic.Int64 // a number that increases whenever pages in memory become outdated
	purges     atomic.Int64 // the number of purges

	mu                  lockwatch.Mutex
	stored              int64             // the last known generation of the store
	lastWrites          map[string]int64  // the generation of the last write to each record
	anyRecordGeneration int64             // the generation of the last write that may have touched any record
	underWay            map[string]*group // the writes that have not been answered yet, by record
	lastWrite           time.Time         // the time of the last write
	unseen              map[string]bool   // the records that were written and that no fetch has shown since
	unseenOverflow      bool              // whether more records were written than unseen can hold
	pending             map[string]*Pending
	pendingBytes        int // the size in bytes of all response bodies that wait to be stored
}

// group has the writes to one record that overlap in time.
type group struct {
	running    int
	overlapped bool // whether two writes have overlapped, so that it is not known which of them upstream did first
}

// Pending has the writes to one record of which the store does not know yet.
type Pending struct {
	ID         string             // the id of the record; "" if only lists have become outdated
	Generation int64              // the generation of the last of these writes
	Versions   []*understudy.Page // the versions of the record in the responses to the writes, oldest first
	intents    []int64            // the numbers of the writes in the journal
	recheck    bool               // whether the record must be fetched from upstream to know its current version
}

// New returns the set for a kind whose stored generation is given. The journal may be nil.
func New(source, kind string, generation int64, journal Journal) *Set {
	s := &Set{
		subject: request.Invalidation{Source: source, Kind: kind}, journal: journal, lastWrites: map[string]int64{},
		underWay: map[string]*group{}, unseen: map[string]bool{}, pending: map[string]*Pending{}, stored: generation,
	}
	s.generation.Store(generation)
	return s
}

// Moment has the numbers of writes, changes and purges at the time of a read. It tells later what has happened since.
type Moment struct{ Generation, Changes, Purges int64 }

// Now returns the current numbers, for a read that starts now.
func (s *Set) Now() Moment { return Moment{s.generation.Load(), s.changes.Load(), s.purges.Load()} }

// Generation returns the current generation, which increases with every write.
func (s *Set) Generation() int64 { return s.generation.Load() }

// Changes returns how often pages in memory have become outdated. A caller that puts a page into memory compares the
// number before and after. So either the search for outdated pages has found the new page, or the caller notices that
// there was a search.
func (s *Set) Changes() int64 { return s.changes.Load() }

// AddChange notes that some pages in memory become outdated.
func (s *Set) AddChange() { s.changes.Add(1) }

// Purge outdates every page that is being fetched. It does not affect stored pages.
func (s *Set) Purge() { s.purges.Add(1) }

// IsPurged reports whether there was a purge since a moment.
func (s *Set) IsPurged(since Moment) bool { return since.Purges < s.purges.Load() }

// IsStale reports whether a page read at a moment is outdated by a write or a purge since. The page of a single
// record is outdated only by writes to the record. For any other page id is "".
func (s *Set) IsStale(id string, since Moment) bool {
	if s.IsPurged(since) {
		return true
	}
	if since.Generation == s.generation.Load() {
		return false
	}
	return id == "" || s.IsWritten(id, since)
}

// IsWritten reports whether a write since a moment may have touched a record.
func (s *Set) IsWritten(id string, since Moment) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(s.anyRecordGeneration, s.lastWrites[id]) > since.Generation
}

// Write is a write that is being sent.
type Write struct {
	set    *Set
	id     string
	began  Moment
	group  *group
	intent int64
}

// Begin notes a write to a record before it is sent. If the record is not known, id is "". The caller must call Drop
// or End when the write is answered. If Begin returns an error, a crash before that leaves the record unchecked.
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

// Intent returns the number of the write in the journal.
func (w *Write) Intent() int64 { return w.intent }

// Drop ends a write that has certainly changed nothing.
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

// End ends a write that may have changed a record. From now on, everything read before is outdated. The record's id may be
// known only now. shows is the version of the record in the response, or nil. kept is true if that version waits to be stored.
func (w *Write) End(now time.Time, id string, shows *understudy.Page) (kept bool) {
	s := w.set
	s.Note(now, w.id)
	intents, overtaken := []int64{w.intent}, w.id == "" && s.IsWritten(id, w.began)
	if overtaken && id != "" { // after a crash, upstream must be asked for the record; the write's own journal entry does not have its id
		named, err := s.beginIntent(id) // without the lock, which a transaction of a journal in the database may need
		if intents = append(intents, named); err != nil {
			shows = nil
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	w.leaveGroup()
	if !overtaken && w.id == "" && max(s.anyRecordGeneration, s.lastWrites[id]) > w.began.Generation {
		overtaken, shows = true, nil // it has happened since
	}
	return s.add(id, shows, w.group.overlapped || overtaken, intents...)
}

// Restore adds a write that was in the journal when the process was killed.
func (s *Set) Restore(now time.Time, id string, intent int64) {
	s.Note(now, id)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(id, nil, false, intent)
}

// add counts a write and adds it to the pending ones. The caller holds the lock.
func (s *Set) add(id string, shows *understudy.Page, overlapped bool, intents ...int64) (kept bool) {
	n := s.generation.Add(1)
	s.noteWritten(id, n)
	if s.subject.Kind == "" {
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
	if s.journal == nil || s.subject.Kind == "" {
		return 0, nil
	}
	return s.journal.Begin(request.Invalidation{Source: s.subject.Source, Kind: s.subject.Kind, ID: id})
}

func (s *Set) endIntents(intents ...int64) {
	for _, n := range intents {
		if s.journal != nil && n != 0 {
			s.journal.End(n)
		}
	}
}

// IsFull reports whether the maximum number of records have pending writes.
func (s *Set) IsFull() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.pending) >= MaxPending
}

// IsPending reports whether a record has writes of which the store does not know yet.
func (s *Set) IsPending(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pending[id] != nil
}

// Pending returns the writes of which the store does not know yet, the oldest first.
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

// RemoveShown removes the oldest version of a record that waits to be stored. Either it is stored now, or if kept is
// false, it can never be stored, so that upstream must be asked.
func (s *Set) RemoveShown(id string, kept bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.pending[id]
	p.recheck = p.recheck || !kept
	s.pendingBytes -= len(p.Versions[0].Body)
	p.Versions = p.Versions[1:]
}

// NoteStored notes that the store knows of the writes to a record up to a generation. The record then has no pending
// writes, unless there were more in the meantime. If upstream must be asked for the record, NoteStored calls confirm
// with a function that ends these writes after upstream has answered.
func (s *Set) NoteStored(id string, generation int64, confirm func(end func())) {
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

// AdvanceTo notes a generation of the store, of which the last own ones are those of this process. It returns true if other
// processes have written since the last call: to the records with the ids, or to any records if there are none. Writes that the
// store does not know of yet have numbers of their own, so the generation may be higher than that of the store.
func (s *Set) AdvanceTo(now time.Time, generation, own int64, ids ...string) (others bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	more := max(generation-s.stored-own, 0)
	s.stored = max(s.stored, generation)
	n := max(s.generation.Load()+more, generation)
	s.generation.Store(n)
	if more == 0 {
		return false
	}
	for _, id := range ids {
		s.noteWritten(id, n)
		s.note(now, id)
	}
	if len(ids) == 0 {
		s.noteWritten("", n)
		s.note(now, "")
	}
	return true
}

// noteWritten notes the generation of the last write to a record, or to any record if the id is "". The caller holds the lock.
func (s *Set) noteWritten(id string, generation int64) {
	if id == "" || len(s.lastWrites) >= maxLastWrites {
		s.anyRecordGeneration = generation
		clear(s.lastWrites)
	} else {
		s.lastWrites[id] = generation
	}
}

// Note notes a write whose result lists may not show yet. If the record is not known, id is "".
func (s *Set) Note(now time.Time, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(now, id)
}

func (s *Set) note(now time.Time, id string) {
	s.lastWrite = now
	switch {
	case id == "" || s.unseen[id]:
	case len(s.unseen) < maxUnseen:
		s.unseen[id] = true
	default:
		s.unseenOverflow = true
	}
}

// LastWrite returns the time of the last write, or zero if there was none.
func (s *Set) LastWrite() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lastWrite
}

// UnseenWrites returns the time of the last write, and the written records that no fetch has shown since. many is
// true if there are more such records than these.
func (s *Set) UnseenWrites() (at time.Time, unseen []string, many bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lastWrite, slices.Collect(maps.Keys(s.unseen)), s.unseenOverflow
}

// NoteAllSeen notes that a fetch after the given time has shown all records, unless a record was written after that time.
func (s *Set) NoteAllSeen(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lastWrite.Equal(at) {
		s.unseenOverflow = false
	}
}

// NoteSeen notes that a fetch at the given time has shown a record, unless the record was written after that time.
func (s *Set) NoteSeen(at time.Time, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lastWrite.Equal(at) {
		delete(s.unseen, id)
	}
}
