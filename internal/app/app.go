// Package app builds every package from the settings, connects them and serves them.
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
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"understudy/internal/app/operations"
	"understudy/internal/config"
	"understudy/internal/crawl"
	"understudy/internal/datadir"
	"understudy/internal/diagnostics/profile"
	"understudy/internal/forecast"
	"understudy/internal/frontend"
	"understudy/internal/jobs"
	"understudy/internal/store"
	"understudy/internal/store/contents"
	"understudy/internal/tracing"
	"understudy/mirror"
	"understudy/spec"
	"understudy/upstream"
)

// Options are the options of an application.
type Options struct {
	Settings *config.Settings
	Folder   string // the folder of the settings file
	Secrets  config.Secrets
	Dir      *datadir.Dir
	By       string // what defines the grants: "config" or "demo"
	World    string // the name of the demo's data; if "", the name is made from the upstream's address and account
	Stderr   io.Writer
	// ReadSettings reads the settings again. If it is nil, they are never read again.
	ReadSettings func() (*config.Settings, error)
	Hangup       <-chan os.Signal // each signal on this channel makes the server read the settings again
	Version      string           // the version of the product that responses and pages show
	// whether the application runs a command: it opens no port except one for commands, on the loopback interface
	Headless bool
	Offline  bool // with Headless: whether no request is sent to the upstream, so that no secret is read
	DryRun   bool // whether Build only reads the settings, specs, users and secrets, and whether it knows the database
	// Inherited are the sockets that the process got from its starter.
	Inherited frontend.Inherited
	// Restart begins a restart, which ends the context of Serve. If it is nil, there are no restarts.
	Restart func(context.Context) error
}

// App is a built application. Serve closes everything that was opened.
type App struct {
	opts     Options
	log      *slog.Logger
	settings *liveSettings
	tasks    []frontend.Task // the tasks that Serve runs
	closers  []func() error  // the functions that close what was opened; called in reverse order

	sources   []*spec.Source
	policies  *policyReader
	db        *store.DB
	files     contents.Store
	audit     auditLog // the audit log; nil if nothing is recorded
	issuer    *issuer
	clients   map[string]*upstream.Client // the upstream clients by source
	saved     *savedPages
	mirror    *mirror.Mirror
	jobs      *jobs.Runner
	forecasts *forecast.Forecasts
	crawler   *crawl.Crawler
	eraser    *operations.Eraser
	ports     *ports
	enforcer  *enforcer // applies the policy again after changes; nil in a command
}

// Build opens everything in the order in which the packages depend on each other. After an error it closes what
// it has opened.
func Build(ctx context.Context, o Options) (a *App, err error) {
	settings := newLiveSettings(o)
	a = &App{opts: o, log: slog.New(settings.lines), settings: settings, clients: map[string]*upstream.Client{}}
	if o.By == "config" {
		secrets := config.WarnOfBlanks(o.Secrets, o.Settings, func(warning string) { a.log.Warn("settings", "warning", warning) })
		a.opts.Secrets = a.settings.secrets.Record(secrets)
	}
	defer func() {
		if err != nil {
			err = errors.Join(store.StartError(o.Dir.DatabasePath(o.Settings.Store.DSN), err), a.close())
		}
	}()
	if a.sources, err = o.Settings.ReadSources(o.Folder); err != nil {
		return a, err
	}
	if a.settings.restored, a.settings.paused, err = datadir.ReadRestored(o.Dir.Path); err != nil {
		return a, err
	}
	if a.settings.paused && o.Headless && !o.Offline {
		return a, errors.New("the data folder was restored and is paused; end the pause first: understudy resume")
	} else if a.settings.paused && !o.Headless {
		a.log.Warn("the data folder was restored: webhooks, watches, polls, syncs and jobs are paused until understudy resume",
			"restored", a.settings.restored)
	}
	c := o.Settings.Tracing
	profiles := profile.New(profile.Options{
		Dir: filepath.Join(o.Dir.Path, "profiles"), Version: o.Version, Now: time.Now, Logger: a.log})
	a.ports = &ports{limits: &o.Settings.Limits, log: a.log, profiles: profiles,
		tracer: tracing.New(strings.TrimSuffix(c.Endpoint, "/"), o.Version, c.Slow.Std(), profiles.KeepEvents, a.log),
		unread: frontend.NewUnread(o.Settings.Shares(os.ReadFile).Unread)}
	if a.policies, err = newPolicyReader(a.opts, a.sources, a.ports, a.log); err != nil {
		return a, err
	}
	var p policy
	if !o.Headless {
		if p, err = a.policies.read(ctx, o.Settings); err != nil {
			return a, err
		}
		if err := a.openAccessLog(); err != nil {
			return a, err
		}
	}
	if o.DryRun {
		_, err = readSecrets(ctx, o.Settings, a.sources, a.opts.Secrets)
		_, _, failed := store.CheckSettings(ctx, o.Dir.DatabasePath(o.Settings.Store.DSN), func(bool, string, string) {})
		if !errors.Is(failed, fs.ErrNotExist) { // the server creates it
			err = errors.Join(err, failed)
		}
		return a, errors.Join(err, a.close())
	}
	for _, open := range []func(context.Context) error{
		a.openStore, a.openAudit, a.openCredentials, a.openMirror, a.openJobs, a.openWork,
	} {
		if err := open(ctx); err != nil {
			return a, err
		}
	}
	if p.people != nil { // the policy was built before the audit log was opened
		p.people.Audit = a.audit
	}
	if o.Headless {
		err = a.openCommands(ctx)
	} else {
		err = a.openPorts(ctx, p)
	}
	if err != nil || o.Offline {
		return a, err
	}
	kept := map[string][]string{} // the kinds that the settings keep complete
	for _, src := range a.sources {
		kept[src.Name] = o.Settings.Sources[src.Name].Sync
	}
	return a, a.crawler.Load(ctx, kept)
}

// close closes what Build opened, in reverse order.
func (a *App) close() error {
	var errs []error
	for _, end := range slices.Backward(a.closers) {
		errs = append(errs, end())
	}
	a.closers = nil
	return errors.Join(errs...)
}

// Serve runs the servers, the background work and the given tasks until ctx ends. If first is not nil, it is an
// additional server that starts before the others and ends with them.
func (a *App) Serve(ctx context.Context, first *frontend.Server, more []frontend.Task) error {
	servers := slices.Clone(a.ports.servers)
	if a.ports.tunnels != nil {
		servers = append(servers, a.ports.tunnels.inside)
	}
	if first != nil {
		servers = append([]*frontend.Server{first}, servers...)
	}
	tasks := []frontend.Task{a.jobs.Run, a.eraser.Shrinker.Run, a.eraser.Archiver.Run}
	if !a.opts.Offline {
		tasks = slices.Concat(tasks, a.tasks, more)
		defer context.AfterFunc(ctx, func() { a.ports.end(context.Cause(ctx)) })()
	}
	return errors.Join(frontend.Run(ctx, servers, tasks), a.close())
}

// PrintAddresses prints the address of each port. Scripts read the first two columns.
func (a *App) PrintAddresses(w io.Writer) {
	for _, f := range a.ports.servers {
		fmt.Fprintf(w, "%-9s %s\n", f.Name, f.URL())
	}
}

// DescribeSockets returns the value of frontend.SocketsVariable after Serve has ended for a restart.
func (a *App) DescribeSockets() string { return frontend.DescribeSockets(a.ports.servers) }

// Commands returns where the application accepts commands: on the viewer's port or, if the application is headless,
// on a separate port.
func (a *App) Commands() datadir.Running {
	return datadir.NewRunning(a.Viewer(), a.opts.Dir.Token, a.ports.tls.Fingerprint())
}

// Viewer returns the URL of the viewer.
func (a *App) Viewer() string { return a.ports.viewer() }

// Address returns the URL of a source's drop-in port.
func (a *App) Address(source string) string { return a.ports.address(source) }
