// Handlers: the ports of programs and people, and the handlers behind them.

package app

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/config"
	"understudy/internal/diagnostics"
	"understudy/internal/export"
	"understudy/internal/frontend"
	"understudy/internal/proxy"
	"understudy/internal/search"
	"understudy/internal/viewer"
	"understudy/internal/viewer/page"
	"understudy/internal/watch"
	"understudy/spec"
)

// openPorts binds every port first, so that nothing is announced that cannot
// be served.
func (h *App) openPorts(ctx context.Context, p policy, b Options) (err error) {
	if err := h.openPort(ctx, "viewer", h.cfg.Viewer.Listen, "--viewer HOST:PORT", frontend.PlainRefusal()); err != nil {
		return err
	}
	for _, src := range h.sources {
		body, contentType := access.Error(src.Spec, access.Failure{Word: access.Server, Status: 503,
			Message: "too many connections; try again in a moment"})
		if err := h.openPort(ctx, src.Name, b.Settings.Sources[src.Name].Listen, "--drop-in "+src.Name+"=HOST:PORT",
			frontend.Refusal(body, contentType)); err != nil {
			return err
		}
		if src.PublicURL == "" {
			src.PublicURL = publicURL(h.servers[len(h.servers)-1].Addr())
		}
	}
	if err := (tunnelled{h}).open(ctx); err != nil {
		return err
	}
	if p, err = h.withMade(p, h.cfg); err != nil {
		return err
	}
	if err := (feeds{h}).open(ctx, p); err != nil {
		return err
	}
	if err := h.openSearch(ctx); err != nil {
		return err
	}
	if err := (watchers{h}).open(ctx); err != nil {
		return err
	}
	if err := (people{h}).load(ctx); err != nil {
		return err
	}
	d, err := h.handlerSet(h.cfg, p)
	if err != nil {
		return err
	}
	h.install(d)
	h.closers = append(h.closers, func() error { return h.installed.Close() })
	return b.Dir.Announce(h.servers[0].URL())
}

// openCommands binds the port of a command that works in the folder. It takes
// the commands a server takes, with the token, and no other request.
func (h *App) openCommands(ctx context.Context) error {
	if err := h.openPort(ctx, "commands", "127.0.0.1:0", "", frontend.PlainRefusal()); err != nil {
		return err
	}
	if err := h.hashes.Open(ctx, h.db); err != nil {
		return err
	}
	o := h.commands()
	o.Person = func(*http.Request) (understudy.Caller, error) { return understudy.Caller{}, understudy.ErrForbidden }
	mux, d := http.NewServeMux(), diagnostics.New(o).Handler()
	for _, path := range []string{"/-/purge", "/-/erase", "/-/erasures", "/-/index", "/-/credentials", "/-/credentials/", "/-/explain"} {
		mux.Handle(path, d)
	}
	mux.Handle("/-/sync", h.walker.Handler(h.opts.Dir.Token, audits{h}.auditor()))
	h.servers[0].SetHandler(mux, nil, nil)
	return nil
}

// commands are the options of those that need the token of the folder.
func (h *App) commands() diagnostics.Options {
	return diagnostics.Options{Purge: h.purge, Erase: erasures{h}.erase, Receipts: erasures{h}.receipts, Index: indexes{h}.index,
		Credentials: issuer{h}, Now: time.Now, Explain: gates{h}.explain, Token: h.opts.Dir.Token,
		Audit: audits{h}.auditor(), Logger: h.log}
}

func (h *App) openPort(ctx context.Context, name, addr, flag string, refusal []byte) error {
	l, err := frontend.Listen(ctx, addr, flag)
	if err != nil {
		return err
	}
	h.closers = append(h.closers, frontend.CloseListener(l))
	f := frontend.NewServer(name, l, nil, &h.cfg.Limits, refusal, h.log)
	if _, bytes := h.cfg.Caches(os.ReadFile); bytes > 0 && h.cfg.Sources[name] != nil { // people and tunnels have none
		f.Express(bytes)
	}
	h.servers = append(h.servers, f)
	return nil
}

// handlerSet is what the ports do under one policy: a handler for each, in order.
// Gate, callers and every view in memory go when it is replaced.
type handlerSet struct {
	handlers []http.Handler
	known    []frontend.Known
	policy   policy
	viewer   *viewer.Viewer
	search   *search.Searcher
	proxies  map[string]*proxy.Proxy // by source
	watches  watch.Policy
	inside   http.Handler // of what comes in tunnels; nil: there are none
}

// Close ends what the viewer and the search do by themselves.
func (d *handlerSet) Close() error { return errors.Join(d.viewer.Close(), d.search.Close()) }

// handlerSet makes the handlers of a policy; it begins nothing.
func (h *App) handlerSet(cfg *config.Settings, p policy) (*handlerSet, error) {
	o := h.commands()
	o.Snapshot, o.Readable, o.Ending, o.Loads = figures{h}.snapshot, figures{h}.readable, h.ending.Load, h.reads.now
	o.Person, o.All, o.Sees, o.Bound = p.book.Person, h.seesAll, p.gate.Counts, func(c understudy.Caller) bool {
		return slices.ContainsFunc(h.sources, func(s *spec.Source) bool { return p.gate.Ruled(c, s.Name) })
	}
	o.Profiles, o.PublicURL = h.profiles, cfg.Viewer.PublicURL
	if h.opts.Again != nil {
		o.Reload = reloader{h}.reload
	}
	var v *viewer.Viewer
	o.ProfilePage = func(w http.ResponseWriter, r *http.Request, page *diagnostics.ProfilePage) {
		v.ServeFramed(w, r, "profile", "Profiles", page)
	}
	diag := diagnostics.New(o)
	found, err := h.searcher(cfg, p)
	if err != nil {
		return nil, err
	}
	control, err := h.control(cfg, p, found, diag.Handler())
	if err != nil {
		return nil, err
	}
	dropIns := map[string]http.Handler{}
	v, err = viewer.New(page.Options{
		Sources: h.sources, Mirror: h.mirror, Media: h.mirror, Seals: h.seals, Lookups: h.searching.lookups, Gate: p.gate, Callers: p.book,
		People: p.people, Cookies: h.cookies, PublicURL: cfg.Viewer.PublicURL, ExportRows: cfg.Viewer.ExportRows,
		ExportTime: cfg.Viewer.ExportTime.Std(),
		Exports:    export.New(h.exports.viewer, h.exports.until(p)), Snapshot: figures{h}.viewerSnapshot, Control: control,
		History: h.db, Jobs: h.jobs, Feed: "/-/feed", Search: found, Sums: found, Shelf: found, Forecasts: h.forecasts, Actions: h.actions,
		Annotations: h.db,
		Watches:     h.watches,
		Programs:    &page.Programs{Credentials: issuer{h}, Configured: cfg.Configured(), DropIn: dropIns},
		Holders:     people{h}.holders(cfg, p.people), Server: administration{h},
		Audit: audits{h}.auditor(), Trail: audits{h}.trail(),
		Version: h.opts.Version, Logger: h.log, Now: time.Now,
	})
	if err != nil {
		return nil, err
	}
	front := config.ReverseProxies(cfg)
	d := &handlerSet{policy: p, viewer: v, search: found, proxies: map[string]*proxy.Proxy{}, watches: watchers{h}.policy(cfg, p, found),
		handlers: []http.Handler{front.Handler(h.profiles.Handler(h.access.Handler(v, time.Now)))}, known: []frontend.Known{nil}}
	for _, src := range h.sources {
		px, err := proxy.New(proxy.Options{
			Source: src, Mirror: h.mirror, Ready: h.mirror.Ready, Media: h.mirror, Gate: p.gate, Callers: p.book, Admit: p.book.Admit,
			Rate:      h.clients[src.Name].Rate,
			Current:   func() *proxy.Proxy { return (*h.proxies.Load())[src.Name] },
			Exchanger: h.mirror, Open: cfg.Sources[src.Name].Loopback,
			Text:       queryText(found),
			LastChange: h.db.LastChange,
			Health:     diag.Health(), MaxBody: int64(cfg.Limits.RequestBody),
			MaxWrites: cfg.Limits.Writes, Limited: func() { h.noPlace[src.Name].Add(1) },
			Log: h.access, Took: h.recent[src.Name].add, TooLarge: func() { h.tooLarge.Add(1) }, Audit: audits{h}.auditor(), Logger: h.log,
			Now: time.Now,
		})
		if err != nil {
			return nil, errors.Join(err, v.Close())
		}
		d.handlers, d.known = append(d.handlers, front.Handler(h.profiles.Handler(px))), append(d.known, px.Known)
		d.proxies[src.Name], dropIns[src.Name] = px, px
	}
	tunnelled{h}.add(p, d)
	return d, nil
}

// install puts handlers on the ports. Requests under way end with the former
// ones, but for exports, which may take long: those of whose callers the policy
// decides otherwise by now are broken off, and say so. The former viewer is
// closed after its last.
func (h *App) install(d *handlerSet) {
	h.exports.replace(d.policy)
	h.installed = d
	h.forecasts.SetAlerts(d.policy.alerts)
	h.proxies.Store(&d.proxies)
	for i, f := range h.servers {
		var end func()
		if i == 0 {
			end = func() {
				if err := d.Close(); err != nil {
					h.log.Error("close the former viewer", "err", err)
				}
			}
		}
		f.SetHandler(d.handlers[i], d.known[i], end)
	}
	if h.tunnels != nil {
		h.tunnels.inside.SetHandler(d.inside, nil, nil)
	}
	people{h}.endGone(d.policy.people)
	h.watches.SetPolicy(d.watches)
	h.reads.policies.Add(1)
}

// publicURL is what absolute URLs are rewritten to when it is not configured:
// where a drop-in listens. One that listens everywhere is named by this machine.
func publicURL(at net.Addr) string {
	host, port, err := net.SplitHostPort(at.String())
	if ip := net.ParseIP(host); err == nil && ip != nil && ip.IsUnspecified() {
		return "http://" + net.JoinHostPort("127.0.0.1", port)
	}
	return "http://" + at.String()
}

// hookKeys are the secrets callbacks are signed with, by source. They follow the
// settings.
type hookKeys struct {
	sync.RWMutex
	of map[string]understudy.Secret
}

func (k *hookKeys) set(source string, secret understudy.Secret) {
	k.Lock()
	defer k.Unlock()
	if k.of == nil {
		k.of = map[string]understudy.Secret{}
	}
	k.of[source] = secret
}

func (k *hookKeys) get(source string) understudy.Secret {
	k.RLock()
	defer k.RUnlock()
	return k.of[source]
}

// controlHook puts callbacks beside the others under /-/.
func (h *App) controlHook(cfg *config.Settings, mux *http.ServeMux) error {
	public := cfg.Viewer.PublicURL
	if public == "" {
		public = h.servers[0].URL()
	}
	hook, err := proxy.NewHook(proxy.HookOptions{Sources: h.sources, PublicURL: public, Secret: h.signatures.get, Hint: h.mirror.Hint})
	if err != nil {
		return err
	}
	mux.Handle("/-/hook/", hook)
	return nil
}
