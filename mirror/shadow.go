// Shadow reads: which pages are compared with records, and what a difference
// causes (mirror/shadow).

package mirror

import (
	"context"
	"math"
	"slices"

	"understudy"
	"understudy/mirror/shadow"
	"understudy/request"
)

// shadowMirror is the mirror as its shadow reads need it.
type shadowMirror struct{ m *Mirror }

var _ shadow.Mirror = shadowMirror{}

// sampled has a flight's page compared, if a reader caused it. A refusal is not
// saved, and is made of no record.
func (sm shadowMirror) sampled(f *flight) {
	m := sm.m
	if f.err != nil || m.coverage == nil || f.recordsOnly || f.filled || f.source.lists.Of(f.target) == nil || f.page.NotStored != "" {
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
	m.shadow.Add(shadow.Sample{Target: f.target, Page: f.page, Saved: saved - 1})
}

// FromRecords is what records answer to a sample's request; nil when it is
// unknown.
func (sm shadowMirror) FromRecords(ctx context.Context, s shadow.Sample) *understudy.Page {
	m, src := sm.m, sm.m.sources[s.Target.Key.Source]
	k := src.of(s.Target)
	if k.changes.Load() != s.Saved {
		return nil
	}
	p, err := m.planCompose(ctx, src, k, s.Target, nil)
	if refusal := refusalOf(s.Target, err, s.Page.At); refusal != nil {
		return refusal
	}
	if err != nil || p.outdated {
		return nil
	}
	if id, _ := p.list.Start(); id == "" && !s.Target.First {
		return nil // a page by its number alone moves with everything that comes
	}
	p.above = true // all that the page shows is held now
	x, err := m.composeList(p)
	if err != nil || x.outdated || k.changes.Load() != s.Saved {
		return nil
	}
	return x.page
}

// maxRechecked bounds the records fetched again for one sample.
const maxRechecked = 20

// Recheck has records fetched again that upstream does not show, and the time
// they lie in walked.
func (sm shadowMirror) Recheck(s shadow.Sample, told *understudy.Page, gone []string) {
	m, source, kind := sm.m, s.Target.Key.Source, s.Target.Kind.Name
	for _, id := range gone[:min(len(gone), maxRechecked)] {
		m.Hint(source, kind, id)
	}
	if len(gone) == 0 {
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
	m.coverage.Recheck(source, kind, from, to)
}

// check now and then asks upstream, too, what was just answered from records:
// of a hundred answers of a list one at most, and of a source so many a minute
// as the settings say.
func (rd *reader) check(l *shadow.List, r *reading) {
	l.Answered()
	if !r.OnlyIfCached && l.CheckDue(r.now) {
		rd.startBackground(r.Target, r.source, r.kind, request.Check)
	}
}

// SetAnswers says what the lists of a source are answered from first
// (shadow.Reads.SetAnswers).
func (m *Mirror) SetAnswers(source string, by map[string]shadow.Answers) error {
	return m.shadow.SetAnswers(source, by)
}

// SetChecks says how many lists made from records may be asked upstream, too, a
// minute; 0 = 6. Error: an unknown source.
func (m *Mirror) SetChecks(source string, perMinute float64) error {
	return m.shadow.SetChecks(source, perMinute)
}

// Fidelity is how the lists of a source are answered (shadow.Reads.Fidelity).
func (m *Mirror) Fidelity(source string) []shadow.Fidelity { return m.shadow.Fidelity(source) }
