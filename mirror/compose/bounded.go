// Bounded store: the records of the store that a list may show.

package compose

import (
	"context"
	"errors"
	"time"
	"understudy"
	"understudy/internal/query"
	"understudy/spec"
)

// Uncovered is the error that a list cannot be made from records now.
type Uncovered struct{ Why string }

// Error returns "not mirrored yet: " and what is missing.
func (e *Uncovered) Error() string { return understudy.ErrNotMirrored.Error() + ": " + e.Why }

// Unwrap returns ErrNotMirrored.
func (e *Uncovered) Unwrap() error { return understudy.ErrNotMirrored }

// Bounded is a store without the records that a list may not show. It also records what it met. Only one
// goroutine may use it.
type Bounded struct {
	Store
	Kind            *spec.Kind
	WalkedAt        time.Time // when all stored records were last seen
	CoveredFrom     int64     // older records are not covered; 0 if all are
	ForgottenBefore int64     // upstream has dropped older records; 0 if it drops none

	ReachedUncovered bool // a record older than CoveredFrom was reached
	Invalid          bool // a write touched a record
	FoundUnseen      bool // a record does not say which account it belongs to, and the walk did not see it

	endsAtNewest bool // the list ends at the newest page's records:
	newestPlace  query.OrderKey
	seenSince    time.Time // records above newestPlace that were first seen after this time are left out
}

// Seek passes the store's records that upstream still has to yield.
func (w *Bounded) Seek(ctx context.Context, q query.RecordQuery, yield func(query.Hit) bool) error {
	if w.ForgottenBefore != 0 || w.endsAtNewest && (q.Below == 0 || q.Below > w.newestPlace) {
		q.Limit = 0 // some records do not count
	}
	for {
		left, last, skipped, ended := q.Limit, q.Below, false, false
		err := w.Store.Seek(ctx, q, func(f query.Hit) bool {
			last = f.Order
			switch {
			case w.isAboveNewest(f): // the record does not count
				skipped = true
				return true
			case left > 0:
				left--
			}
			ended = !w.passOn(f, yield)
			return !ended
		})
		if err != nil || ended || left == 0 || !skipped {
			return err
		}
		q.Below = last // upwards, counted records may stand above those that do not count
	}
}

// passOn passes a record to yield if the list may show it. It returns false to stop.
func (w *Bounded) passOn(f query.Hit, yield func(query.Hit) bool) bool {
	k := w.Kind
	if w.ForgottenBefore != 0 || w.CoveredFrom != 0 {
		at := f.Clock
		if at == 0 {
			at = query.UnixIn(k, k.Order, f.Record.Body)
		}
		switch {
		case at != 0 && at < w.ForgottenBefore:
			return true
		case at != 0 && at < w.CoveredFrom:
			w.ReachedUncovered = true
			return false
		}
	}
	if k.UnscopedVar() != "" && f.Record.Seen.Before(w.WalkedAt) {
		w.FoundUnseen = true
		return false
	}
	w.Invalid = w.Invalid || f.Record.Invalidated
	return yield(f)
}

// maxResponseTime is how long before its receipt upstream may have created the newest page.
const maxResponseTime = time.Minute

// EndAtNewest ends the list at the records of the newest page, whose ids and time are given. A record above
// them came from another page, an instance or a write, and records between may be unknown. A client that
// reads down to the first known record would never see those. A record that upstream's newest page should
// have shown but did not is left in the list.
func (w *Bounded) EndAtNewest(ctx context.Context, source string, head []string, newest time.Time) error {
	w.endsAtNewest, w.seenSince = true, newest.Add(-maxResponseTime)
	for _, id := range head {
		place, err := w.Store.FindPlace(ctx, source, w.Kind.Name, id)
		if err != nil && !errors.Is(err, understudy.ErrNotFound) {
			return err
		}
		w.newestPlace = max(w.newestPlace, place)
	}
	if w.newestPlace == 0 && len(head) > 0 {
		w.endsAtNewest = false // all of them were erased
	}
	return nil
}

// isAboveNewest reports whether a record stands above the records of the newest page and was first seen
// later.
func (w *Bounded) isAboveNewest(f query.Hit) bool {
	return w.endsAtNewest && f.Order > w.newestPlace && !f.Record.Since.Before(w.seenSince)
}

// FindPlace returns the place of a record. It returns ErrNotMirrored if the record stands above the newest
// page, because a walk that began there would skip unseen records.
func (w *Bounded) FindPlace(ctx context.Context, source, kind, id string) (query.OrderKey, error) {
	place, err := w.Store.FindPlace(ctx, source, kind, id)
	if err != nil || !w.endsAtNewest || place <= w.newestPlace {
		return place, err
	}
	early := true
	q := query.RecordQuery{Source: source, Kinds: []string{kind}, Below: place + 1, Limit: 1}
	err = w.Store.Seek(ctx, q, func(f query.Hit) bool {
		early = f.Order == place && w.isAboveNewest(f)
		return false
	})
	if err == nil && early {
		err = &Uncovered{kind + ": what is new above was not seen as a whole yet"}
	}
	return place, err
}
