// Serve: from flags to a running server.

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"understudy/internal/app"
	"understudy/internal/app/gctune"
	"understudy/internal/config"
	"understudy/internal/datadir"
	"understudy/internal/frontend"
)

type serveCmd struct {
	Config  string   `placeholder:"FILE" help:"Settings file (default understudy.yml)."`
	Generic string   `placeholder:"URL" help:"Serve this HTTP server through a cache, to programs on this machine; needs no settings file."`
	Demo    bool     `help:"Serve a simulated API of our own; needs no account anywhere."`
	Data    string   `placeholder:"DIR" help:"Data folder (default ./understudy-data; for --demo a fresh one, removed at exit)."`
	Viewer  string   `placeholder:"HOST:PORT" help:"Where people browse (default 127.0.0.1:4114)."`
	DropIn  []string `name:"drop-in" placeholder:"SOURCE=HOST:PORT" help:"Where programs reach a source (repeatable)."`
	Connect string   `placeholder:"HOST:PORT" help:"Where programs reach a proxy that answers for the sources' own hosts (default: nowhere)."`
	Slowapi string   `placeholder:"HOST:PORT" help:"With --demo: where the simulated API listens (default 127.0.0.1:4116)."`

	World worldFlags `embed:""`
}

// Run serves until the first signal.
func (c *serveCmd) Run(ctx context.Context, p *process) error {
	cfg, folderPath, secrets, err := c.settings(p)
	if err != nil {
		return err
	}
	if c.Demo {
		return c.serveDemo(ctx, p, cfg)
	}
	hup, stop := hangups()
	defer stop()
	again := func() (*config.Settings, error) {
		cfg, _, _, err := c.settings(p)
		return cfg, err
	}
	dir, err := datadir.Open(cfg.Data, false)
	if err != nil {
		return err
	}
	h, err := app.Build(ctx, app.Options{Settings: cfg, Folder: folderPath, Secrets: secrets, Dir: dir, By: "config", Version: version(),
		Stderr: p.stderr, Again: again, Hangup: hup})
	if err != nil {
		return errors.Join(err, dir.Close())
	}
	printAnswering(p, time.Now())
	h.PrintAddresses(p.stdout)
	printReady(p.stdout)
	return errors.Join(h.Serve(ctx, nil, []frontend.Task{gctune.Task(p.env, cfg.Limits.MemoryLimit(os.ReadFile))}), dir.Close())
}

// settings are those of the file, or the demo's own, with the flags over them.
func (c *serveCmd) settings(p *process) (cfg *config.Settings, folder string, secrets config.Secrets, err error) {
	if cfg, folder, secrets, err = c.file(p); err != nil {
		return nil, "", nil, err
	}
	if err := c.apply(cfg); err != nil {
		return nil, "", nil, usageError{err}
	}
	return cfg, folder, secrets, nil
}

// file reads the file, or the demo's own.
func (c *serveCmd) file(p *process) (cfg *config.Settings, folder string, secrets config.Secrets, err error) {
	if c.Demo {
		if c.Config != "" {
			return nil, "", nil, usageError{errors.New("--demo brings its own settings; leave out --config")}
		}
		cfg, err = config.Parse(demoSettings, p.env)
		return cfg, "", demoSecrets, err
	}
	if c.Slowapi != "" {
		return nil, "", nil, usageError{errors.New("--slowapi needs --demo")}
	}
	if c.Generic != "" {
		if c.Config != "" {
			return nil, "", nil, usageError{errors.New("--generic needs no settings file; leave out --config, or write sources.NAME.generic there")}
		}
		if cfg, err = config.NewGeneric(c.Generic); err != nil {
			err = usageError{fmt.Errorf("--generic: %w", err)}
		}
		return cfg, "", config.FileSecrets("."), err
	}
	path := cmp.Or(c.Config, "understudy.yml")
	cfg, err = config.Read(path, p.env)
	folder = filepath.Dir(path)
	return cfg, folder, config.FileSecrets(folder), err
}

// apply puts flags over settings.
func (c *serveCmd) apply(cfg *config.Settings) error {
	if c.Data != "" {
		cfg.Data = c.Data
	}
	if c.Viewer != "" {
		if err := config.CheckAddress(c.Viewer); err != nil {
			return fmt.Errorf("--viewer: %w", err)
		}
		cfg.Viewer.Listen = c.Viewer
	}
	if c.Connect != "" {
		if err := config.CheckAddress(c.Connect); err != nil {
			return fmt.Errorf("--connect: %w", err)
		}
		if err := config.ListenConnect(cfg, c.Connect); err != nil {
			return err
		}
	}
	for _, text := range c.DropIn {
		name, addr, ok := strings.Cut(text, "=")
		src := cfg.Sources[name]
		if !ok || src == nil {
			return fmt.Errorf("--drop-in %q: write SOURCE=HOST:PORT with a configured source", text)
		}
		if err := config.CheckAddress(addr); err != nil {
			return fmt.Errorf("--drop-in: %w", err)
		}
		src.Listen = addr
	}
	return nil
}

// serveDemo starts the simulated API and Understudy in front of it.
func (c *serveCmd) serveDemo(ctx context.Context, p *process, cfg *config.Settings) (err error) {
	dir, err := c.demoFolder()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	w, err := c.World.settle(dir.Path, time.Now())
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(p.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	api, err := c.World.open(w, "", filepath.Join(dir.Path, "slowapi.journal"), time.Now, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, api.Close()) }()
	addr := c.Slowapi
	addr = cmp.Or(addr, defaultSlowapi)
	if err := config.CheckAddress(addr); err != nil {
		return usageError{fmt.Errorf("--slowapi: %w", err)}
	}
	l, err := frontend.Listen(ctx, addr, "--slowapi")
	if err != nil {
		return err
	}
	slow := frontend.NewServer("slowapi", l, api, &cfg.Limits, frontend.PlainRefusal(), log)
	for _, src := range cfg.Sources {
		src.Upstream = slow.URL()
	}
	h, err := app.Build(ctx, app.Options{Settings: cfg, Secrets: demoSecrets, Dir: dir, By: "demo", World: w.String(), Version: version(),
		Stderr: p.stderr})
	if err != nil {
		return errors.Join(err, l.Close())
	}
	printAnswering(p, time.Now())
	h.PrintAddresses(p.stdout)
	fmt.Fprintf(p.stdout, "%-9s %s  (the simulated API; a list takes it %v)\n", slow.Name, slow.URL(), c.World.Latency)
	cred := cfg.Credentials[0]
	fmt.Fprintf(p.stdout, "\nopen the viewer in a browser, or point a program at %s as\n%s with password %s\n",
		h.Address(cfg.Credentials[0].Source), cred.User, strings.TrimPrefix(string(cred.Secret), demoScheme))
	printReady(p.stdout)
	return h.Serve(ctx, slow, []frontend.Task{gctune.Task(p.env, cfg.Limits.MemoryLimit(os.ReadFile))})
}

// printAnswering is the first line: how long after its start the process answers.
// Every port is bound, and the system queues connections from here on.
func printAnswering(p *process, now time.Time) {
	fmt.Fprintf(p.stdout, "answering after %d ms\n", now.Sub(p.began).Milliseconds())
}

// printReady is the last line before requests are served; scripts wait for it.
func printReady(w io.Writer) { fmt.Fprintln(w, "Ctrl-C ends it") }

// demoFolder is a fresh folder removed at exit, unless one was given.
func (c *serveCmd) demoFolder() (*datadir.Dir, error) {
	if c.Data != "" {
		return datadir.Open(c.Data, false)
	}
	path, err := os.MkdirTemp("", "understudy-demo-")
	if err != nil {
		return nil, err
	}
	return datadir.Open(path, true)
}

// hangups are the signals that ask for another reading of the settings, until
// the function is called.
func hangups() (<-chan os.Signal, func()) {
	ch := make(chan os.Signal, 1) // one that waits stands for all
	signal.Notify(ch, syscall.SIGHUP)
	return ch, func() { signal.Stop(ch) }
}
