// This file estimates how far a sync is, in records, and how long it will still take.

package crawl

import (
	"cmp"
	"context"
	"fmt"
	"time"
)

// unknown is the value of an unknown total.
const unknown = -1

// pace is the speed of a sync. For a kind that is walked twice, it is the speed of the present walk.
type pace struct {
	began              time.Time // the start of this run, or of this walk
	walk               string    // the present walk, such as "1 of 2"; "" if there is only one walk
	first, done, total int64     // numbers of records: done at the start of the run, done now, and in total
	share              float64   // the part of the work that is done, from 0 to 1; 0 if done and total show it
	secondWalk         int64     // the number of records of the second walk, if the first walk runs
}

// eta returns the remaining time at this speed, or 0 if unknown.
func (p *pace) eta(now time.Time) time.Duration {
	took, part := float64(now.Sub(p.began)), 0.0
	switch gone := p.done - p.first; {
	case p.share > 0:
		part = (1 - p.share) / p.share
	case gone > 0 && p.total > p.done:
		part = float64(p.total-p.done+p.secondWalk) / float64(gone)
	}
	return time.Duration(min(took*part, float64(maxETA))).Round(time.Second)
}

// maxETA is the longest remaining time that is reported.
const maxETA = 365 * 24 * time.Hour

// startPace starts to measure a sync or one of its walks.
func (s *syncRun) startPace(walk string, done int64) {
	s.setPace(&pace{began: s.w.bounds.now(), walk: walk, first: done, done: done, total: unknown})
}

func (s *syncRun) setPace(p *pace) {
	s.pace = p
	s.x.pace.Store(p)
}

// The names of the walks of a kind that is walked twice.
const (
	walkSlices = "1 of 2" // the name of the walk that reads one time range after another
	walkLists  = "2 of 2" // the name of the walk over the whole lists
)

// reportProgress reports how far the present walk is. The caller must hold the lock of the mark. A total that is
// less than the records done is not reported.
func (s *syncRun) reportProgress(ctx context.Context) {
	p, note := *s.pace, ""
	switch p.total = unknown; {
	case s.x.plan.parentKind != nil:
		p.done, p.share, note = s.mark.ListRows, s.parents.share(), s.parents.note()
	case p.walk == walkSlices:
		p.done, p.total = s.mark.RangeRows, s.guessTotal()
		p.secondWalk = max(p.total-s.mark.ListRows, 0)
	default:
		p.done, p.total = s.mark.ListRows, s.knownTotal(ctx, p.walk)
	}
	if p.total < p.done {
		p.total = unknown
	}
	if p.walk != "" {
		note = "walk " + p.walk
	}
	s.setPace(&p)
	s.job.run.SetProgress(p.done, max(p.total, 0), note)
}

// knownTotal returns how many records the whole lists have, as far as known: the stored ones after the time
// ranges are done, or those of the last walk.
func (s *syncRun) knownTotal(ctx context.Context, walk string) int64 {
	if walk == walkLists && s.w.o.Count != nil {
		if n, err := s.w.o.Count(ctx, s.x.plan.source.Name, s.x.plan.kind.Name); err == nil {
			return n
		}
	}
	return cmp.Or(cmp.Or(s.x.state.Load(), &kindState{}).Records, unknown)
}

// parentCounts counts the parent records under which a nested kind was walked.
type parentCounts struct {
	title     string
	done, all int64 // the parents done, and all parents; all is 0 if unknown
	first     int64 // the parents done at the start of this run
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

// minGuessShare is the divisor of the share of the time range that must be walked before the total is estimated.
const minGuessShare = 2

// guessTotal estimates how many records there are, from the number of records in the time ranges walked completely.
func (s *syncRun) guessTotal() int64 {
	if !s.mark.OldestKnown {
		return unknown
	}
	var walked, all, rows int64 = 0, 0, s.mark.RangeRows
	known := cmp.Or(s.x.state.Load(), &kindState{})
	for _, c := range s.w.bounds.partitions(s.w.bounds.floor(s.x, s.mark.Began), s.mark.Oldest, s.mark.Began) {
		length := min(c.To, s.mark.Began) - max(c.From, s.mark.Oldest)
		all += length
		if known.Spans.hasAll(c.From, c.To, s.mark.Began) {
			walked += length
			continue
		}
		for _, open := range s.mark.OpenRanges {
			if open.From == c.From {
				rows -= open.Rows
			}
		}
	}
	switch {
	case walked == all:
		return s.mark.RangeRows
	case walked*minGuessShare < all:
		return unknown
	}
	// The oldest record is assumed to lie in the middle of the older half of the remaining time.
	likely := max(all-(s.mark.Began-s.mark.Oldest)/4, walked)
	if s.w.bounds.floor(s.x, s.mark.Began) != minClock {
		likely = all
	}
	return int64(float64(rows) * float64(likely) / float64(walked))
}
