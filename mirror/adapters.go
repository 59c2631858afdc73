// Adapters: the functions that connect the mirror to hints (mirror/hints), shadow reads (mirror/shadow), audio and
// images (mirror/media), and the shared cache of generic sources (mirror/shared).

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

// addHint queues a fetch of a record. After the fetch has succeeded, it calls end, which is nil if nobody waits for that.
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

// fetchHinted fetches the record that a hint names. If the record is new, the newest pages of the polled lists of its
// kind are fetched soon.
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

// wakePolls makes the polled lists of a kind fetch their newest page soon.
func (k *kind) wakePolls() {
	for _, p := range k.source.polls() {
		if p.kind == k {
			p.list.AddHint()
		}
	}
}

// compareSample queues the page for a comparison with stored records, if a reader caused the fetch. The records on
// the page must have been saved. A response with status 400 has no records and is not compared.
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

// sampleFromRecords returns the page that stored records give for a sample's request. It returns nil if records
// cannot answer the request.
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
		return nil // the content of a page that is named only by a number changes with every new record
	}
	p.includeAbove = true // all records that the page shows are stored by now, so even the newest belong to the list
	x, err := co.composeList(p)
	if err != nil || x.outdated || k.writes.Changes() != s.Saved {
		return nil
	}
	return x.page
}

// maxRechecked is the maximum number of records fetched again for one sample.
const maxRechecked = 20

// recheck fetches the records in gone again, because upstream's page does not show them. It also has the crawler read
// their time range again.
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
		to = 0 // a record without a clock value has no time range, so everything is read again
	}
	m.composer.coverage.Recheck(source, kind, from, to)
}

// check fetches from upstream the list that has just been answered from records, for a comparison. It does so for at
// most one in a hundred answers of a list, and no more often than the settings allow for the source.
func (rd *reader) check(l *shadow.List, r *reading) {
	l.CountAnswer()
	if !r.request.OnlyIfCached && l.TakeCheck(r.now) {
		rd.flights.startBackground(r.request.Target, r.source, r.kind, fetchOptions{reason: request.ReasonCheck})
	}
}

// Shadow returns the comparisons of lists composed from records with upstream's lists.
func (m *Mirror) Shadow() *shadow.Reads { return m.shadow }

// isPruned reports whether upstream has dropped the record that an audio or image belongs to, because the record has expired.
func (fl *filler) isPruned(ctx context.Context, t *spec.Target) bool {
	s := fl.env.sources[t.Key.Source]
	rec := fl.holdings.knownRecord(ctx, s, t.Kind, t.ID)
	return rec != nil && fl.isExpired(ctx, s.kindOf(t), rec)
}

// Open returns the audio or image that a media path names (media.Cache.Open). The caller must close it. It returns
// ErrClosed after Run has ended.
func (m *Mirror) Open(ctx context.Context, a request.MediaRequest) (*request.MediaResponse, error) {
	if m.env.closed.Load() {
		return nil, fmt.Errorf("mirror: %w", understudy.ErrClosed)
	}
	if a.Target != nil && a.Target.Media != nil && m.env.sources[a.Target.Key.Source] != nil {
		noteReadTime(&m.env.sources[a.Target.Key.Source].lastRead, m.env.monotonicTime(m.env.now()))
	}
	return m.media.Open(ctx, a)
}

// sharedPages are the stored pages of a generic source, for the shared cache.
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
		sp.entries.hot.Drop(e) // the page in the store may have been replaced or deleted while it was read
	}
	return p, nil
}

// cachePage puts a page into memory. It returns nil if the page does not fit.
func (sp sharedPages) cachePage(p *understudy.Page) *cache.Entry {
	e := sp.entries.hot.Pack(sp.env.sources[p.Key.Source].kinds[""].pages, p)
	if e == nil || !sp.entries.hot.Put(e, nil) {
		sp.entries.hot.Forget(sp.entries.hot.Hash(p.Key))
		return nil
	}
	return e
}

// Keep stores a page. If the store fails, Keep also removes the page from memory, because a later write could not
// invalidate it after a restart.
func (sp sharedPages) Keep(p *understudy.Page) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(sp.env.ctx), maxSaveTime)
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
		return errors.New("the store cannot delete records")
	}
	_, err := store.ForgetPage(ctx, key)
	sp.env.sources[key.Source].kinds[""].writes.AddChange()
	sp.entries.hot.Forget(sp.entries.hot.Hash(key))
	return err
}

// Exchange answers a request to a generic source (shared.Cache.Answer). The caller must close the response. It
// returns ErrClosed after Run has ended.
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

// IsReadyFor reports whether a request with these headers to a generic source can be answered from memory.
func (m *Mirror) IsReadyFor(t *spec.Target, h http.Header) bool {
	s := m.env.sources[t.Key.Source]
	return s != nil && s.config.Spec.IsGeneric() && !m.env.closed.Load() && m.shared.IsReady(t, h)
}
