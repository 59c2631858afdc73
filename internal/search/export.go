// This file exports every match of a search in constant memory.

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

// The causes that end an export early.
var (
	errStoreSilent   = errors.New("reading made no progress for too long") // the store yielded nothing for longer than Limits.Silence
	errPolicyChanged = errors.New("the caller's access rights have changed")
)

// exportNote returns a sentence that names the searched kinds whose records are not all stored, or "".
func (s *Searcher) exportNote(ctx context.Context, c understudy.Caller, a query.SearchRequest) string {
	q, _, err := s.readExport(c, &a)
	if err != nil {
		return "" // Export has already reported this error
	}
	return s.incompleteNote(ctx, q.Views)
}

// Export calls each with every match as the caller sees it, newest first. The sort "oldest" reverses the order; other sorts
// return ErrInvalid. A hit is valid until each returns. If each returns an error, the export ends with that error. idle is
// called from time to time while nothing matches. An export has no time limit. It ends when the store yields nothing for
// too long, when the caller's policy changes, and when the caller's grant ends. n is the number of exported matches.
func (s *Searcher) Export(ctx context.Context, c understudy.Caller, a query.SearchRequest, each func(*query.SearchHit) error,
	idle func() error) (n int64, err error) {
	q, o, err := s.readExport(c, &a)
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
	watch := time.AfterFunc(s.o.Limits.Silence, func() { cancel(errStoreSilent) })
	defer watch.Stop()
	var stopErr error
	looked := 0
	err = s.scan(ctx, q, 0, o.oldestFirst, func(_ foundRecord, m *lang.Candidate) bool {
		watch.Reset(s.o.Limits.Silence)
		if under.MustEnd() {
			cancel(errPolicyChanged)
			return false
		}
		if looked++; m == nil {
			if looked%recordsPerIdle == 0 {
				stopErr = idle()
			}
			return stopErr == nil
		}
		h, err := s.newHit(c, q, m)
		switch {
		case errors.Is(err, understudy.ErrForbidden): // the caller's grant ended
			stopErr = err
		case err == nil:
			if stopErr = each(&h); stopErr == nil {
				n++
			}
		}
		return stopErr == nil
	})
	switch {
	case stopErr != nil:
		return n, stopErr
	case ctx.Err() != nil:
		return n, fmt.Errorf("search: export: %w", context.Cause(ctx))
	case err != nil:
		return n, fmt.Errorf("search: export: %w", err)
	}
	return n, nil
}

// recordsPerIdle is how many records without a match Export reads between two calls of idle.
const recordsPerIdle = 1000

// readExport checks the request of an export and returns its query and order.
func (s *Searcher) readExport(c understudy.Caller, a *query.SearchRequest) (*lang.BoundQuery, order, error) {
	if a.Cursor != "" || a.Limit != 0 || a.Facets {
		return nil, order{}, newInvalid("an export contains all matches; leave out cursor, limit and facets")
	}
	q, err := s.read(c, a, s.o.Now())
	if err != nil {
		return nil, order{}, err
	}
	o, err := orderOf(q, a.Sort)
	if err == nil && o.window {
		err = newInvalid("sort=%s: an export is sorted newest or oldest first", understudy.Clip(a.Sort))
	}
	return q, o, err
}
