// Polls: the newest page of a list is fetched again and again, before it becomes stale.

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
	IdleAfter      = 5 * time.Minute // a source that nobody has read for this long is polled less often
	idleRate       = 10              // polls are slower by this factor if nobody reads the source
	refillShare    = 0.75            // the part of its fresh time after which a page is fetched again
	savePause      = time.Minute     // how long polls wait before they try again while nothing can be saved
	maxPollBackoff = 30 * time.Second
)

// poller polls lists, so that their newest pages stay fresh.
type poller struct {
	env      *env
	entries  *entries
	flights  *flights
	holdings *pageFinder
	writer   *writer
}

// poll fetches the newest page of one list regularly.
type poll struct {
	list   *warm.List
	source *source
	kind   *kind
}

// pollInterval is the state from which a poll computes when to fetch the page again.
type pollInterval struct {
	fails  int
	tried  time.Time
	jitter float64
	urgent bool // whether the page must be fetched soon, because it became outdated or a hint arrived
	pace   warm.Pace
}

// keepWarm fetches the page again until the mirror closes. The page is fetched after about three quarters of its
// fresh time. The rest is left for a slow or failed request. The time varies at random, so that lists are not all
// polled at the same time. A list that changes often is polled more often.
func (po *poller) keepWarm(p *poll) {
	// a page that is still fresh is not fetched again after a restart
	if h, ok, err := po.holdings.find(po.env.ctx, p.list.Target, p.kind, po.env.now()); err == nil && ok && h.state == current {
		p.list.SetNewest(h.page, true)
	}
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
		if others := po.env.others; others != nil && !others.IsLeader() {
			r.tried, r.urgent = po.env.now(), false
			continue
		}
		if po.timeUntilPoll(p, &r) <= 0 && p.source.pollBudget.Take(po.env.now(), len(p.source.polls())) {
			po.tryPoll(p, &r)
		}
	}
}

// startPoll starts the goroutine of a poll. The caller holds the lock of the flights, so that closing the mirror
// waits for the goroutine.
func (po *poller) startPoll(p *poll) {
	if !po.env.closed.Load() {
		po.env.work.Go(func() { po.keepWarm(p) })
	}
}

// SetPolls replaces the lists of a source that the settings poll. The entries are as in Source.Polls. Polls that stay continue
// undisturbed. It returns an error, and changes nothing, if the source is not known or if an entry cannot be polled.
func (m *Mirror) SetPolls(source string, entries []string) error {
	return m.poller.replacePolls(source, func(p *polled) { p.configured = entries })
}

// PollSynced replaces the kinds of a source that are polled because the crawler keeps all of their records. It does
// not change the polls of SetPolls.
func (m *Mirror) PollSynced(source string, kinds []string) error {
	return m.poller.replacePolls(source, func(p *polled) { p.synced = kinds })
}

// replacePolls calls change, which changes the polled entries of a source. It then stops and starts polls accordingly.
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
		return nil // the mirror is not running yet; Run will start the polls
	}
	for key, p := range polls {
		if before[key] == nil {
			po.startPoll(p)
		}
	}
	return nil
}

// tryPoll fetches the page once, and counts the failures since the last success.
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

// fetchPoll waits for a flight to the polled page, which it starts unless one is running. It returns a hash of the
// page. The hash is zero if the page must not be compared with the page before.
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
		return sum, nil // a write or a purge has outdated the page and has already woken the poll
	}
	p.list.SetNewest(f.result.page, true)
	return f.result.page.Sum, nil
}

// timeUntilPoll returns the time until the page is due and the budget permits a request.
func (po *poller) timeUntilPoll(p *poll, r *pollInterval) time.Duration {
	now := po.env.now()
	due := po.timeUntilDue(p, r, now)
	if due > 0 {
		return due
	}
	return p.source.pollBudget.Wait(now, len(p.source.polls()))
}

// timeUntilDue returns the time until the page must be fetched again.
func (po *poller) timeUntilDue(p *poll, r *pollInterval, now time.Time) time.Duration {
	if po.writer.saving.failureReason() != "" && !r.tried.IsZero() {
		return remainingPause(now, r.tried.Add(savePause), savePause)
	}
	if r.fails > 0 {
		// The time before the next attempt varies much at random, so that polls that have failed together do not try
		// again together.
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
	// The poll never sleeps longer than usual, so that it notices when somebody reads the source again.
	return min(time.Duration(float64(every)*pace)-age, every)
}

// NoteReader notes that a source is being used without requests for pages, for example by a subscriber of its feed.
// The source counts as read for five minutes, so a longer subscription must call it again. The call is cheap.
func (m *Mirror) NoteReader(source string) {
	if s := m.env.sources[source]; s != nil {
		noteReadTime(&s.lastRead, m.env.monotonicTime(m.env.now()))
	}
}

// isIdle reports whether nobody has read a source or kind for at least IdleAfter.
func (v *env) isIdle(last *atomic.Int64, now time.Time) bool {
	return time.Duration(v.monotonicTime(now)-last.Load()) >= IdleAfter
}

// SetRate sets how many requests a second upstream permits; 0 means 10. All polls of the source together use at most
// a tenth of that. It returns an error for an unknown source.
func (m *Mirror) SetRate(source string, rate float64) error {
	s := m.env.sources[source]
	if s == nil {
		return fmt.Errorf("mirror: rate: no source %q", source)
	}
	s.pollBudget.Set(rate)
	return nil
}

// PollCost is the number of requests a day that the polls of a source send.
type PollCost struct {
	Read int // the number of requests a day if somebody reads the source and its lists rarely change
	Busy int // the number of requests a day if every poll finds something new
	Idle int // the number of requests a day if nobody reads the source
}

// PollsPerDay returns how many requests a day are sent if the given number of a source's lists is polled. A zero
// field of ages and a rate of 0 take their defaults, as in Options. The real number is a little lower if upstream is
// slow, because the time until the next poll begins with the response to the last.
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
	return PollCost{Read: perDay(warm.NewPace().Factor), Busy: perDay(warm.MinFactor), Idle: perDay(idleRate)}
}
