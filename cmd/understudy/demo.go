// Demo: settings, world and simulated API of `serve --demo`.

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
	"understudy/internal/config"
	"understudy/internal/datadir"
	"understudy/internal/slowapi"
)

//go:embed demo.yml
var demoSettings []byte

// demoScheme begins a secret in the demo's own settings.
const demoScheme = "demo:"

// demoSecrets reads the "demo:" secrets of the demo's own settings.
func demoSecrets(_ context.Context, ref config.SecretRef) (understudy.Secret, error) {
	text, ok := strings.CutPrefix(string(ref), demoScheme)
	if !ok {
		return understudy.Secret{}, fmt.Errorf("the demo's secrets begin with %s", demoScheme)
	}
	return understudy.NewSecret(text), nil
}

// worldFlags are slowapi's flags, taken by `slowapi` and `serve --demo` alike.
type worldFlags struct {
	Latency  time.Duration `default:"1s" help:"How long upstream takes for a list, give or take a fifth; an instance takes 0.3 of it."`
	Records  int           `default:"0" placeholder:"N" help:"N calls and 2N messages (default 5000)."`
	Seed     uint64        `default:"0" placeholder:"N" help:"Another seed is another world (default 1)."`
	Epoch    string        `default:"" placeholder:"TIME" help:"When the newest record was made, RFC 3339."`
	Cap      int           `default:"200" help:"Requests at once; above it upstream answers 429."`
	Arrivals float64       `default:"0" placeholder:"N" help:"New calls a minute; 0 = the world stands still."`
	Quirks   []string      `placeholder:"NAME" help:"Switch behaviours the provider leaves unverified (docs/reference/slowapi.md)."`
}

// world is what a demo's data folder remembers.
type world struct {
	Seed    uint64    `json:"seed"`
	Records int       `json:"records"`
	Epoch   time.Time `json:"epoch"`
}

// String is the world's name in the store and in messages.
func (w world) String() string {
	return fmt.Sprintf("the simulated API with seed %d, %d records, epoch %s", w.Seed, w.Records, w.Epoch.Format(time.RFC3339))
}

// asked is the world the flags ask for; zero fields were not given.
func (f worldFlags) asked() (world, error) {
	w := world{Seed: f.Seed, Records: f.Records}
	if f.Epoch != "" {
		t, err := understudy.ParseTime(f.Epoch, time.UTC, time.RFC3339)
		if err != nil {
			return w, usageError{fmt.Errorf("--epoch %q: write a time like 2026-06-01T12:00:00Z", f.Epoch)}
		}
		w.Epoch = t.UTC()
	}
	if f.Records < 0 {
		return w, usageError{fmt.Errorf("--records %d: want a number above 0", f.Records)}
	}
	return w, nil
}

// settle joins what the flags ask with what the folder remembers. A folder
// keeps its world: asking for another is refused.
func (f worldFlags) settle(dir string, now time.Time) (world, error) {
	asked, err := f.asked()
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
		return asked, fmt.Errorf("%s: %w; remove the folder to begin anew", path, err)
	}
	if asked.Seed != 0 && asked.Seed != kept.Seed || asked.Records != 0 && asked.Records != kept.Records || !asked.Epoch.IsZero() &&
		!asked.Epoch.Equal(kept.Epoch) {
		return asked, fmt.Errorf("data folder %s holds %s; leave out --seed, --records and --epoch, or choose another with --data", dir, kept)
	}
	return kept, nil
}

// open makes the simulated API of a world; shape is whose API it is, "" Twilio's.
func (f worldFlags) open(w world, shape, journal string, now func() time.Time, log *slog.Logger) (*slowapi.Server, error) {
	return slowapi.New(slowapi.Options{
		Shape: shape, Latency: f.Latency, Records: w.Records, Seed: w.Seed, Epoch: w.Epoch, Cap: f.Cap,
		Arrivals: f.Arrivals, Quirks: f.Quirks, Journal: journal, Now: now, Logger: log,
	})
}
