// This file handles saved newest pages: does the page reach down to the records known before?

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

// tipPage is a saved newest page of a list: its records, the link to the next page, and its time.
type tipPage struct {
	ids  []string
	next string
	open string // why the page does not prove the end of the list; "" if it proves the end
	at   int64
}

// addAbove adds the records that an earlier page showed above the first record of this page. A page that was
// requested before a write lacks the written record, which is stored as the write's response showed it.
func (h *tipPage) addAbove(before *tipPage) {
	if before == nil || len(h.ids) == 0 {
		return
	}
	if i := slices.Index(before.ids, h.ids[0]); i > 0 {
		h.ids = append(before.ids[:i:i], h.ids...)
		h.ids = h.ids[:min(len(h.ids), maxTop)]
		h.at = max(h.at, before.at)
	}
}

// HandlePageSaved handles every page that was saved. It returns at once; the work is done in Run. If a page
// is lost with the process, the next page replaces it.
func (w *Crawler) HandlePageSaved(_ context.Context, l request.PageSaved) error {
	if l.Page == nil {
		return nil
	}
	x := w.roots.findWalk(l)
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
		// The page shows everything up to the time of the request, minus the age of the response. Later writes may be missing.
		at := l.Page.At.Add(-l.Page.Took - l.Page.InitialAge).Unix()
		h := &tipPage{ids: newestIDs(l.Page), next: l.Page.Next.URI, open: tipEnd(l.Page).Kind, at: at}
		m := x.state.Load()
		h.addAbove(x.joinedTip.Load())
		h.addAbove(x.gapTip.Load())
		if m != nil {
			h.addAbove(&tipPage{ids: m.NewestIDs, at: m.CaughtUp})
		}
		if x.gapTip.Load() != nil || m == nil || !m.isJoined(h) {
			x.gapTip.Store(h) // the gap counts at once; look handles it later
		} else {
			x.joinedTip.Store(h)
		}
		w.unread[x] = h
	}
	if stirs {
		w.changed[l.Page.Key.Source+"/"+l.Page.Kind] = true
	}
	w.mu.Unlock()
	understudy.Wake(w.wake)
	return nil
}

// NoteChangesElsewhere finds the new roots among the changes that other processes have saved. These processes follow
// the other changes.
func (w *Crawler) NoteChangesElsewhere(changes []understudy.Change) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range changes {
		name := changes[i].Source + "/" + changes[i].Kind
		if x := w.walks[name]; x != nil && isDiscovering(x.plan.source) && x.plan.source.Spec.Roots.Kind == changes[i].Kind {
			w.changed[name] = true
			understudy.Wake(w.wake)
		}
	}
}

// look handles the saved pages and the recorded changes.
func (w *Crawler) look(ctx context.Context) error {
	if err := w.steps.check(ctx, w.allWalks()); err != nil {
		return err
	}
	if w.repoll.Swap(false) {
		if err := w.updatePolls(ctx); err != nil {
			w.repoll.Store(true)
			return err
		}
	}
	w.mu.Lock()
	heads, stirs := w.unread, w.changed
	w.unread, w.changed = map[*kindCrawl]*tipPage{}, map[string]bool{}
	doubts := w.rechecks
	w.rechecks = map[string]intervals{}
	w.mu.Unlock()
	for name, all := range doubts {
		for x := range w.walks[name].allRoots() {
			if err := w.queue.recheck(ctx, x, all); err != nil {
				return err
			}
		}
	}
	for x, h := range heads {
		if err := w.compareTip(ctx, x, h); err != nil {
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
		if err == nil && m.Keep && m.ListsWalkedAt != 0 {
			err = w.queue.enqueue(ctx, x, "catch up", payload{})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// compareTip compares a newest page with the known records. If the page shows a known record, the page's records
// become the known records. Otherwise they do so only at the end of the walk that fills the gap. A crash during
// that walk loses nothing, because the next page shows the same gap.
func (w *Crawler) compareTip(ctx context.Context, x *kindCrawl, h *tipPage) (err error) {
	defer func() {
		if err == nil {
			x.gapTip.CompareAndSwap(h, nil) // if a gap remains, the state has it now
		}
	}()
	m, err := w.states.checkClock(ctx, x)
	if err != nil || !m.Keep || m.ListsWalkedAt == 0 || h.at < m.CaughtUp {
		return err
	}
	if m.isJoined(h) {
		return w.states.change(ctx, x, func(m *kindState) { m.advanceTip(h.ids, h.at) })
	}
	if m.GapAt == 0 || h.at > m.Newest {
		if err := w.states.change(ctx, x, func(m *kindState) { m.noteGap(h.at) }); err != nil {
			return err
		}
	}
	if m.isResting(partTip, w.bounds.unixNow()) {
		return nil
	}
	return w.queue.enqueue(ctx, x, "catch up", payload{Next: h.next, Top: h.ids, At: h.at})
}

// isJoined reports whether a newest page leaves no gap to the known records: it shows one of them, or it is the whole list.
func (m *kindState) isJoined(h *tipPage) bool {
	whole := h.next == "" && (h.open == "" || h.open == understudy.OpenUnseen && m.LinkedLists&1 != 0)
	return whole || hasOverlap(h.ids, m.NewestIDs)
}

// noteGap notes the time of a newest page that leaves a gap to the known records.
func (m *kindState) noteGap(at int64) {
	m.GapAt = cmp.Or(m.GapAt, at)
	m.Newest = max(m.Newest, at)
}

// advanceTip makes the records of a page that leaves no gap the known records. If a later page leaves a gap to this
// page, the next poll shows that.
func (m *kindState) advanceTip(ids []string, at int64) {
	if at < m.CaughtUp {
		return
	}
	m.NewestIDs, m.CaughtUp = ids[:min(len(ids), maxTop)], at
	if m.GapAt = 0; m.Newest > at {
		m.GapAt = m.Newest
	}
	m.removeFailures(partTip, interval{})
}

// hasOverlap reports whether a page shows one of the newest known records. Lists are newest first, so all
// newer records are then on the page. If the known list was empty, only an empty page overlaps.
func hasOverlap(ids, known []string) bool {
	for _, id := range ids {
		if slices.Contains(known, id) {
			return true
		}
	}
	return len(known) == 0 && len(ids) == 0
}

// runCatchUp runs the job "catch up KIND": it walks from a newest page down to the known records.
func (t *jobRun) runCatchUp(ctx context.Context) error {
	if t.x.plan.parentKind != nil {
		return t.follow(ctx)
	}
	return t.noteEnded(ctx, partTip, t.fillGap(ctx))
}

// fillGap walks from a newest page down to the known records.
func (t *jobRun) fillGap(ctx context.Context) error {
	w, run, x, e := t.w, t.run, t.x, &t.work
	m, err := w.states.read(ctx, x)
	if err != nil || m.ListsWalkedAt == 0 || e.At < m.CaughtUp {
		return err
	}
	at := position{Next: e.Next}
	if mark := run.Job().Checkpoint; len(mark) > 0 && json.Unmarshal(mark, &at) != nil {
		at = position{Next: string(mark)} // a mark without a JSON object is in the format of an earlier release
	}
	first, err := x.plan.buildNewestTarget()
	if err != nil {
		return err
	}
	seen := int64(len(e.Top))
	err = t.visitPages(ctx, first, at, func(page *understudy.Page, next position) error {
		seen += int64(len(page.Rows))
		run.SetProgress(seen, 0, "")
		if hasOverlap(rowIDs(page), m.NewestIDs) || w.bounds.isBefore(page, m.CaughtUp-int64(w.o.Settings.Overlap/time.Second)) {
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
	run.SetProgress(seen, seen, fmt.Sprintf("%d records read, back to the known ones", seen))
	return w.states.change(ctx, x, func(m *kindState) { m.advanceTip(e.Top, e.At) })
}

// rowIDs returns the ids of all rows of a page.
func rowIDs(page *understudy.Page) []string {
	ids := make([]string, len(page.Rows))
	for i, row := range page.Rows {
		ids[i] = row.ID
	}
	return ids
}
