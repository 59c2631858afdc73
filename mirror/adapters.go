// Adapters: the mirror for its hints (mirror/hints), shadow reads (mirror/shadow), contents
// (mirror/media) and the shared cache of generic sources (mirror/shared).

package mirror

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"

	"understudy"
	"understudy/mirror/cache"
	"understudy/mirror/hints"
	"understudy/mirror/shadow"
	"understudy/request"
	"understudy/spec"
)

// Hint says that a record may have changed upstream. It is fetched once more, in
// the background class, whether or not it was ever seen, and when it turns
// out to be new the newest page of its polled list is too. Of many hints for one
// record at most one a second causes a fetch; one that comes while it is fetched
// causes another after it. Hints are candidates: while Limits.Hints records are
// waiting others are forgotten, and a fetch that fails is not tried again.
// Hint returns at once. An unknown source, kind or id that cannot be one is
// nothing to look at.
func (m *Mirror) Hint(source, kind, id string) {
	s := m.env.sources[source]
	if s == nil || kind == "" || s.kinds[kind] == nil || id == "" {
		return
	}
	m.hint(s.kinds[kind], id, nil)
}

// hint has a record fetched. end is nil for a candidate.
func (m *Mirror) hint(k *kind, id string, end func()) {
	sp := k.source.config.Spec.Kind(k.name)
	target, ok := k.source.instanceOf(sp, id)
	if len(sp.ID) == 0 || !ok {
		if end != nil {
			end()
		}
		return
	}
	m.hints.Add(hints.Record{Source: k.source.config.Name, Kind: k.name, ID: id, Target: target}, end)
}

// hinted fetches a record that was hinted at. When it is new, the newest page of its
// polled list is fetched too.
func (fl *filler) hinted(ctx context.Context, r *hints.Record) (early bool, err error) {
	k := fl.env.sources[r.Source].kinds[r.Kind]
	if r.Target == nil {
		k.hinted()
		return false, nil
	}
	fill := request.Fill{Target: r.Target, Reason: request.Refresh, RecordsOnly: true}
	landed, joined, err := fl.fillOnce(ctx, &fill, k.source, k)
	if err != nil {
		return joined, err
	}
	for _, c := range landed.Changes {
		if c.Type == understudy.Came {
			k.hinted()
		}
	}
	return joined, nil
}

// hinted makes the polled lists of a kind be fetched soon.
func (k *kind) hinted() {
	for _, p := range k.source.polls() {
		if p.kind == k {
			p.list.Hint()
		}
	}
}

// sampled has a flight's page compared, if a reader caused it. A refusal is not
// saved, and is made of no record.
func (m *Mirror) sampled(f *flight) {
	began := &f.origin
	if f.result.err != nil || m.composer.coverage == nil || began.recordsOnly || began.filled || began.source.lists.Of(began.target) == nil ||
		f.result.page.NotStored != "" {
		return
	}
	m.flights.Lock()
	read := f.origin.reason == request.Waiting || f.origin.reason == request.Refresh || f.origin.reason == request.Check || f.waiting.promoted
	m.flights.Unlock()
	saved := f.result.saved
	if f.result.page.Status == 400 {
		saved = f.origin.kind.writes.Changes() + 1
	}
	if !read || saved == 0 || f.result.page.Status != 200 && f.result.page.Status != 400 {
		return
	}
	m.shadow.Add(shadow.Sample{Target: f.origin.target, Page: f.result.page, Saved: saved - 1})
}

// sampleFromRecords is what records answer to a sample's request; nil when it is
// unknown.
func (co *composer) sampleFromRecords(ctx context.Context, s shadow.Sample) *understudy.Page {
	src := co.env.sources[s.Target.Key.Source]
	k := src.of(s.Target)
	if k.writes.Changes() != s.Saved {
		return nil
	}
	p, err := co.planCompose(ctx, src, k, s.Target, nil)
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
	x, err := co.composeList(p)
	if err != nil || x.outdated || k.writes.Changes() != s.Saved {
		return nil
	}
	return x.page
}

// maxRechecked bounds the records fetched again for one sample.
const maxRechecked = 20

// recheck has records fetched again that upstream does not show, and the time
// they lie in walked.
func (m *Mirror) recheck(s shadow.Sample, told *understudy.Page, gone []string) {
	source, kind := s.Target.Key.Source, s.Target.Kind.Name
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
	m.composer.coverage.Recheck(source, kind, from, to)
}

// check now and then asks upstream, too, what was just answered from records:
// of a hundred answers of a list one at most, and of a source so many a minute
// as the settings say.
func (rd *reader) check(l *shadow.List, r *reading) {
	l.Answered()
	if !r.request.OnlyIfCached && l.CheckDue(r.now) {
		rd.flights.startBackground(r.request.Target, r.source, r.kind, fetchOptions{reason: request.Check})
	}
}

// Shadow returns what compares lists made from records with upstream, and trusts them when they agree.
func (m *Mirror) Shadow() *shadow.Reads { return m.shadow }

// isPruned reports whether upstream no longer keeps the record of a content.
func (fl *filler) isPruned(ctx context.Context, t *spec.Target) bool {
	s := fl.env.sources[t.Key.Source]
	rec := fl.holdings.known(ctx, s, t.Kind, t.ID)
	return rec != nil && fl.forgotten(ctx, s.of(t), rec)
}

// Open is the content a media path names (media.Cache.Open). It must be closed.
// The error is ErrClosed after Run.
func (m *Mirror) Open(ctx context.Context, a request.MediaRequest) (*request.MediaResponse, error) {
	if m.env.closed.Load() {
		return nil, fmt.Errorf("mirror: %w", understudy.ErrClosed)
	}
	if a.Target != nil && a.Target.Media != nil && m.env.sources[a.Target.Key.Source] != nil {
		wasRead(&m.env.sources[a.Target.Key.Source].lastRead, m.env.monotonic(m.env.now()))
	}
	return m.media.Open(ctx, a)
}

// sharedPages are the pages without a kind, which the shared cache keeps.
type sharedPages struct {
	env     *env
	entries *entries
	writer  *writer
}

// Held is a page in memory.
func (sp sharedPages) Held(key understudy.Key) *understudy.Page {
	h, ok := sp.entries.unpacked(sp.entries.hot.Find(key), key, sp.env.sources[key.Source].kinds[""], sp.env.now())
	if !ok {
		return nil
	}
	return h.page
}

// Page is a page in memory or in the store.
func (sp sharedPages) Page(ctx context.Context, key understudy.Key) (*understudy.Page, error) {
	if p := sp.Held(key); p != nil {
		return p, nil
	}
	k := sp.env.sources[key.Source].kinds[""]
	before := k.writes.Changes()
	p, err := sp.env.store.Page(ctx, key)
	if err != nil {
		return nil, err
	}
	if e := sp.cachePage(p); e != nil && k.writes.Changes() != before {
		sp.entries.hot.Drop(e) // another may have come to the store, or this one have been forgotten
	}
	return p, nil
}

// cachePage puts a page into the hot tier; nil: it does not go there.
func (sp sharedPages) cachePage(p *understudy.Page) *cache.Entry {
	e := sp.entries.hot.Pack(sp.env.sources[p.Key.Source].kinds[""].pages, p)
	if e == nil || !sp.entries.hot.Put(e, nil) {
		sp.entries.hot.Forget(sp.entries.hot.Hash(p.Key))
		return nil
	}
	return e
}

// Keep stores a page. One that the store has not is not in memory either: what a restart
// forgets, a write before it could not make invalid.
func (sp sharedPages) Keep(p *understudy.Page) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(sp.env.ctx), saveTime)
	defer cancel()
	k := sp.env.sources[p.Key.Source].kinds[""]
	_, err := sp.writer.save(ctx, k, p)
	k.writes.AddChange()
	if err != nil {
		sp.entries.hot.Forget(sp.entries.hot.Hash(p.Key))
		return err
	}
	sp.cachePage(p)
	return nil
}

// Forget forgets a page. What a reader took from the store before goes last.
func (sp sharedPages) Forget(ctx context.Context, key understudy.Key) error {
	store, ok := sp.env.store.(Forgetter)
	if !ok {
		return errors.New("the store cannot forget")
	}
	_, err := store.ForgetPage(ctx, key)
	sp.env.sources[key.Source].kinds[""].writes.AddChange()
	sp.entries.hot.Forget(sp.entries.hot.Hash(key))
	return err
}

// Exchange answers a request to a generic source (shared.Cache.Do). The answer must be
// closed. The error is ErrClosed after Run.
func (m *Mirror) Exchange(ctx context.Context, x request.Exchange) (*request.Exchanged, error) {
	s := m.env.sources[x.Target.Key.Source]
	switch {
	case m.env.closed.Load():
		return nil, fmt.Errorf("mirror: %w", understudy.ErrClosed)
	case s == nil || !s.config.Spec.Generic():
		return nil, fmt.Errorf("mirror: %w: no such generic source", understudy.ErrInvalid)
	}
	wasRead(&s.lastRead, m.env.monotonic(m.env.now()))
	a, err := m.shared.Do(ctx, x)
	s.counts.exchanged(&x, a, err)
	return a, err
}

// ReadyFor is Ready for a request to a generic source with some header.
func (m *Mirror) ReadyFor(t *spec.Target, h http.Header) bool {
	s := m.env.sources[t.Key.Source]
	return s != nil && s.config.Spec.Generic() && !m.env.closed.Load() && m.shared.Ready(t, h)
}
