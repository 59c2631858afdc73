// Polls: the newest page of a polled list is fetched again before its fresh time ends.

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
	IdleAfter      = 5 * time.Minute // without a reader for this long, a source is polled less often
	idleRate       = 10              // polls without readers are slower by this factor
	refillShare    = 0.75            // the part of the fresh time after which a page is due
	savePause      = time.Minute     // pause between tries while nothing can be saved
	maxPollBackoff = 30 * time.Second
)

// poller keeps the pages of polled lists fresh.
type poller struct {
	env      *env
	entries  *entries
	flights  *flights
	holdings *holdings
	writer   *writer
}

// poll keeps the newest page of one list fresh.
type poll struct {
	list   *warm.List
	source *source
	kind   *kind
}

// pollInterval is the state of a poll's goroutine.
type pollInterval struct {
	fails  int
	tried  time.Time
	jitter float64
	urgent bool // the page was superseded, or a hint was received
	pace   warm.Pace
}

// keepWarm fetches the page again until the mirror closes. The page is due after about three quarters of its
// fresh time, with a random variation so that sources are not polled in step. The rest leaves time for a slow
// or failed request. While the list changes often, the page is due earlier.
func (po *poller) keepWarm(p *poll) {
	po.restorePoll(p)
	r := pollInterval{pace: warm.NewPace()}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		r.jitter = 0.95 + rand.Float64()/10
		timer.Reset(po.timeUntilPoll(p, &r))
		select {
		case <-po.env.ctx.Done():
			return
		case <-p.list.Gone:
			return
		case <-timer.C:
		case <-p.list.Wake:
			r.urgent = p.list.TakeHint() || r.urgent || po.entries.isSuperseded(p)
		}
		if po.timeUntilPoll(p, &r) <= 0 && p.source.pollBudget.Take(po.env.now(), len(p.source.polls())) {
			po.tryPoll(p, &r)
		}
	}
}

// startPolls starts the goroutines of all polls.
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

// startPoll starts the goroutine of a poll. The caller has the flights' lock, so that closing the mirror
// waits for the goroutine.
func (po *poller) startPoll(p *poll) {
	if !po.env.closed.Load() {
		po.env.work.Go(func() { po.keepWarm(p) })
	}
}

// SetPolls replaces the polls that the settings name for a source; entries are as in Source.Polls. Polls that
// stay are not disturbed. Errors: an unknown source, an entry that cannot be polled; then nothing changes.
func (m *Mirror) SetPolls(source string, entries []string) error {
	return m.poller.replacePolls(source, func(p *polled) { p.configured = entries })
}

// PollSynced replaces the kinds of a source that are polled because the crawler keeps them complete. It does
// not change the polls of SetPolls.
func (m *Mirror) PollSynced(source string, kinds []string) error {
	return m.poller.replacePolls(source, func(p *polled) { p.synced = kinds })
}

// replacePolls changes the polled entries of a source, then stops and starts polls to match.
func (po *poller) replacePolls(source string, change func(*polled)) error {
	s := po.env.sources[source]
	if s == nil {
		return fmt.Errorf("mirror: polls: no source %q", source)
	}
	po.flights.Lock()
	defer po.flights.Unlock()
	wanted := s.polled
	change(&wanted)
	polls, err := s.buildPolls(wanted)
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
		return nil // Run starts the polls
	}
	for key, p := range polls {
		if before[key] == nil {
			po.startPoll(p)
		}
	}
	return nil
}

// restorePoll looks up the stored page, so that a restart does not fetch a page that is fresh.
func (po *poller) restorePoll(p *poll) {
	now := po.env.now()
	h, ok, err := po.holdings.find(po.env.ctx, p.list.Target, p.kind, now)
	if err == nil && ok && h.state == current {
		p.list.SetNewest(h.page, true)
	}
}

// tryPoll fetches the page once and counts consecutive failures.
func (po *poller) tryPoll(p *poll, r *pollInterval) {
	r.tried, r.urgent = po.env.now(), false
	sum, err := po.fetchPoll(p)
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

// fetchPoll waits for a flight to the polled page, its own or another's. It returns the checksum of the page,
// or zero if the page does not count.
func (po *poller) fetchPoll(p *poll) (sum [16]byte, err error) {
	f, _, err := po.flights.join(p.list.Target, p.source, p.kind, fetchOptions{reason: request.ReasonPoll, requireNew: true})
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
	case f.isInvalidated():
		return sum, nil // a write or a purge came meanwhile and has already woken the poll
	}
	p.list.SetNewest(f.result.page, true)
	return f.result.page.Sum, nil
}

// timeUntilPoll returns how long until the page is due and the budget allows a request.
func (po *poller) timeUntilPoll(p *poll, r *pollInterval) time.Duration {
	now := po.env.now()
	due := po.timeUntilDue(p, r, now)
	if due > 0 {
		return due
	}
	return p.source.pollBudget.Wait(now, len(p.source.polls()))
}

// timeUntilDue returns how long until the page is due.
func (po *poller) timeUntilDue(p *poll, r *pollInterval, now time.Time) time.Duration {
	if po.writer.saving.failureReason() != "" && !r.tried.IsZero() {
		return remainingPause(now, r.tried.Add(savePause), savePause)
	}
	if r.fails > 0 {
		// The waits vary widely, so that polls that failed together are not retried together.
		wait := time.Duration(float64(retry.Backoff(time.Second, maxPollBackoff, r.fails-1)) * (1 + 5*(r.jitter-1)))
		return remainingPause(now, r.tried.Add(wait), wait)
	}
	at := p.list.NewestAt()
	if r.urgent || at.IsZero() {
		return 0
	}
	age, sane := po.env.ages().age(now, at)
	if !sane {
		return 0
	}
	every := time.Duration(float64(po.env.ages().Newest) * refillShare * r.jitter)
	pace := r.pace.Factor
	switch {
	case po.env.isIdle(&p.source.lastRead, now):
		pace = idleRate
	case pace > 1 && !po.env.isIdle(&p.kind.lastRead, now):
		pace = 1
	}
	// The poll wakes up at least once per usual interval, so that it notices a returning reader.
	return min(time.Duration(float64(every)*pace)-age, every)
}

// NoteReader notes that a source is used without requests for pages, for example by a subscriber of its feed.
// The source counts as read for five minutes, so a longer subscription repeats the call. The call is cheap.
func (m *Mirror) NoteReader(source string) {
	if s := m.env.sources[source]; s != nil {
		noteReadTime(&s.lastRead, m.env.monotonicTime(m.env.now()))
	}
}

// isIdle reports whether the last read of a source or a kind was at least IdleAfter ago.
func (v *env) isIdle(last *atomic.Int64, now time.Time) bool {
	return time.Duration(v.monotonicTime(now)-last.Load()) >= IdleAfter
}

// SetRate sets how many requests a second a source accepts; 0 means 10. All polls of the source together use
// at most a tenth of it. Error: an unknown source.
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
	Read int // polls while there are readers and the lists change little
	Busy int // polls while every poll finds something new
	Idle int // polls while there are no readers
}

// PollsPerDay returns the cost of polling that many lists of a source. A zero field of ages and a rate of 0
// take their defaults, as in Options. A slow upstream gets somewhat fewer requests, because a list is due
// some time after its last response.
func PollsPerDay(lists int, ages Ages, rate float64) PollCost {
	if lists == 0 {
		return PollCost{}
	}
	const day = 24 * time.Hour
	var budget warm.Budget
	budget.Set(rate)
	every := ages.withDefaults().Newest.Seconds() * refillShare
	perDay := func(pace float64) int {
		perSecond := min(float64(lists)/(every*pace), budget.PollRate())
		return int(math.Round(perSecond * day.Seconds()))
	}
	return PollCost{Read: perDay(warm.NewPace().Factor), Busy: perDay(warm.MinTimes), Idle: perDay(idleRate)}
}
