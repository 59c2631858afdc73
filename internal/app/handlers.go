// This file builds the handlers of the ports under one policy.

package app

import (
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"understudy"
	"understudy/internal/agents"
	"understudy/internal/callers"
	"understudy/internal/config"
	"understudy/internal/diagnostics"
	"understudy/internal/export"
	"understudy/internal/forecast"
	"understudy/internal/frontend"
	"understudy/internal/jobs"
	"understudy/internal/proxy"
	"understudy/internal/search"
	"understudy/internal/tracing"
	"understudy/internal/viewer"
	"understudy/internal/viewer/page"
	"understudy/internal/watch"
	"understudy/kit/accesslog"
	"understudy/request"
	"understudy/spec"
	"understudy/upstream"
)

// handlerSet contains the handlers of all ports under one policy, in the order of the ports. A new policy replaces
// the whole set, with its gate, its callers and the cached views.
type handlerSet struct {
	handlers  []http.Handler
	targets   []frontend.Known
	clients   map[string]config.Clients // the clients that may use each port, by its name
	policy    policy
	viewer    *viewer.Viewer
	search    *search.Searcher
	proxies   map[string]*proxy.Proxy // the proxies by source
	watches   watch.Policy
	tunnelled http.Handler // the handler of requests in tunnels; nil if there are no tunnels
}

// Close stops the background work of the viewer and the search.
func (d *handlerSet) Close() error { return errors.Join(d.viewer.Visitor.Close(), d.search.Close()) }

// builder builds the handlers of a policy. Its options are the same under every policy.
type builder struct {
	sources []*spec.Source
	clients map[string]*upstream.Client
	ports   *ports
	exports *exports
	traffic *traffic
	inForce func() *handlerSet
	notes   annotations
	routes  map[string]http.Handler // the handlers under /-/ that are the same under every policy
	hook    proxy.HookOptions

	viewer      page.Options
	dropIn      proxy.Options
	search      search.Options
	searches    search.HandlerOptions
	agents      agents.Options
	jobs        jobs.HandlerOptions
	forecasts   forecast.HandlerOptions
	diagnostics diagnostics.Options
}

// build returns the handlers of a policy. It starts no goroutines.
func (b *builder) build(cfg *config.Settings, p policy) (*handlerSet, error) {
	d := &handlerSet{policy: p, proxies: map[string]*proxy.Proxy{}, clients: map[string]config.Clients{}}
	diag := diagnostics.New(b.diagnosticsOptions(cfg, p, d))
	var err error
	if d.search, err = b.newSearch(cfg, p); err != nil {
		return nil, err
	}
	v, dropIns := b.viewer, map[string]http.Handler{}
	if v.Control, err = b.newControl(cfg, p, d.search, diag.Handler()); err != nil {
		return nil, err
	}
	v.Gate, v.Callers, v.People, v.Holders = p.gate, p.book, p.people, holders(cfg, p.people)
	v.PublicURL, v.ExportRows, v.ExportTime = cfg.Viewer.PublicURL, cfg.Viewer.ExportRows, cfg.Viewer.ExportTime.Std()
	v.Exports, v.Search, v.Sums, v.Shelf = export.New(b.exports.viewer, b.exports.begin(p)), d.search, d.search, d.search
	v.Programs = &page.Programs{Credentials: b.diagnostics.Credentials, Configured: cfg.ConfiguredCredentials(), DropIn: dropIns}
	if d.viewer, err = viewer.New(v); err != nil {
		return nil, err
	}
	front := config.ReverseProxies(cfg)
	d.watches = watch.Policy{Search: d.search, Owners: p.book, Rules: cfg.Watches.Rules(), Mailer: p.mailer, Push: b.viewer.Push,
		URL: b.ports.publicViewer(cfg)}
	d.policy.push.Owners, d.policy.push.URL = p.book, d.watches.URL
	d.policy.push.CanSee = func(c understudy.Caller, source string) bool {
		hasKind := func(k *spec.Kind) bool { return p.gate.CanSee(c, source, k.Name) }
		return (c.Source == "" || c.Source == source) && slices.ContainsFunc(spec.FindSource(b.sources, source).Spec.Kinds, hasKind)
	}
	shown := b.ports.tls.Handler(followRequests(d.viewer, b.ports.tracer, time.Now))
	d.handlers = []http.Handler{front.Handler(b.ports.profiles.Handler(b.ports.access.Handler(shown, time.Now)))}
	d.targets = []frontend.Known{nil}
	for _, src := range b.sources {
		px, err := proxy.New(b.dropInOptions(cfg, p, src, d.search, diag.Health()))
		if err != nil {
			return nil, errors.Join(err, d.Close())
		}
		guarded := b.ports.servers[len(d.handlers)].GuardRequests(b.ports.profiles.Handler(px))
		d.handlers, d.targets = append(d.handlers, front.Handler(guarded)), append(d.targets, px)
		d.proxies[src.Name], dropIns[src.Name], d.clients[src.Name] = px, px, cfg.Sources[src.Name].Clients
	}
	if t := b.ports.tunnels; t != nil {
		d.tunnelled = t.handler(func(source string, url func(string) string) http.Handler {
			return b.ports.profiles.Handler(d.proxies[source].UpstreamFrontend(url, p.tunnelled))
		})
		d.handlers, d.targets = append(d.handlers, t.proxy), append(d.targets, nil)
	}
	if len(d.handlers) < len(b.ports.servers) { // the last port is that of the metrics
		local := diag.Metrics(callers.AdmitLocal)
		d.handlers, d.targets = append(d.handlers, b.ports.access.Handler(local, time.Now)), append(d.targets, nil)
	}
	return d, nil
}

// followRequests puts the trace of each request into its context. A page that is slow is listed by its route.
func followRequests(next http.Handler, tracer *tracing.Tracer, now func() time.Time) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		line, t := accesslog.LineOf(r.Context()), request.NewTrace(r.Header, now)
		t.ID, line.Trace = line.ID, t.Parent.Trace
		r = r.WithContext(request.WithTrace(r.Context(), t))
		next.ServeHTTP(w, r)
		line.Took = now().Sub(line.At)
		tracer.End(line, t, func() tracing.Request {
			isPage := strings.HasPrefix(w.Header().Get("Content-Type"), "text/html")
			return tracing.Request{Source: viewerPort, Route: r.Pattern[strings.IndexByte(r.Pattern, ' ')+1:], Streams: !isPage}
		})
	})
}

// diagnosticsOptions returns the options of the diagnostics. The viewer of d shows their pages.
func (b *builder) diagnosticsOptions(cfg *config.Settings, p policy, d *handlerSet) diagnostics.Options {
	o := b.diagnostics
	o.Person, o.Program, o.SeesKind, o.PublicURL = p.book.IdentifyPerson, p.book.IdentifyProgram, p.gate.CanCount, cfg.Viewer.PublicURL
	o.HasRowRules = func(c understudy.Caller) bool {
		return slices.ContainsFunc(b.sources, func(s *spec.Source) bool { return p.gate.HasRowRules(c, s.Name) })
	}
	o.Page = func(w http.ResponseWriter, r *http.Request, name, title string, main any) {
		d.viewer.ServeFramed(w, r, name, title, main)
	}
	o.ProfileRefused = func(w http.ResponseWriter, r *http.Request, err error) { d.viewer.Visitor.Refuse(w, r, err) }
	return o
}

// dropInOptions returns the options of a source's proxy.
func (b *builder) dropInOptions(cfg *config.Settings, p policy, src *spec.Source, s *search.Searcher, health http.Handler) proxy.Options {
	o, name := b.dropIn, src.Name
	o.Source, o.Gate, o.Callers, o.Admit, o.Health = src, p.gate, p.book, p.book.Admit, health
	o.ParseText, o.ParseNear = s.CompileText, s.CompileNear
	o.CurrentProxy = func() *proxy.Proxy { return b.inForce().proxies[name] }
	o.Rate, o.Open = b.clients[name].Rate, cfg.Sources[name].Loopback
	o.MaxBody, o.MaxWrites = int64(cfg.Limits.RequestBody), cfg.Limits.Writes
	o.Strangers = &b.traffic.recent[name].strangers
	o.OnAnswered, o.Limited = b.traffic.recent[name].add, func() { b.traffic.refusedWrites[name].Add(1) }
	return o
}

// newControl returns the handler of everything under /-/ that the viewer does not serve itself.
func (b *builder) newControl(cfg *config.Settings, p policy, s *search.Searcher, rest http.Handler) (http.Handler, error) {
	public := cfg.Viewer.PublicURL
	routes := maps.Clone(b.routes)
	routes["/"] = rest
	o := b.jobs
	o.Person, o.Worker, o.PublicURL = p.book.IdentifyPerson, p.book.IdentifyProgram, public
	o.Recheck = func(c understudy.Caller) bool {
		now, ok := b.inForce().policy.book.Recheck(c)
		return ok && now.Grant.IsActive(time.Now())
	}
	j, err := jobs.NewHandler(o)
	if err != nil {
		return nil, err
	}
	routes["/-/jobs"], routes["/-/jobs/"] = j, j
	so := b.searches
	so.Searcher, so.Callers, so.PublicURL = s, p.book, public
	found, err := search.NewHandler(so)
	if err != nil {
		return nil, err
	}
	routes["/-/search"], routes["/-/search/"] = found, found
	ao := b.agents
	ao.Gate, ao.Callers, ao.Search, ao.PublicURL = p.gate, p.book, s, public
	if routes[agents.Path], err = agents.New(ao); err != nil {
		return nil, err
	}
	fo := b.forecasts
	fo.Gate, fo.Callers = p.gate, p.book
	routes[forecast.Path] = forecast.NewHandler(fo)
	ho := b.hook
	ho.PublicURL = b.ports.publicViewer(cfg)
	if routes["/-/hook/"], err = proxy.NewHook(ho); err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	for path, h := range routes {
		mux.Handle(path, h)
	}
	return mux, nil
}
