// Poll: the newest page of a polled list is refilled before it is past fresh.

package mirror

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"understudy/kit/retry"
	"understudy/mirror/warm"
	"understudy/request"
)

const (
	IdleAfter = 5 * time.Minute // without a reader of the source, polls are rarer
	idleRate  = 10              // how much rarer polls are then
	pollAfter = 0.75            // of the fresh time, a page comes due
	pause     = time.Minute     // between tries while nothing can be saved
	maxRetry  = 30 * time.Second
)

// poller keeps the polled pages warm.
type poller struct {
	env      *env
	entries  *entries
	flights  *flights
	holdings *holdings
	writer   *writer
}

// poll is one list's newest page, kept warm.
type poll struct {
	list   *warm.List
	source *source
	kind   *kind
}

// pollInterval is what the goroutine of a poll knows.
type pollInterval struct {
	fails  int
	tried  time.Time
	jitter float64
	urgent bool // what is held became old, or a hint came
	pace   warm.Pace
}

// keepWarm refills until the mirror closes. The page comes due when three
// quarters of its fresh time are over, give or take a little so that sources
// do not keep step; the rest is room for a slow answer and for one that fails.
// While much happens it comes due sooner.
func (po *poller) keepWarm(p *poll) {
	po.recall(p)
	r := pollInterval{pace: warm.NewPace()}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		r.jitter = 0.95 + rand.Float64()/10
		timer.Reset(po.pollIn(p, &r))
		select {
		case <-po.env.ctx.Done():
			return
		case <-p.list.Gone:
			return
		case <-timer.C:
		case <-p.list.Wake:
			r.urgent = p.list.TakeHint() || r.urgent || po.entries.isSuperseded(p)
		}
		if po.pollIn(p, &r) <= 0 && p.source.pollBudget.Take(po.env.now(), len(p.source.polls())) {
			po.pageSaved(p, &r)
		}
	}
}

// startPolls begins to keep warm what is polled.
func (po *poller) startPolls() {
	po.flights.Lock()
	defer po.flights.Unlock()
	po.flights.polling = true
	for _, s := range po.env.sources {
		for _, p := range s.polls() {
			po.startPoll(p)
		}
	}
}

// startPoll begins one; the flights' lock is held, so that what closes the
// mirror waits for it.
func (po *poller) startPoll(p *poll) {
	if !po.env.closed.Load() {
		po.env.work.Go(func() { po.keepWarm(p) })
	}
}

// SetPolls replaces what of a source is kept warm by the settings: entries as in
// Source.Polls.
// Those that stay are not disturbed. Errors: a source the mirror does not
// have, an entry that cannot be polled; nothing is changed then.
func (m *Mirror) SetPolls(source string, entries []string) error {
	return m.poller.replacePolls(source, func(p *polled) { p.configured = entries })
}

// PollSynced replaces the kinds of a source that are kept warm because the crawler
// keeps them up, besides those of SetPolls.
func (m *Mirror) PollSynced(source string, kinds []string) error {
	return m.poller.replacePolls(source, func(p *polled) { p.synced = kinds })
}

func (po *poller) replacePolls(source string, change func(*polled)) error {
	s := po.env.sources[source]
	if s == nil {
		return fmt.Errorf("mirror: polls: no source %q", source)
	}
	po.flights.Lock()
	defer po.flights.Unlock()
	wanted := s.polled
	change(&wanted)
	polls, err := s.pollsOf(wanted)
	if err != nil {
		return err
	}
	s.polled = wanted
	before := s.polls()
	for key, p := range before {
		if polls[key] != nil {
			polls[key] = p
		} else {
			close(p.list.Gone)
		}
	}
	s.polling.Store(&polls)
	if !po.flights.polling {
		return nil // Run starts them
	}
	for key, p := range polls {
		if before[key] == nil {
			po.startPoll(p)
		}
	}
	return nil
}

// recall looks what the store holds, so that a restart asks for nothing that
// is fresh.
func (po *poller) recall(p *poll) {
	now := po.env.now()
	h, ok, err := po.holdings.find(po.env.ctx, p.list.Target, p.kind, now)
	if err == nil && ok && h.state == current {
		p.list.Completed(h.page, true)
	}
}

// pageSaved refills once and counts failures.
func (po *poller) pageSaved(p *poll, r *pollInterval) {
	r.tried, r.urgent = po.env.now(), false
	sum, err := po.refill(p)
	if err != nil {
		r.fails++
		return
	}
	r.fails = 0
	if sum != [16]byte{} {
		r.pace.Observe(sum)
	}
}

var errRefused = errors.New("mirror: upstream refuses the polled page")

// refill waits for a flight to the polled page, begun by it or by another. The sum is that
// of the page, zero when it counts for nothing.
func (po *poller) refill(p *poll) (sum [16]byte, err error) {
	f, _, err := po.flights.join(p.list.Target, p.source, p.kind, fetchOptions{reason: request.Poll, direct: true})
	if err != nil {
		return sum, err
	}
	defer po.flights.release(f, true)
	select {
	case <-f.signals.done:
	case <-po.env.ctx.Done():
		return sum, po.env.ctx.Err()
	}
	switch {
	case f.result.err != nil:
		return sum, f.result.err
	case f.result.page.Status >= 400:
		return sum, errRefused
	case f.invalidated():
		return sum, nil // a write or a purge came meanwhile, and a nudge with it
	}
	p.list.Completed(f.result.page, true)
	return f.result.page.Sum, nil
}

// pollIn is how long until the page is due and may be asked for.
func (po *poller) pollIn(p *poll, r *pollInterval) time.Duration {
	now := po.env.now()
	due := po.dueIn(p, r, now)
	if due > 0 {
		return due
	}
	return p.source.pollBudget.Wait(now, len(p.source.polls()))
}

// dueIn is how long until the page is due.
func (po *poller) dueIn(p *poll, r *pollInterval, now time.Time) time.Duration {
	if po.writer.saving.trouble() != "" && !r.tried.IsZero() {
		return remaining(now, r.tried.Add(pause), pause)
	}
	if r.fails > 0 {
		// Wide apart, so that what failed together does not come back together.
		wait := time.Duration(float64(retry.Backoff(time.Second, maxRetry, r.fails-1)) * (1 + 5*(r.jitter-1)))
		return remaining(now, r.tried.Add(wait), wait)
	}
	at := p.list.CaughtUp()
	if r.urgent || at.IsZero() {
		return 0
	}
	age, sane := po.env.ages().age(now, at)
	if !sane {
		return 0
	}
	every := time.Duration(float64(po.env.ages().Newest) * pollAfter * r.jitter)
	pace := r.pace.Times
	switch {
	case po.env.idle(&p.source.lastRead, now):
		pace = idleRate
	case pace > 1 && !po.env.idle(&p.kind.lastRead, now):
		pace = 1
	}
	// Looked at as often as usual, so that a reader who comes back is noticed.
	return min(time.Duration(float64(every)*pace)-age, every)
}

// Reading says that a source is followed without requests for pages: by a feed's
// subscriber. It counts as a reader for five minutes. A longer subscription says
// it again before they are over. It is cheap.
func (m *Mirror) Reading(source string) {
	if s := m.env.sources[source]; s != nil {
		wasRead(&s.lastRead, m.env.monotonic(m.env.now()))
	}
}

// idle reports whether the last read, of a source or of a kind, is a while ago.
func (v *env) idle(last *atomic.Int64, now time.Time) bool {
	return time.Duration(v.monotonic(now)-last.Load()) >= IdleAfter
}

// SetRate says how many requests a second the source takes; 0 = 10. Polls keep to
// a tenth of them together. Error: a source the mirror does not have.
func (m *Mirror) SetRate(source string, rate float64) error {
	s := m.env.sources[source]
	if s == nil {
		return fmt.Errorf("mirror: rate: no source %q", source)
	}
	s.pollBudget.Set(rate)
	return nil
}

// PollCost is how many requests a day the polls of one source send.
type PollCost struct {
	Read int // while people read, and little in the lists changes
	Busy int // while every poll finds something new
	Idle int // while nobody reads
}

// PollsPerDay returns what it costs to poll so many lists of a source. A zero field of
// ages and a rate of 0 take their defaults, as in Options. A slow upstream is sent a
// little less: a list comes due a while after its last answer.
func PollsPerDay(lists int, ages Ages, rate float64) PollCost {
	if lists == 0 {
		return PollCost{}
	}
	const day = 24 * time.Hour
	var budget warm.Budget
	budget.Set(rate)
	every := ages.withDefaults().Newest.Seconds() * pollAfter
	perDay := func(pace float64) int {
		perSecond := min(float64(lists)/(every*pace), budget.PerSecond())
		return int(math.Round(perSecond * day.Seconds()))
	}
	return PollCost{Read: perDay(warm.NewPace().Times), Busy: perDay(warm.Soonest), Idle: perDay(idleRate)}
}
