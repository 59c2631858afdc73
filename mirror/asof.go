// As of: what was known at a time, answered from history.

package mirror

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"understudy"
	"understudy/mirror/compose"
)

// History is what a store can do besides, if what was known at a time is to be
// answered.
type History interface {
	snapshots
	// History is every version of a record, the newest first.
	History(ctx context.Context, source, kind, id string, limit int) ([]understudy.Version, error)
}

// snapshots are records as they looked at a time. For a version that is not kept
// stands the one after it, with a Since that lies after that time.
type snapshots interface {
	// RecordAt is a record as it looked at a time; ErrNotFound: it was not there.
	RecordAt(ctx context.Context, source, kind, shape, id string, at time.Time) (*understudy.Record, error)
	// RecordsAt hands out the records of a window as they looked at a time, in
	// its order, until yield returns false.
	RecordsAt(ctx context.Context, w understudy.Window, at time.Time, yield func(rec *understudy.Record, clock int64) bool) error
}

// asOf answers with what was known at Ask.AsOf. Upstream is not asked: what
// nobody had seen by then is not there.
func (m *Mirror) asOf(ctx context.Context, s *source, k *kind, a *understudy.Ask) (*understudy.Answer, error) {
	begin := m.now()
	at := a.AsOf.UTC()
	kept, ok := m.store.(History)
	switch {
	case !ok:
		return nil, fmt.Errorf("mirror: %w: this store keeps no history", understudy.ErrInvalid)
	case at.After(begin.Add(time.Second)): // clocks differ a little
		return nil, fmt.Errorf("mirror: %w: %s lies in the future", understudy.ErrInvalid, at.Format(time.RFC3339))
	case k.name == "" || a.Target.List == nil && a.Target.Instance == nil:
		return nil, fmt.Errorf("mirror: %w: nothing is remembered of this path", understudy.ErrInvalid)
	case a.Wish != nil && (a.Wish.Up || a.Wish.Since != 0 || a.Wish.Text != nil):
		return nil, fmt.Errorf("mirror: %w: of an earlier time lists have one order and no text", understudy.ErrInvalid)
	}
	var history snapshots = kept
	if !a.Folded {
		history = unfolded{kept}
	}
	ctx, cancel := context.WithTimeout(ctx, m.ages().Wait)
	defer cancel()
	var p *understudy.Page
	var err error
	if a.Target.List != nil {
		p, err = m.listAt(ctx, history, s, a.Target, a.Wish, at)
	} else {
		p, err = m.instanceAt(ctx, history, k, a.Target, at)
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return nil, fmt.Errorf("mirror: %s as of %s: %w: that is too much to look through; narrow it by a filter on time", a.Target.Key, at.Format(time.RFC3339), understudy.ErrInvalid)
	case err != nil:
		return nil, fmt.Errorf("mirror: %s as of %s: %w", a.Target.Key, at.Format(time.RFC3339), err)
	}
	s.counts.composed.Add(1)
	now := m.now()
	return &understudy.Answer{
		Page: p, How: understudy.Composed, Age: max(now.Sub(at), 0), Stored: true,
		Detail: "composed as of " + at.Format(time.RFC3339), Store: now.Sub(begin),
	}, nil
}

// unfolded are snapshots without the versions that stand for others.
type unfolded struct{ snapshots }

// RecordAt is also ErrNotFound for a version that is not kept.
func (u unfolded) RecordAt(ctx context.Context, source, kind, shape, id string, at time.Time) (*understudy.Record, error) {
	rec, err := u.snapshots.RecordAt(ctx, source, kind, shape, id, at)
	if err == nil && rec.Since.After(at) {
		return nil, understudy.ErrNotFound
	}
	return rec, err
}

// RecordsAt hands out those whose versions of that time are kept.
func (u unfolded) RecordsAt(ctx context.Context, w understudy.Window, at time.Time, yield func(*understudy.Record, int64) bool) error {
	return u.snapshots.RecordsAt(ctx, w, at, func(rec *understudy.Record, clock int64) bool {
		return rec.Since.After(at) || yield(rec, clock)
	})
}

// instanceAt is one record as it looked.
func (m *Mirror) instanceAt(ctx context.Context, history snapshots, k *kind, t *understudy.Target, at time.Time) (*understudy.Page, error) {
	if t.ID == "" {
		return nil, fmt.Errorf("%w: nothing is remembered of this path", understudy.ErrInvalid)
	}
	rec, err := history.RecordAt(ctx, k.source.Name, k.name, t.KeptAs(k.source.User), t.ID, at)
	if err != nil {
		return nil, err
	}
	if !belongs(t, rec.Body) {
		return nil, understudy.ErrNotFound
	}
	p := composed(t, k, rec)
	p.At = at
	return p, nil
}

// listAt is a page of a list as it looked.
func (m *Mirror) listAt(ctx context.Context, history snapshots, s *source, t *understudy.Target, wish *understudy.Wish, at time.Time) (*understudy.Page, error) {
	p := past{ctx: ctx, history: history, source: s.Source.Source, spec: t.Spec, at: at}
	list, err := compose.New(p.source, t, compose.Options{
		Now: func() time.Time { return at }, Held: p.held, AsShown: true, OwnTokens: true, Downward: true,
		Wish: wish,
	})
	var refused *compose.Refusal
	if errors.As(err, &refused) {
		return nil, fmt.Errorf("%w: %s", understudy.ErrInvalid, refused.Message)
	}
	if err = cmp.Or(err, p.failed); err != nil {
		return nil, err
	}
	if id, _ := list.Start(); id != "" {
		rec, err := history.RecordAt(ctx, s.Name, t.Kind.Name, t.List.Shape, id, at)
		if errors.Is(err, understudy.ErrNotFound) {
			return nil, fmt.Errorf("%w: the page token names a record that was not there then", understudy.ErrInvalid)
		}
		if err != nil {
			return nil, err
		}
		clock, _ := compose.Place(t.Kind, rec.Body)
		list.Below(placeAt(clock, rec.Number))
	}
	if err := p.fill(list, t); err != nil {
		return nil, err
	}
	return list.Page(at)
}

// past hands in records in the order of their clocks, as a history has them.
type past struct {
	ctx     context.Context
	history snapshots
	source  *understudy.Source
	spec    *understudy.Spec
	at      time.Time
	failed  error // of held
}

// held is a record that was there then.
func (p *past) held(kind, id string) *understudy.Record {
	k := p.spec.Kind(kind)
	if k == nil || p.failed != nil {
		return nil
	}
	tried := ""
	for _, l := range k.Lists {
		if l.Shape == tried {
			continue
		}
		tried = l.Shape
		rec, err := p.history.RecordAt(p.ctx, p.source.Name, kind, l.Shape, id, p.at)
		if err == nil {
			return rec
		}
		if !errors.Is(err, understudy.ErrNotFound) {
			p.failed = err
			return nil
		}
	}
	return nil
}

// Places as of a time are made of clock and number: what pages showed then is
// not remembered.
const numberBits = 30

func placeAt(clock, number int64) understudy.Place {
	return understudy.Place(clock<<numberBits | number&(1<<numberBits-1))
}

// maxStrays bounds the records without a clock that are kept for a page which
// ends before one of them.
const maxStrays = 100_000

// fill hands a list its records: those with a clock as the history has them, and
// those without one between them, by the time of their kind's order.
func (p *past) fill(list *compose.List, t *understudy.Target) error {
	q := list.Seek()
	w := understudy.Window{Source: q.Source, Kind: t.Kind.Name, Shape: q.Shape, Parent: q.Parent}
	if q.Below != 0 {
		w.Below.Clock, w.Below.Record = int64(q.Below)>>numberBits, int64(q.Below)&(1<<numberBits-1)
	}
	clocked := false
	for _, term := range q.Terms {
		if term.Field == t.Kind.Clock && term.Field != "" && len(term.Any) == 0 {
			clocked = true
			w.From = max(w.From, term.From)
			if term.To != 0 && (w.To == 0 || term.To < w.To) {
				w.To = term.To
			}
		}
	}
	var loose []understudy.Found
	var err error
	if !clocked {
		if loose, err = p.strays(list, w, q.Below, t.Kind); err != nil {
			return err
		}
	}
	more := true
	err = p.history.RecordsAt(p.ctx, w, p.at, func(rec *understudy.Record, clock int64) bool {
		f := understudy.Found{Record: rec, Clock: clock, Place: placeAt(clock, rec.Number)}
		for len(loose) > 0 && loose[0].Place > f.Place {
			if more = list.Take(loose[0]); !more {
				return false
			}
			loose = loose[1:]
		}
		more = list.Take(f)
		return more
	})
	for ; err == nil && more && len(loose) > 0; loose = loose[1:] {
		more = list.Take(loose[0])
	}
	return err
}

// strays are the list's records without a clock below a place, as many as
// matter, in order.
func (p *past) strays(list *compose.List, w understudy.Window, below understudy.Place, k *understudy.Kind) ([]understudy.Found, error) {
	w.Unclocked, w.Below.Clock, w.Below.Record = true, 0, 0
	var loose []understudy.Found
	most := list.Most()
	full := false
	err := p.history.RecordsAt(p.ctx, w, p.at, func(rec *understudy.Record, _ int64) bool {
		at, _ := compose.Place(k, rec.Body)
		f := understudy.Found{Record: rec, Place: placeAt(at, rec.Number)}
		if below != 0 && f.Place >= below || !list.Belongs(f) {
			return true
		}
		i, _ := slices.BinarySearchFunc(loose, f, func(a, b understudy.Found) int { return cmp.Compare(b.Place, a.Place) })
		loose = slices.Insert(loose, i, f)
		if most > 0 && int64(len(loose)) > most {
			loose = loose[:most]
		}
		full = len(loose) > maxStrays
		return !full
	})
	if full {
		return nil, fmt.Errorf("%w: too many records without a time; narrow the list by a filter on time", understudy.ErrInvalid)
	}
	return loose, err
}
