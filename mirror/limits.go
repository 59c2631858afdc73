// Limits: how much may go on at once, and who is turned away beyond it.

package mirror

import (
	"time"

	"understudy"
)

// Limits bound what goes on at once. A zero field takes its default.
type Limits struct {
	Waiters int // readers that wait for upstream; 1024
	Each    int // of these, those with the same Turn; 256
	Flights int // fetches under way, whoever wants them; 512
	Behind  int // of these, those nobody need wait for; 256
	Hints   int // records lately hinted at; 1024
	Lists   int // lists being made from records; 32, as it was given to New
}

func (l Limits) withDefaults() Limits {
	for _, d := range []struct {
		limit *int
		usual int
	}{{&l.Waiters, 1024}, {&l.Each, 256}, {&l.Flights, 512}, {&l.Behind, 256}, {&l.Hints, 1024}, {&l.Lists, 32}} {
		if *d.limit <= 0 {
			*d.limit = d.usual
		}
	}
	return l
}

// SetLimits replaces the limits. Whoever is in already stays.
func (m *Mirror) SetLimits(l Limits) {
	l = l.withDefaults()
	m.limits.Store(&l)
}

// refused counts who was turned away, by limit.
type refused struct{ waiters, each, flights, background int64 }

// busyRetry is when somebody turned away may come again.
const busyRetry = 2 * time.Second

// admit lets a reader wait, or says why not; it is counted either way. start:
// a flight would have to begin for it. The lock is held.
func (fs *flights) admit(l *Limits, turn uint64, start bool) error {
	switch {
	case fs.waiters >= l.Waiters:
		fs.refused.waiters++
	case fs.flows[turn] >= l.Each:
		fs.refused.each++
	case start && len(fs.running) >= l.Flights:
		fs.refused.flights++
	default:
		fs.waiters++
		fs.flows[turn]++
		return nil
	}
	return &understudy.UpstreamError{Why: understudy.FailBusy, RetryAfter: busyRetry}
}

// dismiss takes a reader off the books; the lock is held.
func (fs *flights) dismiss(turn uint64) {
	fs.waiters--
	if fs.flows[turn]--; fs.flows[turn] == 0 {
		delete(fs.flows, turn)
	}
}

// Load is one limit: what it is, how much of it is in use, and how often it
// turned somebody away, or kept something from beginning, since New.
type Load struct {
	Limit, Now int
	Refused    int64
}

// Loads are all of them.
type Loads struct{ Waiters, Each, Flights, Behind, Hints, Lists Load }

// Loads are the limits and what is in use of them now; of Each that of the
// turn with most waiters.
func (m *Mirror) Loads() Loads {
	l := m.limits.Load()
	m.hints.Lock()
	hints := Load{l.Hints, len(m.hints.known), m.hints.refused}
	m.hints.Unlock()
	m.flights.Lock()
	defer m.flights.Unlock()
	most := 0
	for _, n := range m.flights.flows {
		most = max(most, n)
	}
	r := &m.flights.refused
	return Loads{
		Waiters: Load{l.Waiters, m.flights.waiters, r.waiters},
		Each:    Load{l.Each, most, r.each},
		Flights: Load{l.Flights, len(m.flights.running), r.flights},
		Behind:  Load{l.Behind, m.flights.background, r.background},
		Hints:   hints,
		Lists:   Load{Limit: cap(m.composing), Now: len(m.composing)},
	}
}
