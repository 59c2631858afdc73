// House: every room, built and joined.
//
//	 programs      people
//	    |             |
//	[proxy]  ...  [viewer] + /-/ [diagnostics]
//	    '------+------'
//	   callers | access (the gate)
//	        [mirror]
//	       |        |
//	 [upstream]  [store]

package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"understudy"
	"understudy/internal/config"
	"understudy/internal/crawl"
	"understudy/internal/diagnostics/profile"
	"understudy/internal/feed"
	"understudy/internal/jobs"
	"understudy/internal/proxy"
	"understudy/internal/store"
	"understudy/internal/viewer/page"
	"understudy/kit/accesslog"
	"understudy/kit/semaphore"
	"understudy/mirror"
	"understudy/upstream"
)

// blueprint is what a house is built from.
type blueprint struct {
	cfg      *config.Settings
	settings string // folder of the settings file
	secrets  config.Secrets
	dir      *folder
	by       string // who gives the grants: "config" or "demo"
	world    string // of the demo; "" = the upstream's address and account
	stderr   io.Writer
	// again reads the settings once more; nil: they are not read again.
	again func() (*config.Settings, error)
	hup   <-chan os.Signal // asks for that
	alone bool             // without faces: a command that does its work in the folder
}

// house is a built one. Close gives back everything build opened.
type house struct {
	cfg       *config.Settings                // as it was started with
	live      atomic.Pointer[config.Settings] // as last loaded
	loads     loads
	plan      blueprint
	sources   []*understudy.Source
	clients   map[string]*upstream.Client
	db        *store.DB
	files     *store.Files
	seals     *page.Seals
	mirror    *mirror.Mirror
	landed    *landed
	walker    *crawl.Walker
	jobs      *jobs.Runner
	feed      *feed.Feed
	searchKey []byte // seals the cursors of searches
	exports   *exports
	salt      []byte // of the credentials we issued
	erasing   erasing
	owned     owned
	faces     []*face // the viewer's first
	worn      *dress
	access    *accesslog.Log
	profiles  *profile.Recorder
	recent    map[string]*recent // by source
	ending    atomic.Bool
	// uncounted: the home page could not count what is held; it is logged once.
	uncounted atomic.Bool
	// tooLarge counts bodies of writes beyond the limit, noPlace writes that
	// found no place, by source; proxies are those in use.
	tooLarge atomic.Int64
	noPlace  map[string]*atomic.Int64
	proxies  atomic.Pointer[map[string]*proxy.Proxy]
	polling  sync.Mutex
	kept     map[string][]string // kinds polled because they are kept up, by source
	keys     hookKeys
	log      *slog.Logger
	closers  []func() error
}

// build opens everything, in the order the rooms need each other. On an error
// what was opened is closed again.
func build(ctx context.Context, b blueprint) (h *house, err error) {
	h = &house{cfg: b.cfg, plan: b, clients: map[string]*upstream.Client{}, recent: map[string]*recent{}, noPlace: map[string]*atomic.Int64{}, erasing: newErasing(), owned: newOwned(), exports: newExports(b.cfg), log: slog.New(slog.NewTextHandler(b.stderr, &slog.HandlerOptions{Level: slog.LevelInfo}))}
	h.live.Store(b.cfg)
	h.salt = []byte(rand.Text())
	h.profiles = profile.New(profile.Options{Dir: filepath.Join(b.dir.path, "profiles"), Version: version(), Now: time.Now, Logger: h.log})
	h.loads.done(time.Now(), nil, nil)
	defer func() {
		if err != nil {
			err = errors.Join(err, h.close())
		}
	}()
	if h.sources, err = b.cfg.ReadSources(b.settings); err != nil {
		return h, err
	}
	specs := map[string]*understudy.Spec{}
	for _, src := range h.sources {
		specs[src.Name] = src.Spec
		h.recent[src.Name], h.noPlace[src.Name] = newRecent(), &atomic.Int64{}
	}
	p, err := h.policyOf(ctx, b.cfg, b)
	if err != nil {
		return h, err
	}
	if err := h.openAccessLog(b.stderr); err != nil {
		return h, err
	}
	if err := h.openStore(ctx, b, specs); err != nil {
		return h, err
	}
	if err := h.openMedia(b); err != nil {
		return h, err
	}
	if err := h.openMirror(ctx, b); err != nil {
		return h, err
	}
	if err := h.openOwned(ctx); err != nil {
		return h, err
	}
	if err := h.openWalker(); err != nil {
		return h, err
	}
	if err := h.openJobs(); err != nil {
		return h, err
	}
	if b.alone {
		h.standAlone()
		return h, h.loadWalks(ctx)
	}
	if err := h.openFaces(ctx, p, b); err != nil {
		return h, err
	}
	return h, h.loadWalks(ctx)
}

// openAccessLog opens the file of the access log, or takes standard error.
func (h *house) openAccessLog(stderr io.Writer) error {
	switch path := h.cfg.Log.Access; path {
	case "off":
	case "":
		h.access = accesslog.New(stderr)
	default:
		f, err := openLogFile(path)
		if err != nil {
			return fmt.Errorf("log.access: %w; name a file, a named pipe or a device", err)
		}
		if _, ok := f.(*pipeFile); ok {
			h.log.Info("log.access is no file: lines are lost, and counted, while nobody reads it", "path", path)
		}
		h.closers = append(h.closers, f.Close)
		h.access = accesslog.New(f)
	}
	if h.access != nil {
		h.access.Known = knownID(h.sources)
	}
	return nil
}

// openStore opens the database and lets every source claim its world: a folder
// filled from one upstream must not answer for another.
func (h *house) openStore(ctx context.Context, b blueprint, specs map[string]*understudy.Spec) error {
	db, err := store.Open(ctx, store.Options{Path: b.dir.store(b.cfg), Specs: specs, Limit: int64(b.cfg.Store.Limit), Retention: b.cfg.Retained(), ToErase: h.erasing.ring, Now: time.Now, Logger: h.log})
	if err != nil {
		return err
	}
	h.db = db
	h.closers = append(h.closers, db.Close)
	for _, src := range h.sources {
		world := b.world
		if world == "" {
			s := b.cfg.Sources[src.Name]
			base := s.Upstream
			if base == "" {
				base = src.Spec.Hosts[0].URL
			}
			world = src.Spec.Name + " at " + base + " as " + src.User
		}
		if err := db.World(ctx, src.Name, world); err != nil {
			return err
		}
	}
	return nil
}

// openMirror makes the clients and the mirror over all of them.
func (h *house) openMirror(ctx context.Context, b blueprint) error {
	m := b.cfg.Mirror
	h.openBus()
	o := mirror.Options{
		Landed: h.tell,
		Store:  h.db, Files: h.files, Hot: int64(m.Hot), Now: time.Now, Logger: h.log,
		Ages: config.Ages(&m), Limits: config.MirrorLimits(&b.cfg.Limits), Coverage: walked{h}, Notes: h.db,
	}
	intents, err := store.OpenIntents(filepath.Join(b.dir.path, "intents"))
	if err != nil {
		return err
	}
	h.closers = append(h.closers, intents.Close)
	o.Intents = intents
	bodies := int64(defaultMaxBody)
	for _, s := range b.cfg.Sources {
		bodies = max(bodies, int64(s.MaxBody))
	}
	together := semaphore.New(semaphore.Options{Limit: bodies})
	for _, src := range h.sources {
		s := b.cfg.Sources[src.Name]
		var secret understudy.Secret
		if src.Spec.Auth.Style != "none" {
			var err error
			if secret, err = b.secrets(ctx, s.Secret); err != nil {
				return fmt.Errorf("sources.%s.secret: %w", src.Name, err)
			}
		}
		h.keys.set(src.Name, secret)
		client, err := upstream.New(upstream.Options{
			Source: src, Base: s.Upstream, User: cmp.Or(s.Login, s.User), Secret: secret,
			Rate: s.Rate, Concurrency: s.Concurrency, Queue: b.cfg.Limits.Queue, MaxBody: int64(s.MaxBody), MaxMedia: int64(s.MaxMedia), Now: time.Now,
			Connect: s.Timeouts.Connect.Std(), FirstByte: s.Timeouts.FirstByte.Std(), Stall: s.Timeouts.Stall.Std(), Total: s.Timeouts.Total.Std(),
			Bodies: together, Logger: h.log, UserAgent: "understudy/" + version(),
		})
		if err != nil {
			return fmt.Errorf("sources.%s: %w", src.Name, err)
		}
		h.clients[src.Name] = client
		h.closers = append(h.closers, client.Close)
		kinds, err := h.db.Kinds(ctx, src.Name)
		if err != nil {
			return err
		}
		generations := map[string]int64{}
		for _, k := range kinds {
			generations[k.Kind] = k.Generation
		}
		o.Sources = append(o.Sources, mirror.Source{Source: src, Upstream: client, Generations: generations, Rate: s.Rate, Answers: s.Answers, Checks: s.Checks})
	}
	m2, err := mirror.New(o)
	h.mirror = m2
	return err
}

// close gives back what build opened, last first.
func (h *house) close() error {
	var errs []error
	for i := len(h.closers) - 1; i >= 0; i-- {
		errs = append(errs, h.closers[i]())
	}
	h.closers = nil
	return errors.Join(errs...)
}

// serve runs the faces, the mirror's and the clients' background work and the
// given tasks until ctx ends. first, when not nil, is served before and ended
// with the others.
func (h *house) serve(ctx context.Context, first *face, more []task) error {
	faces := h.faces
	if first != nil {
		faces = append([]*face{first}, faces...)
	}
	tasks := append([]task{h.mirror.Run, h.jobs.Run, h.walker.Run, h.eraseSoon, h.keepOwned, h.loadMedia, h.profiles.Run}, more...)
	if h.feed != nil {
		tasks = append(tasks, h.feed.Run)
	}
	if h.plan.again != nil {
		tasks = append(tasks, h.reloads)
	}
	if h.access != nil {
		tasks = append(tasks, h.access.Run)
	}
	for _, c := range h.clients {
		tasks = append(tasks, c.Run)
	}
	ending := context.AfterFunc(ctx, func() { h.ending.Store(true); h.profiles.Stop() })
	defer ending()
	return errors.Join(serveFaces(ctx, faces, tasks), h.close())
}

// printAddresses says where everything is; scripts read the first two columns.
func (h *house) printAddresses(w io.Writer) {
	for _, f := range h.faces {
		fmt.Fprintf(w, "%-9s %s\n", f.name, f.url())
	}
}
