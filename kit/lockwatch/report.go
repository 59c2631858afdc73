// What was recorded.

package lockwatch

import (
	"cmp"
	"fmt"
	"path"
	"runtime"
	"slices"
	"strings"
	"time"
)

// The kinds of findings.
const (
	Order     = "order"     // goroutines lock the same locks in different orders, so that they can wait for each other forever
	Recursive = "recursive" // a goroutine locks a lock that it holds; by RLock, it waits forever if a writer arrives in between
	Foreign   = "foreign"   // a goroutine unlocks a read lock that another one has locked, which then reads without a lock
	Long      = "long"      // a lock was held for as long as the limit of Start, or longer
)

// Finding is a use of locks that is wrong.
type Finding struct {
	Kind    string        `json:"kind"`
	Steps   []string      `json:"steps"` // what the goroutines did
	Count   int           `json:"count"` // how often it happened; 1 for Order, which is only found once
	Longest time.Duration `json:"longest_ns,omitempty"`
}

// Report says how locks are used.
type Report struct {
	Watching bool      `json:"watching"`       // whether locks are recorded now
	Since    time.Time `json:"since,omitzero"` // the last Start
	Locks    []Lock    `json:"locks"`          // those for which goroutines waited longest come first
	Findings []Finding `json:"findings"`
}

// Lock describes one lock.
type Lock struct {
	Name    string      `json:"name"` // the function and line where it was first locked
	Holders []Goroutine `json:"holders"`
	Waiters []Goroutine `json:"waiters"` // in the order of their arrival
	Held    Times       `json:"held"`
	Waited  Times       `json:"waited"` // without the goroutines that could lock at once
}

// Goroutine is a goroutine that holds a lock or waits for it.
type Goroutine struct {
	At   string        `json:"at"` // the function and line where it has called Lock
	Age  time.Duration `json:"age_ns"`
	Read bool          `json:"read,omitempty"` // whether it has called RLock
}

// Times summarises durations. P50 and P99 are at most twice as large as the true ones.
type Times struct {
	Count   int64         `json:"count"`
	Total   time.Duration `json:"total_ns"`
	P50     time.Duration `json:"p50_ns"`
	P99     time.Duration `json:"p99_ns"`
	Longest time.Duration `json:"longest_ns"`
}

type edge struct{ first, second int }

// checkOrder compares the order in which e is locked after h with all orders so far. An order is checked before anyone waits.
func (e *entry) checkOrder(h *entry) {
	first, second := h.record, e.record
	bit, word := uint64(1)<<(second.id%64), &first.before[second.id/64]
	if max(first.id, second.id) == maxLocks-1 || first != second && word.Load()&bit != 0 {
		return
	}
	text := site(first.pc) + ": locked at " + site(h.pc) + ", then " + site(second.pc) + " at " + site(e.pc)
	if first == second {
		note(Recursive, 0, text)
		return
	}
	ordering.Lock()
	word.Or(bit)
	edges[edge{first.id, second.id}] = text
	steps := findPath(second.id, first.id, map[int]bool{})
	ordering.Unlock()
	if steps != nil {
		note(Order, 0, append(steps, text)...)
	}
}

// findPath returns how the locks between two were locked in order, or nil if they were not. The caller holds ordering.
func findPath(from, to int, seen map[int]bool) []string {
	seen[from] = true
	for next := range records {
		if seen[next] || records[from].before[next/64].Load()>>(next%64)&1 == 0 {
			continue
		}
		text := edges[edge{from, next}]
		if next == to {
			return []string{text}
		}
		if rest := findPath(next, to, seen); rest != nil {
			return append([]string{text}, rest...)
		}
	}
	return nil
}

// note keeps a finding.
func note(kind string, longest time.Duration, steps ...string) {
	ordering.Lock()
	defer ordering.Unlock()
	i := slices.IndexFunc(findings, func(f Finding) bool { return f.Kind == kind && slices.Equal(f.Steps, steps) })
	if i < 0 && len(findings) < maxFindings {
		i, findings = len(findings), append(findings, Finding{Kind: kind, Steps: steps})
	}
	if i >= 0 {
		findings[i].Count++
		findings[i].Longest = max(findings[i].Longest, longest)
	}
}

// site returns the function, file and line of a call.
func site(pc uintptr) string {
	f, _ := runtime.CallersFrames([]uintptr{pc}).Next()
	return fmt.Sprintf("%s (%s:%d)", path.Base(f.Function), path.Base(f.File), f.Line)
}

// Start begins to watch all locks, or continues it. now is the clock, usually time.Now. A lock that is held for long is a finding. A
// goroutine that already holds a lock or waits for it is not recorded.
func Start(now func() time.Time, long time.Duration) {
	c := current.Load()
	if c == nil {
		c = &clock{began: now(), now: now}
		current.Store(c)
		_, _, ticks := caller()
		c = &clock{began: c.began, ticks: ticks}
	}
	current.Store(&clock{now, long, c.began, c.ticks})
	on.Store(true)
}

// Stop ends what Start has begun. What was recorded can still be read.
func Stop() { on.Store(false) }

// Read returns what was recorded since the first Start.
func Read() *Report {
	r, c := &Report{Watching: on.Load(), Locks: []Lock{}, Findings: []Finding{}}, current.Load()
	if c == nil {
		return r
	}
	var all []entry
	for i := range shards {
		shards[i].mu.Lock()
		all = append(all, shards[i].entries...)
		shards[i].mu.Unlock()
	}
	_, _, now := caller()
	scale := c.scale()
	slices.SortFunc(all, func(a, b entry) int { return cmp.Compare(a.since, b.since) })
	ordering.Lock()
	defer ordering.Unlock()
	r.Since, r.Findings = c.began, append(r.Findings, findings...)
	for _, rec := range records {
		l := Lock{site(rec.pc), []Goroutine{}, []Goroutine{}, rec.held.summary(scale), rec.waited.summary(scale)}
		for _, e := range all {
			list := &l.Holders
			if e.waiting {
				list = &l.Waiters
			}
			if e.record == rec {
				*list = append(*list, Goroutine{site(e.pc), duration(now-e.since, scale), e.read})
			}
		}
		r.Locks = append(r.Locks, l)
	}
	slices.SortStableFunc(r.Locks, func(a, b Lock) int {
		return cmp.Or(cmp.Compare(len(b.Waiters), len(a.Waiters)), cmp.Compare(b.Waited.Total, a.Waited.Total))
	})
	return r
}

func (t *times) summary(scale float64) Times {
	longest := t.longest.Load()
	s := Times{Total: duration(t.total.Load(), scale), Longest: duration(longest, scale)}
	var below [bucketCount]int64
	for i := range t.buckets {
		s.Count += t.buckets[i].Load()
		below[i] = s.Count
	}
	quantile := func(percent int64) time.Duration {
		i, _ := slices.BinarySearch(below[:], (s.Count*percent+99)/100)
		return duration(min(1<<i, longest), scale)
	}
	s.P50, s.P99 = quantile(50), quantile(99)
	return s
}

// String returns the findings and the locks that are held or waited for, as lines of text.
func (r *Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d locks, %d findings, watched now: %v\n", len(r.Locks), len(r.Findings), r.Watching)
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "%s, %d times: %s\n", f.Kind, f.Count, strings.Join(f.Steps, "; "))
	}
	for _, l := range r.Locks {
		for _, g := range l.Holders {
			fmt.Fprintf(&b, "%s: held for %s by %s\n", l.Name, g.Age, g.At)
		}
		for _, g := range l.Waiters {
			fmt.Fprintf(&b, "%s: waited for during %s by %s\n", l.Name, g.Age, g.At)
		}
	}
	return b.String()
}
