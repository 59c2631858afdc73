// Writes: a change sent to upstream once, and what it invalidates.

package mirror

import (
	"context"
	"errors"
	"fmt"
	"time"

	"understudy"
	"understudy/mirror/cache"
	"understudy/mirror/compose"
	"understudy/mirror/writes"
	"understudy/request"
	"understudy/spec"
)

// invalidator invalidates or deletes what writes and purges concern.
type invalidator struct {
	env      *env
	entries  *entries
	flights  *flights
	holdings *holdings
	writer   *writer
	// invalidateContents drops the contents that a write may have changed.
	invalidateContents func(*kind, request.Write)
}

// touchTime is the maximum time for recording in the store what a write touched. The work goes on after the
// caller has left.
const touchTime = 10 * time.Second

// Write sends a write to upstream once. When it returns, nothing that the write may have changed is answered
// from the mirror, and no earlier fetch may be stored. This concerns all lists of the kind and, for an
// instance path, the record. The body of a 200 or 201 is saved as a version, and the next read of the record
// still waits for upstream. A 204 to a DELETE deletes the record.
//
// A definite refusal (a 4xx other than 404, 408, 409 and 410) and a write that was never sent change nothing
// and invalidate nothing. Everything else invalidates, also an unknown outcome.
//
// Errors: those of Upstream.Write, and ErrClosed.
func (m *Mirror) Write(ctx context.Context, w request.Write) (*request.Response, error) {
	if m.env.closed.Load() {
		return nil, fmt.Errorf("mirror: %w", understudy.ErrClosed)
	}
	if w.Target == nil || m.env.sources[w.Target.Key.Source] == nil {
		return nil, fmt.Errorf("mirror: %w: no such source", understudy.ErrInvalid)
	}
	s := m.env.sources[w.Target.Key.Source]
	k := s.kindOf(w.Target)
	if k == nil {
		return nil, fmt.Errorf("mirror: %w: kind %s is not of source %s", understudy.ErrInvalid, w.Target.Kind.Name, s.config.Name)
	}
	if k.writes.IsFull() {
		return nil, fmt.Errorf("mirror: write %s: %w", w.Target.Key, &understudy.UpstreamError{Why: understudy.FailBusy, RetryAfter: busyRetry})
	}
	if w.ReadOnly {
		p, err := s.upstream.Write(ctx, w)
		if err != nil {
			return nil, fmt.Errorf("mirror: %s: %w", w.Target.Key, err)
		}
		return writeResponse(p), nil
	}
	s.counts.writes.Add(1)
	w.Target = resolveAddress(ctx, m.env.store, s, w.Target)
	own := m.invalidator.begin(k, w.Target.ID)
	others := m.beginSideEffects(ctx, s, w)
	p, err := s.upstream.Write(ctx, w)
	p = markNoStore(p)
	if hasNoEffect(p, err) {
		own.Drop()
		for _, o := range others {
			o.write.Drop()
		}
		if err != nil {
			return nil, fmt.Errorf("mirror: write %s: %w", w.Target.Key, err)
		}
		return writeResponse(p), nil
	}
	a := writeResponse(p)
	v := writtenVersion(k, w, p)
	id := w.Target.ID
	if id == "" && v != nil {
		id = v.Rows[0].ID
	}
	kept := own.End(m.env.now(), id, v) // comes first: from now on no earlier fetch may be stored
	if k.name != "" {
		err := m.invalidator.invalidate(ctx, k, w, id, a)
		a.Stored = kept && err == nil
	}
	for _, o := range others {
		o.write.End(m.env.now(), o.id, nil)
		if err := m.invalidator.expireRecord(ctx, o.kind, o.id); err != nil {
			a.Detail = "not stored: " + shortReason(err)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("mirror: write %s: %w", w.Target.Key, err)
	}
	return a, nil
}

// resolveAddress returns a target with the id of the record that has this address, if that record is stored.
func resolveAddress(ctx context.Context, store Store, s *source, t *spec.Target) *spec.Target {
	records, ok := store.(compose.Store)
	if !ok || !t.IsAddressed() {
		return t
	}
	named := *t
	named.ID = compose.IDAt(ctx, s.config, t, records)
	return &named
}

// sideEffect is a record or a kind that a write changes besides the target of its path.
type sideEffect struct {
	kind  *kind
	id    string // "" if the record is unknown
	write *writes.Write
}

// beginSideEffects begins the writes of everything that a write changes besides the target of its path.
func (m *Mirror) beginSideEffects(ctx context.Context, s *source, w request.Write) (all []sideEffect) {
	for _, t := range s.config.Spec.ChangedTargets(w.Target.Key, w.Body) {
		if k := s.kindOf(t); t.Kind != w.Target.Kind {
			id := resolveAddress(ctx, m.env.store, s, t).ID
			all = append(all, sideEffect{k, id, m.invalidator.begin(k, id)})
		}
	}
	return all
}

// begin notes a write before it is sent, so that after a crash the record is checked.
func (iv *invalidator) begin(k *kind, id string) *writes.Write {
	w, err := k.writes.Begin(id)
	if err != nil {
		iv.env.log.Warn("mirror: a write under way cannot be noted, a crash would leave its record as it was",
			"source", k.source.config.Name, "error", err)
	}
	return w
}

// writeResponse returns the response to a write.
func writeResponse(p *understudy.Page) *request.Response {
	a := &request.Response{Page: p, Outcome: request.Cold, ForwardReason: "method"}
	if p != nil {
		a.UpstreamTime = p.Took
	}
	return a
}

// hasNoEffect reports whether a write certainly changed nothing.
func hasNoEffect(p *understudy.Page, err error) bool {
	if err != nil {
		var nothingSent *understudy.UpstreamError
		return errors.As(err, &nothingSent) && !errors.Is(err, understudy.ErrUnknownOutcome)
	}
	switch p.Status {
	case 404, 408, 409, 410:
		return false
	}
	return p.Status >= 400 && p.Status < 500
}

// invalidate invalidates in memory and store what a write has changed.
func (iv *invalidator) invalidate(ctx context.Context, k *kind, w request.Write, id string, a *request.Response) error {
	begin := iv.env.now()
	iv.invalidateContents(k, w)
	err := iv.expireRecord(ctx, k, id)
	if err != nil {
		k.source.counts.notStored.Add(1)
		a.Detail = "not stored: " + shortReason(err)
	}
	a.StoreTime = iv.env.now().Sub(begin)
	return err
}

// expireRecord marks a record and the lists of its kind as invalid in memory and store.
func (iv *invalidator) expireRecord(ctx context.Context, k *kind, id string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), touchTime)
	defer cancel()
	iv.entries.dropTouched(k, id)
	for _, p := range k.source.polls() {
		if p.kind == k {
			p.list.WakeUp()
		}
	}
	return iv.writer.touch(ctx, k, id)
}

// dropTouched drops the pages that a write to a record may have changed: its instances and 404s of addresses
// that may be its own. For a kind without ids it drops every page that is no list. It also drops pages of all
// kinds that show records of other kinds. Lists become outdated by their generation.
func (es *entries) dropTouched(k *kind, id string) {
	k.writes.AddChange()
	spec := k.source.config.Spec.Kind(k.name)
	whole := spec != nil && len(spec.ID) == 0
	ident := es.hot.Ident(id)
	var gone []*cache.Entry
	for _, of := range k.source.kinds {
		es.hot.WalkGroup(of.pages, func(e *cache.Entry) {
			if e.ShowsAnyKind || of == k && (id != "" && e.Ident == ident || !e.List && (whole || id != "" && e.Ident == 0)) {
				gone = append(gone, e)
			}
		})
	}
	es.hot.DropAll(gone)
}

// touch flushes the invalidations of a kind with the kind locked: first the version that the response shows,
// then the touch of the record and its lists. A response to a write may differ from a later read (a new
// record's dates may be missing). So it is stored as a version and not answered. If the store fails, the
// invalidation stays pending, and the mirror itself treats the record as invalid.
func (wr *writer) touch(ctx context.Context, k *kind, id string) error {
	if why := wr.saving.failureReason(); why != "" && wr.env.started.Load() { // saving fails: do not wait for a locked database
		wr.flushSoon()
		return fmt.Errorf("%w: %s", understudy.ErrNotStored, why)
	}
	if err := k.lock(ctx); err != nil {
		wr.flushSoon()
		return err
	}
	defer k.unlock()
	if err := wr.flush(ctx, k); err != nil {
		wr.flushSoon()
		return wr.saving.noteFailure(wr.entries.env, err)
	}
	wr.entries.dropTouched(k, id) // a reader may have loaded the old version meanwhile
	wr.saving.noteSuccess(wr.entries.env)
	return nil
}

// writtenVersion returns the version of a record that a write's response shows, as a page without a key. It
// returns nil if the response shows none.
func writtenVersion(k *kind, w request.Write, p *understudy.Page) *understudy.Page {
	if k.name == "" || p == nil || p.NotStored != "" && p.NotStored != understudy.NotStoredDeleted || w.Target.HasKeyHeader() {
		return nil
	}
	v := *p
	v.Key, v.RecordsKey, v.Next = understudy.Key{Source: k.source.config.Name}, understudy.Key{}, understudy.Key{}
	switch {
	case p.NotStored == understudy.NotStoredDeleted:
		v.Status, v.Rows, v.NotStored = 410, nil, ""
		return &v
	case p.Status == 204 && w.Method == "DELETE" && w.Target.ID != "":
		v.Kind, v.Shape, v.ID, v.Rows = k.name, w.Target.StorageShape(k.source.config.User), w.Target.ID, nil
		return &v
	case (p.Status == 200 || p.Status == 201) && len(p.Rows) > 0 && p.Rows[0].ID != "":
		return &v
	}
	return nil
}

// restoreWrites checks once per kind whether there were writes before the start that no newest page has
// shown. Such writes are treated as if they happened now.
func (co *composer) restoreWrites(ctx context.Context, k *kind) error {
	if k.startGeneration == 0 || k.writesRestored.Load() {
		return nil
	}
	shown := false
	for key, p := range k.source.polls() {
		if p.kind != k || !p.list.Whole {
			continue
		}
		page, err := co.env.store.ReadPage(ctx, key)
		if err != nil && !errors.Is(err, understudy.ErrNotFound) {
			return err
		}
		shown = shown || err == nil && page.Generation >= k.startGeneration
	}
	if !shown {
		k.writes.Note(co.env.now(), "")
	}
	k.writesRestored.Store(true)
	return nil
}

// hasUnseenWrite reports whether a write touched the kind and its changes have not been fetched yet. The
// newest page must be newer than the write, or the written records must have been fetched.
func (co *composer) hasUnseenWrite(ctx context.Context, k *kind, c *request.Coverage) bool {
	if co.restoreWrites(ctx, k) != nil {
		return true // it is unknown, so assume that there is one
	}
	at, ids, many := k.writes.UnseenWrites()
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
		rec, err := co.holdings.findRecord(ctx, k.source, k.source.config.Spec.Kind(k.name), id)
		if err != nil || rec != nil && (rec.Invalidated || k.writes.IsPending(id)) {
			return true // unknown if the lookup failed
		}
		k.writes.NoteSeen(at, id)
	}
	return false
}
