// Adapters: the methods by which hints (mirror/hints), shadow reads (mirror/shadow), contents (mirror/media)
// and the shared cache of generic sources (mirror/shared) use the mirror.

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

// AddHint notes that a record may have changed upstream and returns at once. The record is fetched in the
// background, also if it was never seen. If it turns out to be new, the newest page of its polled list is
// fetched too.
//
// Many hints for one record cause at most one fetch a second. A hint during a fetch causes another fetch
// afterwards. If Limits.Hints records are waiting, further hints are dropped. A failed fetch is not tried
// again. An unknown source, an unknown kind or an impossible id is ignored.
func (m *Mirror) AddHint(source, kind, id string) {
	s := m.env.sources[source]
	if s == nil || kind == "" || s.kinds[kind] == nil || id == "" {
		return
	}
	m.addHint(s.kinds[kind], id, nil)
}

// addHint queues a fetch of a record. end is called when the record was fetched; it is nil for a plain hint.
func (m *Mirror) addHint(k *kind, id string, end func()) {
	sp := k.source.config.Spec.Kind(k.name)
	target, ok := k.source.instanceTarget(sp, id)
	if len(sp.ID) == 0 || !ok {
		if end != nil {
			end()
		}
		return
	}
	m.hints.Add(hints.Record{Source: k.source.config.Name, Kind: k.name, ID: id, Target: target}, end)
}

// fetchHinted fetches a record that was hinted at. If the record is new, the polled lists of its kind are
// fetched soon.
func (fl *filler) fetchHinted(ctx context.Context, r *hints.Record) (early bool, err error) {
	k := fl.env.sources[r.Source].kinds[r.Kind]
	if r.Target == nil {
		k.wakePolls()
		return false, nil
	}
	fill := request.Fill{Target: r.Target, Reason: request.ReasonRefresh, RecordsOnly: true}
	landed, joined, err := fl.fillOnce(ctx, &fill, k.source, k)
	if err != nil {
		return joined, err
	}
	for _, c := range landed.Changes {
		if c.Type == understudy.Appeared {
			k.wakePolls()
		}
	}
	return joined, nil
}

// wakePolls makes the polled lists of a kind due soon.
func (k *kind) wakePolls() {
	for _, p := range k.source.polls() {
		if p.kind == k {
			p.list.AddHint()
		}
	}
}

// compareSample queues the page for a shadow comparison if a reader caused the fetch. A page of records must
// have been saved; a 400 response shows no records.
func (m *Mirror) compareSample(f *flight) {
	began := &f.origin
	if f.result.err != nil || m.composer.coverage == nil ||
		began.recordsOnly || began.isFill || began.source.lists.Find(began.target) == nil ||
		f.result.page.NotStored != "" {
		return
	}
	m.flights.Lock()
	read := f.origin.reason == request.ReasonWaiting || f.origin.reason == request.ReasonRefresh ||
		f.origin.reason == request.ReasonCheck || f.waiting.promoted
	m.flights.Unlock()
	saved := f.result.changesAfterSave
	if f.result.page.Status == 400 {
		saved = f.origin.kind.writes.Changes() + 1
	}
	if !read || saved == 0 || f.result.page.Status != 200 && f.result.page.Status != 400 {
		return
	}
	m.shadow.Add(shadow.Sample{Target: f.origin.target, Page: f.result.page, Saved: saved - 1})
}

// sampleFromRecords returns what records answer to a sample's request, or nil if records cannot answer it.
func (co *composer) sampleFromRecords(ctx context.Context, s shadow.Sample) *understudy.Page {
	src := co.env.sources[s.Target.Key.Source]
	k := src.kindOf(s.Target)
	if k.writes.Changes() != s.Saved {
		return nil
	}
	p, err := co.planCompose(ctx, src, k, s.Target, nil)
	if refusal := refusalPage(s.Target, err, s.Page.At); refusal != nil {
		return refusal
	}
	if err != nil || p.outdated {
		return nil
	}
	if id, _ := p.list.Start(); id == "" && !s.Target.First {
		return nil // a page that is named only by its number moves with every new record
	}
	p.includeAbove = true // all records that the page shows are stored now
	x, err := co.composeList(p)
	if err != nil || x.outdated || k.writes.Changes() != s.Saved {
		return nil
	}
	return x.page
}

// maxRechecked is the maximum number of records fetched again for one sample.
const maxRechecked = 20

// recheck fetches again the records that upstream no longer shows, and has the crawler walk their time range
// again.
func (m *Mirror) recheck(s shadow.Sample, composed *understudy.Page, gone []string) {
	source, kind := s.Target.Key.Source, s.Target.Kind.Name
	for _, id := range gone[:min(len(gone), maxRechecked)] {
		m.AddHint(source, kind, id)
	}
	if len(gone) == 0 {
		return
	}
	from, to := int64(math.MaxInt64), int64(0)
	for _, row := range composed.Rows {
		if slices.Contains(gone, row.ID) {
			from, to = min(from, row.Clock), max(to, row.Clock+1)
		}
	}
	if from == 0 {
		to = 0 // one of the records has no clock
	}
	m.composer.coverage.Recheck(source, kind, from, to)
}

// check now and then fetches from upstream what was just answered from records. It does so for at most one in
// a hundred answers of a list. The settings limit the checks of a source per minute.
func (rd *reader) check(l *shadow.List, r *reading) {
	l.CountAnswer()
	if !r.request.OnlyIfCached && l.TakeCheck(r.now) {
		rd.flights.startBackground(r.request.Target, r.source, r.kind, fetchOptions{reason: request.ReasonCheck})
	}
}

// Shadow returns the shadow reads, which compare lists made from records with upstream.
func (m *Mirror) Shadow() *shadow.Reads { return m.shadow }

// isPruned reports whether upstream no longer keeps the record of a content because the record has expired.
func (fl *filler) isPruned(ctx context.Context, t *spec.Target) bool {
	s := fl.env.sources[t.Key.Source]
	rec := fl.holdings.knownRecord(ctx, s, t.Kind, t.ID)
	return rec != nil && fl.isExpired(ctx, s.kindOf(t), rec)
}

// Open returns the content that a media path names (media.Cache.Open). The caller must close it. After Run it
// returns ErrClosed.
func (m *Mirror) Open(ctx context.Context, a request.MediaRequest) (*request.MediaResponse, error) {
	if m.env.closed.Load() {
		return nil, fmt.Errorf("mirror: %w", understudy.ErrClosed)
	}
	if a.Target != nil && a.Target.Media != nil && m.env.sources[a.Target.Key.Source] != nil {
		noteReadTime(&m.env.sources[a.Target.Key.Source].lastRead, m.env.monotonicTime(m.env.now()))
	}
	return m.media.Open(ctx, a)
}

// sharedPages gives the shared cache access to the pages without a kind.
type sharedPages struct {
	env     *env
	entries *entries
	writer  *writer
}

// Find returns a page from memory, or nil.
func (sp sharedPages) Find(key understudy.Key) *understudy.Page {
	h, ok := sp.entries.unpackEntry(sp.entries.hot.Find(key), key, sp.env.sources[key.Source].kinds[""], sp.env.now())
	if !ok {
		return nil
	}
	return h.page
}

// Load returns a page from memory or from the store.
func (sp sharedPages) Load(ctx context.Context, key understudy.Key) (*understudy.Page, error) {
	if p := sp.Find(key); p != nil {
		return p, nil
	}
	k := sp.env.sources[key.Source].kinds[""]
	before := k.writes.Changes()
	p, err := sp.env.store.ReadPage(ctx, key)
	if err != nil {
		return nil, err
	}
	if e := sp.cachePage(p); e != nil && k.writes.Changes() != before {
		sp.entries.hot.Drop(e) // another page may have been stored meanwhile, or this page may have been deleted
	}
	return p, nil
}

// cachePage puts a page into the hot tier. It returns nil if the hot tier does not accept the page.
func (sp sharedPages) cachePage(p *understudy.Page) *cache.Entry {
	e := sp.entries.hot.Pack(sp.env.sources[p.Key.Source].kinds[""].pages, p)
	if e == nil || !sp.entries.hot.Put(e, nil) {
		sp.entries.hot.Forget(sp.entries.hot.Hash(p.Key))
		return nil
	}
	return e
}

// Keep stores a page. If the store fails, the page is also dropped from memory: after a restart, a write
// could no longer invalidate it.
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

// Forget deletes a page from the store and then from memory, so that no reader puts it back.
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

// Exchange answers a request to a generic source (shared.Cache.Do). The caller must close the answer. After
// Run it returns ErrClosed.
func (m *Mirror) Exchange(ctx context.Context, x request.Exchange) (*request.ExchangeResponse, error) {
	s := m.env.sources[x.Target.Key.Source]
	switch {
	case m.env.closed.Load():
		return nil, fmt.Errorf("mirror: %w", understudy.ErrClosed)
	case s == nil || !s.config.Spec.IsGeneric():
		return nil, fmt.Errorf("mirror: %w: no such generic source", understudy.ErrInvalid)
	}
	noteReadTime(&s.lastRead, m.env.monotonicTime(m.env.now()))
	a, err := m.shared.Answer(ctx, x)
	s.counts.countExchange(&x, a, err)
	return a, err
}

// IsReadyFor reports whether a request to a generic source with these headers can be answered from memory.
func (m *Mirror) IsReadyFor(t *spec.Target, h http.Header) bool {
	s := m.env.sources[t.Key.Source]
	return s != nil && s.config.Spec.IsGeneric() && !m.env.closed.Load() && m.shared.IsReady(t, h)
}
