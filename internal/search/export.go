// Export: every match, one after another, in constant memory.

package search

import (
	"context"
	"errors"
	"fmt"
	"time"

	"understudy"
	"understudy/internal/query"
	"understudy/internal/search/lang"
	"understudy/kit/limiter"
)

// errStalled is the error of a store that is silent for too long, errOver that of a caller whose policy has changed.
var (
	errStalled = errors.New("nothing more could be read for too long")
	errOver    = errors.New("what the caller may see has changed")
)

// unheldBy says which of the kinds that a search looks in are not known to be held whole.
func (s *Searcher) unheldBy(ctx context.Context, c understudy.Caller, a query.SearchRequest) string {
	q, _, err := s.exportable(c, &a)
	if err != nil {
		return "" // the export was refused before
	}
	return s.unheld(ctx, q.Views)
}

// Export calls each with every match as the caller sees it, newest first. With the sort "oldest" the oldest come
// first; other orders are ErrInvalid. A hit is valid until each returns. An error of each ends the export and is its
// error. idle is called from time to time while there is no match. An export may take any time, but ends when the
// store is silent for too long, when the policy of the caller changes, and with its grant. n is the number of
// matches.
func (s *Searcher) Export(ctx context.Context, c understudy.Caller, a query.SearchRequest, each func(*query.SearchHit) error,
	idle func() error) (n int64, err error) {
	q, o, err := s.exportable(c, &a)
	if err != nil {
		return 0, err
	}
	under, err := s.o.Exports.Begin(c)
	switch {
	case errors.Is(err, limiter.ErrEach):
		return 0, errOwnExports
	case err != nil:
		return 0, errExports
	}
	defer under.End()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := time.AfterFunc(s.o.Limits.Silence, func() { cancel(errStalled) })
	defer watch.Stop()
	var told error
	looked := 0
	err = s.each(ctx, q, 0, o.up, func(_ found, m *lang.Candidate) bool {
		watch.Reset(s.o.Limits.Silence)
		if under.MustEnd() {
			cancel(errOver)
			return false
		}
		if looked++; m == nil {
			if looked%idleEvery == 0 {
				told = idle()
			}
			return told == nil
		}
		h, err := s.hit(c, q, m)
		switch {
		case errors.Is(err, understudy.ErrForbidden): // the grant is over
			told = err
		case err == nil:
			if told = each(&h); told == nil {
				n++
			}
		}
		return told == nil
	})
	switch {
	case told != nil:
		return n, told
	case ctx.Err() != nil:
		return n, fmt.Errorf("search: export: %w", context.Cause(ctx))
	case err != nil:
		return n, fmt.Errorf("search: export: %w", err)
	}
	return n, nil
}

// idleEvery is after how many records without a match an export calls idle.
const idleEvery = 1000

// exportable reads the request of an export.
func (s *Searcher) exportable(c understudy.Caller, a *query.SearchRequest) (*lang.BoundQuery, order, error) {
	if a.Cursor != "" || a.Limit != 0 || a.Facets {
		return nil, order{}, invalid("an export is of all matches; leave cursor, limit and facets out")
	}
	q, err := s.read(c, a, s.o.Now())
	if err != nil {
		return nil, order{}, err
	}
	o, err := orderOf(q, a.Sort)
	if err == nil && o.window {
		err = invalid("sort=%s: an export comes newest or oldest first", understudy.Clip(a.Sort))
	}
	return q, o, err
}
