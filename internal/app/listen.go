// This file opens the ports of the server, or the port of a command, and builds their handlers.

package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/acme"
	"understudy/internal/actions"
	"understudy/internal/agents"
	"understudy/internal/app/operations"
	"understudy/internal/certificate"
	"understudy/internal/config"
	"understudy/internal/diagnostics"
	"understudy/internal/feed"
	"understudy/internal/feed/wires"
	"understudy/internal/fleet"
	"understudy/internal/forecast"
	"understudy/internal/frontend"
	"understudy/internal/jobs"
	"understudy/internal/outbox"
	"understudy/internal/proxy"
	"understudy/internal/push"
	"understudy/internal/search"
	"understudy/internal/search/columns"
	"understudy/internal/tables"
	"understudy/internal/viewer/page"
	"understudy/internal/watch"
	"understudy/kit/limiter"
	"understudy/request"
)

// openPort binds a port.
func (a *App) openPort(ctx context.Context, name, addr, flag string, refusal []byte) error {
	cfg, express, secure := a.opts.Settings, int64(0), name == viewerPort && a.ports.tls != nil
	if cfg.Sources[name] != nil { // only the ports of sources have an express lane
		express, secure = cfg.Shares(os.ReadFile).Express, cfg.TLS.IsOnFor(cfg.Sources[name])
	}
	free, err := a.ports.listen(ctx, a.opts.Inherited, name, addr, flag, refusal, express, secure)
	if err == nil {
		a.closers = append(a.closers, free)
	}
	return err
}

// openPorts binds every port before the handlers are built. So no response contains the address of a port that
// cannot be opened.
func (a *App) openPorts(ctx context.Context, p policy) (err error) {
	cfg := a.opts.Settings
	if cfg.TLS.IsOn() {
		used, err := cfg.TLS.Read(cfg, a.opts.Folder, a.opts.Dir.Path)
		if err != nil {
			return err
		}
		a.ports.tls = &certificate.Source{}
		a.ports.tls.Use(used)
		if err := a.openACME(ctx); err != nil {
			return err
		}
	}
	if err := a.openPort(ctx, viewerPort, cfg.Viewer.Listen, "--viewer HOST:PORT", frontend.PlainRefusal()); err != nil {
		return err
	}
	for _, src := range a.sources {
		body, contentType := access.Error(src.Spec, access.Failure{Word: access.Server, Status: 503,
			Message: "too many connections; try again in a moment"})
		if err := a.openPort(ctx, src.Name, cfg.Sources[src.Name].Listen, "--drop-in "+src.Name+"=HOST:PORT",
			frontend.Refusal(body, contentType)); err != nil {
			return err
		}
		src.PublicURL = cmp.Or(src.PublicURL, publicURL(a.ports.servers[len(a.ports.servers)-1].URL()))
	}
	if err := a.openTunnels(ctx); err != nil {
		return err
	}
	if at := cfg.Metrics.Listen; at != "" {
		if err := a.openPort(ctx, config.MetricsName, at, "", frontend.PlainRefusal()); err != nil {
			return err
		}
	}
	if err := a.opts.Inherited.Close(); err != nil {
		return err
	}
	if p, err = a.policies.withMadeCredentials(p, cfg); err != nil {
		return err
	}
	if err := a.openFrontends(ctx, p); err != nil {
		return err
	}
	v := a.policies.visitors
	if err := errors.Join(v.sessions.Load(ctx, a.db.KV), v.cookies.Load(ctx, a.db.KV), v.hashes.Open(ctx, a.db.KV)); err != nil {
		return err
	}
	e := a.enforcer
	d, err := e.build(cfg, p)
	if err != nil {
		return err
	}
	e.replaceHandlers(d)
	a.closers = append(a.closers, func() error { return e.current.Load().Close() })
	return a.opts.Dir.WriteRunning(a.Viewer(), a.ports.tls.Fingerprint())
}

// openACME opens the certificates of an authority. They are encrypted with nodes.secret, or else with the key of the data folder.
func (a *App) openACME(ctx context.Context) error {
	cfg := a.opts.Settings
	if cfg.TLS.ACME == nil {
		return nil
	}
	o, err := cfg.TLS.ACME.ReadOptions(a.opts.Folder)
	if err != nil {
		return fmt.Errorf("tls.acme.ca: %w", err)
	}
	key, err := a.ports.tls.Key()
	if cfg.Nodes.Secret != "" && err == nil {
		var secret understudy.Secret
		secret, err = a.opts.Secrets(ctx, cfg.Nodes.Secret)
		key = []byte(secret.Reveal())
	}
	if err != nil {
		return fmt.Errorf("tls.acme: %w", err)
	}
	var claims acme.Claims
	if a.saved.fleet != nil {
		claims = a.saved.fleet
	}
	if o.Storage, err = acme.NewStorage(a.db.KV, key, claims); err != nil {
		return err
	}
	o.Address, o.Logger, o.Now = cfg.Viewer.Listen, a.log, time.Now
	m := acme.New(o)
	a.ports.tls.Issued, a.ports.tls.IssuedStates, a.ports.tls.Names = m.Certificate, m.States, o.Names
	a.tasks = append(a.tasks, m.Run)
	return nil
}

// viewerPort is the name of the viewer's port.
const viewerPort = "viewer"

// openFrontends creates the parts behind the ports that outlive a policy.
func (a *App) openFrontends(ctx context.Context, p policy) error {
	cfg, token := a.opts.Settings, a.opts.Dir.Token
	changes, err := a.openFeed(ctx, p)
	if err != nil {
		return err
	}
	shares := cfg.Shares(os.ReadFile)
	var lists *limiter.Limiter
	if n := shares.Lists; n > 0 {
		lists = limiter.New(n, n/2)
	}
	sums := columns.NewSet(a.db, config.ColumnsMemory(cfg, os.ReadFile), a.log)
	a.closers = append(a.closers, sums.Close)
	key, err := search.Key(ctx, a.db.KV)
	if err != nil {
		return err
	}
	watches, err := a.openWatches(ctx, key)
	if err != nil {
		return err
	}
	screens, err := push.Open(ctx, a.db.KV, a.db.Jobs.Now)
	if err != nil {
		return err
	}
	outages := &push.Outages{Book: screens, Logger: a.log, Health: func() (all []push.Health) {
		for _, src := range a.sources {
			if h := a.clients[src.Name].Health(); a.isLeader() {
				all = append(all, push.Health{Source: src.Name, State: h.State, Since: h.Since, IsKnown: len(h.Recent) > 0})
			}
		}
		return all
	}}
	a.policies.push, a.tasks = screens, append(a.tasks, outages.Run)
	rows := a.openTables(ctx, p)
	if err := a.joinFleet(ctx, changes, watches, rows); err != nil {
		return err
	}
	commands := a.commandOptions()
	orders := operations.Operator{Crawler: a.crawler, Purger: a.purger(), Eraser: a.eraser}
	doer := actions.New(actions.Options{Store: a.db.Actions, Mirror: a.mirror, Operator: orders, Logger: a.log, Now: time.Now})
	a.closers = append(a.closers, doer.Close)
	seals, err := page.NewSeals()
	if a.saved.fleet != nil {
		seals, err = page.DeriveSeals(key)
	}
	if err != nil {
		return err
	}
	e := &enforcer{opts: a.opts, settings: a.settings, policies: a.policies, sources: a.sources, log: a.log, ports: a.ports,
		clients: a.clients, mirror: a.mirror, columns: sums, exports: newExports(cfg), audit: a.audit, feed: changes, forecasts: a.forecasts,
		watches: watches, push: screens, tables: rows}
	a.enforcer, a.issuer.enforce, a.policies.reload = e, e.updateCredentials, e.reload
	f := a.newFigures(ctx, e, changes)
	commands.Snapshot, commands.Readable, commands.Nodes = f.readSnapshot, f.checkStore, f.readNodes
	commands.IsPaused = a.settings.paused
	commands.IsEnding, commands.SettingsStatus = a.ports.ending.Load, a.settings.status
	commands.SeesAll, commands.Profiles, commands.ListSlow = a.canSeeAll, a.ports.profiles, a.ports.tracer.ListSlow
	if a.opts.ReadSettings != nil {
		commands.Reload, commands.Compare, commands.Restart = e.reload, e.compare, a.opts.Restart
		a.tasks = append(a.tasks, e.run)
	}
	routes := map[string]http.Handler{"/-/sync": a.crawler.Handler(token, a.audit), tables.Path: rows.NewHandler(token)}
	if a.saved.fleet != nil {
		routes[fleet.PokePath] = a.saved.fleet
	}
	b := &builder{sources: a.sources, clients: a.clients, ports: a.ports, exports: e.exports, traffic: f.traffic, inForce: e.current.Load,
		notes: a.db.Annotations, diagnostics: commands, routes: routes,
		hook: proxy.HookOptions{Sources: a.sources, Secret: a.settings.hookSecret, Hint: a.mirror.AddHint},
		viewer: page.Options{
			Sources: a.sources, Mirror: a.mirror, Media: a.mirror, Seals: seals, Lookups: page.NewLookups(a.sources),
			Cookies: a.policies.visitors.cookies, Snapshot: f.viewerSnapshot, History: a.db, Jobs: a.jobs, Feed: "/-/feed",
			Forecasts: a.forecasts, Actions: doer, Annotations: a.db.Annotations, Watches: watches, Push: screens, Webhooks: changes,
			Spending: f.spending, Nodes: f.readNodes,
			Audit: a.audit, Trail: a.audit, Version: a.opts.Version, Logger: a.log, Now: time.Now,
		},
		dropIn: proxy.Options{
			Mirror: a.mirror, Ready: a.mirror.FindReady, Media: a.mirror, Exchanger: a.mirror, LastChange: a.db.ReadLastChange, Log: a.ports.access,
			TooLarge: func() { f.traffic.tooLarge.Add(1) }, Audit: a.audit, Logger: a.log, Now: time.Now,
			Tracer: a.ports.tracer, Unread: a.ports.unread, Cache: shares.Forms, Lists: lists,
		},
		search: search.Options{Sources: a.sources, Store: a.db, KV: a.db.KV, Key: key, Columns: sums, Completeness: f.completeness,
			Now: time.Now, Logger: a.log},
		searches: search.HandlerOptions{Token: token, Audit: a.audit, Logger: a.log},
		agents: agents.Options{Sources: a.sources, Mirror: a.mirror, History: a.db, StoredState: f.completeness, Key: key,
			Version: a.opts.Version,
			Audit:   a.audit, Logger: a.log, Now: time.Now},
		jobs:      jobs.HandlerOptions{Jobs: a.jobs, SeesAll: a.canSeeAll, Token: token, Audit: a.audit, Logger: a.log},
		forecasts: forecast.HandlerOptions{Forecasts: a.forecasts, Audit: a.audit, Token: token},
	}
	e.build = b.build
	subscribers := wires.New(changes)
	a.closers = append(a.closers, subscribers.Close)
	for _, route := range wires.Routes() {
		if _, path, _ := strings.Cut(route, " "); path != "" {
			b.routes[path] = subscribers
		}
	}
	if err := a.openZeroMQ(ctx, changes); err != nil {
		return err
	}
	v := &a.policies.visitors
	a.tasks = append(a.tasks, e.followCredentials, v.sessions.Run, v.cookies.Run, f.traffic.day.Run, a.settings.awaitResume,
		a.ports.tracer.Run)
	if a.opts.Settings.Tracing.Record {
		a.tasks = append(a.tasks, a.ports.profiles.RecordEvents)
	}
	if !a.settings.paused {
		a.tasks = append(a.tasks, a.forecasts.Run)
	}
	return nil
}

// openFeed creates the feed. Its streams end before the viewer's port waits for its last responses.
func (a *App) openFeed(ctx context.Context, p policy) (*feed.Feed, error) {
	c := a.opts.Settings.Feed
	sharing, err := a.readSharing(ctx)
	if err != nil {
		return nil, err
	}
	f, err := feed.New(ctx, feed.Options{
		Sharing: sharing, Sources: a.sources, Store: a.db, KV: a.db.KV, Policy: p.feed(), Token: a.opts.Dir.Token,
		Enqueue: a.jobs.Enqueue, OnSubscribed: a.mirror.NoteReader,
		Audit: a.audit, Now: time.Now, SharedNow: a.db.Jobs.Now, Logger: a.log,
		Limits: feed.Limits{
			MaxSubscribers: c.Subscribers, MaxEach: c.SubscribersEach, MaxBuffered: c.Buffer, Heartbeat: c.Heartbeat.Std(), Stall: c.Stall.Std(),
			Wait: c.Wait.Std(), PollInterval: c.Look.Std(), Pause: c.Pause.Std(),
		},
	})
	if err != nil {
		return nil, err
	}
	a.saved.listen(f.NotifyPage)
	a.ports.servers[0].AddShutdownHook(f.End)
	a.ports.servers[0].AddShutdownHook(a.jobs.EndWaits)
	a.eraser.Erased = f.Forget
	a.tasks = append(a.tasks, f.Run)
	return f, a.jobs.Add(outbox.JobKind(feed.DeliverKind, f.Deliver), a.forecasts.JobKind(f.SendMessage))
}

// openZeroMQ binds the port of the feed for sockets of ZeroMQ, if the settings have one.
func (a *App) openZeroMQ(ctx context.Context, f *feed.Feed) error {
	c := a.opts.Settings.Feed
	if c.ZeroMQ == "" {
		return nil
	}
	l, err := frontend.Listen(ctx, c.ZeroMQ, "feed: {zmq: HOST:PORT}")
	if err != nil {
		return err
	}
	a.closers = append(a.closers, frontend.CloseListener(l))
	var names []string
	for _, s := range a.sources {
		names = append(names, s.Name)
	}
	z := &wires.ZeroMQ{Feed: f, Sources: names, MaxConnections: c.Subscribers, Stall: c.Stall.Std(), Now: time.Now}
	a.tasks = append(a.tasks, func(ctx context.Context) error { return z.Serve(ctx, l) })
	return nil
}

// openTables prepares the tables of the sources. A database that does not answer is tried again later.
func (a *App) openTables(ctx context.Context, p policy) *tables.Tables {
	t := tables.New(tables.Options{Store: a.db, IsLeader: a.isLeader, Audit: a.audit, Logger: a.log})
	a.saved.listen(func(l request.PageSaved) {
		if len(l.Changes) > 0 {
			t.Notify()
		}
	})
	a.eraser.Tables = t.AwaitErased
	a.closers = append(a.closers, t.Close)
	ctx, cancel := context.WithTimeout(ctx, tablesTimeout)
	defer cancel()
	_ = t.SetPolicy(ctx, p.gate, p.tables) // its error is logged
	return t
}

// tablesTimeout is how long the start waits until the tables contain nothing that their role has lost.
const tablesTimeout = 5 * time.Second

// openWatches reads the watches from the store.
func (a *App) openWatches(ctx context.Context, key []byte) (*watch.Book, error) {
	b, err := watch.Open(ctx, watch.Options{Sources: a.sources, Records: a.db, KV: a.db.KV, Key: key, Enqueue: a.jobs.Enqueue,
		IsLeader: a.isLeader, Audit: a.audit, Now: a.db.Jobs.Now, Logger: a.log})
	if err != nil {
		return nil, err
	}
	a.saved.listen(func(l request.PageSaved) {
		if len(l.Changes) > 0 {
			b.Notify()
		}
	})
	a.policies.watches = b
	a.tasks = append(a.tasks, b.Run)
	return b, a.jobs.Add(outbox.JobKind(watch.Kind, b.Deliver))
}

// openCommands binds the port of a command that works in the data folder. The port accepts the same commands as
// a server, with the token, and no other requests.
func (a *App) openCommands(ctx context.Context) error {
	if err := a.openPort(ctx, "commands", "127.0.0.1:0", "", frontend.PlainRefusal()); err != nil {
		return err
	}
	for _, src := range a.sources { // URLs in responses must be rewritten to the same address as on the server's port
		scheme := "http://"
		if a.opts.Settings.TLS.IsOnFor(a.opts.Settings.Sources[src.Name]) {
			scheme = "https://"
		}
		src.PublicURL = cmp.Or(src.PublicURL, scheme+a.opts.Settings.Sources[src.Name].Listen)
	}
	v := &a.policies.visitors
	if err := v.hashes.Open(ctx, a.db.KV); err != nil {
		return err
	}
	o := a.commandOptions()
	o.Person = func(*http.Request) (understudy.Caller, error) { return understudy.Caller{}, understudy.ErrForbidden }
	mux, d := http.NewServeMux(), diagnostics.New(o).Handler()
	for _, path := range []string{"/-/purge", "/-/erase", "/-/erasures", "/-/index", "/-/shrink", "/-/backup", "/-/resume",
		"/-/credentials", "/-/credentials/", "/-/explain"} {
		mux.Handle(path, d)
	}
	mux.Handle("/-/sync", a.crawler.Handler(a.opts.Dir.Token, a.audit))
	a.ports.servers[0].SetHandler(mux, nil, nil)
	return nil
}

// commandOptions returns the options of the handlers for commands, which need the token of the data folder.
func (a *App) commandOptions() diagnostics.Options {
	indexes := operations.Indexer{DB: a.db, Jobs: a.jobs, Now: time.Now, Log: a.log}
	explain := func(role, source, kind, id string) (*access.RecordExplanation, error) {
		gate, err := a.policies.newGate(a.settings.current.Load())
		if err != nil {
			return nil, err
		}
		return gate.ExplainRecord(role, source, kind, id)
	}
	return diagnostics.Options{Purge: a.purger().Purge, Erase: a.eraser.Erase, Receipts: a.eraser.ListReceipts, Index: indexes.Index,
		Shrink: a.eraser.Shrinker.Shrink, Backup: a.eraser.Archiver.Save, Resume: func() error { return a.settings.resume(a.opts.Dir.Path) },
		Credentials: a.issuer, Now: time.Now, Explain: explain, Token: a.opts.Dir.Token, Audit: a.audit, Logger: a.log}
}

// purger returns a Purger, which removes pages and records.
func (a *App) purger() *operations.Purger {
	return &operations.Purger{Sources: a.sources, Files: a.files, Crawler: a.crawler, Mirror: a.mirror, Forecasts: a.forecasts}
}

// canSeeAll reports whether a caller may see every record of every source.
func (a *App) canSeeAll(c understudy.Caller) bool {
	return c.Role() == understudy.RoleAll && (c.Source == "" || len(a.sources) == 1)
}
