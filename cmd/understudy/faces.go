// Faces: the servers programs and people reach, and what they are told of the house.

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/callers"
	"understudy/internal/config"
	"understudy/internal/diagnostics"
	"understudy/internal/feed"
	"understudy/internal/proxy"
	"understudy/internal/search"
	"understudy/internal/viewer"
	"understudy/internal/viewer/page"
)

// openFaces binds every port first, so that nothing is announced that cannot
// be served.
func (h *house) openFaces(ctx context.Context, p policy, b blueprint) error {
	if err := h.openFace(ctx, "viewer", h.cfg.Viewer.Listen, "--viewer HOST:PORT", plainRefusal()); err != nil {
		return err
	}
	for _, src := range h.sources {
		body, contentType := access.Error(src.Spec, access.Failure{Word: access.Server, Status: 503, Message: "too many connections; try again in a moment"})
		if err := h.openFace(ctx, src.Name, b.cfg.Sources[src.Name].Listen, "--drop-in "+src.Name+"=HOST:PORT", refusalOf(body, contentType)); err != nil {
			return err
		}
		if src.PublicURL == "" {
			src.PublicURL = publicURL(h.faces[len(h.faces)-1].listener.Addr())
		}
	}
	if err := h.openFeed(ctx, p); err != nil {
		return err
	}
	if err := h.openSearch(ctx); err != nil {
		return err
	}
	d, err := h.dress(h.cfg, p)
	if err != nil {
		return err
	}
	h.wear(d)
	h.closers = append(h.closers, func() error { return h.worn.Close() })
	return b.dir.announce(h.faces[0].url())
}

func (h *house) openFace(ctx context.Context, name, addr, flag string, refusal []byte) error {
	l, err := listen(ctx, addr, flag)
	if err != nil {
		return err
	}
	h.closers = append(h.closers, closeListener(l))
	h.faces = append(h.faces, newFace(name, l, nil, &h.cfg.Limits, refusal, h.log))
	return nil
}

// policy is who may do what, as the settings say. It is replaced whole.
type policy struct {
	gate  *access.Gate
	book  *callers.Book
	hooks []feed.Hook
}

// policyOf reads a policy, with the secrets of its credentials.
func (h *house) policyOf(ctx context.Context, cfg *config.Settings, b blueprint) (policy, error) {
	specs, users := map[string]*understudy.Spec{}, map[string]string{}
	for _, src := range h.sources {
		specs[src.Name], users[src.Name] = src.Spec, src.User
	}
	roles, rows := cfg.Policy()
	gate, err := access.NewWith(access.Options{
		Specs: specs, Roles: roles, Rows: rows, Users: users, Own: h.owned.is, Newest: h.newest, Last: h.last, Now: time.Now,
	})
	if err != nil {
		return policy{}, fmt.Errorf("roles: %w", err)
	}
	creds, err := cfg.ReadCredentials(ctx, b.secrets, b.by)
	if err != nil {
		return policy{}, err
	}
	book, err := callers.New(callers.Options{
		Credentials: creds, Sources: h.sources, Loopback: understudy.Grant{Role: cfg.Viewer.Role, By: b.by},
		Behind: cfg.Viewer.BehindProxy(), Narrowest: gate.Narrowest(), Salt: h.salt, Now: time.Now, Known: h.profiles.Known,
	})
	if err != nil {
		return policy{}, err
	}
	if b.by == "config" {
		for _, w := range append(cfg.Warnings(b.settings, h.sources), config.WeakSecrets(creds)...) {
			h.log.Warn("settings", "warning", w)
		}
	}
	hooks, err := cfg.ReadWebhooks(ctx, b.secrets)
	return policy{gate, book, hooks}, err
}

// dress is what the faces do under one policy: a handler for each, in order.
// Gate, callers and every view in memory go when it is replaced.
type dress struct {
	handlers []http.Handler
	policy   policy
	viewer   *viewer.Viewer
	search   *search.Searcher
	proxies  map[string]*proxy.Proxy // by source
}

// Close ends what the viewer and the search do by themselves.
func (d *dress) Close() error { return errors.Join(d.viewer.Close(), d.search.Close()) }

// dress makes the handlers of a policy; it begins nothing.
func (h *house) dress(cfg *config.Settings, p policy) (*dress, error) {
	diag := diagnostics.New(diagnostics.Options{
		Snapshot: h.snapshot, Readable: h.readable, Ending: h.ending.Load, Loads: h.loads.now, Person: p.book.Person, All: h.seesAll, Sees: p.gate.Counts, Logger: h.log,
		Bound: func(c understudy.Caller) bool {
			return slices.ContainsFunc(h.sources, func(s *understudy.Source) bool { return p.gate.Ruled(c, s.Name) })
		},
		Purge: h.purge, Erase: h.erase, Receipts: h.receipts, Index: h.index, Token: h.plan.dir.token, Profiles: h.profiles, PublicURL: cfg.Viewer.PublicURL,
	})
	found, err := h.searcher(cfg, p)
	if err != nil {
		return nil, err
	}
	control, err := h.control(cfg, p, found, diag.Handler())
	if err != nil {
		return nil, err
	}
	v, err := viewer.New(page.Options{
		Sources: h.sources, Mirror: h.mirror, Media: h.mirror, Seals: h.seals, Gate: p.gate, Callers: p.book, PublicURL: cfg.Viewer.PublicURL,
		ExportRows: cfg.Viewer.ExportRows, ExportTime: cfg.Viewer.ExportTime.Std(), Exports: h.exports.viewer, Until: h.exports.until(p),
		Snapshot: h.viewerSnapshot, Control: control, History: h.db, Jobs: h.jobs, Feed: "/-/feed", Search: found, Shelf: found, Version: version(), Logger: h.log, Now: time.Now,
	})
	if err != nil {
		return nil, err
	}
	d := &dress{policy: p, viewer: v, search: found, proxies: map[string]*proxy.Proxy{}, handlers: []http.Handler{h.profiles.Handler(h.access.Handler(v, time.Now))}}
	for _, src := range h.sources {
		px, err := proxy.New(proxy.Options{
			Source: src, Mirror: h.mirror, Media: h.mirror, Gate: p.gate, Callers: p.book, Text: queryText(found), LastChange: h.db.LastChange, Health: diag.Health(), MaxBody: int64(cfg.Limits.RequestBody),
			MaxWrites: cfg.Limits.Writes, Limited: func() { h.noPlace[src.Name].Add(1) },
			Log: h.access, Took: h.recent[src.Name].add, TooLarge: func() { h.tooLarge.Add(1) }, Logger: h.log, Now: time.Now,
		})
		if err != nil {
			return nil, errors.Join(err, v.Close())
		}
		d.handlers = append(d.handlers, h.profiles.Handler(px))
		d.proxies[src.Name] = px
	}
	return d, nil
}

// seesAll reports whether a caller sees every record of every source.
func (h *house) seesAll(c understudy.Caller) bool {
	return c.Role() == understudy.RoleAll && (c.Source == "" || len(h.sources) == 1)
}

// wear puts handlers on the faces. Requests under way end with the former
// ones, but for exports, which may take long: those of whose callers the policy
// decides otherwise by now are broken off, and say so. The former viewer is
// closed after its last.
func (h *house) wear(d *dress) {
	h.exports.replace(d.policy)
	h.worn = d
	h.proxies.Store(&d.proxies)
	for i, f := range h.faces {
		var end func()
		if i == 0 {
			end = func() {
				if err := d.Close(); err != nil {
					h.log.Error("close the former viewer", "err", err)
				}
			}
		}
		f.handler.set(d.handlers[i], end)
	}
}

// readable fails when the store cannot be read.
func (h *house) readable(ctx context.Context) error {
	_, err := h.db.Kinds(ctx, h.sources[0].Name)
	return err
}

// snapshot joins what the rooms count.
func (h *house) snapshot(ctx context.Context) (diagnostics.Snapshot, error) {
	s := diagnostics.Snapshot{
		Traffic:  diagnostics.Traffic{Upstream: diagnostics.NewUpstream()},
		Sources:  map[string]diagnostics.Source{},
		Limits:   h.limits(),
		Faces:    h.faceLoads(),
		Process:  processNow(),
		Settings: h.loads.now(),
	}
	space, err := h.db.Space(ctx)
	if err != nil {
		return s, err
	}
	s.Store = diagnostics.Store{
		File: space.File, Log: space.WAL, Free: space.Free, Limit: space.Limit,
		EvictedPages: space.EvictedPages, EvictedVersions: space.EvictedVersions, EvictedAt: known(space.EvictedAt),
		Trouble: h.mirror.Stats(h.sources[0].Name).Trouble,
	}
	for _, src := range h.sources {
		m, c, health := h.mirror.Stats(src.Name), h.clients[src.Name].Stats(), h.clients[src.Name].Health()
		traffic := diagnostics.Traffic{
			Requests: m.Requests, Warm: m.Warm, Stale: m.Stale, Cold: m.Cold, Composed: m.Composed, Coalesced: m.Coalesced, NotStored: m.NotStored,
			Upstream: diagnostics.NewUpstream(),
		}
		s.Hot = diagnostics.Hot{Bytes: m.HotBytes, Limit: int64(h.cfg.Mirror.Hot), Pages: m.HotEntries}
		traffic.Upstream.Requests, traffic.Upstream.Errors = c.Requests, c.Errors
		for i, n := range c.ByReason {
			reason := understudy.Reason(i).String()
			traffic.Upstream.ByReason[reason] = n
			traffic.Upstream.Retries[reason] = c.Retries[i]
			traffic.Upstream.Hedges[reason] = c.Hedges[i]
		}
		s.Add(&traffic)
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
		lists := h.mirror.Fidelity(src.Name)
		for name, kind := range held {
			kind.Lists = listFigures(lists, name)
			if err := h.walkStats(ctx, src.Name, name, &kind); err != nil {
				return s, err
			}
			held[name] = kind
		}
		s.Sources[src.Name] = diagnostics.Source{
			State: health.State, Why: health.Why, Since: known(health.Since), NextProbe: known(health.NextProbe), Kinds: held,
			Limits: h.sourceLimits(src.Name, c), Times: h.times(src.Name), Traffic: traffic,
		}
	}
	s.Media = h.mediaStats()
	if s.Erasing, err = h.erasingStats(ctx); err != nil {
		return s, err
	}
	if s.Jobs, err = h.jobStats(ctx); err != nil {
		return s, err
	}
	s.Webhooks = h.webhookStats()
	return s, nil
}

// countTime bounds reading the counts for a page.
const countTime = time.Second

// viewerSnapshot is the same for one source, as people see it.
func (h *house) viewerSnapshot(ctx context.Context, source string) page.Snapshot {
	// The page that says a request took too long still tells what is held.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), countTime)
	defer cancel()
	m, c, health := h.mirror.Stats(source), h.clients[source].Stats(), h.clients[source].Health()
	s := page.Snapshot{
		State: health.State, Why: health.Why, Since: health.Since, NextProbe: health.NextProbe,
		Kinds: map[string]page.Held{},
		Warm:  m.Warm, Stale: m.Stale, Cold: m.Cold, Composed: m.Composed, Coalesced: m.Coalesced, Upstream: c.Requests,
		Ours: h.recent[source].last(), Theirs: health.Recent, DropIn: h.address(source),
	}
	s.OurTimes, s.TheirTimes, s.Times = h.viewerTimes(source)
	lists := h.mirror.Fidelity(source)
	kinds, err := h.db.Kinds(ctx, source)
	if err != nil && !h.uncounted.Swap(true) {
		h.log.Error("home page: counts", "err", err)
	} else if err == nil {
		h.uncounted.Store(false)
	}
	for _, k := range kinds {
		held := page.Held{Records: k.Records, CaughtUp: m.CaughtUp[k.Kind], Lists: viewerLists(lists, k.Kind)}
		h.walkHeld(ctx, source, k.Kind, &held)
		s.Kinds[k.Kind] = held
	}
	for _, w := range h.feed.Webhooks() {
		if w.Source != source {
			continue
		}
		hook := page.Webhook{Name: w.Name, State: w.State, Why: w.Why, Behind: w.Behind}
		if w.Failing != nil {
			hook.Since = *w.Failing
		}
		s.Webhooks = append(s.Webhooks, hook)
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

// publicURL is what absolute URLs are rewritten to when nobody configured it:
// where a drop-in listens. One that listens everywhere is named by this machine.
func publicURL(at net.Addr) string {
	host, port, err := net.SplitHostPort(at.String())
	if ip := net.ParseIP(host); err == nil && ip != nil && ip.IsUnspecified() {
		return "http://" + net.JoinHostPort("127.0.0.1", port)
	}
	return "http://" + at.String()
}
