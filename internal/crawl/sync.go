// This file fetches a kind from the newest record to the oldest.
//
// A sync fetches the newest page and finds out how far back the records go. It walks time ranges in parallel and
// then the whole lists. Filters on time miss records without a clock. The walk over the whole lists finds these
// records, and until it has ended the kind is not complete.

package crawl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"understudy"
	"understudy/spec"
)

// maxTop is how many of the newest records are remembered.
const maxTop = 100

// mark is where a sync continues. Times are Unix seconds.
type mark struct {
	Began       int64    `json:"began"`
	Plan        string   `json:"plan,omitempty"` // the fingerprint of the plan with which the sync began
	Top         []string `json:"top,omitempty"`
	NewestDone  bool     `json:"headed,omitempty"` // whether the newest page is done
	OldestKnown bool     `json:"probed,omitempty"` // whether Oldest is known
	Oldest      int64    `json:"oldest,omitempty"`

	OpenRanges    []openPartition `json:"cells,omitempty"` // the time ranges that are partly walked
	ListsPosition position        `json:"rest"`            // the position of the walk over the whole lists
	Ended         bool            `json:"ended,omitempty"` // whether the walk over the whole lists has ended

	ParentPosition childPosition `json:"under"`           // the position among the parent records of a nested kind
	ParentsDone    int64         `json:"above,omitempty"` // the number of parent records under which lists were walked
	After          int64         `json:"after,omitempty"`

	RangeRows int64 `json:"sliced,omitempty"` // the number of rows seen in time ranges
	ListRows  int64 `json:"whole,omitempty"`  // the number of rows seen in the walk over the whole lists
	Ends      ends  `json:"ends,omitzero"`
}

// openPartition is a time range that is partly walked.
type openPartition struct {
	From int64 `json:"from"`
	Rows int64 `json:"rows,omitempty"` // the number of rows seen in this time range
	position
}

// syncRun is one run of a sync.
type syncRun struct {
	w   *Crawler
	job *jobRun
	x   *kindCrawl

	mu      sync.Mutex
	mark    mark
	pace    *pace        // how fast the present walk is
	parents parentCounts // the counts of parent records, for a nested kind
}

// payload is the payload of a job.
type payload struct {
	Source string   `json:"source"`
	Kind   string   `json:"kind"`
	Root   string   `json:"root,omitempty"`
	From   int64    `json:"from,omitempty"` // the start of the time range of a sweep, in Unix seconds
	To     int64    `json:"to,omitempty"`
	Next   string   `json:"next,omitempty"` // the link where a catch-up begins
	Top    []string `json:"top,omitempty"`
	At     int64    `json:"at,omitempty"`
}

// begin reads the payload of a job and finds its walk.
func (w *Crawler) begin(run Run) (*jobRun, error) {
	t := &jobRun{w: w, run: run}
	if err := json.Unmarshal(run.Job().Payload, &t.work); err != nil {
		return nil, fmt.Errorf("walk: %s: payload: %w", run.Job().Kind, err)
	}
	x, err := w.find(t.work.Source, t.work.Kind)
	if err != nil {
		return nil, fmt.Errorf("walk: %s: %w", run.Job().Kind, err)
	}
	t.x = x.rootWalk(t.work.Root)
	return t, nil
}

// sync runs the job "sync KIND".
func (t *jobRun) sync(ctx context.Context) error {
	w, x := t.w, t.x
	s := &syncRun{w: w, job: t, x: x}
	if raw := t.run.Job().Checkpoint; len(raw) > 0 {
		if err := json.Unmarshal(raw, &s.mark); err != nil {
			return fmt.Errorf("walk: sync %s: mark: %w", x.plan.name(), err)
		}
	}
	if s.mark.Plan != x.plan.fingerprint() {
		s.mark = mark{} // the stored mark may come from a sync with another spec
	}
	t.ends = s.mark.Ends
	if s.mark.Plan = x.plan.fingerprint(); s.mark.Began == 0 {
		s.mark.Began = w.bounds.unixNow()
	}
	if m, err := w.states.read(ctx, x); err != nil || m.ListsWalkedAt != 0 {
		return err // another process has finished the sync
	}
	s.startPace("", s.mark.ListRows)
	err := s.run(ctx)
	s.x.pace.CompareAndSwap(s.pace, nil) // after the lease has ended, another run may be measuring, and goes on
	return t.noteEnded(ctx, partLists, err)
}

// noteEnded stores why the walk of a part failed, and returns the error. A successful walk has stored its end itself.
func (t *jobRun) noteEnded(ctx context.Context, part int64, err error) error {
	w, x := t.w, t.x
	switch {
	case ctx.Err() != nil, errors.Is(err, errParentFirst):
		return err // no failure: the run was ended from outside, or waits for its parent kind
	case err == nil:
		x.clearStall()
		return nil
	case isRetried(err):
		// A sweep always starts again, so the pages that it has fetched are no progress.
		stuck := x.noteStall(w.bounds.now(), shortReason(err), t.hasFetched() && len(t.run.Job().Checkpoint) > 0)
		var later *understudy.Snooze
		var failed *understudy.UpstreamError
		if errors.As(err, &later) && !(errors.As(err, &failed) && isLasting(failed)) {
			later.Wait = max(later.Wait, min(stuck/4, failurePause))
		}
		return err
	}
	x.clearStall()
	refused, ok := errors.AsType[*refusal](err)
	long := errors.As(err, new(*endlessError)) || ok && refused.restarts > 0
	return errors.Join(err, w.states.change(ctx, x, func(m *kindState) {
		if m.addFailure(part, shortReason(err), w.bounds.unixNow(), long); t.endsFound().Shared {
			m.ListsWalkedAt = 0 // a full walk is due again, because some records walked before may be hidden
		}
	}))
}

// isRetried reports whether the job will continue from its position once the cause of the error is gone. It returns
// false for a job that can never get enough memory.
func isRetried(err error) bool {
	return errors.As(err, new(*understudy.Snooze)) || isTemporary(err) ||
		errors.As(err, new(*memoryError)) && !errors.Is(err, understudy.ErrInvalid)
}

// run syncs the newest page, the time ranges and the whole lists.
func (s *syncRun) run(ctx context.Context) error {
	if s.x.plan.parentKind != nil {
		return s.syncNested(ctx)
	}
	if !s.mark.NewestDone {
		if err := s.syncHead(ctx); err != nil {
			return err
		}
	}
	if s.x.plan.isSliced() && !s.mark.Ended && (s.mark.ListRows > 0 || len(s.x.plan.lists) > 1) {
		s.startPace(walkSlices, s.mark.RangeRows)
		if err := s.syncPartitions(ctx); err != nil {
			return err
		}
		s.startPace(walkLists, s.mark.ListRows)
	}
	if err := s.walkRest(ctx); err != nil {
		return err
	}
	return s.finish(ctx)
}

// keep changes the mark and saves it.
func (s *syncRun) keep(ctx context.Context, update func(*mark)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	update(&s.mark)
	s.mark.Ends = s.job.endsFound()
	raw, err := json.Marshal(s.mark)
	if err != nil {
		return err
	}
	s.reportProgress(ctx)
	return s.job.run.SetMark(ctx, raw)
}

// fetchNewest fetches the first page of the whole list.
func (s *syncRun) fetchNewest(ctx context.Context) (*spec.Target, *understudy.Page, error) {
	first, err := s.x.plan.buildTarget(0, "", interval{minClock, maxClock, 0}, s.w.o.Settings.Page)
	if err != nil {
		return nil, nil, err
	}
	page, err := s.job.fetch(ctx, first)
	if err == nil && page.Status != http.StatusOK {
		err = &refusal{page: page, spec: s.x.plan.source.Spec}
	}
	return first, page, err
}

// syncHead fetches the first page of the whole list. Newer records are left to the catch-up.
func (s *syncRun) syncHead(ctx context.Context) error {
	first, page, err := s.fetchNewest(ctx)
	if err != nil {
		return err
	}
	if id, err := s.job.checkRepeats(ctx, page); err != nil {
		return err
	} else if id != "" {
		s.job.noteRepeated(page.Key, "several contents", id)
	}
	at := position{}
	at.addPage(page, len(page.Rows))
	at, end := at.nextPosition(first, first, page)
	s.job.noteNext(0, page)
	if at.Next == "" {
		s.job.noteOpen(page.Key, 0, end)
	}
	return s.keep(ctx, func(m *mark) {
		m.NewestDone, m.Top, m.ListRows = true, newestIDs(page), int64(len(page.Rows))
		m.ListsPosition, m.Ended = s.x.plan.nextPosition(at)
	})
}

// nextPosition returns where a walk over all lists of the kind continues, and whether the walk has ended.
func (p *plan) nextPosition(at position) (position, bool) {
	if at.Next != "" {
		return at, false
	}
	return position{List: at.List + 1}, at.List+1 == len(p.lists)
}

// newestIDs returns the newest records of a page.
func newestIDs(page *understudy.Page) []string {
	var ids []string
	for _, row := range page.Rows[:min(len(page.Rows), maxTop)] {
		ids = append(ids, row.ID)
	}
	return ids
}

// fetchLatest fetches the newest page after a sync that took long. The page shows the records added since the
// start, or that more were added than fit on a page. After a short sync, fetchLatest returns nil.
func (s *syncRun) fetchLatest(ctx context.Context) (*tipPage, error) {
	if s.w.bounds.unixNow()-s.mark.Began < int64(minLookInterval/time.Second) {
		return nil, nil
	}
	began := s.w.bounds.unixNow()
	_, page, err := s.fetchNewest(ctx)
	if err != nil {
		return nil, err
	}
	return &tipPage{ids: rowIDs(page), next: page.Next.URI, open: tipEnd(page).Kind, at: began}, nil
}

// finish stores the result of a completed sync.
func (s *syncRun) finish(ctx context.Context) error {
	s.job.run.SetProgress(s.mark.ListRows, s.mark.ListRows, fmt.Sprintf("%d records read, all lists complete", s.mark.ListRows))
	floor := s.w.bounds.floor(s.x, s.mark.Began)
	if err := s.job.checkEnds(ctx); err != nil {
		return err
	}
	now, err := s.fetchLatest(ctx)
	if err != nil {
		return err
	}
	err = s.w.states.change(ctx, s.x, func(m *kindState) {
		m.forget(floor)
		m.Failures, m.LinkedLists, m.Params = nil, m.LinkedLists|s.job.endsFound().LinkedLists, s.job.endsFound().Params
		m.ListsWalkedAt = max(m.ListsWalkedAt, s.mark.Began)
		m.Records = s.mark.ListRows
		if s.x.plan.isSliced() {
			// The walk over the whole lists also saw every time range, and records a little before the floor.
			m.Spans = m.Spans.add(subtract(floor, min(rememberExtra, int64(s.w.o.Settings.Overlap/time.Second))), maxClock, s.mark.Began)
			if m.Oldest = s.mark.Oldest; !s.mark.OldestKnown {
				m.Oldest = s.mark.Began
			}
		}
		if s.mark.Began >= m.CaughtUp {
			m.NewestIDs, m.CaughtUp, m.GapAt, m.Newest = s.mark.Top, s.mark.Began, 0, 0
		}
		if now != nil && !m.isJoined(now) {
			m.noteGap(now.at) // the gap must be noted before the kind counts as complete
		}
	})
	if err != nil || now == nil {
		return err
	}
	return s.w.compareTip(ctx, s.x, now)
}
