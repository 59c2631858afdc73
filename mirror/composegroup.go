// Compose group: one composing for all who ask for the same list at the same time,
// and the store as a composed list reads it.

package mirror

import (
	"context"
	"errors"
	"fmt"
	"time"

	"understudy"
	"understudy/internal/query"
	"understudy/mirror/compose"
)

// filteredStore hands on records and looks at them.
type filteredStore struct {
	compose.Store
	plan    *composePlan
	from    int64 // what is older is not covered; 0 = all is
	none    int64 // what is older upstream has forgotten; 0 = never
	short   bool  // something older was reached
	ends    bool  // above, at the newest page's records:
	top     query.OrderKey
	came    time.Time // what stands above top and was not seen before is left out
	invalid bool      // a write touched one of them
	strange bool      // one does not tell whose it is, and the walk did not see it
}

// Seek is the store's less what upstream no longer has.
func (w *filteredStore) Seek(ctx context.Context, q query.RecordQuery, yield func(query.Hit) bool) error {
	if w.none != 0 || w.ends && (q.Below == 0 || q.Below > w.top) {
		q.Limit = 0 // some do not count
	}
	for {
		left, last, skipped, ended := q.Limit, q.Below, false, false
		err := w.Store.Seek(ctx, q, func(f query.Hit) bool {
			last = f.Order
			switch {
			case w.early(f): // it does not count
				skipped = true
				return true
			case left > 0:
				left--
			}
			ended = !w.hand(f, yield)
			return !ended
		})
		if err != nil || ended || left == 0 || !skipped {
			return err
		}
		q.Below = last // upwards some may stand above those that do not count
	}
}

// hand hands on a record that is of the list's time.
func (w *filteredStore) hand(f query.Hit, yield func(query.Hit) bool) bool {
	k := w.plan.target.Kind
	if w.none != 0 || w.from != 0 {
		at := f.Clock
		if at == 0 {
			at = unixOf(k, k.Order, f.Body)
		}
		switch {
		case at != 0 && at < w.none:
			return true
		case at != 0 && at < w.from:
			w.short = true
			return false
		}
	}
	if k.UnscopedVar() != "" && f.Seen.Before(w.plan.coverage.At) {
		w.strange = true
		return false
	}
	w.invalid = w.invalid || f.Invalid
	return yield(f)
}

// slowest is how long before it came the newest page may have been made
// upstream.
const slowest = time.Minute

// bind has the list end above where the newest page did. A record that stands
// above it was brought by another page, an instance or a write, and it is unknown
// what came between: a client that reads down to the first record it knows would
// never see that. What upstream's page of that time should have shown and did not
// (its list shows other records than this one) ends nothing.
func (w *filteredStore) bind(ctx context.Context) error {
	p := w.plan
	if p.above || p.coverage.Head == nil || p.wish != nil && p.wish.Since != 0 {
		return nil
	}
	w.ends, w.came = true, p.coverage.Newest.Add(-slowest)
	for _, id := range p.coverage.Head {
		place, err := w.Store.PlaceOf(ctx, p.source.Name, p.kind.name, id)
		if err != nil && !errors.Is(err, understudy.ErrNotFound) {
			return err
		}
		w.top = max(w.top, place)
	}
	if w.top == 0 && len(p.coverage.Head) > 0 {
		w.ends = false // all of them were erased
	}
	return nil
}

// early reports whether a record stands above what the newest page showed, and
// was found since.
func (w *filteredStore) early(f query.Hit) bool {
	return w.ends && f.Order > w.top && !f.Since.Before(w.came)
}

// PlaceOf is the store's. ErrNotMirrored: a walk that began above what the newest
// page showed goes on there, past what nobody has seen yet.
func (w *filteredStore) PlaceOf(ctx context.Context, source, kind, id string) (query.OrderKey, error) {
	place, err := w.Store.PlaceOf(ctx, source, kind, id)
	if err != nil || !w.ends || place <= w.top {
		return place, err
	}
	early := true
	q := query.RecordQuery{Source: source, Kinds: []string{kind}, Below: place + 1, Limit: 1}
	err = w.Store.Seek(ctx, q, func(f query.Hit) bool {
		early = f.Order == place && w.early(f)
		return false
	})
	if err == nil && early {
		err = &uncoveredError{kind + ": what is new above was not seen as a whole yet"}
	}
	return place, err
}

// composeOnce is composeList, shared with those who ask for the same at the same
// time. The key names what makes a list the same: a longer time it may take
// makes another one of it. A caller leaves with its context.
func (co *composer) composeOnce(ctx context.Context, p *composePlan) (*composedList, error) {
	if p.wish != nil {
		return co.composeList(p)
	}
	name := fmt.Sprintf("%s %d %d %d", p.target.Key, p.kind.generation.Load(), p.kind.changes.Load(), p.most)
	call := co.group.DoChan(name, func() (list any, err error) {
		defer func() {
			if v := recover(); v != nil {
				err = fmt.Errorf("mirror: compose %s: panic: %v", p.target.Key, v)
			}
		}()
		return co.composeList(p)
	})
	select {
	case made := <-call:
		list, _ := made.Val.(*composedList)
		return list, made.Err
	case <-ctx.Done():
		return nil, fmt.Errorf("mirror: compose %s: %w", p.target.Key, ctx.Err())
	}
}
