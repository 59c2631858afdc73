// Progress: how far a sync is, in records, and how long it still takes.

package crawl

import (
	"cmp"
	"context"
	"fmt"
	"time"
)

// unknown is the value of a total that is not known.
const unknown = -1

// pace is how fast a sync goes. Of a kind that is walked twice it is of the walk
// under way; later is what comes after that.
type pace struct {
	began              time.Time // this run, or this walk
	walk               string    // "1 of 2"; "" of one
	first, done, total int64     // records; first: done when it began
	share              float64   // of the work, done; 0: what done and total say
	later              int64     // records that are walked after those
}

// eta returns the remaining time at this pace; 0: not known.
func (p *pace) eta(now time.Time) time.Duration {
	took, part := float64(now.Sub(p.began)), 0.0
	switch gone := p.done - p.first; {
	case p.share > 0:
		part = (1 - p.share) / p.share
	case gone > 0 && p.total > p.done:
		part = float64(p.total-p.done+p.later) / float64(gone)
	}
	return time.Duration(min(took*part, float64(longest))).Round(time.Second)
}

// longest is the longest remaining time that is reported.
const longest = 365 * 24 * time.Hour

// paced begins to measure a sync, or one of its walks.
func (s *syncRun) paced(walk string, done int64) {
	s.x.now.Store(&pace{began: s.w.bounds.now(), walk: walk, first: done, done: done, total: unknown})
}

// The walks of a kind that is walked twice.
const (
	byTime = "1 of 2" // the stretches
	byList = "2 of 2" // the whole lists
)

// progress tells how far the walk under way is; the mark's lock is held. What is
// not known is not told: a total that turns out too low is none.
func (s *syncRun) progress(ctx context.Context) {
	p, note := *s.x.now.Load(), ""
	switch p.total = unknown; {
	case s.x.plan.parentKind != nil:
		p.done, p.share, note = s.mark.Whole, s.parents.share(), s.parents.note()
	case p.walk == byTime:
		p.done, p.total = s.mark.Sliced, s.guess()
		p.later = max(p.total-s.mark.Whole, 0)
	default:
		p.done, p.total = s.mark.Whole, s.known(ctx, p.walk)
	}
	if p.total < p.done {
		p.total = unknown
	}
	if p.walk != "" {
		note = "walk " + p.walk
	}
	s.x.now.Store(&p)
	s.job.run.Progress(p.done, max(p.total, 0), note)
}

// known is how many records there are in the whole lists as far as that is known:
// those held, once the intervals are done, or those of the last walk.
func (s *syncRun) known(ctx context.Context, walk string) int64 {
	if walk == byList && s.w.o.Count != nil {
		if n, err := s.w.o.Count(ctx, s.x.plan.source.Name, s.x.plan.kind.Name); err == nil {
			return n
		}
	}
	return cmp.Or(cmp.Or(s.x.seen.Load(), &kindState{}).Records, unknown)
}

// parentCounts are how many records of the kind above were walked under, of how many.
type parentCounts struct {
	title     string
	done, all int64 // all 0: not known
	first     int64 // done when this run began
}

func (a *parentCounts) share() float64 {
	if a.all <= a.first || a.done <= a.first {
		return 0
	}
	return min(float64(a.done-a.first)/float64(a.all-a.first), 1)
}

func (a *parentCounts) note() string {
	if a.all < a.done || a.all == 0 {
		return fmt.Sprintf("under %d %s", a.done, a.title)
	}
	return fmt.Sprintf("under %d of %d %s", a.done, a.all, a.title)
}

// sure is the share of the time, one in so many, from which the rest is guessed.
const sure = 2

// guess is how many records there are, from how many lay in the intervals that
// were walked to their ends.
func (s *syncRun) guess() int64 {
	if !s.mark.Probed {
		return unknown
	}
	var walked, all, rows int64 = 0, 0, s.mark.Sliced
	known := cmp.Or(s.x.seen.Load(), &kindState{})
	for _, c := range s.w.bounds.partitions(s.w.bounds.floor(s.x, s.mark.Began), s.mark.Oldest, s.mark.Began) {
		length := min(c.To, s.mark.Began) - max(c.From, s.mark.Oldest)
		all += length
		if known.Spans.covers(c.From, c.To, s.mark.Began) {
			walked += length
			continue
		}
		for _, open := range s.mark.Cells {
			if open.From == c.From {
				rows -= open.Rows
			}
		}
	}
	switch {
	case walked == all:
		return s.mark.Sliced
	case walked*sure < all:
		return unknown
	}
	// Records begin somewhere in the older half of what was asked for.
	likely := max(all-(s.mark.Began-s.mark.Oldest)/4, walked)
	if s.w.bounds.floor(s.x, s.mark.Began) != early {
		likely = all
	}
	return int64(float64(rows) * float64(likely) / float64(walked))
}
