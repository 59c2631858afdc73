// List: one list's mode, its agreement with upstream, and its checks.

package shadow

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"understudy/spec"
)

// Enough is how many samples in a row have to be equal before a list is
// answered from records first.
const Enough = 500

// Lists are the lists of records of one source.
type Lists struct {
	src    *spec.Source
	lists  map[*spec.List]*List
	checks checks
}

// Of is the list that a target asks for; nil when it is no list of records.
func (ls *Lists) Of(t *spec.Target) *List {
	if t.List == nil {
		return nil
	}
	return ls.lists[t.List]
}

// List is one list: how it is answered, and how well records agree with upstream.
type List struct {
	kind   *spec.Kind
	list   *spec.List
	checks *checks // of its source

	set    atomic.Value // Answers
	agreed atomic.Bool  // Enough samples in a row were equal

	composed, checked atomic.Int64 // answers from records before upstream was asked; of these, asked upstream too

	mu        sync.Mutex
	agreement agreement
	dirty     bool // the values do not say it yet
}

// RecordsFirst reports whether the list is answered from records before upstream
// is asked.
func (l *List) RecordsFirst() bool {
	switch set, _ := l.set.Load().(Answers); set {
	case Records:
		return true
	case Upstream:
		return false
	}
	return l.agreed.Load()
}

// Compared reports whether the last sample of the list was equal.
func (l *List) Compared() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.agreement.Equal > 0
}

// Answered counts an answer from records.
func (l *List) Answered() { l.composed.Add(1) }

// checkShare bounds checks: of so many answers of a list at most one is checked.
const checkShare = 100

// CheckDue reports whether the answer just counted is to be compared with
// upstream. It is then counted as checked.
func (l *List) CheckDue(now time.Time) bool {
	if !l.RecordsFirst() || l.checked.Load() >= l.composed.Load()/checkShare || rand.IntN(checkShare/10) != 0 || !l.checks.take(now) {
		return false
	}
	l.checked.Add(1)
	return true
}

// defaultChecks is how many answers from records may be checked a minute.
const defaultChecks = 6

// checks bounds the requests that only compare.
type checks struct {
	mu    sync.Mutex
	every time.Duration // between two
	next  time.Time
}

// SetChecks says how many lists made from records may be asked upstream, too, a
// minute; 0 = 6. Error: an unknown source.
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
	c.every = time.Duration(float64(time.Minute) / perMinute)
}

// take reports whether the next check may begin, and begins the pause after it.
func (c *checks) take(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Before(c.next) && c.next.Sub(now) <= c.every {
		return false
	}
	c.next = now.Add(c.every)
	return true
}
