// Bucket and slots: the requests a second, and the requests at the same time.

package throttle

import (
	"fmt"
	"time"
)

// bucket is a token bucket. A request takes one token.
type bucket struct {
	rate   float64 // tokens a second
	burst  float64 // maximum number of tokens
	tokens float64
	checks float64 // tokens for requests of reason Check, at most 1
}

// pass adds the tokens for a time that has passed.
func (b *bucket) pass(d time.Duration) {
	b.tokens = min(b.burst, b.tokens+d.Seconds()*b.rate)
	b.checks = min(1, b.checks+d.Seconds()*b.rate*checkShare)
}

// checkShare is the part of the rate that requests of reason Check may use.
const checkShare = 0.01

// slots limit the requests at the same time. total is the limit in the settings. Fewer are used if upstream
// refuses more, or does not answer more of them in a second (see knee).
type slots struct {
	total       int
	free        int           // less than zero after total was reduced, until enough slots are released
	busyTime    time.Duration // sum of the times that all slots were in use since the last release
	averageHold time.Duration // how long one slot is in use: the moving average of busyTime
	knee        knee
}

// pass adds a time to the slots in use.
func (s *slots) pass(d time.Duration) { s.busyTime += d * time.Duration(max(0, s.usedCount())) }

// release takes a slot back.
func (s *slots) release() { // release frees a slot.
	s.averageHold += (s.busyTime - s.averageHold) / 8
	s.busyTime = 0
	s.free++
}

func (s *slots) usedCount() int { return s.total - s.free }

// bestLimit returns the best known number of slots.
func (s *slots) bestLimit() int { return s.knee.bestLimit(s.total) }

// currentLimit returns the number of slots that may be in use now. It differs from bestLimit only during a trial.
func (s *slots) currentLimit() int {
	if s.knee.isTrialRunning() {
		return min(s.total, s.knee.trial.limit)
	}
	return s.bestLimit()
}

// availableCount returns how many slots can be taken now.
func (s *slots) availableCount() int { return s.free - s.total + s.currentLimit() }

// resize replaces the limit of the settings.
func (s *slots) resize(total int, now time.Time) {
	s.knee.resumeLimit(s.currentLimit(), now)
	s.free += total - s.total
	s.total = total
}

// endIdleTrial ends a trial if no request is running, because then something else limits the requests.
func (s *slots) endIdleTrial(now time.Time) {
	if s.usedCount() <= 0 && s.knee.isTrialRunning() {
		s.knee.endTrial(s.total, true, now)
	}
}

// Sort identifies requests whose answers take about the same time. The zero value is a sort too.
type Sort struct {
	Method string
	Place  string // the path template of the requests
	Size   int    // approximate size of the answer
}

// Observation is what one request shows about how many requests upstream serves at the same time.
type Observation struct {
	Sort    Sort
	Began   time.Time
	Took    time.Duration // time until upstream answered; 0 if the answer says nothing about upstream's speed
	Lost    bool          // whether there was no answer, so that the request ended after Took
	Refused bool          // whether upstream refused it because there were too many
	Counted int64         // number of simultaneous requests that upstream counted, with this one; 0 if unknown
}

// refusalFactor is the factor by which the slots are reduced after upstream refused a request.
const refusalFactor = 0.75

// addRefusal records that upstream refused a request because there were too many. Of requests that ran together, only one
// refusal counts: multiplicative decrease (D. Chiu, R. Jain, 1989). A refusal during a trial of more slots only ends the
// trial. If upstream says how many requests it counted, and all of them are ours, the limit becomes that number less one.
func (s *slots) addRefusal(o Observation, now time.Time) {
	k := &s.knee
	if more := s.currentLimit() > s.bestLimit(); o.Began.Before(k.since) || !more && o.Began.Equal(k.since) {
		return
	}
	ours := min(float64(s.currentLimit()), float64(s.usedCount()))
	most := refusalFactor * ours
	if c := float64(o.Counted); c > 0 && c <= ours {
		most = c - 1
	} else if s.currentLimit() > s.bestLimit() {
		most = float64(s.bestLimit())
	}
	k.over, k.refused = s.currentLimit(), true
	if most = max(1, most); most == float64(s.bestLimit()) {
		k.endTrial(s.total, true, now)
		return
	}
	k.best = most
	k.baseline, k.trial.up, k.trial.step = baseline{pause: minTrialAnswers}, true, 1
	k.resumeLimit(s.currentLimit(), now)
}

// addAnswer records how long upstream took.
func (s *slots) addAnswer(o Observation, now time.Time) {
	k := &s.knee
	if s.total < 2 {
		return
	}
	if k.skip > 0 && o.Took > 0 {
		if !o.Began.Before(k.since) {
			k.skip--
		}
		return
	}
	ratio, known := k.paces.ratio(o, !k.isTrialRunning())
	seen := answerSample{ratio: ratio, used: float64(s.usedCount())}
	switch {
	case !known || 4*s.usedCount() < 3*s.currentLimit(): // background work leaves a quarter of the slots to readers
		k.countUseless(s.total, now)
	case k.isTrialRunning():
		k.addTrial(seen, s.total, now)
	default:
		k.addBaseline(seen, s.total, now)
	}
}

// limitReason returns in words why fewer slots than the settings allow are in use, or "" if all of them are.
func (s *slots) limitReason() string {
	k := &s.knee
	switch {
	case s.bestLimit() >= s.total:
		return ""
	case k.over <= s.bestLimit():
		return "they were fewer; more go well so far"
	case k.refused:
		return "upstream refuses more"
	}
	return fmt.Sprintf("with %d at once, answers take %.1f times as long", k.over, k.slower)
}
