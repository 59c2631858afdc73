// Sample: a list upstream has just answered is made from records, too, and the
// two are compared.
//
//	upstream first:  a page that a reader caused was saved ----.
//	records first:   one answer in a hundred, asked behind it -+--> compared
//
// The records of the page are saved before, so that what came or changed since
// they were last walked is no difference; what came or changed since the page
// was saved makes the sample void.

package mirror

import (
	"context"
	"math"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"time"

	"understudy"
	"understudy/request"
	"understudy/spec"
)

const (
	maxSamples = 64 // waiting to be compared; more are left out
	checkShare = 100
	keepEvery  = 5 * time.Second // between two writings of the scores
	maxDoubted = 20              // records looked at again for one sample
)

// sample is a page that upstream gave.
type sample struct {
	target *spec.Target
	source *source
	kind   *kind
	page   *understudy.Page
	saved  int64 // the kind's counter of changes then
}

// sampled has a flight's page compared, if a reader caused it. A refusal is not
// saved, and rests on no record.
func (m *Mirror) sampled(f *flight) {
	if f.err != nil || m.coverage == nil || f.recordsOnly || f.filled || f.source.listMode(f.target) == nil || f.page.NotStored != "" {
		return
	}
	m.flights.Lock()
	read := f.reason == request.Waiting || f.reason == request.Refresh || f.reason == request.Check || f.promoted
	m.flights.Unlock()
	saved := f.saved
	if f.page.Status == 400 {
		saved = f.kind.changes.Load() + 1
	}
	if !read || saved == 0 || f.page.Status != 200 && f.page.Status != 400 {
		return
	}
	select {
	case m.samples <- sample{f.target, f.source, f.kind, f.page, saved - 1}:
	default:
	}
}

// sampler compares, and keeps the scores.
func (m *Mirror) sampler() {
	ticker := time.NewTicker(keepEvery)
	defer ticker.Stop()
	for {
		select {
		case <-m.ctx.Done():
			ctx, cancel := context.WithTimeout(context.WithoutCancel(m.ctx), saveTime)
			defer cancel()
			m.keepAgreement(ctx)
			return
		case s := <-m.samples:
			m.measure(s)
		case <-ticker.C:
			m.keepAgreement(m.ctx)
		}
	}
}

// measure compares one sample and counts it. A panic is contained: the sample is
// lost and nothing else.
func (m *Mirror) measure(s sample) {
	defer func() {
		if p := recover(); p != nil {
			m.log.Error("mirror: panic", "key", s.target.Key.String(), "panic", p, "stack", string(debug.Stack()))
		}
	}()
	l := s.source.listMode(s.target)
	told := m.recordAgreement(s)
	if told == nil {
		return
	}
	d, gone := compare(s.page, told, s.target.List.Key)
	if d.Field != "" {
		d.At = m.now()
		m.recheck(s, told, gone)
	}
	if !l.count(d, s.page.Status == 200) {
		return
	}
	if l.recordsFirst() {
		m.log.Info("mirror: a list is answered from records first from now on", "kind", l.kind.name, "list", l.list.Path, "samples", Enough)
	} else {
		m.log.Warn("mirror: a list made from records differs; it is answered from upstream first again", "kind", l.kind.name, "list", l.list.Path,
			"field", d.Field, "where", d.Where)
	}
	m.keepAgreement(m.ctx)
}

// told is what records say to a sample's request; nil when nobody knows: it is
// not covered, or something was saved since.
func (m *Mirror) recordAgreement(s sample) *understudy.Page {
	if s.kind.changes.Load() != s.saved {
		return nil
	}
	p, err := m.planCompose(m.ctx, s.source, s.kind, s.target, nil)
	if refusal := refusalOf(s.target, err, s.page.At); refusal != nil {
		return refusal
	}
	if err != nil || p.outdated {
		return nil
	}
	if id, _ := p.list.Start(); id == "" && !s.target.First {
		return nil // a page by its number alone moves with everything that comes
	}
	p.above = true // all that the page shows is held now
	x, err := m.composeList(p)
	if err != nil || x.outdated || s.kind.changes.Load() != s.saved {
		return nil
	}
	return x.page
}

// Rechecker is what a Coverage can do besides: look again at once.
type Rechecker interface {
	// Doubt says that records with a clock in [from, to), 0 = open, may not be
	// what was walked. It returns at once.
	Doubt(source, kind string, from, to int64)
}

// doubt has records looked at again that upstream does not show, and the stretch
// they lie in walked.
func (m *Mirror) recheck(s sample, told *understudy.Page, gone []string) {
	for _, id := range gone[:min(len(gone), maxDoubted)] {
		m.Hint(s.source.Name, s.kind.name, id)
	}
	d, ok := m.coverage.(Rechecker)
	if !ok || len(gone) == 0 {
		return
	}
	from, to := int64(math.MaxInt64), int64(0)
	for _, row := range told.Rows {
		if slices.Contains(gone, row.ID) {
			from, to = min(from, row.Clock), max(to, row.Clock+1)
		}
	}
	if from == 0 {
		to = 0 // one without a clock
	}
	d.Doubt(s.source.Name, s.kind.name, from, to)
}

// check now and then asks upstream, too, what was just answered from records:
// of a hundred answers of a list one at most, and of a source so many a minute
// as the settings say.
func (m *Mirror) check(l *listMode, r *reading) {
	n := l.composed.Add(1)
	if r.OnlyIfCached || !l.recordsFirst() || l.checked.Load() >= n/checkShare || rand.IntN(checkShare/10) != 0 {
		return
	}
	every := time.Duration(r.source.checks.every.Load())
	if !m.throttle(&r.source.checks.next, r.now, every, every) {
		return
	}
	l.checked.Add(1)
	m.startBackground(r.Target, r.source, r.kind, request.Check)
}

// wroteSince reports whether a write touched a kind and what it changed has not
// been seen yet: the newest page is older, or a record it named.
func (co *composer) wroteSince(ctx context.Context, k *kind, c *request.Coverage) bool {
	w := &k.recentWrites
	if co.recallWrites(ctx, k) != nil {
		return true // nobody knows
	}
	w.mu.Lock()
	at, many := w.at, w.many
	ids := make([]string, 0, len(w.ids))
	for id := range w.ids {
		ids = append(ids, id)
	}
	w.mu.Unlock()
	seen := c.Newest
	if seen.IsZero() || many {
		seen = c.At
	}
	if at.IsZero() {
		return false
	}
	if !seen.After(at) {
		return true
	}
	for _, id := range ids {
		rec, err := co.lookUp(ctx, k.source, k.source.Spec.Kind(k.name), id)
		if err != nil || rec != nil && (rec.Invalid || k.unflushed(id)) {
			return true // or nobody knows: who asked is gone, or it cannot be read
		}
		w.mu.Lock()
		if w.at.Equal(at) { // not touched again meanwhile
			delete(w.ids, id)
		}
		w.mu.Unlock()
	}
	return false
}
