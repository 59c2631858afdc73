// Bounds: what of the store a list of its time shows.

package compose

import (
	"context"
	"errors"
	"time"
	"understudy"
	"understudy/internal/query"
	"understudy/spec"
)

// Uncovered says why a list cannot be made from records now.
type Uncovered struct{ Why string }

// Error is "not mirrored yet: " and what is missing.
func (e *Uncovered) Error() string { return understudy.ErrNotMirrored.Error() + ": " + e.Why }

// Unwrap makes it ErrNotMirrored.
func (e *Uncovered) Unwrap() error { return understudy.ErrNotMirrored }

// Bounded is a store less what a list of its time does not show. It says what it has met.
// One goroutine uses it.
type Bounded struct {
	Store
	Kind   *spec.Kind
	Walked time.Time // when all that is held was seen last
	From   int64     // what is older is not covered; 0 = all is
	None   int64     // what is older upstream has forgotten; 0 = never

	Short   bool // something older was reached
	Invalid bool // a write touched a record
	Strange bool // one does not tell whose it is, and the walk did not see it

	ends bool // above, at the newest page's records:
	top  query.OrderKey
	came time.Time // what stands above top and was not seen before is left out
}

// Seek is the store's less what upstream no longer has.
func (w *Bounded) Seek(ctx context.Context, q query.RecordQuery, yield func(query.Hit) bool) error {
	if w.None != 0 || w.ends && (q.Below == 0 || q.Below > w.top) {
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
func (w *Bounded) hand(f query.Hit, yield func(query.Hit) bool) bool {
	k := w.Kind
	if w.None != 0 || w.From != 0 {
		at := f.Clock
		if at == 0 {
			at = query.UnixIn(k, k.Order, f.Record.Body)
		}
		switch {
		case at != 0 && at < w.None:
			return true
		case at != 0 && at < w.From:
			w.Short = true
			return false
		}
	}
	if k.UnscopedVar() != "" && f.Record.Seen.Before(w.Walked) {
		w.Strange = true
		return false
	}
	w.Invalid = w.Invalid || f.Record.Invalid
	return yield(f)
}

// slowest is how long before it came the newest page may have been made
// upstream.
const slowest = time.Minute

// EndAbove has the list end above where the newest page did, whose ids are given and
// which came at a time. A record that stands above it was brought by another page, an
// instance or a write, and it is unknown what came between: a client that reads down
// to the first record it knows would never see that. What upstream's page of that time
// should have shown and did not (its list shows other records than this one) ends
// nothing.
func (w *Bounded) EndAbove(ctx context.Context, source string, head []string, newest time.Time) error {
	w.ends, w.came = true, newest.Add(-slowest)
	for _, id := range head {
		place, err := w.Store.FindPlace(ctx, source, w.Kind.Name, id)
		if err != nil && !errors.Is(err, understudy.ErrNotFound) {
			return err
		}
		w.top = max(w.top, place)
	}
	if w.top == 0 && len(head) > 0 {
		w.ends = false // all of them were erased
	}
	return nil
}

// early reports whether a record stands above what the newest page showed, and
// was found since.
func (w *Bounded) early(f query.Hit) bool {
	return w.ends && f.Order > w.top && !f.Record.Since.Before(w.came)
}

// FindPlace is the store's. ErrNotMirrored: a walk that began above what the newest
// page showed goes on there, past what was not seen yet.
func (w *Bounded) FindPlace(ctx context.Context, source, kind, id string) (query.OrderKey, error) {
	place, err := w.Store.FindPlace(ctx, source, kind, id)
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
		err = &Uncovered{kind + ": what is new above was not seen as a whole yet"}
	}
	return place, err
}
