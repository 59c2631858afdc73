// Open: the database, the mirror with its clients, and the files they need.

package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"understudy"
	"understudy/internal/config"
	"understudy/internal/datadir"
	"understudy/internal/store"
	"understudy/internal/store/contents"
	"understudy/internal/store/intents"
	"understudy/internal/viewer/page"
	"understudy/kit/accesslog"
	"understudy/kit/dispatch"
	"understudy/kit/semaphore"
	"understudy/mirror"
	"understudy/request"
	"understudy/spec"
	"understudy/upstream"
)

// openAccessLog opens the file of the access log, or uses standard error.
func (h *App) openAccessLog(stderr io.Writer) error {
	switch path := h.cfg.Log.Access; path {
	case "off":
		return nil
	case "":
		h.access = accesslog.New(stderr)
	default:
		f, err := accesslog.OpenFile(path, time.Now)
		if err != nil {
			return fmt.Errorf("log.access: %w; name a file, a named pipe or a device", err)
		}
		if f.IsPipe() {
			h.log.Info("log.access is no file: lines are lost, and counted, while nobody reads it", "path", path)
		}
		h.closers = append(h.closers, f.Close)
		h.access, h.accessFile = accesslog.New(f), f
	}
	h.access.Known, h.access.JSON = knownID(h.sources), h.cfg.Log.Format == config.FormatJSON
	return nil
}

// knownID reports texts that are ids of any source's records.
func knownID(sources []*spec.Source) func(text string) bool {
	return func(text string) bool {
		return slices.ContainsFunc(sources, func(s *spec.Source) bool { return s.Spec.HasID(text) })
	}
}

// openStore opens the database and lets every source claim its world: a folder
// filled from one upstream must not answer for another.
func (h *App) openStore(ctx context.Context, b Options, specs map[string]*spec.Spec) error {
	db, err := store.Open(ctx, store.Options{Path: b.Dir.Database(b.Settings.Store.DSN), Specs: specs, Limit: int64(b.Settings.Store.Limit),
		Retention: b.Settings.Retained(), ToErase: h.erasing.ring, Now: time.Now, Logger: h.log})
	if err != nil {
		return err
	}
	h.db = db
	h.closers = append(h.closers, db.Close)
	if b.Offline {
		return nil
	}
	for _, src := range h.sources {
		world := b.World
		if world == "" {
			s := b.Settings.Sources[src.Name]
			base := s.Upstream
			if base == "" {
				base = src.Spec.Hosts[0].URL
			}
			world = src.Spec.Name + " at " + base + " as " + src.User
		}
		if err := db.Origin(ctx, src.Name, world); err != nil {
			return err
		}
	}
	return nil
}

// openMirror makes the clients and the mirror over all of them.
func (h *App) openMirror(ctx context.Context, b Options) error {
	hot, _ := b.Settings.Caches(os.ReadFile)
	h.openBus()
	o := mirror.Options{
		PageSaved: h.tell,
		Store:     h.db, Writes: h.db.Writes, Files: h.files, Hot: hot, Now: time.Now, Logger: h.log,
		Ages: config.Ages(&b.Settings.Mirror), Limits: config.MirrorLimits(&b.Settings.Limits), KV: h.db,
	}
	intents, err := intents.Open(filepath.Join(b.Dir.Path, "intents"))
	if err != nil {
		return err
	}
	h.closers = append(h.closers, intents.Close)
	o.Intents = intents
	bodies := config.MaxBody(b.Settings, "", os.ReadFile)
	for name := range b.Settings.Sources {
		bodies = max(bodies, config.MaxBody(b.Settings, name, os.ReadFile))
	}
	together := semaphore.New(semaphore.Options{Limit: bodies})
	for _, src := range h.sources {
		s := b.Settings.Sources[src.Name]
		secrets, issuer := []understudy.Secret{{}}, upstream.Tokens(nil)
		if src.Spec.Auth.Style != "none" && !b.Offline {
			var err error
			if secrets, err = s.ReadSecrets(ctx, src.Spec, b.Secrets); err != nil {
				return fmt.Errorf("sources.%s.%w", src.Name, err)
			}
			made, err := s.Issuer(ctx, src, b.Secrets, h.db)
			if err != nil {
				return fmt.Errorf("sources.%s.%w", src.Name, err)
			}
			if made != nil {
				issuer = made
			}
		}
		h.signatures.set(src.Name, secrets[0])
		client, err := upstream.New(upstream.Options{
			Source: src, Base: s.Upstream, User: cmp.Or(s.Login, s.User), Secret: secrets[0], Pool: secrets[1:], Tokens: issuer,
			Rate: s.Rate, Concurrency: s.Concurrency, Queue: b.Settings.Limits.Queue, MaxMedia: int64(s.MaxMedia),
			MaxBody: config.MaxBody(b.Settings, src.Name, os.ReadFile), Now: time.Now,
			Connect: s.Timeouts.Connect.Std(), FirstByte: s.Timeouts.FirstByte.Std(), Stall: s.Timeouts.Stall.Std(), Total: s.Timeouts.Total.Std(),
			Bodies: together, Logger: h.log, UserAgent: "understudy/" + b.Version,
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
		o.Sources = append(o.Sources, mirror.Source{Source: src, Upstream: client, Generations: generations, Rate: s.Rate, Answers: s.Answers,
			Checks: s.Checks})
	}
	m2, err := mirror.New(o)
	h.mirror = m2
	return err
}

// savedBus tells of every page that was saved. A listener returns at once and
// waits for nothing: it wakes its own goroutine. What it misses it finds in the
// rows of the store.
type savedBus = dispatch.Bus[request.PageSaved]

// openBus makes the bus. It is closed after everything that dispatches.
func (h *App) openBus() {
	h.saved = dispatch.New[request.PageSaved](dispatch.Options{Logger: h.log})
	h.closers = append(h.closers, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), busTime)
		defer cancel()
		return h.saved.Close(ctx)
	})
}

// busTime bounds the wait for what is on its way to listeners.
const busTime = time.Second

// tell dispatches a page that was saved. The error of a listener is logged; the
// other listeners and the save do not see it.
func (h *App) tell(l request.PageSaved) {
	err := h.saved.Dispatch(context.Background(), l)
	var panicked *dispatch.PanicError
	switch {
	case errors.As(err, &panicked):
		h.log.Error("a listener panicked", "panic", panicked.Value, "stack", string(panicked.Stack))
	case err != nil:
		h.log.Error("a listener failed", "err", err)
	}
}

// openMedia opens the folder of contents, and makes the seals of their
// addresses in the viewer, which outlive any policy.
func (h *App) openMedia(b Options) (err error) {
	h.files, err = contents.Open(contents.Options{
		Dir: filepath.Join(b.Dir.Path, datadir.MediaFolder), Limit: int64(b.Settings.Store.Media), Most: int64(b.Settings.Store.MediaFile),
		Erased: h.db.Erased, Later: !b.Headless, Now: time.Now, Logger: h.log,
	})
	if err != nil {
		return err
	}
	h.seals, err = page.NewSeals()
	return err
}

// loadMedia reads the index of contents beside the first requests. It ends with
// ctx: a task that ends earlier ends the server.
func (h *App) loadMedia(ctx context.Context) error {
	if err := h.files.Load(ctx); err != nil && ctx.Err() == nil {
		h.log.Error("the index of contents cannot be read; what is held is played, and none of it makes room", "err", err)
	}
	<-ctx.Done()
	return nil
}
