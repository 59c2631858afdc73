// Set back: what was walked at times that lie in the future, since the clock was
// set back.

package walk

import (
	"context"
	"slices"
)

const (
	ahead = 5 // seconds a time may lie in the future
	// longAgo is when something was walked of which the time is not known: it
	// counts for nothing but that it was.
	longAgo = 1
)

// ahead reports whether anything is said to have happened in the future.
func (m *memo) ahead(now int64) bool {
	return max(m.Rest, m.CaughtUp, m.Behind, m.Newest, m.Lost) > now+ahead ||
		slices.ContainsFunc(m.Spans, func(s span) bool { return s.At > now+ahead })
}

// setBack makes what is said to have happened in the future have happened at
// some time before now.
func (m *memo) setBack(now int64) {
	for _, at := range []*int64{&m.Rest, &m.CaughtUp} {
		if *at > now {
			*at = longAgo
		}
	}
	m.Behind, m.Newest, m.Lost = min(m.Behind, now), min(m.Newest, now), min(m.Lost, now)
	m.Spans = slices.Clone(m.Spans)
	for i := range m.Spans {
		if m.Spans[i].At > now {
			m.Spans[i].At = longAgo
		}
	}
}

// heedClock sees to it that a kind is walked again, and its newest page looked
// at, when the clock was set back: until it has come up to where it was nothing
// would.
func (w *Walker) heedClock(ctx context.Context, x *walked) error {
	m, err := w.read(ctx, x)
	now := w.clock()
	if err != nil || !m.ahead(now) {
		return err
	}
	w.o.Logger.Warn("walk: the clock was set back; all is walked again", "source", x.source.Name, "kind", x.kind.Name)
	return w.change(ctx, x, func(m *memo) { m.setBack(now) })
}
