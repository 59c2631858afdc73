// The demo command starts a simulated API, and a server in front of it. The slowapi command starts only the simulated API.

package main

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"understudy"
	"understudy/internal/app"
	"understudy/internal/app/gctune"
	"understudy/internal/config"
	"understudy/internal/datadir"
	"understudy/internal/frontend"
	"understudy/internal/slowapi"
	"understudy/kit/logline"
)

type demoCmd struct {
	Data    string      `placeholder:"DIR" help:"Data folder to keep (default: a new folder, removed at exit)."`
	Listen  listenFlags `embed:""`
	Slowapi string      `placeholder:"HOST:PORT" default:"127.0.0.1:4116" help:"Address of the simulated API (default ${default})."`
	World   worldFlags  `embed:""`
}

// Run starts the simulated API and the server in front of it. It stops them at the first signal.
func (c *demoCmd) Run(ctx context.Context, p *process) (err error) {
	cfg, err := config.Parse(demoSettings, p.env)
	if err != nil {
		return err
	}
	if err := c.Listen.apply(cfg); err != nil {
		return err
	}
	path := c.Data
	if path == "" {
		if path, err = os.MkdirTemp("", "understudy-demo-"); err != nil {
			return err
		}
	}
	dir, err := datadir.Open(path, c.Data == "") // Close deletes a temporary folder
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	w, err := c.World.settle(dir.Path, time.Now())
	if err != nil {
		return err
	}
	levels := &logline.Levels{}
	levels.Set(slog.LevelWarn, nil)
	log := slog.New(logline.New(p.stderr, logline.Options{Levels: levels}))
	api, err := c.World.open(w, "", filepath.Join(dir.Path, "slowapi.journal"), time.Now, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, api.Close()) }()
	if err := config.CheckAddress(c.Slowapi); err != nil {
		return usageError{fmt.Errorf("--slowapi: %w", err)}
	}
	l, err := frontend.Listen(ctx, c.Slowapi, "--slowapi")
	if err != nil {
		return err
	}
	slow := frontend.NewServer("slowapi", l, api, &cfg.Limits, frontend.PlainRefusal(), log)
	for _, src := range cfg.Sources {
		src.Upstream = slow.URL()
	}
	h, err := app.Build(ctx, app.Options{Settings: cfg, Secrets: readDemoSecret, Dir: dir, By: "demo", World: w.String(), Version: version(),
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

//go:embed demo.yml
var demoSettings []byte

// demoScheme begins the references to secrets in the settings of a demo.
const demoScheme = "demo:"

// readDemoSecret returns the secret of a reference that begins with "demo:". The settings of a demo have no other references.
func readDemoSecret(_ context.Context, ref config.SecretRef) (understudy.Secret, error) {
	text, ok := strings.CutPrefix(string(ref), demoScheme)
	if !ok {
		return understudy.Secret{}, fmt.Errorf("the demo's secrets begin with %s", demoScheme)
	}
	return understudy.NewSecret(text), nil
}

// worldFlags are the flags that describe the records of the simulated API.
type worldFlags struct {
	Latency  time.Duration `default:"1s" placeholder:"DURATION" help:"Time that the simulated API takes for a list (default ${default})."`
	Records  int           `default:"0" placeholder:"N" help:"Number of calls; there are twice as many messages (default 5000)."`
	Seed     uint64        `default:"0" placeholder:"N" help:"Seed of the invented records; another seed invents others (default 1)."`
	Epoch    string        `default:"" placeholder:"TIME" help:"Creation time of the newest record, RFC 3339 (default: now)."`
	Cap      int           `default:"200" placeholder:"N" help:"Requests answered at once (default ${default}). More are answered 429."`
	Arrivals float64       `default:"0" placeholder:"N" help:"New calls per minute (default 0: nothing new comes)."`
	Quirks   []string      `placeholder:"NAME" help:"Imitate an odd behaviour of the provider (docs/reference/slowapi.md lists them)."`
}

// world describes the simulated records of a demo, as its data folder stores it.
type world struct {
	Seed    uint64    `json:"seed"`
	Records int       `json:"records"`
	Epoch   time.Time `json:"epoch"`
}

// String returns the name of these simulated records for the store and for messages.
func (w world) String() string {
	return fmt.Sprintf("the simulated API with seed %d, %d records, epoch %s", w.Seed, w.Records, w.Epoch.Format(time.RFC3339))
}

// readFlags parses the flags. A flag that was not given leaves its field zero.
func (f worldFlags) readFlags() (world, error) {
	w := world{Seed: f.Seed, Records: f.Records}
	if f.Epoch != "" {
		t, err := understudy.ParseTime(f.Epoch, time.UTC, time.RFC3339)
		if err != nil {
			return w, usageError{fmt.Errorf("--epoch %q: write a time like 2026-06-01T12:00:00Z", f.Epoch)}
		}
		w.Epoch = t.UTC()
	}
	if f.Records < 0 {
		return w, usageError{fmt.Errorf("--records %d: write a number above 0", f.Records)}
	}
	return w, nil
}

// settle returns the simulated records of a data folder. In a new folder, the flags decide. In an old folder it
// returns an error if the flags describe other records than those of the folder.
func (f worldFlags) settle(dir string, now time.Time) (world, error) {
	asked, err := f.readFlags()
	if err != nil {
		return asked, err
	}
	path := filepath.Join(dir, datadir.DemoFile)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		w := asked
		w.Seed = cmp.Or(w.Seed, 1)
		w.Records = cmp.Or(w.Records, 5000)
		if w.Epoch.IsZero() {
			w.Epoch = now.UTC().Truncate(time.Second)
		}
		data, err := json.Marshal(w)
		if err != nil {
			return w, err
		}
		return w, datadir.WriteFile(path, append(data, '\n'))
	}
	if err != nil {
		return asked, err
	}
	var kept world
	if err := json.Unmarshal(data, &kept); err != nil {
		return asked, fmt.Errorf("%s cannot be read: %w; remove the folder to start with a new one", path, err)
	}
	if asked.Seed != 0 && asked.Seed != kept.Seed || asked.Records != 0 && asked.Records != kept.Records || !asked.Epoch.IsZero() &&
		!asked.Epoch.Equal(kept.Epoch) {
		return asked, fmt.Errorf("data folder %s belongs to %s; leave out --seed, --records and --epoch, or choose another folder with --data",
			dir, kept)
	}
	return kept, nil
}

// open returns the simulated API. shape is the provider it imitates; "" means Twilio.
func (f worldFlags) open(w world, shape, journal string, now func() time.Time, log *slog.Logger) (*slowapi.Server, error) {
	return slowapi.New(slowapi.Options{
		Shape: shape, Latency: f.Latency, Records: w.Records, Seed: w.Seed, Epoch: w.Epoch, Cap: f.Cap,
		Arrivals: f.Arrivals, Quirks: f.Quirks, Journal: journal, Now: now, Logger: log,
	})
}

type slowapiCmd struct {
	World   worldFlags `embed:""`
	Shape   string     `default:"${shape}" enum:"${shapes}" placeholder:"NAME" help:"Provider to imitate: ${enum} (default ${default})."`
	Listen  string     `default:"127.0.0.1:4116" placeholder:"HOST:PORT" help:"Address to listen at (default ${default})."`
	Journal string     `placeholder:"FILE" help:"File that keeps writes, deletions and advances of the clock over a restart."`
}

// Run runs the simulated API until the first signal.
func (c *slowapiCmd) Run(ctx context.Context, p *process) (err error) {
	w, err := c.World.readFlags()
	if err != nil {
		return err
	}
	if err := config.CheckAddress(c.Listen); err != nil {
		return usageError{fmt.Errorf("--listen: %w", err)}
	}
	log := slog.New(logline.New(p.stderr, logline.Options{}))
	api, err := c.World.open(w, c.Shape, c.Journal, time.Now, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, api.Close()) }()
	l, err := frontend.Listen(ctx, c.Listen, "--listen")
	if err != nil {
		return err
	}
	var limits config.Limits
	limits.SetDefaults()
	f := frontend.NewServer("slowapi", l, api, &limits, frontend.PlainRefusal(), log)
	fmt.Fprintf(p.stdout, "%-9s %s\n", f.Name, f.URL())
	printReady(p.stdout)
	return frontend.Run(ctx, []*frontend.Server{f}, nil)
}
