// As of: what was known at a time, answered from history.

package mirror

import (
	"context"
	"errors"
	"fmt"
	"time"

	"understudy"
	"understudy/mirror/compose"
)

// History is what a store can do besides, if what was known at a time is to be
// answered.
type History interface {
	// RecordAt is a record as it looked at a time; ErrNotFound: it was not there.
	RecordAt(ctx context.Context, source, kind, shape, id string, at time.Time) (*understudy.Record, error)
	// RecordsAt hands out the records of a window as they looked at a time, in
	// its order, until yield returns false.
	RecordsAt(ctx context.Context, w understudy.Window, at time.Time, yield func(rec *understudy.Record, clock int64) bool) error
	// History is every version of a record, the newest first.
	History(ctx context.Context, source, kind, id string, limit int) ([]understudy.Version, error)
}

// asOf answers with what was known at Ask.AsOf. Upstream is not asked: what
// nobody had seen by then is not there.
func (m *Mirror) asOf(ctx context.Context, s *source, k *kind, a *understudy.Ask) (*understudy.Answer, error) {
	begin := m.now()
	at := a.AsOf.UTC()
	history, ok := m.store.(History)
	switch {
	case !ok:
		return nil, fmt.Errorf("mirror: %w: this store keeps no history", understudy.ErrInvalid)
	case at.After(begin.Add(time.Second)): // clocks differ a little
		return nil, fmt.Errorf("mirror: %w: %s lies in the future", understudy.ErrInvalid, at.Format(time.RFC3339))
	case k.name == "" || a.Target.List == nil && a.Target.Instance == nil:
		return nil, fmt.Errorf("mirror: %w: nothing is remembered of this path", understudy.ErrInvalid)
	}
	ctx, cancel := context.WithTimeout(ctx, m.ages().Wait)
	defer cancel()
	var p *understudy.Page
	var err error
	if a.Target.List != nil {
		p, err = m.listAt(ctx, history, s, a.Target, at)
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

// instanceAt is one record as it looked.
func (m *Mirror) instanceAt(ctx context.Context, history History, k *kind, t *understudy.Target, at time.Time) (*understudy.Page, error) {
	if t.ID == "" {
		return nil, fmt.Errorf("%w: nothing is remembered of this path", understudy.ErrInvalid)
	}
	rec, err := history.RecordAt(ctx, k.source.Name, k.name, t.Shape(), t.ID, at)
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
func (m *Mirror) listAt(ctx context.Context, history History, s *source, t *understudy.Target, at time.Time) (*understudy.Page, error) {
	list, err := compose.New(s.Source.Source, t)
	if err != nil {
		return nil, err
	}
	if id, back := list.Start(); id != "" {
		clock, number, err := m.placeAt(ctx, history, s, t, id, at)
		if err != nil {
			return nil, err
		}
		if !back {
			list.Below(clock, number)
		}
	}
	if list.Strays() {
		w := list.Window()
		w.Unclocked, w.Below.Clock, w.Below.Record = true, 0, 0
		if err := history.RecordsAt(ctx, w, at, list.Stray); err != nil {
			return nil, err
		}
	}
	if err := history.RecordsAt(ctx, list.Window(), at, list.Take); err != nil {
		return nil, err
	}
	return list.Page(at)
}

// placeAt finds where a record stood in the order of lists.
func (m *Mirror) placeAt(ctx context.Context, history History, s *source, t *understudy.Target, id string, at time.Time) (clock, number int64, err error) {
	rec, err := history.RecordAt(ctx, s.Name, t.Kind.Name, t.List.Shape, id, at)
	if errors.Is(err, understudy.ErrNotFound) {
		return 0, 0, fmt.Errorf("%w: the page token names a record that was not there then", understudy.ErrInvalid)
	}
	if err != nil {
		return 0, 0, err
	}
	clock, _ = compose.Place(t.Kind, rec.Body)
	return clock, rec.Number, nil
}
