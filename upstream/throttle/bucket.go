// This file limits the requests a second and the requests at the same time.

package throttle

import (
	"fmt"
	"time"
)

// bucket is a token bucket. A request takes one token.
type bucket struct {
	rate   float64 // the number of tokens that are added a second
	burst  float64 // the maximum number of tokens in the bucket
	tokens float64
	checks float64 // the tokens for requests of ReasonCheck, at most 1
}

// pass adds the tokens for the time d that has passed.
func (b *bucket) pass(d time.Duration) {
	b.tokens = min(b.burst, b.tokens+d.Seconds()*b.rate)
	b.checks = min(1, b.checks+d.Seconds()*b.rate*checkShare)
}

// checkShare is the part of the rate that requests of ReasonCheck may use.
const checkShare = 0.01

// slots limit the requests at the same time. total is the limit in the settings. Fewer slots are used if the upstream
// refuses more requests, or does not answer more of them in a second (see knee).
type slots struct {
	total       int
	free        int           // the number of free slots; below zero after total was reduced, until enough slots are released
	busyTime    time.Duration // the sum of the times for which slots were in use since the last release
	averageHold time.Duration // how long one slot is in use: a moving average of busyTime
	knee        knee
}

// pass adds the time d to the slots in use.
func (s *slots) pass(d time.Duration) { s.busyTime += d * time.Duration(max(0, s.usedCount())) }

// release takes a slot back.
func (s *slots) release() { // release frees a slot.
	s.averageHold += (s.busyTime - s.averageHold) / 8
	s.busyTime = 0
	s.free++
}

func (s *slots) usedCount() int { return s.total - s.free }

// bestLimit returns the number of slots that is best as far as known.
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
	Size   int    // the approximate size of the answer
}

// Observation is what one request shows about how many requests the upstream can serve at the same time.
type Observation struct {
	Sort    Sort
	Began   time.Time
	Took    time.Duration // the time until the upstream answered, or 0 if the answer says nothing about the upstream's speed
	Lost    bool          // whether there was no answer, so that the request ended after Took
	Refused bool          // whether the upstream refused the request because there were too many
	Counted int64         // the number of simultaneous requests that the upstream counted, including this request; 0 if unknown
}

// refusalFactor is the factor by which the slots are reduced after upstream refused a request.
const refusalFactor = 0.75

// addRefusal records that the upstream refused a request because there were too many. If several requests that ran
// together are refused, only one refusal counts: multiplicative decrease (D. Chiu, R. Jain, 1989). A refusal during a
// trial of more slots only ends the trial. If the upstream says how many requests it counted, and all of them are this
// server's, the limit becomes that number less one.
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
		return "fewer were allowed before, and upstream now handles more"
	case k.refused:
		return "upstream refuses more"
	}
	return fmt.Sprintf("with %d at once, answers take %.1f times as long", k.over, k.slower)
}
