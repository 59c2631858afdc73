// Faces: the servers programs and people reach, and what they are told of the house.

package main

import (
	"context"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/callers"
	"understudy/internal/diagnostics"
	"understudy/internal/proxy"
	"understudy/internal/viewer"
)

// openFaces binds every port first, so that nothing is announced that cannot
// be served.
func (h *house) openFaces(ctx context.Context, gate *access.Gate, book *callers.Book, b blueprint) error {
	diag := diagnostics.New(diagnostics.Options{
		Snapshot: h.snapshot, Readable: h.readable, Ending: h.ending.Load, Person: book.Person, Logger: h.log,
	})
	if err := h.openViewer(ctx, gate, book, diag); err != nil {
		return err
	}
	for _, src := range h.sources {
		l, err := listen(ctx, b.cfg.Sources[src.Name].Listen, "--drop-in "+src.Name+"=HOST:PORT")
		if err != nil {
			return err
		}
		h.closers = append(h.closers, closeListener(l))
		if src.PublicURL == "" {
			src.PublicURL = publicURL(l.Addr())
		}
		p, err := proxy.New(proxy.Options{
			Source: src, Mirror: h.mirror, Gate: gate, Callers: book, Health: diag.Health(),
			Log: h.access, Took: h.recent[src.Name].add, Logger: h.log, Now: time.Now,
		})
		if err != nil {
			return err
		}
		h.faces = append(h.faces, newFace(src.Name, l, p, h.log))
	}
	return b.dir.announce(h.faces[0].url())
}

func (h *house) openViewer(ctx context.Context, gate *access.Gate, book *callers.Book, diag *diagnostics.Diagnostics) error {
	l, err := listen(ctx, h.cfg.Viewer.Listen, "--viewer HOST:PORT")
	if err != nil {
		return err
	}
	h.closers = append(h.closers, closeListener(l))
	v, err := viewer.New(viewer.Options{
		Sources: h.sources, Mirror: h.mirror, Gate: gate, Callers: book, PublicURL: h.cfg.Viewer.PublicURL,
		Snapshot: h.viewerSnapshot, Control: diag.Handler(), Version: version(), Logger: h.log, Now: time.Now,
	})
	if err != nil {
		return err
	}
	h.closers = append(h.closers, v.Close)
	h.faces = append(h.faces, newFace("viewer", l, h.access.Handler(v, time.Now), h.log))
	return nil
}

// readable fails when the store cannot be read.
func (h *house) readable(ctx context.Context) error {
	_, err := h.db.Kinds(ctx, h.sources[0].Name)
	return err
}

// snapshot joins what the rooms count.
func (h *house) snapshot(ctx context.Context) (diagnostics.Snapshot, error) {
	s := diagnostics.Snapshot{
		Upstream: diagnostics.Upstream{ByReason: map[string]int64{}},
		Sources:  map[string]diagnostics.Source{},
	}
	for _, src := range h.sources {
		m, c, health := h.mirror.Stats(src.Name), h.clients[src.Name].Stats(), h.clients[src.Name].Health()
		s.Requests += m.Requests
		s.Warm += m.Warm
		s.Stale += m.Stale
		s.Cold += m.Cold
		s.Composed += m.Composed
		s.Coalesced += m.Coalesced
		s.NotStored += m.NotStored
		s.Hot = diagnostics.Hot{Bytes: m.HotBytes, Limit: int64(h.cfg.Mirror.Hot), Pages: m.HotEntries}
		s.Upstream.Requests += c.Requests
		s.Upstream.Errors += c.Errors
		for i, n := range c.ByReason {
			s.Upstream.ByReason[understudy.Reason(i).String()] += n
		}
		kinds, err := h.db.Kinds(ctx, src.Name)
		if err != nil {
			return s, err
		}
		held := map[string]diagnostics.Kind{}
		for _, k := range src.Spec.Kinds {
			held[k.Name] = diagnostics.Kind{CaughtUpTo: known(m.CaughtUp[k.Name])}
		}
		for _, k := range kinds {
			kind := held[k.Kind]
			kind.Records = k.Records
			held[k.Kind] = kind
		}
		s.Sources[src.Name] = diagnostics.Source{
			State: health.State, Why: health.Why, Since: known(health.Since), NextProbe: known(health.NextProbe), Kinds: held,
		}
	}
	return s, nil
}

// countTime bounds reading the counts for a page.
const countTime = time.Second

// viewerSnapshot is the same for one source, as people see it.
func (h *house) viewerSnapshot(ctx context.Context, source string) viewer.Snapshot {
	// The page that says a request took too long still tells what is held.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), countTime)
	defer cancel()
	m, c, health := h.mirror.Stats(source), h.clients[source].Stats(), h.clients[source].Health()
	s := viewer.Snapshot{
		State: health.State, Why: health.Why, Since: health.Since, NextProbe: health.NextProbe,
		Kinds: map[string]viewer.Held{},
		Warm:  m.Warm, Stale: m.Stale, Cold: m.Cold, Composed: m.Composed, Coalesced: m.Coalesced, Upstream: c.Requests,
		Ours: h.recent[source].last(), Theirs: health.Recent, DropIn: h.address(source),
	}
	kinds, err := h.db.Kinds(ctx, source)
	if err != nil {
		h.log.Error("home page: counts", "err", err)
	}
	for _, k := range kinds {
		s.Kinds[k.Kind] = viewer.Held{Records: k.Records, CaughtUp: m.CaughtUp[k.Kind]}
	}
	return s
}

// known is nil for the zero time, so that JSON leaves it out.
func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}
