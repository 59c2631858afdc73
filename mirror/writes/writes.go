// Package writes remembers for one kind which writes and purges made old what was read before. What the store
// has not been told of yet is kept here, and in a journal that a crash does not take.
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
	// MaxPending is how many records of a kind the store may have to be told of; a write to one more is not
	// passed on.
	MaxPending = 4096

	maxPendingBytes = 16 << 20 // of the bodies of a kind; what exceeds it is fetched once more instead
	maxTouched      = 4096     // records whose last write is known; above it every record counts as written
	maxUnseen       = 64       // records that were written and not seen since
)

// Journal keeps the writes under way where a crash does not take them.
type Journal interface {
	// Begin notes a write before it is passed on; its number ends it.
	Begin(request.Invalidation) (n int64, err error)
	// End notes that the store was told of the write, or that there was none.
	End(n int64)
	// Left are the writes that have not ended, by number.
	Left() (numbers []int64, touched []request.Invalidation)
}

// Set is what is known of the writes to records of one kind. Many goroutines may use it at once.
type Set struct {
	about   request.Invalidation // source and kind; without a kind nothing is stored of its pages
	journal Journal              // nil: what a crash leaves is forgotten

	generation atomic.Int64 // rises with every write, before the write's answer goes out
	changes    atomic.Int64 // rises with all that makes held pages old
	purges     atomic.Int64 // rises with every purge

	mu       sync.Mutex
	touched  map[string]int64  // the generation of the last write to a record
	floor    int64             // a write of this generation may have touched any record
	underWay map[string]*group // by record
	last     time.Time         // of the last write
	unseen   map[string]bool   // records that were written and not seen since
	many     bool              // there are more of these
	pending  map[string]*Pending
	bytes    int // of what pending writes show
}

// group is the writes to one record that overlap.
type group struct {
	n          int
	overlapped bool // there were two: which of them upstream did last is unknown
}

// Pending is what the store has to be told of the writes to one record.
type Pending struct {
	ID         string             // "": only lists are old
	Generation int64              // of the last of them
	Shows      []*understudy.Page // what their answers show, the oldest first
	intents    []int64            // numbers in the journal
	recheck    bool               // upstream is to be asked what became of the record
}

// New returns the set of a kind whose generation the store remembers. The journal may be nil.
func New(source, kind string, generation int64, journal Journal) *Set {
	s := &Set{
		about: request.Invalidation{Source: source, Kind: kind}, journal: journal, touched: map[string]int64{},
		underWay: map[string]*group{}, unseen: map[string]bool{}, pending: map[string]*Pending{},
	}
	s.generation.Store(generation)
	return s
}

// Moment is how much had been written, changed and purged when something was read.
type Moment struct{ Generation, Changes, Purges int64 }

// Now returns the moment for what is read from here on.
func (s *Set) Now() Moment { return Moment{s.generation.Load(), s.changes.Load(), s.purges.Load()} }

// Generation returns how many writes there were.
func (s *Set) Generation() int64 { return s.generation.Load() }

// Changes returns how often held pages were made old. Who puts a page into memory compares it before and after:
// either the hunt for old pages finds the new page, or its putter finds that there was a hunt.
func (s *Set) Changes() int64 { return s.changes.Load() }

// AddChange notes that held pages are made old.
func (s *Set) AddChange() { s.changes.Add(1) }

// Purge makes old all that is being read, though what is held stays as it is.
func (s *Set) Purge() { s.purges.Add(1) }

// IsPurged reports whether a purge came after a moment.
func (s *Set) IsPurged(since Moment) bool { return since.Purges < s.purges.Load() }

// IsStale reports whether a write or a purge came after a moment. A record's own page is old by writes to
// that record alone; "" is any other page.
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
	return max(s.floor, s.touched[id]) > since.Generation
}

// Write is a write that is passed on.
type Write struct {
	set    *Set
	id     string
	began  Moment
	group  *group
	intent int64
}

// Begin notes a write to a record before it is passed on; "": it is not known which. It must be ended. With an
// error a crash would leave the record as it was.
func (s *Set) Begin(id string) (w *Write, err error) {
	w = &Write{set: s, id: id, began: s.Now(), group: &group{}}
	w.intent, err = s.begin(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if have := s.underWay[id]; have != nil {
		w.group = have
	} else if id != "" {
		s.underWay[id] = w.group
	}
	w.group.n++
	w.group.overlapped = w.group.overlapped || w.group.n > 1
	return w, err
}

// Drop ends a write that surely changed nothing.
func (w *Write) Drop() {
	w.set.mu.Lock()
	w.leave()
	w.set.mu.Unlock()
	w.set.end(w.intent)
}

func (w *Write) leave() {
	if w.group.n--; w.group.n == 0 {
		delete(w.set.underWay, w.id)
	}
}

// End ends a write that may have changed a record, which it may only name now. From here on nothing read before
// is current. shows is what the write's answer shows, nil for nothing. End reports whether that is kept
// for the store.
func (w *Write) End(now time.Time, id string, shows *understudy.Page) (kept bool) {
	s := w.set
	s.Note(now, w.id)
	s.mu.Lock()
	defer s.mu.Unlock()
	w.leave()
	intents, overtaken := []int64{w.intent}, w.id == "" && max(s.floor, s.touched[id]) > w.began.Generation
	if overtaken && id != "" { // after a crash upstream is to be asked, too, and the write's own intent has no name
		named, err := s.begin(id)
		if intents = append(intents, named); err != nil {
			shows = nil
		}
	}
	return s.add(id, shows, w.group.overlapped || overtaken, intents...)
}

// Recall takes in a write that the journal has of a process that was killed.
func (s *Set) Recall(now time.Time, id string, intent int64) {
	s.Note(now, id)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(id, nil, false, intent)
}

func (s *Set) add(id string, shows *understudy.Page, overlapped bool, intents ...int64) (kept bool) {
	n := s.generation.Add(1)
	if id == "" || len(s.touched) >= maxTouched {
		s.floor = n
		clear(s.touched)
	} else {
		s.touched[id] = n
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
	if kept = shows != nil && s.bytes+len(shows.Body) <= maxPendingBytes; kept {
		p.Shows = append(p.Shows, shows)
		s.bytes += len(shows.Body)
	}
	p.recheck = p.recheck || id != "" && (!kept || overlapped)
	return kept
}

func (s *Set) begin(id string) (intent int64, err error) {
	if s.journal == nil || s.about.Kind == "" {
		return 0, nil
	}
	return s.journal.Begin(request.Invalidation{Source: s.about.Source, Kind: s.about.Kind, ID: id})
}

func (s *Set) end(intents ...int64) {
	for _, n := range intents {
		if s.journal != nil && n != 0 {
			s.journal.End(n)
		}
	}
}

// IsFull reports whether no more can be pending.
func (s *Set) IsFull() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.pending) >= MaxPending
}

// IsPending reports whether the store has not been told yet that a record is invalid.
func (s *Set) IsPending(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pending[id] != nil
}

// Pending returns what the store has to be told, the oldest write first.
func (s *Set) Pending() []Pending {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]Pending, 0, len(s.pending))
	for p := range maps.Values(s.pending) {
		all = append(all, Pending{ID: p.ID, Generation: p.Generation, Shows: slices.Clone(p.Shows)})
	}
	slices.SortFunc(all, func(a, b Pending) int { return cmp.Compare(a.Generation, b.Generation) })
	return all
}

// Shown drops the oldest page that writes to a record show: the store has it, or never will, and then upstream is
// to be asked.
func (s *Set) Shown(id string, kept bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.pending[id]
	p.recheck = p.recheck || !kept
	s.bytes -= len(p.Shows[0].Body)
	p.Shows = p.Shows[1:]
}

// Told notes that the store was told of the writes to a record, up to a generation. The record is no longer
// pending then, unless it was written meanwhile. If upstream is to be asked what became of it, confirm is called with the
// function that ends these writes once upstream has said so.
func (s *Set) Told(id string, generation int64, confirm func(end func())) {
	s.mu.Lock()
	p := s.pending[id]
	if p == nil || p.Generation != generation || len(p.Shows) > 0 {
		s.mu.Unlock()
		return
	}
	delete(s.pending, id)
	s.mu.Unlock()
	if p.recheck {
		confirm(func() { s.end(p.intents...) })
	} else {
		s.end(p.intents...)
	}
}

// Reached notes the store's generation. If it is the higher one others wrote, and it is unknown what.
func (s *Set) Reached(generation int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.generation.Load() < generation {
		s.generation.Store(generation)
		s.floor = generation
	}
}

// Note notes a write of which lists may not show the outcome yet; "": it is not known to which record.
func (s *Set) Note(now time.Time, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = now
	switch {
	case id == "" || s.unseen[id]:
	case len(s.unseen) < maxUnseen:
		s.unseen[id] = true
	default:
		s.many = true
	}
}

// Last returns when the last write was, zero for never.
func (s *Set) Last() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// Unseen returns when the last write was and the records that were written and not seen since. many says that
// there are more of them.
func (s *Set) Unseen() (at time.Time, unseen []string, many bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last, slices.Collect(maps.Keys(s.unseen)), s.many
}

// Seen notes that a record was seen as it is, unless there was a write after a time.
func (s *Set) Seen(at time.Time, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last.Equal(at) {
		delete(s.unseen, id)
	}
}
