// This file asks upstream for a record that is not stored or is hidden from the caller.

package access

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"understudy"
	"understudy/kit/lockwatch"
	"understudy/kit/lru"
	"understudy/request"
)

// reuseTime is how long seek keeps its result for a record. During this time, the same caller gets the kept result,
// and upstream gets no second request.
const reuseTime = time.Second

// maxFreshAge is the maximum age of a response that counts as just fetched from upstream.
const maxFreshAge = 2 * time.Second

// maxLookups is the maximum number of results that seek keeps.
const maxLookups = 10_000

// lookupKey identifies a result that seek keeps.
type lookupKey struct {
	caller string
	key    understudy.Key
}

// lookups sends the upstream requests for records that are not stored or are hidden. For one key, only one request
// runs at a time. It is safe for concurrent use.
type lookups struct {
	now      func() time.Time
	mu       lockwatch.Mutex
	requests *lru.Cache[lookupKey, *sharedLookup]
}

// sharedLookup is one request to upstream and its result. The mutex of lookups guards startedAt. Read the other
// fields only after done is closed.
type sharedLookup struct {
	startedAt time.Time
	done      chan struct{}
	answer    *request.Response // the response: it contains a record that the caller may find, or no record
	err       error
	abandoned bool // whether the caller that sent the request left before the response came
}

// seek requests a record from upstream that is not stored, or that is stored but hidden from the caller. Both cases use
// the same code path, and a hidden record gives the same result as a record that never existed. A request within
// reuseTime gets the kept result. A request during the fetch waits for its result. seek does not ask the mirror whether
// it fetched the record recently: the mirror has different data, of different age, for hidden and for missing records.
func (l *lookups) seek(ctx context.Context, c understudy.Caller, f *rowFilter, a request.Request, ask Asker) (*request.Response, error) {
	switch {
	case !a.AsOf.IsZero():
		return nil, fmt.Errorf("access: %w", understudy.ErrNotFound)
	case a.OnlyIfCached:
		return nil, fmt.Errorf("access: %w", understudy.ErrNoStoredAnswer)
	}
	k := lookupKey{c.Name, a.Target.Key}
	for {
		s, first := l.join(k)
		if first {
			return l.fetchShared(ctx, f, a, ask, k, s)
		}
		select {
		case <-s.done:
			if !s.abandoned {
				return s.answer, s.err
			}
		case <-ctx.Done():
			return nil, wrapContext(ctx)
		}
	}
}

// join returns the running request for a key, or a new one. If first is true, the caller of join has to send the request.
func (l *lookups) join(k lookupKey) (s *sharedLookup, first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	if s, ok := l.requests.Get(k); ok && (!understudy.IsClosed(s.done) || now.Sub(s.startedAt).Abs() < reuseTime) {
		return s, false
	}
	s = &sharedLookup{startedAt: now, done: make(chan struct{})}
	l.requests.Put(k, s, 1)
	return s, true
}

// forget removes a request, so that later callers do not get its result.
func (l *lookups) forget(k lookupKey, s *sharedLookup) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now, ok := l.requests.Get(k); ok && now == s {
		l.requests.Remove(k)
	}
}

// fetchShared requests the record and sets the result for all waiting callers. It calls forget if the record was
// found, if its own caller left before the end, or if ask panics.
func (l *lookups) fetchShared(
	ctx context.Context, f *rowFilter, a request.Request, ask Asker, k lookupKey, s *sharedLookup,
) (*request.Response, error) {
	s.abandoned, s.err = true, fmt.Errorf("access: %w", understudy.ErrUnavailable)
	defer func() {
		if s.abandoned || s.err == nil && s.answer.Page.Status == http.StatusOK {
			l.forget(k, s)
		}
		close(s.done)
	}()
	a.NoCache, a.SkipStored, a.JoinOnly, a.MaxAge, a.MinFresh, a.MaxStale = true, true, false, nil, nil, nil
	answer, err := ask(ctx, a)
	s.abandoned = false
	switch {
	case errors.Is(err, understudy.ErrNotFound):
		s.err = fmt.Errorf("access: %w", understudy.ErrNotFound)
	case err != nil && ctx.Err() != nil:
		s.abandoned, s.err = true, wrapContext(ctx)
	case err != nil, answer.Outcome != request.Cold && (answer.Outcome != request.Warm || answer.Age > maxFreshAge):
	default:
		s.answer, s.err = f.decide(answer)
	}
	return s.answer, s.err
}

// wrapContext returns the error for a caller whose context has ended.
func wrapContext(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return fmt.Errorf("access: %w", ctx.Err())
	}
	return fmt.Errorf("access: %w", understudy.ErrUnavailable)
}
