// Bounded store: the stored records that a composed list is allowed to show.

package compose

import (
	"context"
	"errors"
	"time"
	"understudy"
	"understudy/internal/query"
	"understudy/spec"
)

// Uncovered is the error that a list cannot be composed now, because not all of its records are stored.
type Uncovered struct{ Why string }

// Error returns "not mirrored yet: " followed by the reason.
func (e *Uncovered) Error() string { return understudy.ErrNotMirrored.Error() + ": " + e.Why }

// Unwrap returns ErrNotMirrored.
func (e *Uncovered) Unwrap() error { return understudy.ErrNotMirrored }

// Bounded is a store that leaves out the records that a composed list must not show. It also notes what it found
// while it was read. It is for one goroutine.
type Bounded struct {
	Store
	Kind            *spec.Kind
	WalkedAt        time.Time // when the last full read of the list ended, in which every stored record was seen
	CoveredFrom     int64     // the clock value below which records may be missing from the store; 0 if all are stored
	ForgottenBefore int64     // the clock value below which upstream has dropped records; 0 if it drops none

	ReachedUncovered bool // whether a record older than CoveredFrom was read
	Invalid          bool // whether a record was read that a write has changed
	FoundUnseen      bool // whether a record was read that does not say to which account it belongs and was not in the last full read

	endsAtNewest bool // whether the list begins with the records on the newest page
	newestPlace  query.OrderKey
	seenSince    time.Time // of the records above newestPlace, those that were first seen after this time are left out
}

// Seek calls yield with the stored records that match the query, except those that upstream has dropped or has not listed yet.
func (w *Bounded) Seek(ctx context.Context, q query.RecordQuery, yield func(query.Hit) bool) error {
	if w.ForgottenBefore != 0 || w.endsAtNewest && (q.Below == 0 || q.Below > w.newestPlace) {
		q.Limit = 0 // the store must not count records that are left out here
	}
	for {
		left, last, skipped, ended := q.Limit, q.Below, false, false
		err := w.Store.Seek(ctx, q, func(f query.Hit) bool {
			last = f.Order
			switch {
			case w.isAboveNewest(f): // the record is above the newest page, so it is left out and not counted
				skipped = true
				return true
			case left > 0:
				left--
			}
			ended = !w.passAllowed(f, yield)
			return !ended
		})
		if err != nil || ended || left == 0 || !skipped {
			return err
		}
		q.Below = last // when reading upwards, more records that count may be above those that were left out
	}
}

// passAllowed calls yield with a record if the list may show it. It returns false if no more records are needed.
func (w *Bounded) passAllowed(f query.Hit, yield func(query.Hit) bool) bool {
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

// maxResponseTime is how long upstream may take from creating its newest page until we have received it.
const maxResponseTime = time.Minute

// EndAtNewest makes the list begin with the records of the newest page, whose ids and time are given. A record above
// them was seen elsewhere, such as on another page or after a write, and the records between may not be known. A
// client that reads down to the first record it knows would then never see those between. A record that upstream's
// newest page should have shown but did not show stays in the list.
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
		w.endsAtNewest = false // none of the records on the newest page is stored any more
	}
	return nil
}

// isAboveNewest reports whether a record would be listed above the newest page's records, and was first seen after that page.
func (w *Bounded) isAboveNewest(f query.Hit) bool {
	return w.endsAtNewest && f.Order > w.newestPlace && !f.Record.Since.Before(w.seenSince)
}

// FindPlace returns the place of a record in lists. It returns ErrNotMirrored if the record is above the newest
// page's records, because a client that reads on from there would miss records that are not stored yet.
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
		err = &Uncovered{kind + ": the newest records are not completely read yet"}
	}
	return place, err
}
