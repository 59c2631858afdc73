// Intervals: which parts of a list were walked end to end, and when; and the parts
// one walk takes.

package crawl

import (
	"cmp"
	"math"
	"slices"
	"time"

	"understudy"
)

// Clocks without a bound.
const (
	early = math.MinInt64
	late  = math.MaxInt64
)

// interval is the clocks in [From, To), in Unix seconds, and when a walk over all
// of them began.
type interval struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
	At   int64 `json:"at"`
}

// intervals are disjoint and in order. The zero value is empty; methods leave what
// they are called on as it was.
type intervals []interval

// add notes that [from, to) was walked at a time. Where a later walk is known
// that one stays.
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
	for _, gap := range s.gaps(from, to, early) {
		out = append(out, interval{gap.From, gap.To, at})
	}
	slices.SortFunc(out, func(a, b interval) int { return cmp.Compare(a.From, b.From) })
	return out.joined()
}

// joined makes one of neighbours that were walked at the same time.
func (s intervals) joined() intervals {
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

// gaps are the parts of [from, to) that were not walked since a time; their At
// is the walk before, or early when there was none.
func (s intervals) gaps(from, to, since int64) intervals {
	var out intervals
	next := from
	for _, old := range s {
		if old.To <= from || old.From >= to || from >= to {
			continue
		}
		if old.From > next {
			out = append(out, interval{next, old.From, early})
		}
		begin := max(old.From, from)
		next = min(old.To, to)
		if old.At < since {
			out = append(out, interval{begin, next, old.At})
		}
	}
	if next < to {
		out = append(out, interval{next, to, early})
	}
	return out
}

// covers reports whether all of [from, to) was walked since a time.
func (s intervals) covers(from, to, since int64) bool { return len(s.gaps(from, to, since)) == 0 }

// oldest is when the part of [from, to) was walked that was not for longest,
// early when a part never was.
func (s intervals) oldest(from, to int64) int64 {
	at, next := int64(late), from
	for _, old := range s {
		switch {
		case old.To <= next:
			continue
		case next >= to:
			return at
		case old.From > next:
			return early
		}
		at, next = min(at, old.At), old.To
	}
	if next < to {
		return early
	}
	return at
}

// without is s less what lies before a clock.
func (s intervals) without(before int64) intervals {
	var out intervals
	for _, old := range s {
		if old.To > before {
			old.From = max(old.From, before)
			out = append(out, old)
		}
	}
	return out
}

// maxPartitions bounds how many there are; with more, each is longer.
const maxPartitions = 400

// bounds says between which clocks a kind is walked and kept.
type bounds struct {
	settings  Settings
	retention map[string]map[string]time.Duration // Options.Retention
	now       func() time.Time
}

// clock returns now in Unix seconds.
func (b *bounds) clock() int64 { return b.now().Unix() }

// keeps returns how long records of a kind are kept and walked; 0: for ever.
func (b *bounds) keeps(x *kindCrawl) time.Duration {
	far := b.settings.Horizon
	if keep := b.retention[x.plan.source.Name][x.plan.kind.Name]; keep > 0 && (far == 0 || keep < far) {
		far = keep
	}
	return far
}

// floor is the clock before which nothing is asked for: the horizon, what is
// too old to be kept, or what upstream forgets by itself; early when there is
// no such clock.
func (b *bounds) floor(x *kindCrawl, now int64) int64 {
	far := b.keeps(x)
	if days := x.plan.kind.Retention.Days; days > 0 {
		// An hour less, so that what is about to be forgotten is not missed.
		forgets := time.Duration(days)*24*time.Hour - time.Hour
		if far == 0 || forgets < far {
			far = forgets
		}
	}
	if far == 0 {
		return early
	}
	return now - int64(far/time.Second)
}

// edges are the clocks before which upstream has nothing any more, and before
// which we keep nothing; early when there is no such clock.
func (b *bounds) edges(x *kindCrawl, now int64) (none, kept int64) {
	none, kept = early, early
	if days := x.plan.kind.Retention.Days; days > 0 {
		none = now - int64(days)*24*60*60
	}
	if far := b.keeps(x); far > 0 {
		kept = now - int64(far/time.Second)
	}
	return none, kept
}

// partitions are the intervals of a kind, the newest first: together they have no
// gap. The newest has no end; the oldest begins at floor, or nowhere.
func (b *bounds) partitions(floor, oldest, now int64) []interval {
	size := int64(b.settings.Slice / time.Second)
	low := oldest
	if floor != early {
		low = max(low, floor)
	}
	for (now-low)/size >= maxPartitions {
		size *= 2
	}
	edge := now - mod(now, size)
	out := []interval{{From: edge, To: late}}
	for edge > low {
		out = append(out, interval{From: edge - size, To: edge})
		edge -= size
	}
	out[len(out)-1].From = floor
	return out
}

// past reports whether a page lies wholly before a clock, so that those after
// it do, too. What has no clock is as old as what is around it.
func (b *bounds) past(page *understudy.Page, floor int64) bool {
	clocked := false
	for _, row := range page.Rows {
		clocked = clocked || row.Clock != 0
		if row.Clock != 0 && row.Clock >= floor-int64(b.settings.Overlap/time.Second) {
			return false
		}
	}
	return clocked && floor != early
}

func mod(n, by int64) int64 {
	if n %= by; n < 0 {
		n += by
	}
	return n
}
