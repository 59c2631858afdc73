// Pace: how long answers take, like compared with like.

package throttle

import "math"

// measure is of some answers.
type measure struct {
	n, sum, squares float64 // of ratios
	pairs, last     float64 // sum of the products of each with the one before
	used            float64 // sum
}

// add counts an answer, and so much of those before.
func (m *measure) add(s sight, kept float64) {
	if m.n == 0 {
		m.last = s.ratio
	}
	m.n, m.sum, m.squares = m.n*kept+1, m.sum*kept+s.ratio, m.squares*kept+s.ratio*s.ratio
	m.used, m.pairs, m.last = m.used*kept+s.used, m.pairs*kept+s.ratio*m.last, s.ratio
}

// scale makes the mean one.
func (m *measure) scale() {
	mean := m.mean()
	m.sum, m.squares, m.pairs, m.last = m.n, m.squares/mean/mean, m.pairs/mean/mean, m.last/mean
}

func (m *measure) mean() float64 { return m.sum / m.n }

// variance, over n, is that of the mean in relation to its square. Requests that waited in one queue took alike: as far
// as answers are like the one before, as many as are under way together count as one.
func (m *measure) variance() float64 {
	square := m.mean() * m.mean()
	v := m.squares/m.n - square
	if v <= 0 {
		return 0
	}
	alike := min(1, max(0, (m.pairs/m.n-square)/v-1/math.Sqrt(m.n)))
	return v / square * (1 + alike*max(0, m.used/m.n-1))
}

const (
	outlier    = 4.0 // times the usual: for more than that, no answer counts
	mostSorts  = 256 // that are told apart
	introduced = 4   // answers of a sort before it counts
)

// paces are what is usual: how long an answer of each sort takes with the number in use.
type paces map[Sort]*pace

type pace struct {
	n       int
	seconds float64
}

// change makes all of them so many times what they were.
func (p paces) change(times float64) {
	for _, u := range p {
		u.seconds *= times
	}
}

// ratio is how many times the usual an answer took. known is false for one without a time, for a request that was lost
// sooner than that, and while little is known of its sort. Only while no other number is tried, the usual follows.
func (p *paces) ratio(o Observation, follow bool) (ratio float64, known bool) {
	if o.Took <= 0 {
		return 0, false
	}
	u := (*p)[o.Sort]
	if u == nil {
		if !follow || o.Lost {
			return 0, false
		}
		for other := range *p { // any of them: it is learned again
			if len(*p) < mostSorts {
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
	ratio = min(outlier, o.Took.Seconds()/u.seconds)
	if o.Lost && ratio < 1 {
		return 0, false
	}
	if follow {
		u.n++
		u.seconds += (ratio - 1) * u.seconds / float64(min(u.n, window/4))
	}
	return ratio, u.n > introduced
}
