// Sync: fills up a kind from the newest record to the oldest.
//
//	newest page -> where does it end? -> stretches beside each other -> the whole lists
//
// The stretches ask by time and so miss what has no clock; the walk over the
// whole lists finds that, and until it has ended nothing is called complete.

package walk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"understudy"
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

	Cells []openCell `json:"cells,omitempty"` // those under way
	Rest  place      `json:"rest"`            // of the walk over the whole lists
	Ended bool       `json:"ended,omitempty"` // that walk is done

	Under below `json:"under"` // of a kind that lies under another
	After int64 `json:"after,omitempty"`

	Sliced int64 `json:"sliced,omitempty"` // rows seen by stretches
	Whole  int64 `json:"whole,omitempty"`  // rows seen by the walk over the whole lists
}

// openCell is a stretch under way.
type openCell struct {
	From int64 `json:"from"`
	Rows int64 `json:"rows,omitempty"` // seen of it
	place
}

// syncing is one run of a sync.
type syncing struct {
	*trip
	x *walked

	mu   sync.Mutex
	mark mark
}

// errand is what the job's payload says.
type errand struct {
	Source string   `json:"source"`
	Kind   string   `json:"kind"`
	From   int64    `json:"from,omitempty"` // of a sweep: its stretch
	To     int64    `json:"to,omitempty"`
	Next   string   `json:"next,omitempty"` // of a catch-up: where it begins
	Top    []string `json:"top,omitempty"`
	At     int64    `json:"at,omitempty"`
}

// begin reads what a job is about.
func (w *Walker) begin(run Run) (*trip, *walked, errand, error) {
	var e errand
	if err := json.Unmarshal(run.Job().Payload, &e); err != nil {
		return nil, nil, e, fmt.Errorf("walk: %s: payload: %w", run.Job().Kind, err)
	}
	x, err := w.find(e.Source, e.Kind)
	if err != nil {
		return nil, nil, e, fmt.Errorf("walk: %s: %w", run.Job().Kind, err)
	}
	return &trip{w: w, run: run}, x, e, nil
}

// sync is the job "sync KIND".
func (w *Walker) sync(ctx context.Context, run Run) error {
	t, x, _, err := w.begin(run)
	if err != nil {
		return err
	}
	s := &syncing{trip: t, x: x}
	if raw := run.Job().Mark; len(raw) > 0 {
		if err := json.Unmarshal(raw, &s.mark); err != nil {
			return fmt.Errorf("walk: sync %s: mark: %w", x.name(), err)
		}
	}
	if s.mark.Plan != x.print() {
		s.mark = mark{} // what it saw was, or may have been, of another spec
	}
	if s.mark.Plan = x.print(); s.mark.Began == 0 {
		s.mark.Began = w.clock()
	}
	x.paced(w.o.Now(), &s.mark)
	err = s.all(ctx)
	x.unpaced()
	return w.ended(ctx, t, x, whole, err)
}

// ended notes why a walk of a part ended early, and hands the error on. One
// that ended well has noted that itself.
func (w *Walker) ended(ctx context.Context, t *trip, x *walked, part int64, err error) error {
	switch {
	case ctx.Err() != nil, errors.Is(err, errAbove):
		return err // somebody ended it, or it is not its turn
	case err == nil:
		x.goesOn()
		return nil
	case comesBack(err):
		// A sweep begins anew: what it has brought is no progress.
		x.stuck(w.o.Now(), err.Error(), t.moved() && len(t.run.Job().Mark) > 0)
		return err
	}
	x.goesOn()
	return errors.Join(err, w.change(ctx, x, func(m *memo) { m.fails(part, err.Error(), w.clock()) }))
}

// comesBack reports whether the job begins again where it was, by itself, until
// what is in its way is over. What can never have the room it needs does not.
func comesBack(err error) bool {
	var later *understudy.Later
	var heavy *heavyError
	return errors.As(err, &later) || passing(err) || errors.As(err, &heavy) && !errors.Is(err, understudy.ErrInvalid)
}

func (s *syncing) all(ctx context.Context) error {
	if s.x.under != nil {
		return s.nested(ctx)
	}
	if !s.mark.Headed {
		if err := s.head(ctx); err != nil {
			return err
		}
	}
	if s.x.sliced() && !s.mark.Ended && (s.mark.Whole > 0 || len(s.x.lists) > 1) {
		if err := s.slices(ctx); err != nil {
			return err
		}
	}
	if err := s.rest(ctx); err != nil {
		return err
	}
	return s.finish(ctx)
}

// keep changes the mark and keeps it.
func (s *syncing) keep(ctx context.Context, how func(*mark)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	how(&s.mark)
	raw, err := json.Marshal(s.mark)
	if err != nil {
		return err
	}
	s.progress()
	return s.run.SetMark(ctx, raw)
}

// head brings the first page of the whole list: what is newer than that is for
// the catch-up.
func (s *syncing) head(ctx context.Context) error {
	first, err := s.x.page(0, "", span{early, late, 0}, s.w.o.Page)
	if err != nil {
		return err
	}
	page, err := s.fetch(ctx, first)
	if err != nil {
		return err
	}
	if page.Status != http.StatusOK {
		return &refusal{page, s.x.source.Spec}
	}
	return s.keep(ctx, func(m *mark) {
		m.Headed, m.Top, m.Whole = true, top(page), int64(len(page.Rows))
		m.Rest, m.Ended = s.x.following(place{Next: page.Next.URI})
	})
}

// following is where a walk over all lists goes on, and whether that was all.
func (p *plan) following(at place) (place, bool) {
	if at.Next != "" {
		return at, false
	}
	return place{List: at.List + 1}, at.List+1 == len(p.lists)
}

// top are the newest records of a page.
func top(page *understudy.Page) []string {
	var ids []string
	for _, row := range page.Rows[:min(len(page.Rows), maxTop)] {
		ids = append(ids, row.ID)
	}
	return ids
}

// slices walks the stretches that this sync has not walked yet.
func (s *syncing) slices(ctx context.Context) error {
	floor := s.w.floor(s.x, s.mark.Began)
	if !s.mark.Probed {
		if err := s.probe(ctx, floor); err != nil {
			return err
		}
	}
	m, err := s.w.read(ctx, s.x)
	if err != nil {
		return err
	}
	var cells []span
	for _, c := range s.w.cells(floor, s.mark.Oldest, s.mark.Began) {
		if !m.Spans.covers(c.From, c.To, s.mark.Began) {
			cells = append(cells, c)
		}
	}
	return each(ctx, cells, s.w.o.Slices, s.cell)
}

// probe finds out how far back records lie: each question goes twice as far,
// and asks for one record.
func (s *syncing) probe(ctx context.Context, floor int64) error {
	size := int64(s.w.o.Slice / time.Second)
	edge, oldest := s.mark.Began-mod(s.mark.Began, size), int64(0)
	for step := size; floor == early; step *= 2 {
		oldest = edge - step
		if oldest <= 0 {
			oldest = 0
			break
		}
		found, err := s.before(ctx, oldest)
		if err != nil {
			return err
		}
		if !found {
			break
		}
	}
	return s.keep(ctx, func(m *mark) { m.Probed, m.Oldest = true, oldest })
}

// before reports whether a list has a record that is older than a clock.
func (s *syncing) before(ctx context.Context, clock int64) (bool, error) {
	for i := range s.x.lists {
		target, err := s.x.page(i, "", span{early, clock, 0}, 1)
		if err != nil {
			return false, err
		}
		page, err := s.fetch(ctx, target)
		if err != nil {
			return false, err
		}
		r := &refusal{page, s.x.source.Spec}
		switch {
		case page.Status == http.StatusOK && len(page.Rows) > 0:
			return true, nil
		case page.Status == http.StatusOK:
		case !r.retention():
			return false, r
		default:
			return false, s.w.noteEnd(ctx, s.x, clock)
		}
	}
	return false, nil
}

// cell walks one stretch in every list.
func (s *syncing) cell(ctx context.Context, c span) error {
	at := s.open(c.From)
	for list := at.List; list < len(s.x.lists); list++ {
		if at.List != list {
			at = place{List: list}
		}
		err := s.stretch(ctx, s.x.plan, list, c, at, func(page *understudy.Page, next place) error {
			return s.keep(ctx, func(m *mark) {
				rows := rowsOf(list, within(page, c))
				m.Sliced += rows
				m.put(c.From, rows, next)
			})
		})
		if err != nil {
			return err
		}
	}
	err := s.w.change(ctx, s.x, func(m *memo) { m.Spans = m.Spans.add(c.From, c.To, s.mark.Began) })
	if err != nil {
		return err
	}
	return s.keep(ctx, func(m *mark) {
		m.Cells = slices.DeleteFunc(m.Cells, func(o openCell) bool { return o.From == c.From })
	})
}

// stretch walks a stretch of time in one list from a place to its end.
func (t *trip) stretch(ctx context.Context, p *plan, list int, c span, at place, see func(*understudy.Page, place) error) error {
	ask := c
	if c.To != late {
		ask.To += int64(t.w.o.Overlap / time.Second)
	}
	first, err := p.page(list, "", ask, t.w.o.Page)
	if err != nil {
		return err
	}
	err = t.along(ctx, p, first, at, see)
	var r *refusal
	if !errors.As(err, &r) || !r.retention() {
		return err
	}
	// Part of the stretch is older than what upstream keeps: all it still has
	// is asked for, and if that is refused, too, it has nothing.
	if ask.From != early {
		ask.From = early
		if first, err = p.page(list, "", ask, t.w.o.Page); err != nil {
			return err
		}
		if err = t.along(ctx, p, first, place{List: list}, see); !errors.As(err, &r) || !r.retention() {
			return err
		}
	}
	return t.w.noteEnd(ctx, t.w.walks[p.name()], c.To)
}

// noteEnd notes that upstream keeps nothing that is older.
func (w *Walker) noteEnd(ctx context.Context, x *walked, clock int64) error {
	return w.change(ctx, x, func(m *memo) {
		m.Ended = "upstream keeps nothing from before " + time.Unix(clock, 0).UTC().Format(time.DateOnly)
	})
}

// open is where a stretch goes on.
func (s *syncing) open(from int64) place {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.mark.Cells {
		if o.From == from {
			return o.place
		}
	}
	return place{}
}

// put notes where a stretch goes on after a page.
func (m *mark) put(from, rows int64, at place) {
	if at.Next == "" {
		at.List++
	}
	for i := range m.Cells {
		if m.Cells[i].From == from {
			m.Cells[i].place = at
			m.Cells[i].Rows += rows
			return
		}
	}
	m.Cells = append(m.Cells, openCell{from, rows, at})
}

// within counts the rows of a page whose clocks lie in a stretch.
func within(page *understudy.Page, c span) int64 {
	n := int64(0)
	for _, row := range page.Rows {
		if row.Clock != 0 && row.Clock >= c.From && row.Clock < c.To {
			n++
		}
	}
	return n
}

// rest walks the whole lists from where the newest page ended.
func (s *syncing) rest(ctx context.Context) error {
	for !s.mark.Ended {
		at := s.mark.Rest
		first, err := s.x.page(at.List, "", span{early, late, 0}, s.w.o.Page)
		if err != nil {
			return err
		}
		floor := s.w.floor(s.x, s.mark.Began)
		err = s.along(ctx, s.x.plan, first, at, func(page *understudy.Page, next place) error {
			if s.w.past(page, floor) {
				next.Next = ""
			}
			err := s.keep(ctx, func(m *mark) {
				m.Whole += rowsOf(at.List, int64(len(page.Rows)))
				m.Rest, m.Ended = s.x.following(next)
			})
			if err == nil && next.Next == "" {
				return errEnough
			}
			return err
		})
		if err != nil && !errors.Is(err, errEnough) {
			return err
		}
	}
	return nil
}

// errEnough ends a walk along a list that goes on.
var errEnough = errors.New("walk: enough")

// past reports whether a page lies wholly before a clock, so that those after
// it do, too. What has no clock is as old as what is around it.
func (w *Walker) past(page *understudy.Page, floor int64) bool {
	clocked := false
	for _, row := range page.Rows {
		clocked = clocked || row.Clock != 0
		if row.Clock != 0 && row.Clock >= floor-int64(w.o.Overlap/time.Second) {
			return false
		}
	}
	return clocked && floor != early
}

// now is the newest page after a sync that took long: what came since it began
// is known then, or that there is more of it than a page. nil: it took not long.
func (s *syncing) now(ctx context.Context) (*head, error) {
	if s.w.clock()-s.mark.Began < int64(soonest/time.Second) {
		return nil, nil
	}
	first, err := s.x.page(0, "", span{early, late, 0}, s.w.o.Page)
	if err != nil {
		return nil, err
	}
	began := s.w.clock()
	page, err := s.fetch(ctx, first)
	if err != nil {
		return nil, err
	}
	if page.Status != http.StatusOK {
		return nil, &refusal{page, s.x.source.Spec}
	}
	return &head{ids: every(page), next: page.Next.URI, at: began}, nil
}

// finish makes what was walked count.
func (s *syncing) finish(ctx context.Context) error {
	floor := s.w.floor(s.x, s.mark.Began)
	now, err := s.now(ctx)
	if err != nil {
		return err
	}
	err = s.w.change(ctx, s.x, func(m *memo) {
		m.forget(floor)
		m.Failures = nil
		m.Rest = max(m.Rest, s.mark.Began)
		m.Records = s.mark.Whole
		if s.x.sliced() {
			// The walk over the whole lists saw every stretch, too, and a little
			// of what lies before them.
			m.Spans = m.Spans.add(earlier(floor, min(edge, int64(s.w.o.Overlap/time.Second))), late, s.mark.Began)
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
