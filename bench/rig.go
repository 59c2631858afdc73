// Rig: a simulated slow API and Understudy in front of it, as two processes.

package main

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
	account  = "AC00000000000000000000000000000001"
	calls    = "/2010-04-01/Accounts/" + account + "/Calls.json"
	apiToken = "slowapitoken"

	ourToken     = "benchsecret"   // of the role all
	supportToken = "supportsecret" // of a role that sees parts of numbers and no texts
)

// Setup is what differs between rigs; the zero value is the product's default in
// front of a slow API of 5,000 calls that answers at once, with no polls.
type Setup struct {
	latency  time.Duration
	records  int
	settings []string // of sources.twilio: "rate: 5", "polls: [calls]"
	mirror   string   // the mirror section: "hot: 25MiB"
	log      string   // the log section
	extra    string   // further sections
}

// Rig is a running pair.
type Rig struct {
	api, serve *child
	bin, dir   string
}

// rig starts both; the API first, on a port of its own choosing that it keeps
// while Understudy is stopped and started.
func (r *run) rig(ctx context.Context, s Setup) (*Rig, error) {
	dir, err := os.MkdirTemp(r.dir, "rig-")
	if err != nil {
		return nil, err
	}
	if s.records == 0 {
		s.records = 5000
	}
	api, err := start(ctx, dir, "slowapi", "slowapi ", r.bin, "slowapi", "--listen", "127.0.0.1:0",
		"--latency", s.latency.String(), "--records", fmt.Sprint(s.records))
	if err != nil {
		return nil, err
	}
	g := &Rig{api: api, bin: r.bin, dir: dir}
	err = errors.Join(
		os.WriteFile(filepath.Join(dir, "api.token"), []byte(apiToken), 0o600),
		os.WriteFile(filepath.Join(dir, "bench.token"), []byte(ourToken), 0o600),
		os.WriteFile(filepath.Join(dir, "support.token"), []byte(supportToken), 0o600),
		os.WriteFile(filepath.Join(dir, "understudy.yml"), s.config(filepath.Join(dir, "data"), api.addresses["slowapi"]), 0o600),
	)
	if err == nil {
		err = g.begin(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, api.stop())
	}
	return g, nil
}

// config is the settings file of a rig.
func (s Setup) config(data, upstream string) []byte {
	if !strings.Contains(strings.Join(s.settings, " "), "polls:") {
		s.settings = append(s.settings[:len(s.settings):len(s.settings)], "polls: []")
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
roles: {support: {twilio: {"*": see, phone: last4, body: hide}}}
mirror: {%s}
log: {%s}
%s
`, data, upstream, account, strings.Join(s.settings, "\n    "), account, account, s.mirror, s.log, s.extra)
}

// begin starts Understudy on the rig's folder.
func (g *Rig) begin(ctx context.Context) error {
	serve, err := start(ctx, g.dir, "serve", "Ctrl-C", g.bin, "serve", "--config", filepath.Join(g.dir, "understudy.yml"))
	g.serve = serve
	return err
}

// restart ends Understudy in order and starts it again.
func (g *Rig) restart(ctx context.Context) error {
	if err := g.serve.stop(); err != nil {
		return err
	}
	return g.begin(ctx)
}

// calm waits until Understudy does next to nothing: what it goes on with behind
// its answers, as counting or indexing what was walked, is over then.
func (g *Rig) calm(ctx context.Context) error {
	const most, look = 5 * time.Minute, 500 * time.Millisecond
	for end := time.Now().Add(most); time.Now().Before(end); {
		before, err := g.serve.cpu()
		if err != nil {
			return err
		}
		if err := pause(ctx, look); err != nil {
			return err
		}
		after, err := g.serve.cpu()
		if err != nil {
			return err
		}
		if after-before < look/20 {
			return nil
		}
	}
	return fmt.Errorf("understudy is still at work after %v", most)
}

// close ends both.
func (g *Rig) close() error {
	var err error
	if g.serve != nil {
		err = g.serve.stop()
	}
	return errors.Join(err, g.api.stop())
}

// through is the way to the API through Understudy; direct goes around it.
func (g *Rig) through() *Client { return NewClient(g.serve.addresses["twilio"], account, ourToken) }
func (g *Rig) direct() *Client  { return NewClient(g.api.addresses["slowapi"], account, apiToken) }

// asked is what the simulated API counted.
type asked struct {
	Requests int            `json:"requests"`
	ByTarget map[string]int `json:"by_target"`
}

func (g *Rig) asked(ctx context.Context) (asked, error) {
	var a asked
	return a, g.direct().json(ctx, "/-/stats", &a)
}

// counted is the part of Understudy's own counters the bench reads.
type counted struct {
	Requests, Warm, Stale, Cold, Coalesced int64
	Upstream                               struct{ Requests, Errors int64 }
	Hot                                    struct{ Bytes, Limit, Pages int64 }
}

func (g *Rig) counted(ctx context.Context) (counted, error) {
	var c counted
	return c, NewClient(g.serve.addresses["viewer"], "", "").json(ctx, "/-/stats", &c)
}

// faults replaces the simulated API's fault rules.
func (g *Rig) faults(ctx context.Context, rules string) error {
	return g.direct().post(ctx, "/-/faults", `{"rules":`+rules+`}`)
}

// json reads a JSON answer.
func (w *Client) json(ctx context.Context, uri string, into any) error {
	a, err := w.get(ctx, uri)
	if err != nil {
		return err
	}
	if a.status != 200 {
		return fmt.Errorf("%s: status %d", uri, a.status)
	}
	return json.Unmarshal(a.body, into)
}

// fast is a rig of so many pages of 50 calls whose upstream answers at once
// and is asked as fast as it can be.
func fast(pages int) Setup {
	return Setup{records: 50 * pages, settings: []string{"rate: 100000", "concurrency: 20"}, mirror: "hot: 25MiB"}
}
