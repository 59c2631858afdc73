// The record of who holds and waits.

package lockwatch

import (
	"math/bits"
	"sync"
	"sync/atomic"
	"time"
)

const (
	maxLocks    = 1024    // later locks share the last record, without findings about order
	maxFindings = 128     // later findings are not kept
	minLong     = 1 << 20 // in ticks: 0.2 ms at 5 GHz
	bucketCount = 48

	writes, reads = false, true
)

var (
	on      atomic.Bool
	current atomic.Pointer[clock] // set by the first Start
	shards  [256]shard

	ordering sync.Mutex // guards the fields below; locked after a shard
	records  []*record
	edges    = map[edge]string{} // the orders in which locks were locked, and who did it first
	findings []Finding
)

// clock converts ticks.
type clock struct {
	now   func() time.Time
	long  time.Duration // from Start
	began time.Time
	ticks int64 // at began
}

// scale returns the nanoseconds of a tick.
func (c *clock) scale() float64 {
	_, _, now := caller()
	return float64(c.now().Sub(c.began)) / float64(max(1, now-c.ticks))
}

func duration(ticks int64, scale float64) time.Duration {
	return time.Duration(float64(max(0, ticks)) * scale)
}

// state is the part of a lock that is used while it is watched.
type state struct {
	record    atomic.Pointer[record]
	isWatched bool         // whether a writer holds the lock and is recorded; guarded by the lock
	readers   atomic.Int32 // the number of recorded readers
}

// record describes one lock.
type record struct {
	id           int
	pc           uintptr // where the lock was first locked
	held, waited times
	before       [maxLocks / 64]atomic.Uint64 // the locks that were locked while this one was held
}

// times is a histogram. Bucket n counts times below 2^n ticks.
type times struct {
	total, longest atomic.Int64
	buckets        [bucketCount]atomic.Int64
}

func (t *times) add(ticks int64) {
	ticks = max(0, ticks)
	t.total.Add(ticks)
	t.buckets[min(bits.Len64(uint64(ticks)), bucketCount-1)].Add(1)
	for old := t.longest.Load(); ticks > old && !t.longest.CompareAndSwap(old, ticks); old = t.longest.Load() {
	}
}

// entry is a goroutine that holds a lock or waits for it.
type entry struct {
	record        *record
	id, pc        uintptr // the goroutine, and where it has called Lock
	since         int64   // in ticks
	read, waiting bool
}

// shard has the entries of some goroutines.
type shard struct {
	mu      sync.Mutex
	entries []entry
	_       [32]byte // padding, so that two shards never share a cache line
}

func shardOf(id uintptr) *shard { return &shards[uint32(id>>4)*2654435769>>24] }

// add adds an entry. If ordered is true, it first checks the order of e after the locks that the goroutine holds.
func (s *shard) add(e entry, ordered bool) {
	s.mu.Lock()
	for i := range s.entries {
		if ordered && s.entries[i].id == e.id {
			e.checkOrder(&s.entries[i])
		}
	}
	s.entries = append(s.entries, e)
	s.mu.Unlock()
}

// take removes the newest entry that is like e, of any goroutine if e.id is 0.
func (s *shard) take(e entry) (entry, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.entries) - 1; i >= 0; i-- {
		f := s.entries[i]
		if f.record == e.record && f.read == e.read && f.waiting == e.waiting && (f.id == e.id || e.id == 0) {
			s.entries = append(s.entries[:i], s.entries[i+1:]...)
			return f, true
		}
	}
	return entry{}, false
}

// acquire locks by try and, if that returns false, by wait unless it is nil. It records the caller of the method that calls it.
func (l *state) acquire(read bool, try func() bool, wait func()) bool {
	id, pc, now := caller()
	s, e := shardOf(id), entry{record: l.register(pc), id: id, pc: pc, since: now, read: read}
	if !try() {
		if wait == nil {
			return false
		}
		e.waiting = true
		s.add(e, true)
		wait()
		s.take(e)
		_, _, now = caller()
		e.record.waited.add(now - e.since)
		e.since, e.waiting = now, false
		s.add(e, false)
	} else {
		s.add(e, wait != nil) // a goroutine that does not wait deadlocks in no order
	}
	if read {
		l.readers.Add(1)
	} else {
		l.isWatched = true
	}
	return true
}

// register returns the record of a lock. It creates it if needed.
func (l *state) register(pc uintptr) *record {
	if r := l.record.Load(); r != nil {
		return r
	}
	ordering.Lock()
	defer ordering.Unlock()
	if len(records) < maxLocks {
		records = append(records, &record{id: len(records), pc: pc})
	}
	l.record.CompareAndSwap(nil, records[len(records)-1])
	return l.record.Load()
}

// release removes the entry of the goroutine or, if there is none, that of another goroutine.
func (l *state) release(read bool) {
	id, pc, now := caller()
	like := entry{record: l.record.Load(), id: id, read: read}
	e, own := shardOf(id).take(like)
	found := own
	for i := 0; !found && i < len(shards); i++ {
		like.id = 0
		e, found = shards[i].take(like)
	}
	if !read {
		l.isWatched = false
	} else if found {
		l.readers.Add(-1)
	}
	if !found {
		return
	}
	c, held := current.Load(), now-e.since
	e.record.held.add(held)
	text := func() string { return site(e.record.pc) + ": locked at " + site(e.pc) + ", unlocked at " + site(pc) }
	if held > minLong {
		if took := duration(held, c.scale()); took >= c.long {
			note(Long, took, text())
		}
	}
	if read && !own && duration(now-c.ticks, c.scale()) > c.long { // before, the goroutine may have called RLock before Start
		note(Foreign, 0, text()+" by another goroutine")
	}
}
