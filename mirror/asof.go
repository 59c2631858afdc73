// As of: what was known at a time, answered from history.

package mirror

import (
	"context"
	"errors"
	"fmt"
	"time"

	"understudy"
	"understudy/mirror/compose"
	"understudy/request"
	"understudy/spec"
)

// History is what a store can do besides, if what was known at a time is to be
// answered.
type History interface {
	compose.Snapshots
	// History is every version of a record, the newest first.
	History(ctx context.Context, source, kind, id string, limit int) ([]understudy.Version, error)
}

// asOf answers with what was known at Ask.AsOf. Upstream is not asked: what
// nobody had seen by then is not there.
func (m *Mirror) asOf(ctx context.Context, s *source, k *kind, a *request.Request) (*request.Response, error) {
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
	case a.Local != nil && (a.Local.Up || a.Local.Since != 0 || a.Local.Text != nil):
		return nil, fmt.Errorf("mirror: %w: of an earlier time lists have one order and no text", understudy.ErrInvalid)
	}
	var history compose.Snapshots = kept
	if !a.Folded {
		history = compose.Unfolded{Snapshots: kept}
	}
	ctx, cancel := context.WithTimeout(ctx, m.ages().Wait)
	defer cancel()
	var p *understudy.Page
	var err error
	if a.Target.List != nil {
		p, err = compose.ListAt(ctx, history, s.Source.Source, a.Target, a.Local, at)
	} else {
		p, err = m.instanceAt(ctx, history, k, a.Target, at)
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return nil, fmt.Errorf("mirror: %s as of %s: %w: that is too much to look through; narrow it by a filter on time", a.Target.Key,
			at.Format(time.RFC3339), understudy.ErrInvalid)
	case err != nil:
		return nil, fmt.Errorf("mirror: %s as of %s: %w", a.Target.Key, at.Format(time.RFC3339), err)
	}
	s.counts.composed.Add(1)
	now := m.now()
	return &request.Response{
		Page: p, Outcome: request.Composed, Age: max(now.Sub(at), 0), Stored: true,
		Detail: "composed as of " + at.Format(time.RFC3339), Store: now.Sub(begin),
	}, nil
}

// instanceAt is one record as it looked.
func (m *Mirror) instanceAt(ctx context.Context, history compose.Snapshots, k *kind, t *spec.Target, at time.Time) (*understudy.Page,
	error) {
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
