// This file compares how long answers take with how long answers of the same sort usually take.

package throttle

import "math"

// measure is the statistics of some answers.
type measure struct {
	n, sum, squares float64 // the number of answers, and the sum and the sum of squares of their ratios
	pairs, last     float64 // the sum of the products of each ratio with the previous one, and the last ratio
	used            float64 // the sum of the numbers of requests that were running
}

// add counts an answer. kept is the factor by which the older answers are weighted.
func (m *measure) add(s answerSample, kept float64) {
	if m.n == 0 {
		m.last = s.ratio
	}
	m.n, m.sum, m.squares = m.n*kept+1, m.sum*kept+s.ratio, m.squares*kept+s.ratio*s.ratio
	m.used, m.pairs, m.last = m.used*kept+s.used, m.pairs*kept+s.ratio*m.last, s.ratio
}

// normalize divides all ratios by their average, which becomes 1.
func (m *measure) normalize() {
	mean := m.average()
	m.sum, m.squares, m.pairs, m.last = m.n, m.squares/mean/mean, m.pairs/mean/mean, m.last/mean
}

// average returns the average ratio.
func (m *measure) average() float64 { return m.sum / m.n }

// variance returns the variance of the average ratio, relative to the square of the average. It must still be
// divided by n. Answers that waited in one queue take a similar time. As far as an answer resembles the one
// before it, all requests that ran together count as one.
func (m *measure) variance() float64 {
	square := m.average() * m.average()
	v := m.squares/m.n - square
	if v <= 0 {
		return 0
	}
	alike := min(1, max(0, (m.pairs/m.n-square)/v-1/math.Sqrt(m.n)))
	return v / square * (1 + alike*max(0, m.used/m.n-1))
}

const (
	maxRatio       = 4.0 // a larger ratio of an answer time to the usual time counts as this ratio
	maxSorts       = 256 // the maximum number of sorts with usual times of their own
	minSortAnswers = 4   // the minimum number of answers of a sort before its usual time counts
)

// paces are the usual times of the answers with the current number of slots, by sort.
type paces map[Sort]*pace

type pace struct {
	n       int
	seconds float64
}

// change multiplies all usual times.
func (p paces) change(times float64) {
	for _, u := range p {
		u.seconds *= times
	}
}

// ratio returns the time of an answer divided by the usual time of its sort. known is false if the answer has
// no time, if a request was lost in less than the usual time, or if little is known about its sort. follow
// means that the usual time learns from the answer; it is false during trials.
func (p *paces) ratio(o Observation, follow bool) (ratio float64, known bool) {
	if o.Took <= 0 {
		return 0, false
	}
	u := (*p)[o.Sort]
	if u == nil {
		if !follow || o.Lost {
			return 0, false
		}
		for other := range *p { // delete any sort, because its usual time is learned again
			if len(*p) < maxSorts {
				break
			}
			delete(*p, other)
		}
		if *p == nil {
			*p = paces{}
		}
		u = &pace{seconds: o.Took.Seconds()}
		(*p)[o.Sort] = u
	}
	ratio = min(maxRatio, o.Took.Seconds()/u.seconds)
	if o.Lost && ratio < 1 {
		return 0, false
	}
	if follow {
		u.n++
		u.seconds += (ratio - 1) * u.seconds / float64(min(u.n, meanWindow/4))
	}
	return ratio, u.n > minSortAnswers
}
