// Writes: a change that is sent to upstream once, and the stored data that it makes invalid.

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

// invalidator makes stored data invalid, or deletes it, after writes and purges.
type invalidator struct {
	env      *env
	entries  *entries
	flights  *flights
	holdings *pageFinder
	writer   *writer
	// invalidateContents deletes the audio and images that a write may have changed.
	invalidateContents func(*kind, request.Write)
}

// maxTouchTime is how long the store may take to note what a write has made invalid. This continues even if the caller's
// context ends.
const maxTouchTime = 10 * time.Second

// Write sends a write to upstream once. When it returns, the mirror answers nothing any more that the write may have changed,
// and stores no page whose fetch began before. This concerns all lists of the kind, and if the path is that of a record, the
// record. The body of a 200 or 201 response is saved as a version of the record, but the next read of the record still asks
// upstream. After a 204 response to a DELETE the record is deleted.
//
// If upstream clearly refuses the write (by a 4xx status except 404, 408, 409 and 410), or if the write was not sent, nothing
// has changed and nothing is invalidated. In all other cases Write invalidates, even if the outcome is not known.
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
	if !m.env.isMemoryCurrent() { // other processes could go on answering with what was before
		return nil, fmt.Errorf("mirror: write %s: %w", w.Target.Key, understudy.ErrDatabaseAway)
	}
	s.counts.writes.Add(1)
	w.Target = resolveAddress(ctx, m.env.store, s, w.Target)
	effects, err := m.beginEffects(ctx, k, s, w)
	var p *understudy.Page
	if err == nil {
		p, err = s.upstream.Write(ctx, w)
	}
	p = markNoStore(p)
	if hasNoEffect(p, err) {
		for _, e := range effects {
			e.write.Drop()
		}
		if err != nil {
			return nil, fmt.Errorf("mirror: write %s: %w", w.Target.Key, err)
		}
		return writeResponse(p), nil
	}
	a := writeResponse(p)
	var unknown []int64 // the intents of the writes of which the store does not know
	for i, e := range effects {
		var shown *understudy.Page
		if i == 0 {
			if shown = writtenVersion(k, w, p); e.id == "" && shown != nil {
				e.id = shown.Rows[0].ID
			}
		}
		kept := e.write.End(m.env.now(), e.id, shown) // this comes first, because from now on no fetch that began earlier may be stored
		if e.kind.name == "" {
			continue
		}
		begin := m.env.now()
		if i == 0 {
			m.invalidator.invalidateContents(k, w)
		}
		err := m.invalidator.expireRecord(ctx, e.kind, e.id)
		if a.StoreTime += m.env.now().Sub(begin); err != nil {
			e.kind.source.counts.notStored.Add(1)
			a.Detail = "not stored: " + shortReason(err)
			unknown = append(unknown, e.write.Intent())
		}
		a.Stored = i == 0 && kept && err == nil || i > 0 && a.Stored
	}
	if len(unknown) > 0 && m.env.others != nil {
		m.env.others.AwaitRecheck(unknown)
	}
	if err != nil {
		return nil, fmt.Errorf("mirror: write %s: %w", w.Target.Key, err)
	}
	return a, nil
}

// resolveAddress returns the target with the id of the record whose address is the target's path, if such a record is stored.
func resolveAddress(ctx context.Context, store Store, s *source, t *spec.Target) *spec.Target {
	records, ok := store.(compose.Store)
	if !ok || !t.IsAddressed() {
		return t
	}
	named := *t
	named.ID = compose.IDAt(ctx, s.config, t, records)
	return &named
}

// effect is what a write changes: a record or all records of a kind.
type effect struct {
	kind  *kind
	id    string // the id of the record; "" if it is not known which record
	write *writes.Write
}

// beginEffects notes everything that the write changes, before it is sent: what is at its path, and after that the rest.
func (m *Mirror) beginEffects(ctx context.Context, k *kind, s *source, w request.Write) (all []effect, err error) {
	all = []effect{{kind: k, id: w.Target.ID}}
	for _, t := range s.config.Spec.ChangedTargets(w.Target.Key, w.Body) {
		if t.Kind != w.Target.Kind {
			all = append(all, effect{kind: s.kindOf(t), id: resolveAddress(ctx, m.env.store, s, t).ID})
		}
	}
	for i := range all {
		if all[i].write, err = m.invalidator.beginWrite(all[i].kind, all[i].id); err != nil {
			return all[:i], err
		}
	}
	return all, nil
}

// beginWrite notes a write before it is sent, so that after a crash the record is fetched from upstream again. If other processes
// could not learn of the write, beginWrite returns an error.
func (iv *invalidator) beginWrite(k *kind, id string) (*writes.Write, error) {
	w, err := k.writes.Begin(id)
	if errors.Is(err, understudy.ErrDatabaseAway) {
		w.Drop()
		return nil, err
	}
	if err != nil {
		iv.env.log.Warn("mirror: a running write could not be noted; after a crash its record may be outdated",
			"source", k.source.config.Name, "error", err)
	}
	return w, nil
}

// writeResponse returns upstream's response to a write as the mirror's response.
func writeResponse(p *understudy.Page) *request.Response {
	a := &request.Response{Page: p, Outcome: request.Cold, ForwardReason: "method"}
	if p != nil {
		a.UpstreamTime = p.Took
	}
	return a
}

// hasNoEffect reports whether a write has certainly changed nothing.
func hasNoEffect(p *understudy.Page, err error) bool {
	if err != nil {
		var nothingSent *understudy.UpstreamError
		return errors.As(err, &nothingSent) && !errors.Is(err, understudy.ErrUnknownOutcome) || errors.Is(err, understudy.ErrDatabaseAway)
	}
	switch p.Status {
	case 404, 408, 409, 410:
		return false
	}
	return p.Status >= 400 && p.Status < 500
}

// expireRecord makes a record and the lists of its kind invalid, in memory and in the store.
func (iv *invalidator) expireRecord(ctx context.Context, k *kind, id string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxTouchTime)
	defer cancel()
	iv.entries.dropTouched(k, id)
	for _, p := range k.source.polls() {
		if p.kind == k {
			p.list.WakeUp()
		}
	}
	return iv.writer.touch(ctx, k, id)
}

// dropTouched removes the pages from memory that writes to records may have changed: pages of the records, and 404 responses
// at addresses that may now be those of the records. If the kind has no ids, it removes every page that is not a list. It also
// removes pages of all kinds that show records of other kinds. Lists become outdated by their generation.
func (es *entries) dropTouched(k *kind, ids ...string) {
	k.writes.AddChange()
	spec := k.source.config.Spec.Kind(k.name)
	whole := spec != nil && len(spec.ID) == 0
	touched := map[uint64]bool{}
	for _, id := range ids {
		if id != "" {
			touched[es.hot.Ident(id)] = true
			touched[0] = true
		}
	}
	var gone []*cache.Entry
	for _, of := range k.source.kinds {
		es.hot.WalkGroup(of.pages, func(e *cache.Entry) {
			if e.ShowsAnyKind || of == k && (touched[e.Ident] && (e.Ident != 0 || !e.List) || whole && !e.List) {
				gone = append(gone, e)
			}
		})
	}
	es.hot.DropAll(gone)
}

// touch passes the pending writes of a kind to the store: first the version in the response to the write, then the
// mark that the record and its lists are invalid. The response may differ from a later read (the dates of a new
// record may be missing), so it is stored as a version and not used as an answer. If the store fails, the write stays
// pending, and the mirror itself treats the record as invalid.
func (wr *writer) touch(ctx context.Context, k *kind, id string) error {
	// saving has failed before, so the caller must not wait for a database that may be locked
	if why := wr.saving.failureReason(); why != "" && wr.env.started.Load() {
		understudy.Wake(wr.flushNeeded)
		return fmt.Errorf("%w: %s", understudy.ErrNotStored, why)
	}
	if err := k.lock(ctx); err != nil {
		understudy.Wake(wr.flushNeeded)
		return err
	}
	defer k.unlock()
	if err := wr.flush(ctx, k); err != nil {
		understudy.Wake(wr.flushNeeded)
		return wr.saving.noteFailure(wr.entries.env, err)
	}
	wr.entries.dropTouched(k, id) // a reader may have loaded the old version of the record from the store in the meantime
	wr.saving.noteSuccess(wr.entries.env)
	return nil
}

// writtenVersion returns the version of a record that is in the response to a write, as a page without a key. It
// returns nil if the response contains no record.
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

// restoreWrites checks, once for each kind, whether there were writes before the start whose results no newest page
// has shown. It treats them as if they had happened now.
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

// hasUnseenWrite reports whether a write has touched the kind and its result has not been fetched yet. The result has
// been fetched if the newest page is newer than the write, or if the written records have been fetched.
func (co *composer) hasUnseenWrite(ctx context.Context, k *kind, c *request.Coverage) bool {
	if co.restoreWrites(ctx, k) != nil {
		return true // it is not known, so the safe answer is that there is such a write
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
			return true // if the lookup has failed, the safe answer is that there is such a write
		}
		k.writes.NoteSeen(at, id)
	}
	if many {
		k.writes.NoteAllSeen(at)
	}
	return false
}
