// Check: records that are not final are looked at again, by themselves or by
// the page, whichever costs fewer requests.

package crawl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"understudy"
)

// How often a record that is not final is looked at: after a tenth of its age,
// but no sooner than soonest and no later than latest. Most of what happens to
// a record happens in its first minutes.
const (
	soonest = time.Minute
	latest  = time.Hour
	tenth   = 10
)

// lookAgain is how long a record of an age is left alone.
func lookAgain(age time.Duration) time.Duration {
	return min(max(age/tenth, soonest), latest)
}

// Bounds of one round.
const (
	maxOpen  = 10_000 // records not final that are looked through
	maxDue   = 1000   // of them, looked at
	maxCheck = 100    // requests
)

// due is a record to be looked at again.
type due struct {
	row  understudy.Row
	rank int // its place among the held records of its shape, from the newest; -1: not known
}

// check is the job "check KIND".
func (t *jobRun) check(ctx context.Context) error {
	t.looks = true
	for _, shape := range t.x.plan.shapes() {
		dues, err := t.w.checks.dues(ctx, t.x, shape)
		if err != nil {
			return err
		}
		if err := t.again(ctx, shape, dues); err != nil {
			return err
		}
	}
	return nil
}

// checks finds the records that are to be looked at again.
type checks struct {
	bounds *bounds
	store  Store
}

// dues are the records of the window whose time has come, the newest first.
func (c *checks) dues(ctx context.Context, x *kindCrawl, shape string) ([]due, error) {
	now := c.bounds.now()
	q := x.plan.scan(shape, maxOpen)
	q.Open, q.From = true, now.Add(-c.bounds.settings.Window).Unix()
	rows, err := c.store.Rows(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("walk: check %s: %w", x.plan.name(), err)
	}
	q.From, q.Unclocked = 0, true
	null, err := c.store.Rows(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("walk: check %s: %w", x.plan.name(), err)
	}
	var out []due
	for _, row := range slices.Concat(rows, null) {
		rec, err := c.store.Record(ctx, x.plan.source.Name, x.plan.kind.Name, shape, row.ID)
		if errors.Is(err, understudy.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if x.plan.another(rec.Body) {
			continue
		}
		age := now.Sub(time.Unix(row.Clock, 0))
		if row.Clock == 0 {
			age = now.Sub(rec.Since)
		}
		if age > c.bounds.settings.Window || now.Sub(rec.Seen) < lookAgain(age) {
			continue
		}
		if out = append(out, due{row, -1}); len(out) == maxDue {
			break
		}
	}
	return out, c.ranks(ctx, x, shape, out)
}

// ranks finds the places of dues among the newest records that are held.
func (c *checks) ranks(ctx context.Context, x *kindCrawl, shape string, dues []due) error {
	if len(dues) < 2 || x.plan.parentKind != nil {
		return nil // alone it costs one request either way
	}
	rows, err := c.store.Rows(ctx, x.plan.scan(shape, maxOpen))
	if err != nil {
		return err
	}
	place := make(map[string]int, len(dues))
	for i := range dues {
		place[dues[i].row.ID] = i
	}
	for rank, row := range rows {
		if i, ok := place[row.ID]; ok {
			dues[i].rank = rank
		}
	}
	return nil
}

// group is some dues that are looked at together: by their pages, or one by one.
type group struct {
	dues  []due
	pages bool
	cost  int
}

// groups divides dues, by rank in order, so that few requests are needed. size
// is the records of a page; whole: a page can only be reached from the newest.
func groups(dues []due, size int, whole bool) []group {
	if len(dues) == 0 {
		return nil
	}
	alone := group{dues: dues, cost: len(dues)}
	first, last := dues[0].rank, dues[len(dues)-1].rank
	if whole {
		first = 0
	}
	together := group{dues: dues, pages: true, cost: (last-first)/size + 1}
	best := []group{alone}
	if together.cost < alone.cost {
		best = []group{together}
	}
	if len(dues) < 3 || together.cost == 1 {
		return best
	}
	cut := 1 // at the widest gap
	for i := 2; i < len(dues); i++ {
		if dues[i].rank-dues[i-1].rank > dues[cut].rank-dues[cut-1].rank {
			cut = i
		}
	}
	apart := slices.Concat(groups(dues[:cut], size, whole), groups(dues[cut:], size, whole))
	if cost(apart) < cost(best) {
		return apart
	}
	return best
}

func cost(gs []group) int {
	n := 0
	for _, g := range gs {
		n += g.cost
	}
	return n
}

// again looks at dues.
func (t *jobRun) again(ctx context.Context, shape string, dues []due) error {
	x := t.x
	var placed, alone []due
	for _, d := range dues {
		if d.rank >= 0 && x.plan.lists[0].Shape == shape {
			placed = append(placed, d)
		} else {
			alone = append(alone, d)
		}
	}
	slices.SortFunc(placed, func(a, b due) int { return cmp.Compare(a.rank, b.rank) })
	size := max(x.plan.source.Spec.PagingOf(x.plan.lists[0]).Max, 1)
	if t.w.o.Settings.Page > 0 {
		size = min(size, t.w.o.Settings.Page)
	}
	work := append(groups(placed, size, !x.plan.sliced()), group{dues: alone, cost: len(alone)})
	left := maxCheck
	for _, g := range work {
		for i := 0; i < len(g.dues) && left > 0; i++ {
			if !g.pages {
				target := x.plan.instance(g.dues[i].row.ID, g.dues[i].row.Parent, shape)
				if target == nil {
					continue // the sweep finds it
				}
				left--
				if _, err := t.fetch(ctx, target); err != nil {
					return err
				}
				continue
			}
			n, err := t.leaf(ctx, g.dues, left)
			if left -= n; err != nil {
				return err
			}
			break
		}
	}
	return nil
}

// leaf walks the pages on which dues lie, at most so many.
func (t *jobRun) leaf(ctx context.Context, dues []due, most int) (int, error) {
	x := t.x
	s := interval{early, late, 0}
	if x.plan.sliced() {
		s = interval{From: dues[len(dues)-1].row.Clock, To: dues[0].row.Clock + 1}
		for _, d := range dues {
			s.From, s.To = min(s.From, d.row.Clock), max(s.To, d.row.Clock+1)
		}
	}
	first, err := x.plan.page(0, "", s, t.w.o.Settings.Page)
	if err != nil {
		return 0, err
	}
	left := map[string]bool{}
	for _, d := range dues {
		left[d.row.ID] = true
	}
	n := 0
	err = t.forEachPage(ctx, first, position{}, func(page *understudy.Page, _ position) error {
		n++
		for _, row := range page.Rows {
			delete(left, row.ID)
		}
		if len(left) == 0 || n >= most {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return n, err
}
