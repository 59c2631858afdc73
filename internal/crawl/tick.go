// Tick: a newest page was saved; does it reach down to the known records?

package crawl

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"understudy"
	"understudy/request"
)

// head is a saved newest page: its records, the link to the next page, its time.
type head struct {
	ids  []string
	next string
	open string // the kind of its open end; "" = none
	at   int64
}

// requestTime returns the last moment of which a page shows everything: when it was asked for, less the
// age that it came with. What was written while it was on its way may be missing.
func requestTime(p *understudy.Page) time.Time { return p.At.Add(-p.Took - p.InitialAge) }

// addAbove adds the records that a page before showed above the first one of this page. A page
// that a write overtook lacks the record written, which is held as the write's answer shows it.
func (h *head) addAbove(before *head) {
	if before == nil || len(h.ids) == 0 {
		return
	}
	if i := slices.Index(before.ids, h.ids[0]); i > 0 {
		h.ids = append(before.ids[:i:i], h.ids...)
		h.ids = h.ids[:min(len(h.ids), maxTop)]
		h.at = max(h.at, before.at)
	}
}

// PageSaved is told of every page that was saved. It returns at once; what it
// leads to happens in Run. A page it is not told of, or that is lost with the
// process, is made up for by the next.
func (w *Crawler) PageSaved(_ context.Context, l request.PageSaved) error {
	if l.Page == nil {
		return nil
	}
	x := w.roots.saved(l)
	if x == nil {
		return nil
	}
	newest := l.Page.Key == x.tip && l.Page.List && (l.Page.Status == 200 || l.Page.Status == 206)
	stirs := len(l.Changes) > 0
	if !newest && !stirs {
		return nil
	}
	for _, y := range x.children {
		y.noteChanges(l.Changes)
	}
	w.mu.Lock()
	if newest {
		h := &head{ids: top(l.Page), next: l.Page.Next.URI, open: endOfTip(l.Page).Kind, at: requestTime(l.Page).Unix()}
		m := x.seen.Load()
		h.addAbove(x.joined.Load())
		h.addAbove(x.gap.Load())
		if m != nil {
			h.addAbove(&head{ids: m.Top, at: m.CaughtUp})
		}
		if x.gap.Load() != nil || m == nil || !m.reaches(h) {
			x.gap.Store(h) // until it was looked at
		} else {
			x.joined.Store(h)
		}
		w.unread[x] = h
	}
	if stirs {
		w.changed[l.Page.Key.Source+"/"+l.Page.Kind] = true
	}
	w.mu.Unlock()
	rouse(w.wake)
	return nil
}

// rouse has Run look at what was noted.
func rouse(wake chan<- struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}

// look handles the saved pages and the noted changes.
func (w *Crawler) look(ctx context.Context) error {
	if err := w.steps.check(ctx, w.each()); err != nil {
		return err
	}
	w.mu.Lock()
	heads, stirs := w.unread, w.changed
	w.unread, w.changed = map[*kindCrawl]*head{}, map[string]bool{}
	doubts := w.rechecks
	w.rechecks = map[string]intervals{}
	w.mu.Unlock()
	for name, all := range doubts {
		for x := range w.walks[name].each() {
			if err := w.queue.recheck(ctx, x, all); err != nil {
				return err
			}
		}
	}
	for x, h := range heads {
		if err := w.tick(ctx, x, h); err != nil {
			return err
		}
	}
	if err := w.roots.look(ctx, stirs); err != nil {
		return err
	}
	for _, name := range w.names {
		x := w.walks[name]
		if x.plan.parentKind == nil || !stirs[x.plan.source.Name+"/"+x.plan.parentKind.Name] {
			continue
		}
		m, err := w.states.read(ctx, x)
		if err == nil && m.Keep && m.Rest != 0 {
			err = w.queue.enqueue(ctx, x, "catch up", payload{})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// tick compares a newest page with what is known. The mark moves when they
// overlap, else at the end of the walk that fills the gap, so that a kill in
// between loses nothing: the next page finds the same gap.
func (w *Crawler) tick(ctx context.Context, x *kindCrawl, h *head) (err error) {
	defer func() {
		if err == nil {
			x.gap.CompareAndSwap(h, nil) // what it leaves open is in the memo
		}
	}()
	m, err := w.states.checkClock(ctx, x)
	if err != nil || !m.Keep || m.Rest == 0 || h.at < m.CaughtUp {
		return err
	}
	if m.reaches(h) {
		return w.states.change(ctx, x, func(m *kindState) { m.reach(h.ids, h.at) })
	}
	if m.Behind == 0 || h.at > m.Newest {
		if err := w.states.change(ctx, x, func(m *kindState) { m.behind(h.at) }); err != nil {
			return err
		}
	}
	if m.rests(tip, w.bounds.clock()) {
		return nil
	}
	return w.queue.enqueue(ctx, x, "catch up", payload{Next: h.next, Top: h.ids, At: h.at})
}

// reaches reports whether a newest page leaves no gap to what is known: it shows some of that,
// or is the whole list.
func (m *kindState) reaches(h *head) bool {
	whole := h.next == "" && (h.open == "" || h.open == understudy.OpenUnseen && m.Led&1 != 0)
	return whole || overlaps(h.ids, m.Top)
}

// behind notes a newest page that leaves a gap.
func (m *kindState) behind(at int64) {
	m.Behind = cmp.Or(m.Behind, at)
	m.Newest = max(m.Newest, at)
}

// reach moves the mark up to a page that leaves no gap. One that came later may
// leave a gap to this one; the next page tells.
func (m *kindState) reach(ids []string, at int64) {
	if at < m.CaughtUp {
		return
	}
	m.Top, m.CaughtUp = ids[:min(len(ids), maxTop)], at
	if m.Behind = 0; m.Newest > at {
		m.Behind = m.Newest
	}
	m.well(tip, interval{})
}

// overlaps reports whether a page has a record of those known to be newest.
// Lists go from the newest to the oldest, so all that is above it is in the
// page. A list that was empty is known to its end by anything.
func overlaps(ids, known []string) bool {
	for _, id := range ids {
		if slices.Contains(known, id) {
			return true
		}
	}
	return len(known) == 0 && len(ids) == 0
}

// catchUp is the job "catch up KIND": it walks on from a newest page until the
// list overlaps what is known.
func (t *jobRun) catchUp(ctx context.Context) error {
	if t.x.plan.parentKind != nil {
		return t.follow(ctx)
	}
	return t.ended(ctx, tip, t.fillGap(ctx))
}

// fillGap walks from a newest page to what is known.
func (t *jobRun) fillGap(ctx context.Context) error {
	w, run, x, e := t.w, t.run, t.x, &t.work
	m, err := w.states.read(ctx, x)
	if err != nil || m.Rest == 0 || e.At < m.CaughtUp {
		return err
	}
	at := position{Next: e.Next}
	if mark := run.Job().Mark; len(mark) > 0 && json.Unmarshal(mark, &at) != nil {
		at = position{Next: string(mark)} // of an earlier release
	}
	first, err := x.plan.newest()
	if err != nil {
		return err
	}
	seen := int64(len(e.Top))
	err = t.forEachPage(ctx, first, at, func(page *understudy.Page, next position) error {
		seen += int64(len(page.Rows))
		run.Progress(seen, 0, "")
		if overlaps(every(page), m.Top) || w.bounds.past(page, m.CaughtUp-int64(w.o.Settings.Overlap/time.Second)) {
			return errEnough
		}
		mark, err := json.Marshal(next)
		if err != nil {
			return err
		}
		return run.SetMark(ctx, mark)
	})
	if err == nil {
		err = t.checkEnds(ctx)
	}
	if err != nil && err != errEnough {
		return err
	}
	run.Progress(seen, seen, fmt.Sprintf("%d records seen, down to what was known", seen))
	return w.states.change(ctx, x, func(m *kindState) { m.reach(e.Top, e.At) })
}

// every are all records of a page.
func every(page *understudy.Page) []string {
	ids := make([]string, len(page.Rows))
	for i, row := range page.Rows {
		ids[i] = row.ID
	}
	return ids
}
