// The serve command: it reads the settings and runs the server. It tells a service manager, such as systemd, when the server is ready, ends
// and hangs.

package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"understudy"
	"understudy/internal/app"
	"understudy/internal/app/gctune"
	"understudy/internal/config"
	"understudy/internal/datadir"
	"understudy/internal/frontend"
	"understudy/kit/lockwatch"
	"understudy/kit/retry"
)

type serveCmd struct {
	Config  string      `placeholder:"FILE" help:"Settings file (default understudy.yml)."`
	Generic string      `placeholder:"URL" help:"Put a cache in front of this HTTP server, without a settings file."`
	Data    string      `placeholder:"DIR" help:"Data folder (default: data of the settings file, else ./understudy-data)."`
	Listen  listenFlags `embed:""`
	Connect string      `placeholder:"HOST:PORT" help:"Address of the proxy that answers for the sources' own hosts (default: no proxy)."`
	DryRun  bool        `name:"dry-run" help:"Read the settings, specs, users, secrets and the version of the database, and end."`

	inherited frontend.Inherited
}

// listenFlags are the flags for the addresses on which a server listens.
type listenFlags struct {
	Viewer string   `placeholder:"HOST:PORT" help:"Address of the pages for people (default 127.0.0.1:4114)."`
	DropIn []string `name:"drop-in" placeholder:"SOURCE=HOST:PORT" help:"Address where programs reach a source. May be repeated."`
}

// maxReopens is how often in a row the database may fail to open after another server has taken it over: about half a minute.
const maxReopens = 10

// Run runs the server until the first signal.
func (c *serveCmd) Run(ctx context.Context, p *process) (err error) {
	_, restarted := p.env(frontend.SocketsVariable)
	if c.inherited, err = frontend.OpenInherited(p.env); err != nil {
		return err
	}
	_ = os.Unsetenv(frontend.SocketsVariable) // the next program gets others
	return restart(ctx, p.stderr, time.Second, restarted, func() (bool, error) { return c.serve(ctx, p) })
}

// restart calls serve until the server ends. It calls serve again after a pause has ended, and if another server answers for
// the database. Such a server may refuse connections at first, so restart then goes on after an error. replaced says that this also holds
// for the first call. serve returns whether it has answered requests.
func restart(ctx context.Context, log io.Writer, pause time.Duration, replaced bool, serve func() (answered bool, err error)) error {
	for tries := 0; ; tries++ {
		answered, err := serve()
		switch {
		case ctx.Err() != nil:
			return err
		case errors.Is(err, understudy.ErrReplaced), errors.Is(err, app.ErrResumed):
			replaced, tries = true, 0
		case err == nil || answered || !replaced || tries == maxReopens:
			return err
		default:
			fmt.Fprintln(log, "understudy: the server could not start again; it tries again soon:", err)
			if retry.Wait(ctx, retry.Backoff(pause, 4*pause, tries-1)) != nil {
				return err
			}
		}
	}
}

// serve runs the server. At a restart, it replaces the process by the program of its file.
func (c *serveCmd) serve(ctx context.Context, p *process) (answered bool, err error) {
	cfg, folderPath, secrets, err := c.readSettings(p)
	if err != nil {
		return false, err
	}
	hup := make(chan os.Signal, 1) // one waiting signal is enough, because the settings are read after it was sent
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	defer showLocksOnQuit(p.stderr)()
	again := func() (*config.Settings, error) {
		cfg, _, _, err := c.readSettings(p)
		return cfg, err
	}
	o := app.Options{Settings: cfg, Folder: folderPath, Secrets: secrets, By: "config", Version: version(), Stderr: p.stderr,
		ReadSettings: again, Hangup: hup, Inherited: c.inherited, DryRun: c.DryRun}
	if c.DryRun {
		o.Dir, o.Stderr = &datadir.Dir{Path: cfg.Data}, io.Discard
		_, err = app.Build(ctx, o)
		return false, err
	}
	if o.Dir, err = datadir.Open(cfg.Data, false); err != nil {
		return false, err
	}
	serving, end := context.WithCancelCause(ctx)
	defer end(nil)
	if runtime.GOOS == "linux" {
		o.Restart = func(ctx context.Context) error { return prepareRestart(ctx, end, cfg, again) }
	}
	h, err := app.Build(ctx, o)
	if err != nil {
		return false, errors.Join(err, o.Dir.Close())
	}
	printAnswering(p, time.Now())
	h.PrintAddresses(p.stdout)
	printReady(p.stdout)
	manager := findManager(p)
	manager.notify("READY=1")
	forget := context.AfterFunc(serving, func() {
		if context.Cause(serving) == frontend.ErrRestart {
			manager.notify("RELOADING=1") // until READY=1
		} else {
			manager.notify("STOPPING=1")
		}
	})
	defer forget()
	tasks := []frontend.Task{gctune.Task(p.env, cfg.Limits.MemoryLimit(os.ReadFile)), manager.watch(h)}
	err = errors.Join(h.Serve(serving, nil, tasks), o.Dir.Close())
	if ctx.Err() == nil && context.Cause(serving) == frontend.ErrRestart {
		if err != nil {
			fmt.Fprintln(p.stderr, "understudy: before the restart:", err)
		}
		err = startNext(h.DescribeSockets())
	}
	return true, err
}

// prepareRestart ends the server for a restart, if the program that its file contains now accepts the settings and the database, and if
// the ports are free whose addresses have changed since the start.
func prepareRestart(ctx context.Context, end context.CancelCauseFunc, started *config.Settings, again func() (*config.Settings, error),
) error {
	program, err := exec.LookPath(os.Args[0])
	if err != nil {
		return err
	}
	if out, err := exec.CommandContext(ctx, program, append(os.Args[1:], "--dry-run")...).CombinedOutput(); err != nil {
		return fmt.Errorf("the server goes on, because %s could not start: %s (%w)", program, bytes.TrimSpace(out), err)
	}
	if cfg, err := again(); err == nil { // otherwise only the next program knows all of its settings
		now := config.Values(*started)
		for _, d := range config.Compare(now, now, config.Values(*cfg)) {
			if (strings.HasSuffix(d.Name, ".listen") || d.Name == "feed.zmq") && d.File != "" {
				l, err := frontend.Listen(ctx, d.File, d.Name)
				if err != nil {
					return fmt.Errorf("the server goes on, because %w; if the server itself uses the port, run understudy stop and serve", err)
				}
				_ = l.Close() // it has no connections
			}
		}
	}
	end(frontend.ErrRestart)
	return nil
}

// startNext replaces the program of this process. The process keeps its number, and the sockets stay open.
func startNext(sockets string) error {
	program, err := exec.LookPath(os.Args[0])
	if err != nil {
		return err
	}
	signal.Ignore(syscall.SIGHUP) // it would end the next program before it listens to signals
	err = syscall.Exec(program, os.Args, append(os.Environ(), frontend.SocketsVariable+"="+sockets))
	return fmt.Errorf("restart %s: %w", program, err)
}

// readSettings returns the settings in the file or those that --generic makes. Flags override them.
func (c *serveCmd) readSettings(p *process) (cfg *config.Settings, folder string, secrets config.Secrets, err error) {
	if cfg, folder, secrets, err = c.readFile(p); err != nil {
		return nil, "", nil, err
	}
	if c.Data != "" {
		cfg.Data = c.Data
	}
	if c.Connect != "" {
		if err := config.CheckAddress(c.Connect); err != nil {
			return nil, "", nil, usageError{fmt.Errorf("--connect: %w", err)}
		}
		if err := config.ListenConnect(cfg, c.Connect); err != nil {
			return nil, "", nil, usageError{err}
		}
	}
	return cfg, folder, secrets, c.Listen.apply(cfg)
}

// readFile reads the settings file. If the flag --generic is given, it makes settings instead.
func (c *serveCmd) readFile(p *process) (cfg *config.Settings, folder string, secrets config.Secrets, err error) {
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

// apply overrides settings by the flags.
func (f *listenFlags) apply(cfg *config.Settings) error {
	if f.Viewer != "" {
		if err := config.CheckAddress(f.Viewer); err != nil {
			return usageError{fmt.Errorf("--viewer: %w", err)}
		}
		cfg.Viewer.Listen = f.Viewer
	}
	for _, text := range f.DropIn {
		name, addr, ok := strings.Cut(text, "=")
		src := cfg.Sources[name]
		if !ok || src == nil {
			return usageError{fmt.Errorf("--drop-in %q: write SOURCE=HOST:PORT with a configured source", text)}
		}
		if err := config.CheckAddress(addr); err != nil {
			return usageError{fmt.Errorf("--drop-in: %w", err)}
		}
		src.Listen = addr
	}
	return nil
}

// printAnswering prints how many milliseconds after its start the process can accept connections. At this time every
// port is bound, and the operating system queues connections.
func printAnswering(p *process, now time.Time) {
	fmt.Fprintf(p.stdout, "answering after %d ms\n", now.Sub(p.startedAt).Milliseconds())
}

// printReady prints the last line before the server answers requests. Scripts wait for this line.
func printReady(w io.Writer) { fmt.Fprintln(w, "Ctrl-C ends it") }

// showLocksOnQuit prints the locks at SIGQUIT before Go prints all stacks and ends the process, until stop is called. Windows has no
// SIGQUIT.
func showLocksOnQuit(w io.Writer) (stop func()) {
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, syscall.SIGQUIT)
	go func() {
		for range ch {
			fmt.Fprint(w, lockwatch.Read())
			signal.Reset(syscall.SIGQUIT)
			self, err := os.FindProcess(os.Getpid())
			if err != nil || self.Signal(syscall.SIGQUIT) != nil {
				os.Exit(exitFailed)
			}
		}
	}()
	return func() {
		signal.Stop(ch)
		close(ch)
	}
}

// serviceManager is who started the process. The zero value is nobody who wants to be told anything.
type serviceManager struct {
	socket   string        // a datagram socket; "@" stands for an abstract one
	watchdog time.Duration // within which the server must say that it is alive; 0: never
	log      io.Writer
}

// findManager reads from the environment who wants to be told (sd_notify(3), sd_watchdog_enabled(3)).
func findManager(p *process) serviceManager {
	get := func(name string) string { text, _ := p.env(name); return text }
	m := serviceManager{socket: get("NOTIFY_SOCKET"), log: p.stderr}
	if pid := get("WATCHDOG_PID"); pid == "" || pid == fmt.Sprint(os.Getpid()) {
		micros, _ := strconv.ParseInt(get("WATCHDOG_USEC"), 10, 64) // 0 if it is not set
		m.watchdog = time.Duration(micros) * time.Microsecond
	}
	return m
}

// notify sends a state. If nobody receives it, the server goes on.
func (m serviceManager) notify(state string) {
	if m.socket == "" {
		return
	}
	conn, err := net.Dial("unixgram", m.socket)
	if err == nil {
		_, err = io.WriteString(conn, state)
		err = errors.Join(err, conn.Close())
	}
	if err != nil {
		fmt.Fprintf(m.log, "understudy: the service manager could not be told %s: %v\n", state, err)
	}
}

// watch returns a task that says twice within each time of the watchdog that the server is alive, if it answers at its viewer's address.
func (m serviceManager) watch(h *app.App) frontend.Task {
	return func(ctx context.Context) error {
		if m.socket == "" || m.watchdog <= 0 {
			<-ctx.Done() // a task that ends would end the server
			return nil
		}
		for retry.Wait(ctx, m.watchdog/2) == nil {
			client := newLocalAdmin(h.Commands()).client // the certificate may have changed
			client.Timeout = m.watchdog / 2
			if answer, err := client.Get(h.Viewer() + "/-/health"); err == nil { // whatever it is, somebody answers
				_ = answer.Body.Close()
				m.notify("WATCHDOG=1")
			}
		}
		return nil
	}
}
