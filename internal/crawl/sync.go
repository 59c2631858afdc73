// Sync: fills up a kind from the newest record to the oldest.
//
//	newest page -> where does it end? -> intervals beside each other -> the whole lists
//
// The intervals ask by time and so miss what has no clock; the walk over the
// whole lists finds that, and until it has ended nothing is called complete.

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

// mark is where a sync goes on. Times are Unix seconds.
type mark struct {
	Began  int64    `json:"began"`
	Plan   string   `json:"plan,omitempty"` // how it walks (plan.print)
	Top    []string `json:"top,omitempty"`
	Headed bool     `json:"headed,omitempty"` // the newest page is done
	Probed bool     `json:"probed,omitempty"` // where the oldest lies is known
	Oldest int64    `json:"oldest,omitempty"`

	Cells []openPartition `json:"cells,omitempty"` // those under way
	Rest  position        `json:"rest"`            // of the walk over the whole lists
	Ended bool            `json:"ended,omitempty"` // that walk is done

	Under childPosition `json:"under"`           // of a kind that lies under another
	Above int64         `json:"above,omitempty"` // records walked under
	After int64         `json:"after,omitempty"`

	Sliced int64 `json:"sliced,omitempty"` // rows seen by stretches
	Whole  int64 `json:"whole,omitempty"`  // rows seen by the walk over the whole lists
	Ends   ends  `json:"ends,omitzero"`
}

// openPartition is a stretch under way.
type openPartition struct {
	From int64 `json:"from"`
	Rows int64 `json:"rows,omitempty"` // seen of it
	position
}

// syncRun is one run of a sync.
type syncRun struct {
	w   *Crawler
	job *jobRun
	x   *kindCrawl

	mu      sync.Mutex
	mark    mark
	parents parentCounts // of a kind that lies under another
}

// payload is what the job's payload says.
type payload struct {
	Source string   `json:"source"`
	Kind   string   `json:"kind"`
	Root   string   `json:"root,omitempty"`
	From   int64    `json:"from,omitempty"` // of a sweep: its stretch
	To     int64    `json:"to,omitempty"`
	Next   string   `json:"next,omitempty"` // of a catch-up: where it begins
	Top    []string `json:"top,omitempty"`
	At     int64    `json:"at,omitempty"`
}

// begin reads what a job is about.
func (w *Crawler) begin(run Run) (*jobRun, error) {
	t := &jobRun{w: w, run: run}
	if err := json.Unmarshal(run.Job().Payload, &t.work); err != nil {
		return nil, fmt.Errorf("walk: %s: payload: %w", run.Job().Kind, err)
	}
	x, err := w.find(t.work.Source, t.work.Kind)
	if err != nil {
		return nil, fmt.Errorf("walk: %s: %w", run.Job().Kind, err)
	}
	t.x = x.in(t.work.Root)
	return t, nil
}

// sync is the job "sync KIND".
func (t *jobRun) sync(ctx context.Context) error {
	w, x := t.w, t.x
	s := &syncRun{w: w, job: t, x: x}
	if raw := t.run.Job().Mark; len(raw) > 0 {
		if err := json.Unmarshal(raw, &s.mark); err != nil {
			return fmt.Errorf("walk: sync %s: mark: %w", x.plan.name(), err)
		}
	}
	if s.mark.Plan != x.plan.print() {
		s.mark = mark{} // what it saw was, or may have been, of another spec
	}
	t.ends = s.mark.Ends
	if s.mark.Plan = x.plan.print(); s.mark.Began == 0 {
		s.mark.Began = w.bounds.clock()
	}
	s.paced("", s.mark.Whole)
	err := s.all(ctx)
	x.now.Store(nil)
	return t.ended(ctx, whole, err)
}

// ended notes why a walk of a part ended early, and hands the error on. One
// that ended well has noted that itself.
func (t *jobRun) ended(ctx context.Context, part int64, err error) error {
	w, x := t.w, t.x
	switch {
	case ctx.Err() != nil, errors.Is(err, errAbove):
		return err // the run was ended from outside, or has to wait for its turn
	case err == nil:
		x.resumed()
		return nil
	case comesBack(err):
		// A sweep begins anew: what it has brought is no progress.
		stuck := x.stalled(w.bounds.now(), reason(err), t.moved() && len(t.run.Job().Mark) > 0)
		var later *understudy.Snooze
		var failed *understudy.UpstreamError
		if errors.As(err, &later) && !(errors.As(err, &failed) && waits(failed)) {
			later.Wait = max(later.Wait, min(stuck/4, failedRest))
		}
		return err
	}
	x.resumed()
	var endless *endlessError
	var refused *refusal
	long := errors.As(err, &endless) || errors.As(err, &refused) && refused.again > 0
	return errors.Join(err, w.states.change(ctx, x, func(m *kindState) {
		if m.fails(part, reason(err), w.bounds.clock(), long); t.found().Shared {
			m.Rest = 0 // some of what was walked before may be hidden
		}
	}))
}

// comesBack reports whether the job continues by itself from its position when the
// obstacle is over. A job that can never get the memory it needs does not.
func comesBack(err error) bool {
	var later *understudy.Snooze
	var heavy *heavyError
	return errors.As(err, &later) || passing(err) || errors.As(err, &heavy) && !errors.Is(err, understudy.ErrInvalid)
}

func (s *syncRun) all(ctx context.Context) error {
	if s.x.plan.parentKind != nil {
		return s.nested(ctx)
	}
	if !s.mark.Headed {
		if err := s.head(ctx); err != nil {
			return err
		}
	}
	if s.x.plan.sliced() && !s.mark.Ended && (s.mark.Whole > 0 || len(s.x.plan.lists) > 1) {
		s.paced(byTime, s.mark.Sliced)
		if err := s.partitions(ctx); err != nil {
			return err
		}
		s.paced(byList, s.mark.Whole)
	}
	if err := s.rest(ctx); err != nil {
		return err
	}
	return s.finish(ctx)
}

// keep changes the mark and keeps it.
func (s *syncRun) keep(ctx context.Context, how func(*mark)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	how(&s.mark)
	s.mark.Ends = s.job.found()
	raw, err := json.Marshal(s.mark)
	if err != nil {
		return err
	}
	s.progress(ctx)
	return s.job.run.SetMark(ctx, raw)
}

// newest brings the first page of the whole list.
func (s *syncRun) newest(ctx context.Context) (*spec.Target, *understudy.Page, error) {
	first, err := s.x.plan.page(0, "", interval{early, late, 0}, s.w.o.Settings.Page)
	if err != nil {
		return nil, nil, err
	}
	page, err := s.job.fetch(ctx, first)
	if err == nil && page.Status != http.StatusOK {
		err = &refusal{page: page, spec: s.x.plan.source.Spec}
	}
	return first, page, err
}

// head brings the first page of the whole list: what is newer than that is for
// the catch-up.
func (s *syncRun) head(ctx context.Context) error {
	first, page, err := s.newest(ctx)
	if err != nil {
		return err
	}
	if id, err := s.job.checkRepeats(ctx, page); err != nil {
		return err
	} else if id != "" {
		s.job.noteRepeated(page.Key, "several contents", id)
	}
	at := position{}
	at.count(page, len(page.Rows))
	at, end := at.onward(first, first, page)
	s.job.leads(0, page)
	if at.Next == "" {
		s.job.noteOpen(page.Key, 0, end)
	}
	return s.keep(ctx, func(m *mark) {
		m.Headed, m.Top, m.Whole = true, top(page), int64(len(page.Rows))
		m.Rest, m.Ended = s.x.plan.following(at)
	})
}

// following is where a walk over all lists goes on, and whether that was all.
func (p *plan) following(at position) (position, bool) {
	if at.Next != "" {
		return at, false
	}
	return position{List: at.List + 1}, at.List+1 == len(p.lists)
}

// top are the newest records of a page.
func top(page *understudy.Page) []string {
	var ids []string
	for _, row := range page.Rows[:min(len(page.Rows), maxTop)] {
		ids = append(ids, row.ID)
	}
	return ids
}

// now is the newest page after a sync that took long: what came since it began
// is known then, or that there is more of it than a page. nil: it took not long.
func (s *syncRun) now(ctx context.Context) (*head, error) {
	if s.w.bounds.clock()-s.mark.Began < int64(soonest/time.Second) {
		return nil, nil
	}
	began := s.w.bounds.clock()
	_, page, err := s.newest(ctx)
	if err != nil {
		return nil, err
	}
	return &head{ids: every(page), next: page.Next.URI, open: endOfTip(page).Kind, at: began}, nil
}

// finish makes what was walked count.
func (s *syncRun) finish(ctx context.Context) error {
	s.job.run.Progress(s.mark.Whole, s.mark.Whole, fmt.Sprintf("%d records seen, every list to its end", s.mark.Whole))
	floor := s.w.bounds.floor(s.x, s.mark.Began)
	if err := s.job.checkEnds(ctx); err != nil {
		return err
	}
	now, err := s.now(ctx)
	if err != nil {
		return err
	}
	err = s.w.states.change(ctx, s.x, func(m *kindState) {
		m.forget(floor)
		m.Failures, m.Led, m.Params = nil, m.Led|s.job.found().Led, s.job.found().Params
		m.Rest = max(m.Rest, s.mark.Began)
		m.Records = s.mark.Whole
		if s.x.plan.sliced() {
			// The walk over the whole lists saw every stretch, too, and a little
			// of what lies before them.
			m.Spans = m.Spans.add(earlier(floor, min(edge, int64(s.w.o.Settings.Overlap/time.Second))), late, s.mark.Began)
			if m.Oldest = s.mark.Oldest; !s.mark.Probed {
				m.Oldest = s.mark.Began
			}
		}
		if s.mark.Began >= m.CaughtUp {
			m.Top, m.CaughtUp, m.Behind, m.Newest = s.mark.Top, s.mark.Began, 0, 0
		}
		if now != nil && !m.reaches(now) {
			m.behind(now.at) // before it is called complete
		}
	})
	if err != nil || now == nil {
		return err
	}
	return s.w.tick(ctx, s.x, now)
}
