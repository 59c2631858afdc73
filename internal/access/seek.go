// Seek: upstream asked for what is not held or may not be found.

package access

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"understudy"
	"understudy/request"
)

// pause is how long one end of seeking a record counts for a caller: within it
// upstream is not asked again.
const pause = time.Second

// justNow is the age up to which an answer counts as one that upstream has just
// given.
const justNow = 2 * time.Second

// maxAsked bounds how many ends are remembered.
const maxAsked = 10_000

type askedKey struct {
	caller string
	key    understudy.Key
}

// sought is one request to upstream and its end. Only when, which the mutex
// guards, is looked at before done is closed.
type sought struct {
	when   time.Time
	done   chan struct{}
	answer *request.Response // a record that may be found, which is not remembered, or what says nothing of one
	err    error
	left   bool // its caller went away before it ended
}

// seek asks upstream for a record that is not held, or may not be found as it is
// held: the same way for both, with the same end for one that is hidden and one
// that never was. Who asks again within a pause has the end that was, and who
// asks meanwhile waits for it. The mirror is not asked whether it has just been
// there: what it holds of a record that is hidden and what it holds of one that
// is not differ, in their age too.
func (g *Gate) seek(ctx context.Context, c understudy.Caller, f *finder, a request.Request, ask Asker) (*request.Response, error) {
	switch {
	case !a.AsOf.IsZero():
		return nil, fmt.Errorf("access: %w", understudy.ErrNotFound)
	case a.OnlyIfCached:
		return nil, fmt.Errorf("access: %w", understudy.ErrNotHeld)
	}
	k := askedKey{c.Name, a.Target.Key}
	for {
		s, first := g.sought(k)
		if first {
			return g.lead(ctx, f, a, ask, k, s)
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

// sought is the request that counts for a key; first says that it is to be made.
func (g *Gate) sought(k askedKey) (s *sought, first bool) {
	g.seeking.Lock()
	defer g.seeking.Unlock()
	now := g.now()
	if s, ok := g.asked.Get(k); ok && (!s.ended() || now.Sub(s.when).Abs() < pause) {
		return s, false
	}
	s = &sought{when: now, done: make(chan struct{})}
	g.asked.Put(k, s, 1)
	return s, true
}

func (s *sought) ended() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// forget takes a request out that says nothing to who asks next.
func (g *Gate) forget(k askedKey, s *sought) {
	g.seeking.Lock()
	defer g.seeking.Unlock()
	if now, ok := g.asked.Get(k); ok && now == s {
		g.asked.Remove(k)
	}
}

// lead asks upstream and fills in the end, for everybody who waits. What was
// found is forgotten at once, and so is what nobody waited for to its end, be it
// for a panic below.
func (g *Gate) lead(ctx context.Context, f *finder, a request.Request, ask Asker, k askedKey, s *sought) (*request.Response, error) {
	s.left, s.err = true, fmt.Errorf("access: %w", understudy.ErrUnavailable)
	defer func() {
		if s.left || s.err == nil && s.answer.Page.Status == http.StatusOK {
			g.forget(k, s)
		}
		close(s.done)
	}()
	a.NoCache, a.JoinOnly, a.MaxAge, a.MinFresh, a.MaxStale = true, false, nil, nil, nil
	answer, err := ask(ctx, a)
	s.left = false
	switch {
	case errors.Is(err, understudy.ErrNotFound):
		s.err = fmt.Errorf("access: %w", understudy.ErrNotFound)
	case err != nil && ctx.Err() != nil:
		s.left, s.err = true, late(ctx)
	case err != nil, answer.Outcome != request.Cold && (answer.Outcome != request.Warm || answer.Age > justNow):
	default:
		s.answer, s.err = g.verdict(f, answer)
	}
	return s.answer, s.err
}

// late is the end for a caller that waited as long as it would.
func late(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return fmt.Errorf("access: %w", ctx.Err())
	}
	return fmt.Errorf("access: %w", understudy.ErrUnavailable)
}
