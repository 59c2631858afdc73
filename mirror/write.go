// Write: a change passed on once, and what it makes invalid.

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

// invalidator makes old, and forgets, what writes and purges concern.
type invalidator struct {
	env      *env
	entries  *entries
	flights  *flights
	holdings *holdings
	writer   *writer
	// contentsWritten drops the contents that a write may have changed.
	contentsWritten func(*kind, request.Write)
}

// touchTime bounds telling the store what a write touched. It runs to its end
// even when the caller has gone.
const touchTime = 10 * time.Second

// Write passes a write on, once. Before it returns, nothing the write may have
// touched is answered from the mirror any more and no fetch begun before may
// fill: the lists of its kind in every filter and, for an instance path, the
// record. The body of a 200 or 201 is saved as a version, and the next read of the
// record waits for upstream all the same; a 204 to a DELETE removes the record.
//
// A definite refusal (a 4xx other than 404, 408, 409 and 410) and a write that
// was never sent change nothing upstream and invalidate nothing; everything
// else does, an unknown outcome included.
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
	k := s.of(w.Target)
	if k == nil {
		return nil, fmt.Errorf("mirror: %w: kind %s is not of source %s", understudy.ErrInvalid, w.Target.Kind.Name, s.config.Name)
	}
	if k.writes.IsFull() {
		return nil, fmt.Errorf("mirror: write %s: %w", w.Target.Key, &understudy.UpstreamError{Why: understudy.FailBusy, RetryAfter: busyRetry})
	}
	if w.Reads {
		p, err := s.upstream.Write(ctx, w)
		if err != nil {
			return nil, fmt.Errorf("mirror: %s: %w", w.Target.Key, err)
		}
		return written(p), nil
	}
	s.counts.writes.Add(1)
	w.Target = named(ctx, m.env.store, s, w.Target)
	own := m.invalidator.begin(k, w.Target.ID)
	others := m.others(ctx, s, w)
	p, err := s.upstream.Write(ctx, w)
	p = notStoredSaid(p)
	if untouched(p, err) {
		own.Drop()
		for _, o := range others {
			o.write.Drop()
		}
		if err != nil {
			return nil, fmt.Errorf("mirror: write %s: %w", w.Target.Key, err)
		}
		return written(p), nil
	}
	a := written(p)
	v := version(k, w, p)
	id := w.Target.ID
	if id == "" && v != nil {
		id = v.Rows[0].ID
	}
	kept := own.End(m.env.now(), id, v) // first: from here on no fetch begun before may fill
	if k.name != "" {
		err := m.invalidator.invalidate(ctx, k, w, id, a)
		a.Stored = kept && err == nil
	}
	for _, o := range others {
		o.write.End(m.env.now(), o.id, nil)
		if err := m.invalidator.outdate(ctx, o.kind, o.id); err != nil {
			a.Detail = "not stored: " + lastWords(err)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("mirror: write %s: %w", w.Target.Key, err)
	}
	return a, nil
}

// named is a target with the id of the record whose own address it is, where that is held.
func named(ctx context.Context, store Store, s *source, t *spec.Target) *spec.Target {
	records, ok := store.(compose.Store)
	if !ok || !t.Addressed() {
		return t
	}
	named := *t
	named.ID = compose.IDAt(ctx, s.config, t, records)
	return &named
}

// other is a record, or a kind, that a write changes beside what its path is about.
type other struct {
	kind  *kind
	id    string // "": it is not known which record
	write *writes.Write
}

// others returns what a write changes beside what its path is about.
func (m *Mirror) others(ctx context.Context, s *source, w request.Write) (all []other) {
	for _, t := range s.config.Spec.Changes(w.Target.Key, w.Body) {
		if k := s.of(t); t.Kind != w.Target.Kind {
			id := named(ctx, m.env.store, s, t).ID
			all = append(all, other{k, id, m.invalidator.begin(k, id)})
		}
	}
	return all
}

// begin notes a write before it is passed on, so that a process after a crash looks at the record.
func (iv *invalidator) begin(k *kind, id string) *writes.Write {
	w, err := k.writes.Begin(id)
	if err != nil {
		iv.env.log.Warn("mirror: a write under way cannot be noted, a crash would leave its record as it was",
			"source", k.source.config.Name, "error", err)
	}
	return w
}

func written(p *understudy.Page) *request.Response {
	a := &request.Response{Page: p, Outcome: request.Cold, Fwd: "method"}
	if p != nil {
		a.Upstream = p.Took
	}
	return a
}

// untouched reports whether a write surely changed nothing.
func untouched(p *understudy.Page, err error) bool {
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

// invalidate tells hot tier and store of a write.
func (iv *invalidator) invalidate(ctx context.Context, k *kind, w request.Write, id string, a *request.Response) error {
	begin := iv.env.now()
	iv.contentsWritten(k, w)
	err := iv.outdate(ctx, k, id)
	if err != nil {
		k.source.counts.notStored.Add(1)
		a.Detail = "not stored: " + lastWords(err)
	}
	a.Store = iv.env.now().Sub(begin)
	return err
}

// outdate tells hot tier and store that a record, and the lists of its kind, are to be asked
// for again.
func (iv *invalidator) outdate(ctx context.Context, k *kind, id string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), touchTime)
	defer cancel()
	iv.entries.touched(k, id)
	for _, p := range k.source.polls() {
		if p.kind == k {
			p.list.Nudge()
		}
	}
	return iv.writer.touch(ctx, k, id)
}

// touched drops the record's instances from the hot tier, and answers that there is none
// under an address, which may be its own; of a kind without ids, every page that is no list;
// and of every kind what may show other records, too. Lists are outdated by their generation.
func (es *entries) touched(k *kind, id string) {
	k.writes.AddChange()
	spec := k.source.config.Spec.Kind(k.name)
	whole := spec != nil && len(spec.ID) == 0
	ident := es.hot.Ident(id)
	var gone []*cache.Entry
	for _, of := range k.source.kinds {
		es.hot.Each(of.pages, func(e *cache.Entry) {
			if e.Wide || of == k && (id != "" && e.Ident == ident || !e.List && (whole || id != "" && e.Ident == 0)) {
				gone = append(gone, e)
			}
		})
	}
	es.hot.DropAll(gone)
}

// touch tells the store, with the kind locked: first the version the answer
// shows, then that the record and its kind's lists are to be asked for again.
// An answer to a write is not what a read would say (a new record's dates may
// still be missing), so it is a version and no answer. What the store does not
// take in is owed: until then the mirror itself knows that the record is
// invalid.
func (wr *writer) touch(ctx context.Context, k *kind, id string) error {
	if why := wr.saving.trouble(); why != "" && wr.env.started.Load() { // the writer does not wait for a locked database
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
		return wr.saving.failed(wr.entries.env, err)
	}
	wr.entries.touched(k, id) // a reader may have read the version meanwhile
	wr.saving.works(wr.entries.env)
	return nil
}

// version is what a write's answer shows of a record, as a page without a key;
// nil when it shows nothing.
func version(k *kind, w request.Write, p *understudy.Page) *understudy.Page {
	if k.name == "" || p == nil || p.NotStored != "" && p.NotStored != understudy.NotStoredDeleted || w.Target.Apart() {
		return nil
	}
	v := *p
	v.Key, v.Of, v.Next = understudy.Key{Source: k.source.config.Name}, understudy.Key{}, understudy.Key{}
	switch {
	case p.NotStored == understudy.NotStoredDeleted:
		v.Status, v.Rows, v.NotStored = 410, nil, ""
		return &v
	case p.Status == 204 && w.Method == "DELETE" && w.Target.ID != "":
		v.Kind, v.Shape, v.ID, v.Rows = k.name, w.Target.KeptAs(k.source.config.User), w.Target.ID, nil
		return &v
	case (p.Status == 200 || p.Status == 201) && len(p.Rows) > 0 && p.Rows[0].ID != "":
		return &v
	}
	return nil
}

// recallWrites finds out, once for a kind, whether something was written before the
// start that no newest page has shown: then it is as if it were written now.
func (co *composer) recallWrites(ctx context.Context, k *kind) error {
	if k.written == 0 || k.recalled.Load() {
		return nil
	}
	shown := false
	for key, p := range k.source.polls() {
		if p.kind != k || !p.list.Whole {
			continue
		}
		page, err := co.env.store.Page(ctx, key)
		if err != nil && !errors.Is(err, understudy.ErrNotFound) {
			return err
		}
		shown = shown || err == nil && page.Generation >= k.written
	}
	if !shown {
		k.writes.Note(co.env.now(), "")
	}
	k.recalled.Store(true)
	return nil
}

// wroteSince reports whether a write touched a kind and what it changed has not
// been seen yet: the newest page is older, or a record it named.
func (co *composer) wroteSince(ctx context.Context, k *kind, c *request.Coverage) bool {
	if co.recallWrites(ctx, k) != nil {
		return true // unknown
	}
	at, ids, many := k.writes.Unseen()
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
		rec, err := co.holdings.lookUp(ctx, k.source, k.source.config.Spec.Kind(k.name), id)
		if err != nil || rec != nil && (rec.Invalid || k.writes.IsPending(id)) {
			return true // or unknown: the caller has left, or it cannot be read
		}
		k.writes.Seen(at, id)
	}
	return false
}
