// This file opens the parts below the frontends: the store, the mirror with its clients, and the jobs.

package app

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"understudy"
	"understudy/internal/app/operations"
	"understudy/internal/audit"
	"understudy/internal/backup"
	"understudy/internal/config"
	"understudy/internal/crawl"
	"understudy/internal/datadir"
	"understudy/internal/diagnostics"
	"understudy/internal/fleet"
	"understudy/internal/forecast"
	"understudy/internal/frontend"
	"understudy/internal/jobs"
	"understudy/internal/proxy"
	"understudy/internal/store"
	"understudy/internal/store/contents"
	"understudy/internal/store/intents"
	"understudy/internal/viewer/page"
	"understudy/kit/dispatch"
	"understudy/kit/semaphore"
	"understudy/mirror"
	"understudy/request"
	"understudy/spec"
	"understudy/upstream"
)

// openStore opens the database and the folder or the bucket of media contents. It records the upstream of every source, and fails
// if the folder was filled from another upstream.
func (a *App) openStore(ctx context.Context) (err error) {
	specs := map[string]*spec.Spec{}
	for _, src := range a.sources {
		specs[src.Name] = src.Spec
	}
	cfg := a.opts.Settings
	a.eraser = &operations.Eraser{Delay: cfg.Store.EraseAfter.Std(), Retention: cfg.RetentionTimes(), Wake: make(chan struct{}, 1),
		Sources: a.sources, Log: a.log}
	path := a.opts.Dir.DatabasePath(cfg.Store.DSN)
	a.eraser.Shrinker = operations.Shrinker{Path: path, Log: a.log, Wake: make(chan struct{}, 1)}
	b := &cfg.Backup
	a.eraser.Archiver = operations.Archiver{Log: a.log, Wake: make(chan diagnostics.Backup, 1),
		Schedule: operations.Schedule{To: b.To, Every: b.Every.Std(), Keep: b.Keep, KeepFor: b.KeepFor.Std(), Keys: b.Keys},
		Bucket: func(ctx context.Context, url string) (*contents.Archive, string, error) {
			return cfg.Store.OpenArchive(ctx, url, a.opts.Secrets, time.Now)
		},
		Parts: backup.Options{Dir: a.opts.Dir.Path, Version: a.opts.Version, Now: time.Now, More: map[string]string{
			datadir.SettingsFile: cfg.File, datadir.UsersFile: cfg.Viewer.UsersFile(a.opts.Folder)}}}
	if err := a.eraser.Shrinker.RemoveCopies(); err != nil {
		return err
	}
	a.db, err = store.Open(ctx, store.Options{Path: path, Specs: specs, Limit: int64(cfg.Store.Limit),
		Retention: cfg.RetentionTimes(), ToErase: a.eraser.Notify, Now: time.Now, Logger: a.log})
	if err != nil {
		return err
	}
	a.closers = append(a.closers, a.db.Close)
	for _, src := range a.sources {
		if a.opts.Offline {
			break
		}
		address := cmp.Or(cfg.Sources[src.Name].Upstream, src.Spec.Hosts[0].URL)
		world := cmp.Or(a.opts.World, src.Spec.Name+" at "+address+" as "+src.User)
		if err := a.db.KeepOrigin(ctx, src.Name, world); err != nil {
			return err
		}
	}
	o, err := cfg.Store.ReadContents(ctx, a.opts.Dir.Path, a.opts.Secrets)
	if err != nil {
		return err
	}
	o.Erased, o.LoadLater, o.Now, o.Logger = a.db.IsErased, !a.opts.Headless || o.S3.URL != "", time.Now, a.log
	a.files, err = contents.OpenStore(o)
	a.tasks = append(a.tasks, loadFiles(a.files, a.log))
	return err
}

// loadFiles returns a task that reads the index of media contents while requests are already served. The task runs
// until its context ends, because a task that ends earlier ends the server.
func loadFiles(files contents.Store, log *slog.Logger) frontend.Task {
	return func(ctx context.Context) error {
		if err := files.Load(ctx); err != nil && ctx.Err() == nil {
			log.Error("the index of contents cannot be read; stored contents are still served, and none is deleted to make room", "err", err)
		}
		<-ctx.Done()
		return nil
	}
}

// auditLog is the audit log; audit.Log implements it.
type auditLog interface {
	proxy.Auditor
	page.Trail
	SetPolicy(p audit.Policy)
}

// openAudit creates the audit log of the data folder. The first entry opens its files.
func (a *App) openAudit(ctx context.Context) error {
	if a.opts.Settings.Audit.Off {
		return nil
	}
	o, err := a.opts.Settings.Audit.ReadOptions(ctx, a.opts.Dir.Path, a.opts.Secrets)
	if err != nil {
		return err
	}
	o.Now, o.Logger = time.Now, a.log
	if a.opts.Headless || a.opts.Offline || a.settings.paused {
		o.Send = audit.SendOptions{} // only a server sends the audit log, not a command, nor a restored copy
	}
	o.Send.KV = a.db.KV
	o.Send.Host, _ = os.Hostname() // if the name of the machine is unknown, syslog messages have none
	if store.IsPostgreSQL(a.opts.Settings.Store.DSN) {
		o.Send.Folder = fmt.Sprintf(" %x", sha256.Sum256([]byte(o.Send.Host+"\x00"+o.Dir)))
	}
	l := audit.New(o)
	a.audit, a.policies.auditor = l, l
	a.closers, a.tasks = append(a.closers, l.Close), append(a.tasks, l.Run, l.Send)
	return nil
}

// openMirror creates the clients, the mirror and the lookups for row rules.
func (a *App) openMirror(ctx context.Context) error {
	cfg := a.opts.Settings
	// The bus is closed after all parts that dispatch events on it.
	a.saved = &savedPages{bus: dispatch.New[request.PageSaved](dispatch.Options{Logger: a.log}), log: a.log}
	a.closers = append(a.closers, a.saved.close)
	if err := a.openFleet(ctx); err != nil {
		return err
	}
	secrets := map[string][]understudy.Secret{}
	if !a.opts.Offline {
		var err error
		if secrets, err = readSecrets(ctx, cfg, a.sources, a.opts.Secrets); err != nil {
			return err
		}
	}
	a.settings.upstream.Store(&secrets)
	o := mirror.Options{
		PageSaved: a.saved.dispatch,
		Store:     a.db, Writes: a.db.Writes, Files: a.files, Hot: cfg.Shares(os.ReadFile).Hot, Now: time.Now, Logger: a.log,
		Ages: config.Ages(&cfg.Mirror), Limits: config.MirrorLimits(&cfg.Limits), KV: a.db.KV,
		Since: a.settings.restored, Paused: a.settings.paused,
	}
	bodies := config.MaxBody(cfg, "", os.ReadFile)
	for name := range cfg.Sources {
		bodies = max(bodies, config.MaxBody(cfg, name, os.ReadFile))
	}
	together := semaphore.New(semaphore.Options{Limit: bodies})
	for _, src := range a.sources {
		one, err := a.openUpstream(ctx, src, secrets[src.Name], together)
		if err != nil {
			return err
		}
		o.Sources = append(o.Sources, one)
	}
	if a.saved.fleet != nil && !a.opts.Headless {
		o.Memory, o.Others, o.Intents = a.saved.fleet.IsCurrent, a.saved.fleet, a.saved.fleet
		if a.saved.history.Since.After(o.Since) {
			o.Since = a.saved.history.Since
		}
	} else {
		file, err := intents.Open(filepath.Join(a.opts.Dir.Path, "intents"))
		if err != nil {
			return err
		}
		a.closers, o.Intents = append(a.closers, file.Close), file
	}
	var err error
	if a.mirror, err = mirror.New(o); err != nil {
		return err
	}
	l := a.policies.lookups
	a.saved.listen(func(s request.PageSaved) { l.NoteSaved(s.Page) })
	a.tasks = append(a.tasks, a.mirror.Run, l.Run)
	return l.Open(ctx, a.db)
}

// readSecrets reads the secrets of each source. A source that needs none gets an empty secret.
func readSecrets(ctx context.Context, cfg *config.Settings, sources []*spec.Source, read config.Secrets) (map[string][]understudy.Secret,
	error) {
	all := map[string][]understudy.Secret{}
	for _, src := range sources {
		all[src.Name] = []understudy.Secret{{}}
		if src.Spec.Auth.Style == "none" {
			continue
		}
		var err error
		if all[src.Name], err = cfg.Sources[src.Name].ReadSecrets(ctx, src.Spec, read); err != nil {
			return nil, fmt.Errorf("sources.%s.%w", src.Name, err)
		}
	}
	return all, nil
}

// openUpstream creates the client of a source, and the mirror's options for that source.
func (a *App) openUpstream(ctx context.Context, src *spec.Source, secrets []understudy.Secret, bodies *semaphore.Weighted,
) (one mirror.Source, err error) {
	cfg := a.opts.Settings
	s := cfg.Sources[src.Name]
	o := s.ClientOptions(cfg, src, secrets)
	o.Now, o.Bodies, o.Logger, o.UserAgent = time.Now, bodies, a.log, "understudy/"+a.opts.Version
	if src.Spec.Auth.Style != "none" && !a.opts.Offline {
		issuer, err := s.NewIssuer(ctx, src, a.opts.Secrets, a.db.KV)
		if err != nil {
			return one, fmt.Errorf("sources.%s.%w", src.Name, err)
		}
		if issuer != nil {
			o.Tokens = issuer
		}
	}
	client, err := upstream.New(o)
	if err != nil {
		return one, fmt.Errorf("sources.%s: %w", src.Name, err)
	}
	a.clients[src.Name] = client
	a.closers, a.tasks = append(a.closers, client.Close), append(a.tasks, client.Run)
	kinds, err := a.db.ReadKinds(ctx, src.Name)
	generations := map[string]int64{}
	for _, k := range kinds {
		generations[k.Kind] = k.Generation
	}
	return mirror.Source{Source: src, Upstream: client, Generations: generations, Rate: s.Rate, Answers: s.Answers, Checks: s.Checks}, err
}

// savedPages notifies listeners of every page that was saved. A listener must return at once and should only wake
// its own goroutine. If it misses an event, it can find the change in the rows of the store.
type savedPages struct {
	bus     *dispatch.Bus[request.PageSaved]
	log     *slog.Logger
	fleet   *fleet.Fleet // the processes on the same database; nil if there can be no others
	others  *others      // follows what these processes save; nil before this process has joined them
	history history
	// replaced is true if this process has found another history than the one before. Then nodes that seem alive do not serve it yet.
	replaced bool
}

// listen calls f for every page that is saved from now on.
func (p *savedPages) listen(f func(request.PageSaved)) {
	p.bus.Subscribe(func(_ context.Context, s request.PageSaved) error { f(s); return nil })
}

// dispatch notifies the listeners of a saved page. An error of a listener is logged. It affects neither the other
// listeners nor the saved page.
func (p *savedPages) dispatch(s request.PageSaved) {
	err := p.bus.Dispatch(context.Background(), s)
	var panicked *dispatch.PanicError
	switch {
	case errors.As(err, &panicked):
		p.log.Error("a listener panicked", "panic", panicked.Value, "stack", string(panicked.Stack))
	case err != nil:
		p.log.Error("a listener failed", "err", err)
	}
}

// busTimeout is how long dispatch waits at most for events that are being delivered to listeners.
const busTimeout = time.Second

func (p *savedPages) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), busTimeout)
	defer cancel()
	return p.bus.Close(ctx)
}

// openJobs creates the job runner. With SQLite, the folder's lock makes sure that no other process runs jobs of this store.
func (a *App) openJobs(context.Context) (err error) {
	cfg, worker, added := a.opts.Settings, "", func() {}
	if a.saved.fleet != nil {
		added = a.saved.fleet.NotifyOthers
		worker = a.saved.fleet.ID() // so that other processes take over its jobs soon after its lease ends
	}
	var kinds []jobs.Kind
	for name, k := range cfg.Jobs.Kinds {
		kinds = append(kinds, jobs.Kind{Name: name, Outside: true, Once: k.Once, Concurrency: k.Concurrency, Attempts: k.Attempts,
			Lease: k.Lease.Std()})
	}
	a.jobs, err = jobs.New(jobs.Options{
		Store: a.db.Jobs, Workers: cfg.Jobs.Workers, Memory: cfg.Jobs.MemoryLimit(cfg.Limits.MemoryLimit(os.ReadFile)),
		Lease: cfg.Jobs.Lease.Std(), Keep: cfg.Jobs.Keep, KeepFor: cfg.Jobs.KeepFor.Std(), OnlyProcess: cfg.Store.DSN == "",
		Worker: worker, Paused: a.settings.paused, Now: a.db.Jobs.Now, Logger: a.log, Kinds: kinds, Added: added,
	})
	if err == nil {
		a.db.Jobs.SetNews(a.jobs.WakeWorkers)
	}
	return err
}

// openWork creates the forecasts, and the parts that every process runs in jobs: the crawler, the eraser, the indexes.
func (a *App) openWork(context.Context) (err error) {
	a.forecasts, err = forecast.New(forecast.Options{Sources: a.sources, Store: a.db.Series, KV: a.db.KV, Mirror: a.mirror,
		Enqueue: a.jobs.Enqueue, IsLeader: a.isLeader, Now: time.Now, Logger: a.log})
	if err != nil {
		return err
	}
	a.saved.listen(func(s request.PageSaved) { a.forecasts.EnqueuePage(s.Page) })
	c, begun := a.opts.Settings.Sync, time.Now()
	a.crawler, err = crawl.New(crawl.Options{
		Sources: a.sources, Mirror: a.mirror, Store: a.db, KV: a.db.KV, Jobs: a.jobs, Retention: a.opts.Settings.RetentionTimes(),
		Down: func(source string) string { return a.clients[source].Health().OutageReason() },
		Count: func(ctx context.Context, source, kind string) (n int64, err error) {
			kinds, err := a.db.ReadKinds(ctx, source)
			for _, k := range kinds {
				if k.Kind == kind {
					n = k.Records
				}
			}
			return n, err
		},
		Settings: crawl.Settings{
			Horizon: c.Horizon.Std(), Sweep: c.Sweep.Std(), Window: c.Window.Std(), Slice: c.Slice.Std(), Overlap: c.Overlap.Std(),
			Slices: c.Slices, Page: c.Page, Pages: c.Pages,
		},
		Now: time.Now, Elapsed: func() time.Duration { return time.Since(begun) }, Logger: a.log,
	})
	if err != nil {
		return err
	}
	a.mirror.SetCoverage(a.crawler)
	a.saved.bus.Subscribe(a.crawler.HandlePageSaved)
	e := a.eraser
	e.Shrinker.DB, e.Archiver.DB = a.db, a.db
	if !store.IsPostgreSQL(e.Shrinker.Path) {
		e.Archiver.Parts.Copy = func(ctx context.Context, path string) error { return store.Copy(ctx, a.db, path) }
		e.Archiver.Parts.CopyPath = e.Shrinker.Path + operations.BackupSuffix
	}
	e.DB, e.Files, e.Mirror, e.Jobs = a.db, a.files, a.mirror, a.jobs
	indexes := &operations.Indexer{DB: a.db, Jobs: a.jobs, Now: time.Now, Log: a.log}
	a.tasks = append(a.tasks, a.crawler.Run, e.Run, indexes.Run, a.ports.profiles.Run)
	kinds := append(e.JobKinds(a.opts.Offline), indexes.JobKind())
	if e.Archiver.Schedule.To != "" && !a.opts.Headless {
		kinds = append(kinds, e.Archiver.JobKind())
	}
	if !a.opts.Offline {
		kinds = append(kinds, crawl.JobKinds(a.crawler.Work())...)
	}
	return a.jobs.Add(kinds...)
}
