// Rig: a simulated slow API and Understudy in front of it, as two processes.

package rig

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	Account  = "AC00000000000000000000000000000001"
	Calls    = "/2010-04-01/Accounts/" + Account + "/Calls.json"
	ApiToken = "slowapitoken"

	OurToken     = "benchsecret"   // of the role all
	SupportToken = "supportsecret" // of a role that sees parts of numbers and no texts
	SomeToken    = "somesecret"    // of a role that finds completed calls alone

	nodesSecret = "a secret that processes on one database share"
)

// Setup has the settings in which rigs differ. The zero value is the product's default in front of a simulated API
// with 5,000 calls and without latency. Nothing is polled.
type Setup struct {
	Latency  time.Duration
	Records  int
	Settings []string // of sources.twilio: "rate: 5", "polls: [calls]"
	Mirror   string   // the mirror section: "memory: 25MiB"
	Log      string   // the log section: "access: off"
	Extra    string   // further sections
}

// Rig is a simulated API and Understudy in front of it, both running.
type Rig struct {
	Api, Serve *Child
	Bin, Dir   string
}

// Rig starts the simulated API and then Understudy. The API keeps its port while Understudy is restarted.
func (r *Run) Rig(ctx context.Context, s Setup) (*Rig, error) {
	dir, err := os.MkdirTemp(r.Dir, "rig-")
	if err != nil {
		return nil, err
	}
	if s.Records == 0 {
		s.Records = 5000
	}
	api, err := Start(ctx, dir, "slowapi", "slowapi ", r.Bin, "slowapi", "--listen", "127.0.0.1:0",
		"--latency", s.Latency.String(), "--records", fmt.Sprint(s.Records))
	if err != nil {
		return nil, err
	}
	g := &Rig{Api: api, Bin: r.Bin, Dir: dir}
	err = errors.Join(
		os.WriteFile(filepath.Join(dir, "api.token"), []byte(ApiToken), 0o600),
		os.WriteFile(filepath.Join(dir, "bench.token"), []byte(OurToken), 0o600),
		os.WriteFile(filepath.Join(dir, "support.token"), []byte(SupportToken), 0o600),
		os.WriteFile(filepath.Join(dir, "some.token"), []byte(SomeToken), 0o600),
		os.WriteFile(filepath.Join(dir, "nodes.secret"), []byte(nodesSecret), 0o600),
		os.WriteFile(filepath.Join(dir, "understudy.yml"), s.config(filepath.Join(dir, "data"), api.Addresses["slowapi"]), 0o600),
	)
	if err == nil {
		err = g.Begin(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, api.Stop())
	}
	return g, nil
}

// config returns the settings file of a rig.
func (s Setup) config(data, upstream string) []byte {
	if !strings.Contains(strings.Join(s.Settings, " "), "polls:") {
		s.Settings = append(s.Settings[:len(s.Settings):len(s.Settings)], "polls: []")
	}
	return fmt.Appendf(nil, `data: %s
viewer: {listen: "127.0.0.1:0", sign_in: none, role: all}
sources:
  twilio:
    spec: twilio
    upstream: %s
    user: %s
    secret: "file:api.token"
    listen: "127.0.0.1:0"
    %s
credentials:
  - {name: bench, source: twilio, user: %s, secret: "file:bench.token", role: all}
  - {name: support, source: twilio, user: %s, secret: "file:support.token", role: support}
  - {name: some, source: twilio, user: %s, secret: "file:some.token", role: some}
roles:
  support: {twilio: {"*": see, phone: last4, body: hide}}
  some: {twilio: {"*": see, rows: {"*": all, calls: {where: {status: [completed]}}}}}
mirror: {%s}
log: {%s}
%s
`, data, upstream, Account, strings.Join(s.Settings, "\n    "), Account, Account, Account, s.Mirror, s.Log, s.Extra)
}

// Begin starts Understudy on the rig's folder.
func (g *Rig) Begin(ctx context.Context) error {
	serve, err := Start(ctx, g.Dir, "serve", "Ctrl-C", g.Bin, "serve", "--config", filepath.Join(g.Dir, "understudy.yml"))
	g.Serve = serve
	return err
}

// Restart stops Understudy and starts it again.
func (g *Rig) Restart(ctx context.Context) error {
	if err := g.Serve.Stop(); err != nil {
		return err
	}
	return g.Begin(ctx)
}

// Calm waits until Understudy uses almost no CPU time. Its background work, such as counting or indexing walked
// records, is then done.
func (g *Rig) Calm(ctx context.Context) error {
	const most, look = 5 * time.Minute, 500 * time.Millisecond
	for end := time.Now().Add(most); time.Now().Before(end); {
		before, err := g.Serve.Cpu()
		if err != nil {
			return err
		}
		if err := Pause(ctx, look); err != nil {
			return err
		}
		after, err := g.Serve.Cpu()
		if err != nil {
			return err
		}
		if after-before < look/20 {
			return nil
		}
	}
	return fmt.Errorf("understudy is still at work after %v", most)
}

// Close stops both processes.
func (g *Rig) Close() error {
	var err error
	if g.Serve != nil {
		err = g.Serve.Stop()
	}
	return errors.Join(err, g.Api.Stop())
}

// Through returns a client of the API through Understudy. Direct returns a client of the API itself.
func (g *Rig) Through() *Client { return NewClient(g.Serve.Addresses["twilio"], Account, OurToken) }
func (g *Rig) Direct() *Client  { return NewClient(g.Api.Addresses["slowapi"], Account, ApiToken) }

// asked is what the simulated API has counted.
type asked struct {
	Requests int            `json:"requests"`
	ByTarget map[string]int `json:"by_target"`
}

func (g *Rig) Asked(ctx context.Context) (asked, error) {
	var a asked
	return a, g.Direct().Json(ctx, "/-/stats", &a)
}

// counted is the part of Understudy's own counters that the bench reads.
type counted struct {
	Requests, Warm, Stale, Cold, Coalesced int64
	Upstream                               struct{ Requests, Errors int64 }
	Hot                                    struct{ Bytes, Limit, Pages int64 }
	Faces                                  map[string]struct{ Express int64 }
}

func (g *Rig) Counted(ctx context.Context) (counted, error) {
	var c counted
	return c, NewClient(g.Serve.Addresses["viewer"], "", "").Json(ctx, "/-/stats", &c)
}

// Faults replaces the simulated API's fault rules.
func (g *Rig) Faults(ctx context.Context, rules string) error {
	return g.Direct().Post(ctx, "/-/faults", `{"rules":`+rules+`}`)
}

// Json sends one GET request and decodes the JSON answer.
func (w *Client) Json(ctx context.Context, uri string, into any) error {
	a, err := w.Get(ctx, uri)
	if err != nil {
		return err
	}
	if a.Status != 200 {
		return fmt.Errorf("%s: status %d", uri, a.Status)
	}
	return json.Unmarshal(a.Body, into)
}

// Fast returns the setup of a rig with the given number of pages of 50 calls. The simulated API has no latency,
// and the budget of requests is large.
func Fast(pages int) Setup {
	return Setup{Records: 50 * pages, Settings: []string{"rate: 100000", "concurrency: 20"}, Mirror: "memory: 25MiB"}
}
