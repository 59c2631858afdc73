// Knee: how many requests at once upstream serves best, by how long its answers take.

package throttle

import (
	"math"
	"time"
)

const (
	few      = 16   // answers: the fewest of a trial
	enough   = 320  // answers: the most
	sure     = 2.5  // standard errors that end a trial before
	needless = 0.7  // the part of a change of the number that answers wait for each other: from there on, fewer are better
	doubtful = 0.5  // the least part of a change of the number that the requests under way must have followed
	window   = 512  // answers whose mean is taken for the number in use
	soon     = 16   // answers in which it is noticed that they take another time; their moving mean is worth twice as many
	moved    = 1.25 // times as long, or as short, at least is another time
	strange  = 4    // standard errors, too
	seldom   = 8    // times what the last trial took are before the next one then: latency may go up and down by itself
	calm     = 2    // doublings of the pause between trials that change nothing
	calmFull = 5    // while as many as the settings allow are in use: there a trial costs most
)

// steps are how many times more or fewer are tried. A far step shows with fewer answers whether it is right.
var steps = [...]float64{1.5, 2, 4}

// knee finds how many requests at once upstream serves best. With fewer at once, fewer are answered in a second. With
// more, they only wait for each other, and each takes longer in the same measure (J. Little, A Proof for the Queuing
// Formula L = λW, 1961). What limits upstream to that number is its own matter: workers, connections to its database.
//
// Latency near its minimum means that there is room, as for TCP Vegas (L. Brakmo, L. Peterson, 1995) and its like for
// requests (Netflix, "Performance Under Load", 2018). But a minimum that was seen long ago is wrong when upstream itself
// has become slower. So another number is tried now and then, for as few answers as will do, and compared with the number
// in use right before it:
//
//	trial of | waited | means                                       | then
//	more     | 0      | as many more are answered in a second       | they are the number in use
//	more     | 1      | no more are answered: all waited longer     | the number stays
//	fewer    | 0      | fewer are answered in a second              | the number stays
//	fewer    | 1      | as many are answered, and sooner            | they are the number in use
//
// Waited is the change of latency over the change of requests under way, both by their logarithms. A latency counts in
// relation to what answers of its sort take with the number in use, and for four times that at most.
type knee struct {
	most  float64   // the number that was found; 0: as many as the settings allow
	since time.Time // the number last changed
	skip  int       // answers to later requests that are not counted: of those sent together, the quick ones come first
	paces paces
	home  home
	trial trial

	// The last number that was too many.
	over    int
	slower  float64 // times what answers take with the number in use
	refused bool    // upstream refused
}

// sight is what one answer shows.
type sight struct {
	ratio float64 // of its latency to what is usual for its sort
	used  float64 // requests under way when it came
}

// home is what answers show with the number in use.
type home struct {
	measure measure
	recent  float64 // mean of the ratio, of the last answers
	count   int     // answers since the last trial
	pause   int     // answers until the next one
	calm    int     // trials in a row that changed nothing for sure
}

// trial is of another number.
type trial struct {
	limit   int  // 0: there is none
	up      bool // it is more; without a trial, the next one's
	far     int  // which of steps it is
	vain    int  // answers that showed nothing
	cost    int  // answers
	measure measure
}

func newKnee() knee { return knee{trial: trial{far: len(steps) - 1}} }

func (k *knee) trying() bool { return k.trial.limit > 0 }

// found is the number in use, trials apart.
func (k *knee) found(total int) int {
	if k.most == 0 {
		return total
	}
	return min(total, max(1, int(k.most)))
}

// settled notes an answer with the number in use. When answers begin to take another time, the next trial is soon: of
// fewer where they take longer, of more where they do not take as long.
func (k *knee) settled(s sight, total int, now time.Time) {
	h, t := &k.home, &k.trial
	m := &h.measure
	if m.n == 0 {
		h.recent = s.ratio
	}
	h.recent += (s.ratio - h.recent) / soon
	m.add(s, 1-1.0/window)
	h.count++
	off := math.Abs(math.Log(h.recent / m.mean()))
	if m.n >= 2*soon && off > max(math.Log(moved), min(math.Ln2, strange*math.Sqrt(m.variance()*(1.0/(2*soon)+1/m.n)))) {
		t.up, t.far = h.recent < m.mean(), 1
		if off > math.Ln2 {
			t.far = 2
		}
		pause := h.pause
		if n := k.found(total); t.up && n < total || !t.up && n > 1 {
			pause = min(pause, seldom*t.cost)
		}
		k.paces.change(h.recent)
		*h = home{count: h.count, pause: pause, calm: h.calm}
		return
	}
	// So many that a trial of as many would show half of what is expected of it.
	expected := math.Log(steps[t.far]) / 2
	if least := max(2*few, min(8*m.variance()/(expected*expected), 0.7*enough)); h.count >= h.pause && m.n >= least {
		k.try(total, now)
	}
}

// try begins a trial.
func (k *knee) try(total int, now time.Time) {
	t, n := &k.trial, k.found(total)
	t.up = n < total && (t.up || n == 1)
	by := steps[t.far]
	if t.up {
		// Twice as many at most: too many are a burden for upstream.
		t.limit = int(math.Ceil(float64(n) * min(by, steps[1])))
		if float64(t.limit)*moved > float64(total) {
			t.limit = total
		}
		if k.refused && k.over > n {
			t.limit = min(t.limit, max(n+1, (n+k.over)/2))
		}
	} else {
		t.limit = max(1, int(float64(n)/by))
	}
	t.measure, t.vain, t.cost = measure{}, 0, t.limit
	k.since, k.skip = now, t.limit
}

// tried notes an answer of a trial, which may end it.
func (k *knee) tried(s sight, total int, now time.Time) {
	t, h := &k.trial, &k.home
	t.measure.add(s, 1)
	if t.cost++; t.measure.n < max(few, float64(t.limit)) {
		return
	}
	more := math.Log(t.measure.used / t.measure.n * h.measure.n / h.measure.used)
	if more/math.Log(float64(t.limit)/float64(k.found(total))) < doubtful {
		k.unchanged(total, true, now)
		return
	}
	slower := t.measure.mean() / h.measure.mean()
	waited := math.Log(slower) / more
	unsure := math.Sqrt(max(t.measure.variance(), h.measure.variance())*(1/t.measure.n+1/h.measure.n)) / math.Abs(more)
	margin := math.Abs(waited - needless)
	switch {
	case margin < sure*unsure && t.measure.n < enough:
	case t.up == (waited >= needless):
		if t.up {
			k.over, k.slower, k.refused = t.limit, slower, false
		}
		k.unchanged(total, margin > unsure, now)
	default:
		if !t.up {
			k.over, k.slower, k.refused = k.found(total), 1/slower, false
		}
		k.move(total, margin > unsure)
	}
}

// nothing notes an answer that shows nothing: there is not enough to do, or it is of no known sort. A trial that has many
// of them is over.
func (k *knee) nothing(total int, now time.Time) {
	t := &k.trial
	if !k.trying() {
		return
	}
	if t.vain++; t.vain >= few && float64(t.vain) > 2*t.measure.n {
		k.unchanged(total, true, now)
	}
}

// move makes the number of the trial the one in use. The next trial goes on in the same direction.
func (k *knee) move(total int, certain bool) {
	t, h := &k.trial, &k.home
	if k.most = float64(t.limit); t.limit >= total {
		k.most = 0
	}
	k.paces.change(t.measure.mean())
	*h = home{measure: t.measure, recent: 1}
	h.measure.scale()
	if t.limit = 0; certain {
		t.far = min(t.far+1, len(steps)-1)
	}
}

// unchanged ends a trial that shows nothing better. The next one is later and goes the other way.
func (k *knee) unchanged(total int, certain bool, now time.Time) {
	t, h := &k.trial, &k.home
	calmest := calm
	if k.found(total) >= total {
		calmest = calmFull
	}
	t.up, t.far = !t.up, max(0, t.far-1)
	if certain {
		if h.calm++; h.calm > calm {
			t.up = h.calm%4 != 0
		}
	}
	h.pause = max(2*few, t.cost) << min(h.calm, calmest)
	k.back(max(t.limit, k.found(total)), now)
}

// back goes on with the number in use. So many requests may be under way.
func (k *knee) back(under int, now time.Time) {
	k.trial.limit, k.home.count = 0, 0
	k.since, k.skip = now, under
}
