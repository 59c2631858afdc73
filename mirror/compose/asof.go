// As of: a list as it looked at a time, made from history.

package compose

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"understudy"
	"understudy/internal/query"
	"understudy/request"
	"understudy/spec"
)

// Snapshots are records as they looked at a time. For a version that is not kept
// stands the one after it, with a Since that lies after that time.
type Snapshots interface {
	// RecordAt is a record as it looked at a time; ErrNotFound: it was not there.
	RecordAt(ctx context.Context, source, kind, shape, id string, at time.Time) (*understudy.Record, error)
	// RecordsAt hands out the records of a window as they looked at a time, in
	// its order, until yield returns false.
	RecordsAt(ctx context.Context, w query.RangeScan, at time.Time, yield func(rec *understudy.Record, clock int64) bool) error
}

// Unfolded are snapshots without the versions that stand for others.
type Unfolded struct{ Snapshots }

// RecordAt is also ErrNotFound for a version that is not kept.
func (u Unfolded) RecordAt(ctx context.Context, source, kind, shape, id string, at time.Time) (*understudy.Record, error) {
	rec, err := u.Snapshots.RecordAt(ctx, source, kind, shape, id, at)
	if err == nil && rec.Since.After(at) {
		return nil, understudy.ErrNotFound
	}
	return rec, err
}

// RecordsAt hands out those whose versions of that time are kept.
func (u Unfolded) RecordsAt(ctx context.Context, w query.RangeScan, at time.Time, yield func(*understudy.Record, int64) bool) error {
	return u.Snapshots.RecordsAt(ctx, w, at, func(rec *understudy.Record, clock int64) bool {
		return rec.Since.After(at) || yield(rec, clock)
	})
}

// PageAt is the answer to a request for a list or a record as it looked.
func PageAt(ctx context.Context, history Snapshots, s *spec.Source, a *request.Request, at time.Time) (*understudy.Page, error) {
	if !a.Folded {
		history = Unfolded{Snapshots: history}
	}
	if a.Target.List != nil {
		return ListAt(ctx, history, s, a.Target, a.Local, at)
	}
	return instanceAt(ctx, history, s, a.Target, at)
}

// instanceAt is one record as it looked.
func instanceAt(ctx context.Context, history Snapshots, s *spec.Source, t *spec.Target, at time.Time) (*understudy.Page, error) {
	if t.ID == "" {
		return nil, fmt.Errorf("%w: nothing is remembered of this path", understudy.ErrInvalid)
	}
	rec, err := history.RecordAt(ctx, s.Name, t.Kind.Name, t.KeptAs(s.User), t.ID, at)
	if err != nil {
		return nil, err
	}
	if !Belongs(t, rec.Body) {
		return nil, understudy.ErrNotFound
	}
	p := Instance(s, t, rec)
	p.At = at
	return p, nil
}

// ListAt is a page of a list as it looked.
func ListAt(
	ctx context.Context, history Snapshots, s *spec.Source, t *spec.Target, wish *request.LocalQuery, at time.Time,
) (*understudy.Page, error) {
	p := past{ctx: ctx, history: history, source: s, spec: t.Spec, at: at}
	list, err := New(p.source, t, Options{
		Now: func() time.Time { return at }, Held: p.held, AsShown: true, OwnTokens: true, Downward: true,
		Local: wish,
	})
	var refused *Refusal
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
		clock, _ := Place(t.Kind, rec.Body)
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
	history Snapshots
	source  *spec.Source
	spec    *spec.Spec
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

func placeAt(clock, number int64) query.OrderKey {
	return query.OrderKey(clock<<numberBits | number&(1<<numberBits-1))
}

// maxStrays bounds the records without a clock that are kept for a page which
// ends before one of them.
const maxStrays = 100_000

// fill hands a list its records: those with a clock as the history has them, and
// those without one between them, by the time of their kind's order.
func (p *past) fill(list *List, t *spec.Target) error {
	q := list.Seek()
	w := query.RangeScan{Source: q.Source, Kind: t.Kind.Name, Shape: q.Shape, Parent: q.Parent}
	if q.Below != 0 {
		w.Below.Clock, w.Below.Record = int64(q.Below)>>numberBits, int64(q.Below)&(1<<numberBits-1)
	}
	clocked := false
	for _, term := range q.Predicates {
		if term.Field == t.Kind.Clock && term.Field != "" && len(term.Any) == 0 {
			clocked = true
			w.From = max(w.From, term.From)
			if term.To != 0 && (w.To == 0 || term.To < w.To) {
				w.To = term.To
			}
		}
	}
	var loose []query.Hit
	var err error
	if !clocked {
		if loose, err = p.strays(list, w, q.Below, t.Kind); err != nil {
			return err
		}
	}
	more := true
	err = p.history.RecordsAt(p.ctx, w, p.at, func(rec *understudy.Record, clock int64) bool {
		f := query.Hit{Record: rec, Clock: clock, Order: placeAt(clock, rec.Number)}
		for len(loose) > 0 && loose[0].Order > f.Order {
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
func (p *past) strays(list *List, w query.RangeScan, below query.OrderKey, k *spec.Kind) ([]query.Hit, error) {
	w.Unclocked, w.Below.Clock, w.Below.Record = true, 0, 0
	var loose []query.Hit
	most := list.Most()
	full := false
	err := p.history.RecordsAt(p.ctx, w, p.at, func(rec *understudy.Record, _ int64) bool {
		at, _ := Place(k, rec.Body)
		f := query.Hit{Record: rec, Order: placeAt(at, rec.Number)}
		if below != 0 && f.Order >= below || !list.Belongs(f) {
			return true
		}
		i, _ := slices.BinarySearchFunc(loose, f, func(a, b query.Hit) int { return cmp.Compare(b.Order, a.Order) })
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
