// Package app builds every package from the settings, joins them and serves them.
//
//	 programs      people
//	    |             |
//	[proxy]  ...  [viewer] + /-/ [diagnostics]
//	    '------+------'
//	   callers | access (the gate)
//	        [mirror]
//	       |        |
//	 [upstream]  [store]
package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"understudy/internal/actions"
	"understudy/internal/app/lastday"
	"understudy/internal/app/lookups"
	"understudy/internal/audit"
	"understudy/internal/config"
	"understudy/internal/crawl"
	"understudy/internal/credentials"
	"understudy/internal/datadir"
	"understudy/internal/diagnostics/profile"
	"understudy/internal/feed"
	"understudy/internal/forecast"
	"understudy/internal/frontend"
	"understudy/internal/jobs"
	"understudy/internal/proxy"
	"understudy/internal/store"
	"understudy/internal/store/contents"
	"understudy/internal/viewer/page"
	"understudy/internal/watch"
	"understudy/kit/accesslog"
	"understudy/mirror"
	"understudy/request"
	"understudy/spec"
	"understudy/upstream"
)

// Options is what an application is built from.
type Options struct {
	Settings *config.Settings
	Folder   string // of the settings file
	Secrets  config.Secrets
	Dir      *datadir.Dir
	By       string // who gives the grants: "config" or "demo"
	World    string // of the demo; "" = the upstream's address and account
	Stderr   io.Writer
	// Again reads the settings once more; nil: they are not read again.
	Again    func() (*config.Settings, error)
	Hangup   <-chan os.Signal // asks for that
	Version  string           // of the product, as others are told
	Headless bool             // for a command: no port but that of the commands, on the loopback interface
	Offline  bool             // with Headless: upstream is never asked, so that no secret is read
}

// App is a built application. Close gives back everything that was opened.
type App struct {
	cfg  *config.Settings                // as it was started with
	live atomic.Pointer[config.Settings] // as last loaded
	opts Options
	log  *slog.Logger
	opened
	frontends
	counts
	lookups *lookups.Lookups
	exports *exports
	erasing erasing
	closers []func() error
}

// opened are the packages below the frontends.
type opened struct {
	sources []*spec.Source
	clients map[string]*upstream.Client
	db      *store.DB
	files   *contents.Files
	seals   *page.Seals
	mirror  *mirror.Mirror
	saved   *savedBus
	walker  *crawl.Crawler
	jobs    *jobs.Runner
	notifiers
	searching searching
	made      *credentials.Book
}

// notifiers tell of what changed and of what may come.
type notifiers struct {
	feed      *feed.Feed
	forecasts *forecast.Forecasts
	watches   *watch.Book
}

// frontends are the ports and what answers on them.
type frontends struct {
	servers    []*frontend.Server // the viewer's first
	installed  *handlerSet
	proxies    atomic.Pointer[map[string]*proxy.Proxy] // those in use
	access     *accesslog.Log
	accessFile *accesslog.File // nil: the access log goes to standard error, or nowhere
	profiles   *profile.Recorder
	signatures hookKeys
	actions    *actions.Runner
	visitors
	tunnels *tunnels // nil: there are none
	ending  atomic.Bool
	audit   *audit.Log // nil: nothing is listed
}

// counts are figures that no package keeps itself.
type counts struct {
	reads  reloadStatus
	recent map[string]*recent // by source
	day    *lastday.Days
	// uncounted: the home page could not count what is held; it is logged once.
	uncounted atomic.Bool
	// tooLarge counts bodies of writes beyond the limit, noPlace writes that
	// found no place, by source.
	tooLarge atomic.Int64
	noPlace  map[string]*atomic.Int64
}

// Build opens everything, in the order the packages need each other. On an error
// what was opened is closed again.
func Build(ctx context.Context, b Options) (h *App, err error) {
	h = &App{cfg: b.Settings, opts: b, erasing: newErasing(), exports: newExports(b.Settings)}
	h.log = newLogger(b)
	if b.By == "config" {
		b.Secrets = config.WarnOfBlanks(b.Secrets, func(warning string) { h.log.Warn("settings", "warning", warning) })
		b.Secrets = h.reads.secrets.Record(b.Secrets)
		h.opts.Secrets = b.Secrets
	}
	h.clients, h.recent, h.noPlace = map[string]*upstream.Client{}, map[string]*recent{}, map[string]*atomic.Int64{}
	h.live.Store(b.Settings)
	h.profiles = profile.New(profile.Options{Dir: filepath.Join(b.Dir.Path, "profiles"), Version: b.Version, Now: time.Now, Logger: h.log})
	h.reads.done(time.Now(), nil, nil)
	defer func() {
		if err != nil {
			err = errors.Join(err, h.close())
		}
	}()
	if h.visitors, err = newVisitors(); err != nil {
		return h, err
	}
	if h.sources, err = b.Settings.ReadSources(b.Folder); err != nil {
		return h, err
	}
	specs := map[string]*spec.Spec{}
	for _, src := range h.sources {
		specs[src.Name] = src.Spec
		h.recent[src.Name], h.noPlace[src.Name] = newRecent(), &atomic.Int64{}
	}
	h.lookups = lookups.New(h.sources, h.log)
	var p policy
	if !b.Headless {
		if p, err = h.policyOf(ctx, b.Settings, b); err != nil {
			return h, err
		}
		if err := h.openAccessLog(b.Stderr); err != nil {
			return h, err
		}
	}
	if err := h.openStore(ctx, b, specs); err != nil {
		return h, err
	}
	if err := (audits{h}).open(ctx, b); err != nil {
		return h, err
	}
	if err := (issuer{h}).open(ctx); err != nil {
		return h, err
	}
	if err := h.openMedia(b); err != nil {
		return h, err
	}
	if err := h.openMirror(ctx, b); err != nil {
		return h, err
	}
	h.saved.Subscribe(func(_ context.Context, s request.PageSaved) error { h.lookups.Saved(s.Page); return nil })
	if err := h.lookups.Open(ctx, h.db); err != nil {
		return h, err
	}
	if err := (forecasts{h}).open(); err != nil {
		return h, err
	}
	if err := h.openWalker(); err != nil {
		return h, err
	}
	if err := h.openJobs(); err != nil {
		return h, err
	}
	operations{h}.open()
	figures{h}.countDay(ctx)
	if b.Headless {
		h.setPublicURLs()
		err = h.openCommands(ctx)
	} else {
		err = h.openPorts(ctx, p, b)
	}
	if err != nil || b.Offline {
		return h, err
	}
	return h, h.loadWalks(ctx)
}

// newLogger returns the application's log in the format and from the level that the
// settings name.
func newLogger(b Options) *slog.Logger {
	o := &slog.HandlerOptions{Level: b.Settings.Log.Level.Std()}
	if b.Offline {
		o.Level = max(slog.LevelWarn, b.Settings.Log.Level.Std()) // the command prints what it did
	}
	if b.Settings.Log.Format == config.FormatJSON {
		return slog.New(slog.NewJSONHandler(b.Stderr, o))
	}
	return slog.New(slog.NewTextHandler(b.Stderr, o))
}

// close gives back what build opened, last first.
func (h *App) close() error {
	var errs []error
	for i := len(h.closers) - 1; i >= 0; i-- {
		errs = append(errs, h.closers[i]())
	}
	h.closers = nil
	return errors.Join(errs...)
}

// Serve runs the servers, the mirror's and the clients' background work and the
// given tasks until ctx ends. first, when not nil, is served before and ended
// with the others.
func (h *App) Serve(ctx context.Context, first *frontend.Server, more []frontend.Task) error {
	faces := tunnelled{h}.serving()
	if first != nil {
		faces = append([]*frontend.Server{first}, faces...)
	}
	if h.opts.Offline {
		return errors.Join(frontend.Run(ctx, faces, []frontend.Task{h.jobs.Run}), h.close())
	}
	tasks := append([]frontend.Task{h.mirror.Run, h.jobs.Run, h.walker.Run, erasures{h}.eraseSoon, h.lookups.Run, h.loadMedia,
		h.profiles.Run}, more...)
	if h.feed != nil {
		tasks = append(tasks, h.feed.Run, h.watches.Run)
	}
	if h.opts.Again != nil {
		tasks = append(tasks, reloader{h}.reloads)
	}
	if h.access != nil {
		tasks = append(tasks, h.access.Run)
	}
	if !h.opts.Headless {
		tasks = append(tasks, h.sessions.Run, h.cookies.Run, h.forecasts.Run, h.day.Run)
	}
	if h.audit != nil {
		tasks = append(tasks, h.audit.Run, h.audit.Send)
	}
	for _, c := range h.clients {
		tasks = append(tasks, c.Run)
	}
	ending := context.AfterFunc(ctx, func() { h.ending.Store(true); h.profiles.Stop() })
	defer ending()
	return errors.Join(frontend.Run(ctx, faces, tasks), h.close())
}

// PrintAddresses says where everything is; scripts read the first two columns.
func (h *App) PrintAddresses(w io.Writer) {
	for _, f := range h.servers {
		fmt.Fprintf(w, "%-9s %s\n", f.Name, f.URL())
	}
}

// Settings are those the application was started with.
func (h *App) Settings() *config.Settings { return h.cfg }

// Sources are the configured ones, in the order of their names.
func (h *App) Sources() []*spec.Source { return h.sources }

// Viewer is where people browse.
func (h *App) Viewer() string { return h.servers[0].URL() }

// Commands is where commands are taken: at the viewer's port or, headless, at one
// of their own.
func (h *App) Commands() datadir.Running {
	return datadir.Running{PID: os.Getpid(), Viewer: h.servers[0].URL(), Token: h.opts.Dir.Token}
}

// Address is where a source's drop-in listens.
func (h *App) Address(source string) string {
	i := slices.IndexFunc(h.servers, func(f *frontend.Server) bool { return f.Name == source })
	return h.servers[i].URL()
}

// Asked is how many requests upstream had for a reason.
func (h *App) Asked(source string, reason request.Reason) int64 {
	return h.clients[source].Stats().ByReason[reason]
}

// CaughtUp is when the newest page of a kind was last read; zero: not yet.
func (h *App) CaughtUp(source, kind string) time.Time { return h.mirror.Stats(source).CaughtUp[kind] }
