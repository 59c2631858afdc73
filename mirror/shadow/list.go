// List: how one list is answered, and how often it is compared with upstream.

package shadow

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"understudy/kit/lockwatch"
	"understudy/spec"
)

// SamplesNeeded is how many comparisons in a row must find no difference before a list is composed from records first.
const SamplesNeeded = 500

// Lists are the lists of a source that show records.
type Lists struct {
	src    *spec.Source
	lists  map[*spec.List]*List
	checks checks
}

// Find returns the list that a target requests. It returns nil if the target is not a list of records.
func (ls *Lists) Find(t *spec.Target) *List {
	if t.List == nil {
		return nil
	}
	return ls.lists[t.List]
}

// List is the state of one list: how it is answered, and how often composed pages were the same as upstream's.
type List struct {
	kind   *spec.Kind
	list   *spec.List
	checks *checks // the limit for comparisons, which all lists of the source share

	answers   atomic.Value // the value of the setting for this list, of type Answers
	hasAgreed atomic.Bool  // whether the last SamplesNeeded comparisons found no difference

	// the number of answers composed from records before upstream was asked, and how many of them were compared with upstream
	answered, checked atomic.Int64

	mu        lockwatch.Mutex
	agreement agreement
	dirty     bool // whether the agreement has changed since it was stored
}

// IsRecordsFirst reports whether the list is composed from records before upstream is asked.
func (l *List) IsRecordsFirst() bool {
	switch set, _ := l.answers.Load().(Answers); set {
	case Records:
		return true
	case Upstream:
		return false
	}
	return l.hasAgreed.Load()
}

// HasEqualSample reports whether the last comparison of the list found no difference.
func (l *List) HasEqualSample() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.agreement.Equal > 0
}

// CountAnswer counts an answer that was composed from records.
func (l *List) CountAnswer() { l.answered.Add(1) }

// checkShare limits comparisons to one in this many answers of a list.
const checkShare = 100

// TakeCheck reports whether the answer that CountAnswer has just counted should be compared with upstream. If it
// reports true, it counts the comparison.
func (l *List) TakeCheck(now time.Time) bool {
	if !l.IsRecordsFirst() || l.checked.Load() >= l.answered.Load()/checkShare || rand.IntN(checkShare/10) != 0 || !l.checks.take(now) {
		return false
	}
	l.checked.Add(1)
	return true
}

// defaultChecks is the default for how many composed answers a minute may be compared with upstream.
const defaultChecks = 6

// checks limits the requests to upstream that are sent only to compare lists.
type checks struct {
	mu       lockwatch.Mutex
	interval time.Duration // the minimum time between two requests that are sent only to compare lists
	next     time.Time
}

// SetChecks sets how many lists a minute may be fetched from upstream for a comparison; 0 means 6. It returns an
// error for an unknown source.
func (r *Reads) SetChecks(source string, perMinute float64) error {
	ls := r.sources[source]
	if ls == nil {
		return fmt.Errorf("mirror: checks: no source %q", source)
	}
	ls.checks.set(perMinute)
	return nil
}

func (c *checks) set(perMinute float64) {
	perMinute = cmp.Or(max(perMinute, 0), defaultChecks)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.interval = time.Duration(float64(time.Minute) / perMinute)
}

// take reports whether a request for a comparison may be sent now. If it reports true, the pause until the next request begins.
func (c *checks) take(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Before(c.next) && c.next.Sub(now) <= c.interval {
		return false
	}
	c.next = now.Add(c.interval)
	return true
}
