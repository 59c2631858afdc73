// This file fetches records again that are not final: single records, or whole list pages, whichever needs fewer requests.

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

// The limits of the time between two fetches of a record that is not final. The time is a tenth of the record's
// age, because most changes happen in the first minutes.
const (
	minLookInterval = time.Minute
	maxLookInterval = time.Hour
	ageShare        = 10
)

// lookInterval returns the time between two fetches of a record of the given age.
func lookInterval(age time.Duration) time.Duration {
	return min(max(age/ageShare, minLookInterval), maxLookInterval)
}

// Limits of one run of the job "check KIND".
const (
	maxOpen  = 10_000 // the maximum number of records that are not final and are examined
	maxDue   = 1000   // the maximum number of records that are fetched again
	maxCheck = 100    // the maximum number of requests
)

// due is a record to be fetched again.
type due struct {
	row  understudy.Row
	rank int // the position of the record among the stored records of its shape, newest first; -1 if unknown
}

// check runs the job "check KIND": it fetches records again that are not final.
func (t *jobRun) check(ctx context.Context) error {
	t.nonFinal = true
	for _, shape := range t.x.plan.shapes() {
		dues, err := t.w.checks.findDue(ctx, t.x, shape)
		if err != nil {
			return err
		}
		if err := t.fetchDue(ctx, shape, dues); err != nil {
			return err
		}
	}
	return nil
}

// checks finds the records that are not final and must be fetched again.
type checks struct {
	bounds *bounds
	store  Store
}

// findDue returns the records of a kind that are not final and must be fetched again now, newest first.
func (c *checks) findDue(ctx context.Context, x *kindCrawl, shape string) ([]due, error) {
	now := c.bounds.now()
	q := x.plan.scan(shape, maxOpen)
	q.NotFinal, q.From = true, now.Add(-c.bounds.settings.Window).Unix()
	rows, err := c.store.ReadRows(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("walk: check %s: %w", x.plan.name(), err)
	}
	q.From, q.NoClock = 0, true
	null, err := c.store.ReadRows(ctx, q)
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
		if x.plan.isForeign(rec.Body) {
			continue
		}
		age := now.Sub(time.Unix(row.Clock, 0))
		if row.Clock == 0 {
			age = now.Sub(rec.Since)
		}
		if age > c.bounds.settings.Window || now.Sub(rec.Seen) < lookInterval(age) {
			continue
		}
		if out = append(out, due{row, -1}); len(out) == maxDue {
			break
		}
	}
	return out, c.findRanks(ctx, x, shape, out)
}

// findRanks sets the rank of each due record: its position among the newest stored records.
func (c *checks) findRanks(ctx context.Context, x *kindCrawl, shape string, dues []due) error {
	if len(dues) < 2 || x.plan.parentKind != nil {
		return nil // the rank of a single record does not matter: the record costs one request in any case
	}
	rows, err := c.store.ReadRows(ctx, x.plan.scan(shape, maxOpen))
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

// group is a set of due records that are fetched together: by list pages, or one by one.
type group struct {
	dues  []due
	pages bool
	cost  int
}

// groups divides due records, sorted by rank, into groups that need few requests. size is the number of records on
// a page. If whole is true, a page can only be reached by walking from the newest page.
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
	cut := 1 // the records are divided at the widest gap between two ranks
	for i := 2; i < len(dues); i++ {
		if dues[i].rank-dues[i-1].rank > dues[cut].rank-dues[cut-1].rank {
			cut = i
		}
	}
	apart := slices.Concat(groups(dues[:cut], size, whole), groups(dues[cut:], size, whole))
	if totalCost(apart) < totalCost(best) {
		return apart
	}
	return best
}

func totalCost(gs []group) int {
	n := 0
	for _, g := range gs {
		n += g.cost
	}
	return n
}

// fetchDue fetches due records again.
func (t *jobRun) fetchDue(ctx context.Context, shape string, dues []due) error {
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
	work := append(groups(placed, size, !x.plan.isSliced()), group{dues: alone, cost: len(alone)})
	left := maxCheck
	for _, g := range work {
		for i := 0; i < len(g.dues) && left > 0; i++ {
			if !g.pages {
				target := x.plan.instanceTarget(g.dues[i].row.ID, g.dues[i].row.Parent, shape)
				if target == nil {
					continue // the record has no path of its own; the next sweep will fetch it
				}
				left--
				if _, err := t.fetch(ctx, target); err != nil {
					return err
				}
				continue
			}
			n, err := t.walkPagesOf(ctx, g.dues, left)
			if left -= n; err != nil {
				return err
			}
			break
		}
	}
	return nil
}

// walkPagesOf walks the list pages that contain due records. It walks at most maxPages pages.
func (t *jobRun) walkPagesOf(ctx context.Context, dues []due, maxPages int) (int, error) {
	x := t.x
	s := interval{minClock, maxClock, 0}
	if x.plan.isSliced() {
		s = interval{From: dues[len(dues)-1].row.Clock, To: dues[0].row.Clock + 1}
		for _, d := range dues {
			s.From, s.To = min(s.From, d.row.Clock), max(s.To, d.row.Clock+1)
		}
	}
	first, err := x.plan.buildTarget(0, "", s, t.w.o.Settings.Page)
	if err != nil {
		return 0, err
	}
	left := map[string]bool{}
	for _, d := range dues {
		left[d.row.ID] = true
	}
	n := 0
	err = t.visitPages(ctx, first, position{}, func(page *understudy.Page, _ position) error {
		n++
		for _, row := range page.Rows {
			delete(left, row.ID)
		}
		if len(left) == 0 || n >= maxPages {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return n, err
}
