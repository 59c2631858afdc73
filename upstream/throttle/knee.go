// This file finds how many requests at the same time the upstream serves best, from the time that its answers take.

package throttle

import (
	"math"
	"time"
)

const (
	minTrialAnswers = 16   // the minimum number of answers of a trial
	maxTrialAnswers = 320  // the maximum number of answers of a trial
	sureErrors      = 2.5  // a trial ends early when its result is this many standard errors away from the threshold
	waitThreshold   = 0.7  // if at least this share of a change of the slots only changes how many requests wait, fewer slots are better
	minFollowed     = 0.5  // the minimum share of a change of the slots that the running requests must have followed
	meanWindow      = 512  // the number of answers in the mean for the current number of slots
	shortWindow     = 16   // number of answers after which a change of the answer time is noticed; the moving mean covers twice as many
	minShift        = 1.25 // the minimum factor by which answers must become slower or faster to count as a change
	shiftErrors     = 4    // the number of standard errors by which answer times must also change to count as a change
	// the pause after a change of the answer time, as a multiple of the last trial's answers, because latency may vary by
	// itself
	pauseFactor    = 8
	maxCalm        = 2 // the maximum number of times that the pause between trials doubles while they change nothing
	maxCalmAtTotal = 5 // the same maximum while all slots of the settings are in use, because then a trial costs most
)

// steps are the factors by which a trial changes the number of slots. A larger factor needs fewer answers for a result.
var steps = [...]float64{1.5, 2, 4}

// knee finds how many requests at the same time upstream serves best. With fewer requests, fewer are answered
// in a second. With more, the requests only wait for each other, and each takes longer in proportion (J.
// Little, A Proof for the Queuing Formula L = λW, 1961). The reason for upstream's limit does not matter:
// workers, or connections to its database.
//
// Latency near its minimum means that upstream can serve more, as in TCP Vegas (L. Brakmo, L. Peterson, 1995)
// and similar methods for requests (Netflix, "Performance Under Load", 2018). But a minimum measured long ago
// is wrong if upstream itself has become slower. So knee sometimes tries another number of slots, for as few
// answers as possible. It compares them with the answers just before the trial:
//
//	trial of | waited | means                                       | then
//	more     | 0      | as many more are answered in a second       | they are the number in use
//	more     | 1      | no more are answered: all waited longer     | the number stays
//	fewer    | 0      | fewer are answered in a second              | the number stays
//	fewer    | 1      | as many are answered, and sooner            | they are the number in use
//
// Waited is the change of latency divided by the change of running requests, both as logarithms. Latency is
// measured relative to the usual time of the same sort of answer, at most four times that time.
type knee struct {
	best     float64   // the best number of slots so far; 0 if as many as the settings allow
	since    time.Time // when the number of slots last changed
	skip     int       // the number of next answers to ignore, because the fast answers of requests sent together return first
	paces    paces
	baseline baseline
	trial    trial

	// The last number of slots that was too many:
	over    int
	slower  float64 // the factor by which answers took longer than with the best number
	refused bool    // whether the upstream refused requests with that number
}

// answerSample is the result of one answer.
type answerSample struct {
	ratio float64 // the answer time divided by the usual time of its sort
	used  float64 // the number of requests that were running when the answer arrived
}

// baseline measures the answers that arrive while no trial runs. Trials of other numbers of slots are compared with it.
type baseline struct {
	measure measure
	recent  float64 // the moving mean of the ratio of the last answers
	count   int     // the number of answers since the last trial
	pause   int     // the number of answers until the next trial
	calm    int     // the number of consecutive trials that clearly changed nothing
}

// trial is the state of a trial with another number of slots.
type trial struct {
	limit   int  // the number of slots in the trial, or 0 if no trial is running
	up      bool // whether the current or the next trial uses more slots, not fewer
	step    int  // the index of the current step in steps
	useless int  // the number of answers in the trial that showed nothing
	cost    int  // the number of answers in the trial
	measure measure
}

func newKnee() knee { return knee{trial: trial{step: len(steps) - 1}} }

// isTrialRunning reports whether a trial runs.
func (k *knee) isTrialRunning() bool { return k.trial.limit > 0 }

// bestLimit returns the best known number of slots, at most total. Trials do not change it.
func (k *knee) bestLimit(total int) int {
	if k.best == 0 {
		return total
	}
	return min(total, max(1, int(k.best)))
}

// addBaseline adds an answer outside a trial. If answers become slower, the next trial comes sooner and uses
// fewer slots. If they become faster, the next trial uses more slots.
func (k *knee) addBaseline(s answerSample, total int, now time.Time) {
	h, t := &k.baseline, &k.trial
	m := &h.measure
	if m.n == 0 {
		h.recent = s.ratio
	}
	h.recent += (s.ratio - h.recent) / shortWindow
	m.add(s, 1-1.0/meanWindow)
	h.count++
	off := math.Abs(math.Log(h.recent / m.average()))
	if m.n >= 2*shortWindow && off > max(math.Log(minShift), min(math.Ln2, shiftErrors*math.Sqrt(m.variance()*(1.0/(2*shortWindow)+1/m.n)))) {
		t.up, t.step = h.recent < m.average(), 1
		if off > math.Ln2 {
			t.step = 2
		}
		pause := h.pause
		if n := k.bestLimit(total); t.up && n < total || !t.up && n > 1 {
			pause = min(pause, pauseFactor*t.cost)
		}
		k.paces.change(h.recent)
		*h = baseline{count: h.count, pause: pause, calm: h.calm}
		return
	}
	// After that many answers, a trial of the same length would show half of the expected change.
	expected := math.Log(steps[t.step]) / 2
	if least := max(2*minTrialAnswers, min(8*m.variance()/(expected*expected), 0.7*maxTrialAnswers)); h.count >= h.pause && m.n >= least {
		k.startTrial(total, now)
	}
}

// startTrial starts a trial.
func (k *knee) startTrial(total int, now time.Time) {
	t, n := &k.trial, k.bestLimit(total)
	t.up = n < total && (t.up || n == 1)
	by := steps[t.step]
	if t.up {
		// At most half as many again, because too many requests burden upstream.
		t.limit = int(math.Ceil(float64(n) * min(by, steps[1])))
		if float64(t.limit)*minShift > float64(total) {
			t.limit = total
		}
		if k.refused && k.over > n {
			t.limit = min(t.limit, max(n+1, (n+k.over)/2))
		}
	} else {
		t.limit = max(1, int(float64(n)/by))
	}
	t.measure, t.useless, t.cost = measure{}, 0, t.limit
	k.since, k.skip = now, t.limit
}

// addTrial adds an answer of a trial, and ends the trial when the result is clear.
func (k *knee) addTrial(s answerSample, total int, now time.Time) {
	t, h := &k.trial, &k.baseline
	t.measure.add(s, 1)
	if t.cost++; t.measure.n < max(minTrialAnswers, float64(t.limit)) {
		return
	}
	more := math.Log(t.measure.used / t.measure.n * h.measure.n / h.measure.used)
	if more/math.Log(float64(t.limit)/float64(k.bestLimit(total))) < minFollowed {
		k.endTrial(total, true, now)
		return
	}
	slower := t.measure.average() / h.measure.average()
	waited := math.Log(slower) / more
	unsure := math.Sqrt(max(t.measure.variance(), h.measure.variance())*(1/t.measure.n+1/h.measure.n)) / math.Abs(more)
	margin := math.Abs(waited - waitThreshold)
	switch {
	case margin < sureErrors*unsure && t.measure.n < maxTrialAnswers:
	case t.up == (waited >= waitThreshold):
		if t.up {
			k.over, k.slower, k.refused = t.limit, slower, false
		}
		k.endTrial(total, margin > unsure, now)
	default:
		if !t.up {
			k.over, k.slower, k.refused = k.bestLimit(total), 1/slower, false
		}
		k.applyTrial(total, margin > unsure)
	}
}

// countUseless counts an answer that shows nothing, because too few requests run or the sort is not known. A
// trial with many such answers ends.
func (k *knee) countUseless(total int, now time.Time) {
	t := &k.trial
	if !k.isTrialRunning() {
		return
	}
	if t.useless++; t.useless >= minTrialAnswers && float64(t.useless) > 2*t.measure.n {
		k.endTrial(total, true, now)
	}
}

// applyTrial makes the trial's number of slots the best one. The next trial continues in the same direction.
func (k *knee) applyTrial(total int, certain bool) {
	t, h := &k.trial, &k.baseline
	if k.best = float64(t.limit); t.limit >= total {
		k.best = 0
	}
	k.paces.change(t.measure.average())
	*h = baseline{measure: t.measure, recent: 1}
	h.measure.normalize()
	if t.limit = 0; certain {
		t.step = min(t.step+1, len(steps)-1)
	}
}

// endTrial ends a trial that found nothing better. The next trial comes later and goes in the other direction.
func (k *knee) endTrial(total int, certain bool, now time.Time) {
	t, h := &k.trial, &k.baseline
	calmest := maxCalm
	if k.bestLimit(total) >= total {
		calmest = maxCalmAtTotal
	}
	t.up, t.step = !t.up, max(0, t.step-1)
	if certain {
		if h.calm++; h.calm > maxCalm {
			t.up = h.calm%4 != 0
		}
	}
	h.pause = max(2*minTrialAnswers, t.cost) << min(h.calm, calmest)
	k.resumeLimit(max(t.limit, k.bestLimit(total)), now)
}

// resumeLimit returns to the best number of slots. At most under requests were started with the former number of slots.
// Their answers are ignored.
func (k *knee) resumeLimit(under int, now time.Time) {
	k.trial.limit, k.baseline.count = 0, 0
	k.since, k.skip = now, under
}
