// Seek: the upstream request for a record that is not held or is hidden.

package access

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"understudy"
	"understudy/kit/lru"
	"understudy/request"
)

// pause is how long the result of seek for a record is reused for a caller.
// Within it, upstream is not asked again.
const pause = time.Second

// justNow is the maximum age of a response that counts as just fetched from
// upstream.
const justNow = 2 * time.Second

// maxAsked is the maximum number of results that are remembered.
const maxAsked = 10_000

type askedKey struct {
	caller string
	key    understudy.Key
}

// lookups are the requests for records that are not held or hidden, one at a time
// for a key. It is safe for concurrent use.
type lookups struct {
	now func() time.Time
	mu  sync.Mutex
	of  *lru.Cache[askedKey, *sharedLookup]
}

// sharedLookup is one request to upstream and its result. The mutex guards when. All
// other fields are read only after done is closed.
type sharedLookup struct {
	when   time.Time
	done   chan struct{}
	answer *request.Response // a record that may be found, which is not remembered, or what says nothing of one
	err    error
	left   bool // its caller went away before it ended
}

// seek asks upstream for a record that is not held, or that is held but hidden
// from the caller. Both cases use the same code path, and a hidden record gives
// the same result as a record that never existed. A request within pause gets
// the remembered result. A request during the fetch waits for its result. seek
// does not ask the mirror whether it fetched the record recently: the mirror
// holds different data, of different age, for hidden and for missing records.
func (l *lookups) seek(ctx context.Context, c understudy.Caller, f *rowFilter, a request.Request, ask Asker) (*request.Response, error) {
	switch {
	case !a.AsOf.IsZero():
		return nil, fmt.Errorf("access: %w", understudy.ErrNotFound)
	case a.OnlyIfCached:
		return nil, fmt.Errorf("access: %w", understudy.ErrNoStoredAnswer)
	}
	k := askedKey{c.Name, a.Target.Key}
	for {
		s, first := l.join(k)
		if first {
			return l.lead(ctx, f, a, ask, k, s)
		}
		select {
		case <-s.done:
			if !s.left {
				return s.answer, s.err
			}
		case <-ctx.Done():
			return nil, late(ctx)
		}
	}
}

// join returns the current request for a key. If first is true, the caller has to
// send it.
func (l *lookups) join(k askedKey) (s *sharedLookup, first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	if s, ok := l.of.Get(k); ok && (!s.ended() || now.Sub(s.when).Abs() < pause) {
		return s, false
	}
	s = &sharedLookup{when: now, done: make(chan struct{})}
	l.of.Put(k, s, 1)
	return s, true
}

func (s *sharedLookup) ended() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// forget removes a request whose result is of no use to later requests.
func (l *lookups) forget(k askedKey, s *sharedLookup) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now, ok := l.of.Get(k); ok && now == s {
		l.of.Remove(k)
	}
}

// lead asks upstream and sets the result for all waiting requests. lead forgets
// the request at once if the record was found, if its own caller left before the
// end, or if the code below panics.
func (l *lookups) lead(
	ctx context.Context, f *rowFilter, a request.Request, ask Asker, k askedKey, s *sharedLookup,
) (*request.Response, error) {
	s.left, s.err = true, fmt.Errorf("access: %w", understudy.ErrUnavailable)
	defer func() {
		if s.left || s.err == nil && s.answer.Page.Status == http.StatusOK {
			l.forget(k, s)
		}
		close(s.done)
	}()
	a.NoCache, a.SkipStored, a.JoinOnly, a.MaxAge, a.MinFresh, a.MaxStale = true, true, false, nil, nil, nil
	answer, err := ask(ctx, a)
	s.left = false
	switch {
	case errors.Is(err, understudy.ErrNotFound):
		s.err = fmt.Errorf("access: %w", understudy.ErrNotFound)
	case err != nil && ctx.Err() != nil:
		s.left, s.err = true, late(ctx)
	case err != nil, answer.Outcome != request.Cold && (answer.Outcome != request.Warm || answer.Age > justNow):
	default:
		s.answer, s.err = f.decide(answer)
	}
	return s.answer, s.err
}

// late is the error for a caller whose waiting time is over.
func late(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return fmt.Errorf("access: %w", ctx.Err())
	}
	return fmt.Errorf("access: %w", understudy.ErrUnavailable)
}
