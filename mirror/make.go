// Make: records on their way into a list, and one making for all who ask for it.

package mirror

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"understudy"
	"understudy/mirror/compose"
)

// looking hands on records and looks at them.
type looking struct {
	compose.Store
	plan    *plan
	from    int64 // what is older is not covered; 0 = all is
	none    int64 // what is older upstream has forgotten; 0 = never
	short   bool  // something older was reached
	invalid bool  // a write touched one of them
	strange bool  // one does not tell whose it is, and the walk did not see it
}

// Seek is the store's less what upstream no longer has.
func (w *looking) Seek(ctx context.Context, q understudy.Seek, yield func(understudy.Found) bool) error {
	if w.none != 0 {
		q.Limit = 0 // some do not count
	}
	k := w.plan.target.Kind
	return w.Store.Seek(ctx, q, func(f understudy.Found) bool {
		if w.none != 0 || w.from != 0 {
			at := f.Clock
			if at == 0 {
				at = unixOf(k, k.Order, f.Body)
			}
			switch {
			case at != 0 && at < w.none:
				return true
			case at != 0 && at < w.from:
				w.short = true
				return false
			}
		}
		if k.Untold() != "" && f.Seen.Before(w.plan.coverage.At) {
			w.strange = true
			return false
		}
		w.invalid = w.invalid || f.Invalid
		return yield(f)
	})
}

// makings are the lists being made that others may share.
type makings struct {
	sync.Mutex
	running map[shared]*makingOf
}

// shared names a list that is the same for everybody who asks for it now.
type shared struct {
	key        understudy.Key
	generation int64
	changes    int64
}

type makingOf struct {
	done chan struct{}
	made *made
	err  error
}

// makeOnce is make, shared with whoever asks for the same at the same time.
func (m *Mirror) makeOnce(ctx context.Context, p *plan) (*made, error) {
	if p.wish != nil {
		return m.make(p)
	}
	name := shared{p.target.Key, p.kind.generation.Load(), p.kind.changes.Load()}
	m.makings.Lock()
	one, joined := m.makings.running[name]
	if !joined {
		one = &makingOf{done: make(chan struct{})}
		m.makings.running[name] = one
	}
	m.makings.Unlock()
	if joined {
		select {
		case <-one.done:
			return one.made, one.err
		case <-ctx.Done():
			return nil, fmt.Errorf("mirror: compose %s: %w", p.target.Key, ctx.Err())
		}
	}
	one.err = errors.New("mirror: compose: panic")
	defer func() {
		m.makings.Lock()
		delete(m.makings.running, name)
		m.makings.Unlock()
		close(one.done)
	}()
	one.made, one.err = m.make(p)
	return one.made, one.err
}
