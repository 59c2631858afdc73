// This file stores which time ranges of a list were walked completely and when, and divides time into ranges for
// single walks.

package crawl

import (
	"cmp"
	"math"
	"slices"
	"time"

	"understudy"
)

// Clocks that mean that an interval has no lower or upper bound.
const (
	minClock = math.MinInt64
	maxClock = math.MaxInt64
)

// interval is the range of clocks [From, To) in Unix seconds. At is when a walk over the whole range began.
type interval struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
	At   int64 `json:"at"`
}

// intervals are disjoint and sorted ranges. The zero value is empty. Methods do not change their receiver.
type intervals []interval

// add adds the range [from, to) with the time of its walk. Where the range overlaps a later walk, the later time stays.
func (s intervals) add(from, to, at int64) intervals {
	if from >= to {
		return s
	}
	var out intervals
	for _, old := range s {
		if old.To <= from || old.From >= to {
			out = append(out, old)
			continue
		}
		if old.From < from {
			out = append(out, interval{old.From, from, old.At})
		}
		out = append(out, interval{max(old.From, from), min(old.To, to), max(old.At, at)})
		if old.To > to {
			out = append(out, interval{to, old.To, old.At})
		}
	}
	for _, gap := range s.gaps(from, to, minClock) {
		out = append(out, interval{gap.From, gap.To, at})
	}
	slices.SortFunc(out, func(a, b interval) int { return cmp.Compare(a.From, b.From) })
	return out.mergeNeighbors()
}

// mergeNeighbors joins adjacent intervals that were walked at the same time.
func (s intervals) mergeNeighbors() intervals {
	out := s[:0]
	for _, next := range s {
		if n := len(out); n > 0 && out[n-1].To == next.From && out[n-1].At == next.At {
			out[n-1].To = next.To
			continue
		}
		out = append(out, next)
	}
	return out
}

// gaps returns the parts of [from, to) that were not walked since a time. The At of each part is the time of its
// last walk, or minClock if it was never walked.
func (s intervals) gaps(from, to, since int64) intervals {
	var out intervals
	next := from
	for _, old := range s {
		if old.To <= from || old.From >= to || from >= to {
			continue
		}
		if old.From > next {
			out = append(out, interval{next, old.From, minClock})
		}
		begin := max(old.From, from)
		next = min(old.To, to)
		if old.At < since {
			out = append(out, interval{begin, next, old.At})
		}
	}
	if next < to {
		out = append(out, interval{next, to, minClock})
	}
	return out
}

// hasAll reports whether all of [from, to) was walked since a time.
func (s intervals) hasAll(from, to, since int64) bool { return len(s.gaps(from, to, since)) == 0 }

// oldestWalk returns the time of the oldest walk over a part of [from, to), or minClock if a part was never walked.
func (s intervals) oldestWalk(from, to int64) int64 {
	at, next := int64(maxClock), from
	for _, old := range s {
		switch {
		case old.To <= next:
			continue
		case next >= to:
			return at
		case old.From > next:
			return minClock
		}
		at, next = min(at, old.At), old.To
	}
	if next < to {
		return minClock
	}
	return at
}

// dropBefore returns the intervals without the parts before a clock.
func (s intervals) dropBefore(before int64) intervals {
	var out intervals
	for _, old := range s {
		if old.To > before {
			old.From = max(old.From, before)
			out = append(out, old)
		}
	}
	return out
}

// maxPartitions is the maximum number of partitions. If there would be more, each partition becomes longer.
const maxPartitions = 400

// bounds decides how far back a kind is walked and stored.
type bounds struct {
	settings  Settings
	retention map[string]map[string]time.Duration // the same as Options.Retention
	now       func() time.Time
}

func (b *bounds) unixNow() int64 { return b.now().Unix() }

// keepTime returns how long records of a kind are kept and walked; 0 means without limit.
func (b *bounds) keepTime(x *kindCrawl) time.Duration {
	far := b.settings.Horizon
	if keep := b.retention[x.plan.source.Name][x.plan.kind.Name]; keep > 0 && (far == 0 || keep < far) {
		far = keep
	}
	return far
}

// floor returns the clock before which no records are requested, or minClock. The horizon, our retention, or the
// retention of upstream sets it.
func (b *bounds) floor(x *kindCrawl, now int64) int64 {
	far := b.keepTime(x)
	if days := x.plan.kind.Retention.Days; days > 0 {
		// The limit is one hour less, so that records which upstream is about to drop are not missed.
		forgets := time.Duration(days)*24*time.Hour - time.Hour
		if far == 0 || forgets < far {
			far = forgets
		}
	}
	if far == 0 {
		return minClock
	}
	return now - int64(far/time.Second)
}

// edges returns the clock before which upstream has no records (none), and the clock before which we keep no
// records (kept). A clock is minClock if there is no such limit.
func (b *bounds) edges(x *kindCrawl, now int64) (none, kept int64) {
	none, kept = minClock, minClock
	if days := x.plan.kind.Retention.Days; days > 0 {
		none = now - int64(days)*24*60*60
	}
	if far := b.keepTime(x); far > 0 {
		kept = now - int64(far/time.Second)
	}
	return none, kept
}

// partitions returns the time ranges of a kind without gaps, newest first. The newest has no end; the oldest
// begins at floor or has no beginning.
func (b *bounds) partitions(floor, oldest, now int64) []interval {
	size := int64(b.settings.Slice / time.Second)
	low := oldest
	if floor != minClock {
		low = max(low, floor)
	}
	for (now-low)/size >= maxPartitions {
		size *= 2
	}
	edge := now - mod(now, size)
	out := []interval{{From: edge, To: maxClock}}
	for edge > low {
		out = append(out, interval{From: edge - size, To: edge})
		edge -= size
	}
	out[len(out)-1].From = floor
	return out
}

// isBefore reports whether all rows of a page are older than a clock, so that all later pages are older too. A row
// without a clock counts as old as the rows beside it.
func (b *bounds) isBefore(page *understudy.Page, floor int64) bool {
	clocked := false
	for _, row := range page.Rows {
		clocked = clocked || row.Clock != 0
		if row.Clock != 0 && row.Clock >= floor-int64(b.settings.Overlap/time.Second) {
			return false
		}
	}
	return clocked && floor != minClock
}

func mod(n, by int64) int64 {
	if n %= by; n < 0 {
		n += by
	}
	return n
}
