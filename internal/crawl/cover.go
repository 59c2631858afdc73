// This file says for which time ranges of a list all records are stored, and since when.

package crawl

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"understudy"
	"understudy/request"
)

// Coverage reports whether all records of upstream's lists of a kind are stored. The records have a clock in [from, to)
// (Unix seconds, 0 means no bound), or they lie under one parent record ("" means any). A range without bounds includes
// the records without a clock; a bounded range does not. root selects one root of the source, "" that of its user.
//
// The result depends on completed walks. At is when the oldest of these walks began; records that a later walk has
// not reached do not count. A range up to the newest records also needs a newest page without a known gap behind
// it. Then At is at most the time of that page, Newest is when the page was requested, and Head are its first
// records. Other pages may have brought single records that are newer; the records between are not covered.
//
// A range is not covered in these cases: a saved newest page that is not handled yet leaves a gap, new parent records
// are not followed yet, the kind is not kept complete, records were deleted here since the walk, or walks ended at a
// time in the future. Records before the horizon are never covered: From is where the covered part begins.
//
// Coverage reads only memory: the state after Load and later changes.
func (w *Crawler) Coverage(source, kind, root, parent string, from, to int64) (request.Coverage, bool) {
	x := w.walks[source+"/"+kind]
	if x == nil {
		return buildUncovered("this kind cannot be synced")
	}
	if x.plan.parentKind == nil {
		if x = x.rootWalk(root); x == nil || x.plan.rootsOnly {
			return buildUncovered("records of " + rootText(root) + " are not synced; add it to the source's covers")
		}
	}
	m := x.state.Load()
	switch {
	case m == nil:
		return buildUncovered("the state of the sync is not loaded yet; try again")
	case !m.Keep:
		return buildUncovered("not synced; add this kind to the source's sync")
	case m.ListsWalkedAt == 0:
		return buildUncovered("the first sync has not finished")
	case m.Params:
		return buildUncovered("links between pages have parameters that only upstream can create")
	case x.plan.parentKind != nil:
		return w.nestedCoverage(x, m, parent)
	}
	c := request.Coverage{Shapes: x.shapes}
	now := w.bounds.unixNow()
	none, kept := w.bounds.edges(x, now)
	low := max(cmp.Or(from, minClock), none)
	if c.From = 0; kept != minClock && low < kept {
		c.From, low = kept, kept
	}
	at, why := x.walkTime(m, low, cmp.Or(to, maxClock), from == 0 && to == 0)
	if why == "" && x.isAtTip(m, to, w.o.Settings.Overlap) {
		newest := int64(0)
		c.Head, newest = x.newestPage(m, now)
		at, why = x.tipCoverage(m, min(at, newest))
		c.Newest = time.Unix(newest, 0)
	}
	switch {
	case why == "" && m.isInFuture(now):
		why = "the clock was set back since the last walk"
	case why == "" && at <= m.LostAt:
		why = "some records were deleted here since the last walk"
	case why == "" && (from != 0 && from < m.endClock() || to != 0 && to <= m.endClock()):
		why = m.Ended
	}
	if why != "" {
		return buildUncovered(why)
	}
	c.At = time.Unix(at, 0)
	if c.From != 0 {
		c.Missing = "records are kept only from " + formatMoment(c.From) + " on"
	}
	return c, c.From == 0
}

func buildUncovered(why string) (request.Coverage, bool) {
	return request.Coverage{Missing: why}, false
}

// walkTime returns when the oldest walk began of those that saw a time range. Lists without a filter on time are
// walked as a whole, and so are records without a clock.
func (x *kindCrawl) walkTime(m *kindState, from, to int64, all bool) (at int64, why string) {
	if !x.plan.isSliced() {
		return m.ListsWalkedAt, ""
	}
	at = maxClock
	if from < to {
		at = m.Spans.oldestWalk(from, to)
	}
	if all || at == maxClock {
		at = min(at, m.ListsWalkedAt)
	}
	if at == minClock {
		return 0, "some of them were never read from upstream"
	}
	return at, ""
}

// isAtTip reports whether a time range may contain records newer than the last newest page without a gap.
func (x *kindCrawl) isAtTip(m *kindState, to int64, overlap time.Duration) bool {
	return !x.plan.isSliced() || to == 0 || to > m.CaughtUp-int64(overlap/time.Second)
}

// tipCoverage returns since when a range up to the newest records is complete, or why it is not.
func (x *kindCrawl) tipCoverage(m *kindState, at int64) (int64, string) {
	switch {
	case m.CaughtUp == 0:
		return 0, "the newest page was never read"
	case m.GapAt != 0:
		return 0, "catching up since " + formatMoment(m.GapAt)
	case x.gapTip.Load() != nil:
		return 0, "more new records arrived than fit on one page"
	}
	return at, ""
}

// newestPage returns the newest records at the time when the list last had no known gap, and that time. They come
// from the state, or from a page saved later that joins the known records. The result is never nil.
func (x *kindCrawl) newestPage(m *kindState, now int64) ([]string, int64) {
	h := x.joinedTip.Load()
	if h == nil || h.at < m.CaughtUp || h.at > now || !m.isJoined(h) || h.at == m.CaughtUp && m.isAbove(h) {
		h = &tipPage{ids: m.NewestIDs, at: m.CaughtUp}
	}
	if len(h.ids) == 0 {
		return []string{}, h.at
	}
	n := min(len(h.ids), maxHeadIDs)
	return h.ids[:n:n], h.at
}

// isAbove reports whether the state knows newer records than a page shows. It decides which is newer if both have
// the same second.
func (m *kindState) isAbove(h *tipPage) bool {
	return len(h.ids) == 0 || slices.Index(m.NewestIDs, h.ids[0]) > 0
}

// maxHeadIDs is the maximum number of newest records in a coverage. More than one is needed because the newest may
// be deleted.
const maxHeadIDs = 3

// endClock returns the clock before which upstream has no records, or 0 if no such clock is known.
func (m *kindState) endClock() int64 {
	day := m.Ended[strings.LastIndexByte(m.Ended, ' ')+1:]
	t, err := understudy.ParseTime(day, time.UTC, time.DateOnly)
	if err != nil {
		return 0
	}
	return t.AddDate(0, 0, 1).Unix() // the end of the last day that upstream refused
}

// nestedCoverage returns the coverage of a kind that lies under a parent kind. The children of a record were walked
// after the record was first seen. Records that are new or have just changed may not be followed yet. The
// children of parents older than the horizon are not walked: From is the clock of the horizon.
func (w *Crawler) nestedCoverage(x *kindCrawl, m *kindState, parent string) (request.Coverage, bool) {
	above := x.parent
	at := min(m.ListsWalkedAt, m.CaughtUp)
	switch {
	case m.CaughtUp == 0:
		return buildUncovered("the first sync has not finished")
	case m.isInFuture(w.bounds.unixNow()):
		return buildUncovered("the clock was set back since the last walk")
	case x.lastChange.Load() > m.LastChange:
		return buildUncovered("records under new or changed parents are not read yet")
	case at <= m.LostAt:
		return buildUncovered("some records were deleted here since the last walk")
	}
	c := request.Coverage{At: time.Unix(at, 0), Newest: time.Unix(m.CaughtUp, 0), Shapes: x.shapes, Above: x.plan.parentKind.Name}
	if _, kept := w.bounds.edges(above, w.bounds.unixNow()); kept != minClock {
		c.From = kept
	}
	if parent != "" {
		return c, true
	}
	for one := range above.allRoots() {
		over, ok := w.Coverage(x.plan.source.Name, above.plan.kind.Name, one.plan.root, "", 0, 0)
		if !ok {
			return buildUncovered(above.plan.kind.Title + ": " + over.Missing)
		}
		if over.At.Before(c.At) {
			c.At = over.At
		}
	}
	return c, true
}

// noteChanges notes changes of the parent kind that must be followed.
func (x *kindCrawl) noteChanges(changes []understudy.Change) {
	last := int64(0)
	for i := range changes {
		if changes[i].Type != understudy.Deleted {
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

// maxUnfollowed is the maximum number of batches of changes that are read at the start of the process. If there are
// more, the parent kind counts as changed.
const maxUnfollowed = 20

// restore handles what an earlier process saved and did not handle: changes of a parent kind, or a newest page.
func (w *Crawler) restore(ctx context.Context, x *kindCrawl) error {
	m, err := w.states.read(ctx, x)
	if err != nil || m.ListsWalkedAt == 0 {
		return err
	}
	if x.plan.parentKind != nil {
		return w.restoreChanges(ctx, x, m.LastChange)
	}
	pages, ok := w.o.Store.(Pages)
	if !ok || x.tip.IsZero() {
		return nil
	}
	if p, err := pages.ReadPage(ctx, x.tip); err == nil && p.At.Unix() >= m.CaughtUp {
		return w.HandlePageSaved(ctx, request.PageSaved{Page: p})
	}
	return nil // no newest page is stored, so there is nothing to handle
}

// restoreChanges finds the last change of the parent kind.
func (w *Crawler) restoreChanges(ctx context.Context, x *kindCrawl, after int64) error {
	for range maxUnfollowed {
		changes, err := w.o.Store.ReadChanges(ctx, x.plan.source.Name, after, batchSize)
		if err != nil {
			return err
		}
		for i := range changes {
			after = changes[i].N
			if changes[i].Kind == x.plan.parentKind.Name {
				x.noteChanges(changes[i : i+1])
			}
		}
		if len(changes) < batchSize {
			return nil
		}
	}
	x.lastChange.Store(math.MaxInt64)
	return nil
}
