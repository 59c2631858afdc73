// Hints: a caller says that a record changed, and it is fetched once more.
//
//	hint --> of nothing known ---> fetched
//	     --> of one being fetched, fetched once more, a second after the last
//	         or just so            began, however many hints came meanwhile
//	     --> of one that waits --> nothing: what comes is new enough

package mirror

import (
	"strings"
	"sync"
	"time"

	"understudy"
	"understudy/request"
	"understudy/spec"
)

const (
	hintEvery = time.Second           // between two fetches of one record
	hintAfter = 50 * time.Millisecond // so that a burst is one fetch
	hinters   = 4                     // fetches for hints at once
)

// hints are the records that were lately hinted at.
type hints struct {
	*filler
	sync.Mutex
	known   map[hinted]*hint
	refused int64
	running chan struct{} // a place for each fetch
}

// hinted names a record.
type hinted struct{ source, kind, id string }

// hint is one record's fetch: waiting for its turn, under way, or over for less
// than a second.
type hint struct {
	kind   *kind
	target *spec.Target // nil: the kind has no instance
	owed   bool         // a fetch that fails is tried again
	ends   []func()     // of the intents of writes that ask for it
	begun  bool
	again  bool // a hint came after it began
}

// Hint says that a record may have changed upstream. It is fetched once more, in
// the background class, whether or not it was ever seen, and when it turns
// out to be new the newest page of its polled list is too. Of many hints for one
// record at most one a second causes a fetch; one that comes while it is fetched
// causes another after it. Hints are candidates: while Limits.Hints records are
// waiting others are forgotten, and a fetch that fails is not tried again.
// Hint returns at once. An unknown source, kind or id that cannot be one is
// nothing to look at.
func (m *Mirror) Hint(source, kind, id string) {
	s := m.sources[source]
	if s == nil || kind == "" || s.kinds[kind] == nil || id == "" {
		return
	}
	m.hints.hint(s.kinds[kind], id, nil)
}

// hint has a record fetched. end is nil for a candidate.
func (hs *hints) hint(k *kind, id string, end func()) {
	sp, owed := k.source.Spec.Kind(k.name), end != nil
	target, ok := k.source.instanceOf(sp, id)
	if len(sp.ID) == 0 || !ok {
		if owed {
			end()
		}
		return
	}
	name := hinted{k.source.Name, k.name, id}
	hs.Lock()
	defer hs.Unlock()
	switch h := hs.known[name]; {
	case h != nil:
		h.again, h.owed = h.again || h.begun, h.owed || owed
		if owed {
			h.ends = append(h.ends, end)
		}
	case !owed && len(hs.known) >= hs.limits.Load().Hints:
		hs.refused++
	default:
		h = &hint{kind: k, target: target, owed: owed}
		if owed {
			h.ends = append(h.ends, end)
		}
		// Goroutines are added under the flights' lock while the mirror is open.
		hs.flights.Lock()
		defer hs.flights.Unlock()
		if hs.closed.Load() {
			return
		}
		hs.known[name] = h
		hs.work.Go(func() { hs.look(name, h) })
	}
}

// instanceOf is where a record is asked for; nil when the kind has no instance
// that the id and the source's settings lead to. It reports false for an id that
// is none.
func (s *source) instanceOf(k *spec.Kind, id string) (*spec.Target, bool) {
	parts := strings.Split(id, spec.IDSeparator)
	if len(parts) != len(k.ID) || len(id) > spec.MaxURI/2 {
		return nil, false
	}
	for _, in := range k.Instances {
		path, ok := s.InstancePath(in, parts)
		if !ok {
			continue
		}
		t, err := s.Spec.Target(s.Name, path, "")
		if err != nil || t.Instance != in || t.ID != id {
			return nil, false // it reads as something else
		}
		return t, true
	}
	return nil, true
}

// look fetches one record for as long as hints come, and an owed one until
// upstream has answered.
func (hs *hints) look(name hinted, h *hint) {
	wait, fails := hintAfter, 0
	for {
		if hs.sleep(wait) != nil {
			return
		}
		select {
		case hs.running <- struct{}{}:
		case <-hs.ctx.Done():
			return
		}
		hs.Lock()
		h.begun, h.again = true, false
		hs.Unlock()
		began := hs.now()
		early, err := hs.lookOnce(h)
		<-hs.running
		if fails++; err == nil {
			fails = 0
		}
		if hs.sleep(remaining(hs.now(), began.Add(hintEvery), hintEvery)) != nil || !hs.lookAgain(name, h, early, err) {
			return
		}
		wait = 0
		if fails > 1 {
			wait = min(hintEvery<<min(fails-2, 10), maxRetry)
		}
	}
}

// sleep waits, or ends with the mirror.
func (v *env) sleep(d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-v.ctx.Done():
	}
	return v.ctx.Err()
}

// lookAgain reports whether a record is to be fetched again; else its hints are
// forgotten.
func (hs *hints) lookAgain(name hinted, h *hint, early bool, err error) bool {
	hs.Lock()
	defer hs.Unlock()
	if h.again || early || h.owed && err != nil {
		h.begun = false
		return true
	}
	delete(hs.known, name)
	for _, end := range h.ends {
		end()
	}
	return false
}

// lookOnce fetches a record. It reports whether it shared a fetch that had begun
// before the hint, which may have come too early.
func (hs *hints) lookOnce(h *hint) (early bool, err error) {
	if h.target == nil {
		h.kind.hinted()
		return false, nil
	}
	fill := request.Fill{Target: h.target, Reason: request.Refresh, RecordsOnly: true}
	landed, joined, err := hs.fillOnce(hs.ctx, &fill, h.kind.source, h.kind)
	if err != nil {
		return joined, err
	}
	for _, c := range landed.Changes {
		if c.Type == understudy.Came {
			h.kind.hinted()
		}
	}
	return joined, nil
}

// hinted makes the polled lists of a kind be fetched soon.
func (k *kind) hinted() {
	for _, p := range k.source.polls() {
		if p.kind == k {
			p.Hint()
		}
	}
}
