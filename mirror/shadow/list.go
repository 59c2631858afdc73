// List: the mode of one list, its agreement with upstream, and its checks.

package shadow

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"understudy/spec"
)

// SamplesNeeded is how many samples in a row must be equal before a list is answered from records first.
const SamplesNeeded = 500

// Lists are the lists of records of one source.
type Lists struct {
	src    *spec.Source
	lists  map[*spec.List]*List
	checks checks
}

// Find returns the list that a target requests, or nil if it is no list of records.
func (ls *Lists) Find(t *spec.Target) *List {
	if t.List == nil {
		return nil
	}
	return ls.lists[t.List]
}

// List is the state of one list: how it is answered, and how well records agree with upstream.
type List struct {
	kind   *spec.Kind
	list   *spec.List
	checks *checks // the checks of the list's source

	answers   atomic.Value // the setting of the list, of type Answers
	hasAgreed atomic.Bool  // SamplesNeeded samples in a row were equal

	answered, checked atomic.Int64 // answers from records before upstream was asked, and how many of these were checked

	mu        sync.Mutex
	agreement agreement
	dirty     bool // the stored agreement is not up to date
}

// IsRecordsFirst reports whether the list is answered from records before upstream is asked.
func (l *List) IsRecordsFirst() bool {
	switch set, _ := l.answers.Load().(Answers); set {
	case Records:
		return true
	case Upstream:
		return false
	}
	return l.hasAgreed.Load()
}

// HasEqualSample reports whether the last sample of the list was equal.
func (l *List) HasEqualSample() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.agreement.Equal > 0
}

// CountAnswer counts an answer from records.
func (l *List) CountAnswer() { l.answered.Add(1) }

// checkShare limits checks: at most one of this many answers of a list is checked.
const checkShare = 100

// TakeCheck reports whether the answer just counted should be compared with upstream. If so, it counts the
// check.
func (l *List) TakeCheck(now time.Time) bool {
	if !l.IsRecordsFirst() || l.checked.Load() >= l.answered.Load()/checkShare || rand.IntN(checkShare/10) != 0 || !l.checks.take(now) {
		return false
	}
	l.checked.Add(1)
	return true
}

// defaultChecks is how many answers from records may be checked a minute.
const defaultChecks = 6

// checks limits the requests that are made only for comparisons.
type checks struct {
	mu       sync.Mutex
	interval time.Duration // minimum time between two checks
	next     time.Time
}

// SetChecks sets how many lists a minute may be fetched for a comparison; 0 means 6. It returns an error for
// an unknown source.
func (r *Reads) SetChecks(source string, perMinute float64) error {
	ls := r.sources[source]
	if ls == nil {
		return fmt.Errorf("mirror: checks: no source %q", source)
	}
	ls.checks.set(perMinute)
	return nil
}

func (c *checks) set(perMinute float64) {
	if perMinute <= 0 {
		perMinute = defaultChecks
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.interval = time.Duration(float64(time.Minute) / perMinute)
}

// take reports whether a check may start now, and starts the pause after it.
func (c *checks) take(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Before(c.next) && c.next.Sub(now) <= c.interval {
		return false
	}
	c.next = now.Add(c.interval)
	return true
}
