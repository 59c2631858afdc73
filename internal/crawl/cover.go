// Cover: of which intervals of a list every record is held, and since when.

package crawl

import (
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"understudy"
	"understudy/request"
)

// Covered reports whether every record of a kind in upstream's lists is held. The
// clock of the records is in [from, to) (Unix seconds, 0 = open), or they lie
// under one parent record (parent "" = under any). A window that is open on both
// sides includes the records without a clock; a bounded window does not.
//
// The result is based on the walks that ended. At is when the oldest of them began;
// what a later walk has not reached does not count. A window that reaches the
// newest records also needs a newest page without a known gap behind it. At is then
// no later than that page, Newest is when the page was asked for, and Tip is what it showed
// first. Other pages may have brought single records above these; the records
// between are not covered.
//
// A window is not covered in any of these cases: a saved newest page that is not
// handled yet leaves a gap; new or changed parent records are not followed yet; the
// kind is not kept up; records of it were forgotten since; walks ended in what is
// now the future. Before the horizon nothing is covered: From is where the covered
// part of a window begins.
//
// It is about the records in one root of the source, "" for that of its user.
//
// Covered reads only memory: what Load has read and what came since.
func (w *Crawler) Covered(source, kind, root, parent string, from, to int64) (request.Coverage, bool) {
	x := w.walks[source+"/"+kind]
	if x == nil {
		return missing("they cannot be synced")
	}
	if x.plan.parentKind == nil {
		if x = x.in(root); x == nil || x.plan.bare {
			return missing("those of " + spelled(root) + " are not synced; add it to the source's roots")
		}
	}
	m := x.seen.Load()
	switch {
	case m == nil:
		return missing("what is held is not known yet")
	case !m.Keep:
		return missing("they are not synced; add them to the source's sync")
	case m.Rest == 0:
		return missing("they are not synced to their end")
	case m.Params:
		return missing("links to their pages have parameters that only upstream can write")
	case x.plan.parentKind != nil:
		return w.coveredUnder(x, m, parent)
	}
	c := request.Coverage{Shapes: x.shown}
	now := w.bounds.clock()
	none, kept := w.bounds.edges(x, now)
	low := max(unbound(from, early), none)
	if c.From = 0; kept != early && low < kept {
		c.From, low = kept, kept
	}
	at, why := x.walkedSince(m, low, unbound(to, late), from == 0 && to == 0)
	if why == "" && x.reachesTip(m, to, w.o.Settings.Overlap) {
		newest := int64(0)
		c.Head, newest = x.newestPage(m, now)
		at, why = x.tipped(m, min(at, newest))
		c.Newest = time.Unix(newest, 0)
	}
	switch {
	case why == "" && m.inFuture(now):
		why = "the clock was set back since they were walked"
	case why == "" && at <= m.Lost:
		why = "some were forgotten since they were walked"
	case why == "" && (from != 0 && from < m.ended() || to != 0 && to <= m.ended()):
		why = m.Ended
	}
	if why != "" {
		return missing(why)
	}
	c.At = time.Unix(at, 0)
	if c.From != 0 {
		c.Why = "they are kept from " + moment(c.From) + " on"
	}
	return c, c.From == 0
}

func missing(why string) (request.Coverage, bool) { return request.Coverage{Why: why}, false }

// unbound is a clock of a question; 0 is open.
func unbound(clock, open int64) int64 {
	if clock == 0 {
		return open
	}
	return clock
}

// walkedSince is when the oldest of the walks began that saw a window. Lists
// that do not take a stretch of time are walked as a whole; so is what has no
// clock.
func (x *kindCrawl) walkedSince(m *kindState, from, to int64, all bool) (at int64, why string) {
	if !x.plan.sliced() {
		return m.Rest, ""
	}
	at = late
	if from < to {
		at = m.Spans.oldest(from, to)
	}
	if all || at == late {
		at = min(at, m.Rest)
	}
	if at == early {
		return 0, "a part of them was never walked"
	}
	return at, ""
}

// reachesTip reports whether a window may hold records that came after the
// newest page was last known to leave no gap.
func (x *kindCrawl) reachesTip(m *kindState, to int64, overlap time.Duration) bool {
	return !x.plan.sliced() || to == 0 || to > m.CaughtUp-int64(overlap/time.Second)
}

// tipped is when a window that reaches the newest records was known as a whole.
func (x *kindCrawl) tipped(m *kindState, at int64) (int64, string) {
	switch {
	case m.CaughtUp == 0:
		return 0, "their newest page was never seen"
	case m.Behind != 0:
		return 0, "catching up since " + moment(m.Behind)
	case x.gap.Load() != nil:
		return 0, "more of them came than a page holds"
	}
	return at, ""
}

// newestPage are the newest records when the list was last known without a gap,
// and when that was: as the state says, or as a page does that was saved since
// and joins it. The records are never nil.
func (x *kindCrawl) newestPage(m *kindState, now int64) ([]string, int64) {
	h := x.joined.Load()
	if h == nil || h.at < m.CaughtUp || h.at > now || !m.reaches(h) || h.at == m.CaughtUp && m.above(h) {
		h = &head{ids: m.Top, at: m.CaughtUp}
	}
	if len(h.ids) == 0 {
		return []string{}, h.at
	}
	n := min(len(h.ids), tips)
	return h.ids[:n:n], h.at
}

// above reports whether the state knows newer records than a page shows: of two
// pages of one second the times do not tell.
func (m *kindState) above(h *head) bool {
	return len(h.ids) == 0 || slices.Index(m.Top, h.ids[0]) > 0
}

// tips is how many of the newest records are told: the newest may have gone.
const tips = 3

// ended is the clock before which upstream refuses to be asked; 0: none is
// known.
func (m *kindState) ended() int64 {
	day := m.Ended[strings.LastIndexByte(m.Ended, ' ')+1:]
	t, err := understudy.ParseTime(day, time.UTC, time.DateOnly)
	if err != nil {
		return 0
	}
	return t.AddDate(0, 0, 1).Unix() // the day is the one it lies in
}

// coveredUnder is Covered for a kind that lies under a parent kind. The children of
// a record were walked after that record was first seen. The exception is a record
// so new, or changed so recently, that it is not followed yet. The children of
// parents older than the horizon were not walked: From is the clock of the horizon.
func (w *Crawler) coveredUnder(x *kindCrawl, m *kindState, parent string) (request.Coverage, bool) {
	above := x.above
	at := min(m.Rest, m.CaughtUp)
	switch {
	case m.CaughtUp == 0:
		return missing("they are not synced to their end")
	case m.inFuture(w.bounds.clock()):
		return missing("the clock was set back since they were walked")
	case x.lastChange.Load() > m.After:
		return missing("what is new above them was not followed yet")
	case at <= m.Lost:
		return missing("some were forgotten since they were walked")
	}
	c := request.Coverage{At: time.Unix(at, 0), Newest: time.Unix(m.CaughtUp, 0), Shapes: x.shown, Above: x.plan.parentKind.Name}
	if _, kept := w.bounds.edges(above, w.bounds.clock()); kept != early {
		c.From = kept
	}
	if parent != "" {
		return c, true
	}
	for one := range above.each() {
		over, ok := w.Covered(x.plan.source.Name, above.plan.kind.Name, one.plan.root, "", 0, 0)
		if !ok {
			return missing(above.plan.kind.Title + ": " + over.Why)
		}
		if over.At.Before(c.At) {
			c.At = over.At
		}
	}
	return c, true
}

// noteChanges records changes of the parent kind before they are followed.
func (x *kindCrawl) noteChanges(changes []understudy.Change) {
	last := int64(0)
	for i := range changes {
		if changes[i].Type != understudy.Went {
			last = max(last, changes[i].N)
		}
	}
	for {
		have := x.lastChange.Load()
		if last <= have || x.lastChange.CompareAndSwap(have, last) {
			return
		}
	}
}

// maxUnfollowed is the maximum number of changes read at a start, in batches. If
// there are more, the parent kind counts as changed.
const maxUnfollowed = 20

// recall finds what was saved before a start and not handled yet: changes of a
// parent kind, and a newest page.
func (w *Crawler) recall(ctx context.Context, x *kindCrawl) error {
	m, err := w.states.read(ctx, x)
	if err != nil || m.Rest == 0 {
		return err
	}
	if x.plan.parentKind != nil {
		return w.recallChanges(ctx, x, m.After)
	}
	pages, ok := w.o.Store.(Pages)
	if !ok || x.tip.Zero() {
		return nil
	}
	if p, err := pages.Page(ctx, x.tip); err == nil && p.At.Unix() >= m.CaughtUp {
		return w.PageSaved(ctx, request.PageSaved{Page: p})
	}
	return nil // what is not held left nothing behind
}

func (w *Crawler) recallChanges(ctx context.Context, x *kindCrawl, after int64) error {
	for range maxUnfollowed {
		changes, err := w.o.Store.ReadChanges(ctx, x.plan.source.Name, after, batch)
		if err != nil {
			return err
		}
		for i := range changes {
			after = changes[i].N
			if changes[i].Kind == x.plan.parentKind.Name {
				x.noteChanges(changes[i : i+1])
			}
		}
		if len(changes) < batch {
			return nil
		}
	}
	x.lastChange.Store(math.MaxInt64)
	return nil
}
