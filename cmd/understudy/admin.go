// Admin: the commands of a server, asked over its viewer's port. When no server
// holds the data folder, the command starts one for itself, without other ports.

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"understudy/cmd/understudy/terminal"
	"understudy/internal/app"
	"understudy/internal/config"
	"understudy/internal/datadir"
	"understudy/kit/retry"
)

// admin is a server that a command asks.
type admin struct {
	url, user, secret string // without user the secret is a token
	client            *http.Client
}

// here is a server on this machine.
func here(run datadir.Running) *admin {
	return &admin{url: run.Viewer, secret: run.Token, client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}} // no proxy
}

// refusal is a request that was not answered as asked.
type refusal struct {
	Status int    `json:"-"`
	Text   string `json:"error"`
	At     *int   `json:"at"` // of the part of query that is wrong, with End
	End    *int   `json:"end"`
	query  string
}

// Error is what the server said, with carets below the part of a query.
func (r *refusal) Error() string {
	text := terminal.Printable(r.Text)
	if r.At != nil && r.End != nil && *r.At >= 0 && *r.At <= *r.End && *r.End <= len(r.query) && utf8.ValidString(r.query) {
		text += "\n" + terminal.Underlined(r.query, *r.At, *r.End)
	}
	return text
}

// isMistake reports whether the request was wrong or named something that does not exist.
func (r *refusal) isMistake() bool {
	return r.Status == http.StatusBadRequest || r.Status == http.StatusNotFound
}

// send sends a request with body as JSON, none when nil; the caller closes the
// answer. An answer of an error is a refusal.
func (a *admin) send(ctx context.Context, method, path string, body any) (*http.Response, error) {
	var data []byte
	if body != nil {
		var err error
		if data, err = json.Marshal(body); err != nil {
			return nil, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, a.url+path, bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	if a.user != "" {
		req.SetBasicAuth(a.user, a.secret)
	} else if a.secret != "" {
		req.Header.Set("Authorization", "Bearer "+a.secret)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := a.client.Do(req)
	if err != nil {
		var cause *url.Error
		if errors.As(err, &cause) {
			err = cause.Err // without the method and the address
		}
		return nil, fmt.Errorf("no server answers at %s: %w; start it with understudy serve, or name another one", a.url, err)
	}
	if resp.StatusCode/100 == 2 {
		return resp, nil
	}
	defer resp.Body.Close()
	r := &refusal{Status: resp.StatusCode}
	if err := json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(r); err != nil || r.Text == "" {
		r.Text = fmt.Sprintf("the server at %s answered %s", a.url, resp.Status)
	}
	return nil, r
}

const (
	askTime    = 2 * time.Minute        // for one answer
	mostAnswer = 256 << 20              // bytes of one
	lookEvery  = 100 * time.Millisecond // between two looks at how far a server is
)

// ask sends a request and reads the answer into what is given, unless it is nil.
func (a *admin) ask(ctx context.Context, method, path string, body, into any) error {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	resp, err := a.send(ctx, method, path, body)
	if err != nil {
		return err
	}
	return a.read(resp, into)
}

// read reads an answer, unless into is nil, and closes it.
func (a *admin) read(resp *http.Response, into any) error {
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNoContent || into == nil {
		return nil
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, mostAnswer)).Decode(into); err != nil {
		return fmt.Errorf("the server at %s did not answer with JSON: %w; see whether it is Understudy", a.url, err)
	}
	return nil
}

// setQuery sets the parameters of a query that have a value.
func setQuery(values url.Values, parameters map[string]string) {
	for name, value := range parameters {
		if value != "" {
			values.Set(name, value)
		}
	}
}

// poll looks until it is done, a look fails or ctx ends.
func poll(ctx context.Context, look func() (done bool, err error)) error {
	for {
		if done, err := look(); done || err != nil {
			return err
		}
		if err := retry.Sleep(ctx, lookEvery); err != nil {
			return err
		}
	}
}

// place are the flags that name a data folder.
type place struct {
	Config string `group:"data" placeholder:"FILE" help:"Settings file (default understudy.yml). The folder of a demo needs none."`
	Data   string `group:"data" placeholder:"DIR" help:"Data folder (default: data of the settings file)."`
}

// work has do ask the server that holds the folder or, when none does, one that
// is started for it. Offline that one never asks upstream, and the folder must be
// there; else one that the settings name is made.
func (c *place) work(ctx context.Context, p *process, offline bool, do func(ctx context.Context, server *admin) error) error {
	data, err := c.data(p)
	if err != nil {
		return err
	}
	if _, err := os.Stat(data); err != nil && (offline || c.Data != "" && c.Config == "") {
		return fmt.Errorf("the data folder %s cannot be read: %w; name it with --data", data, pathCause(err))
	}
	server, dir, err := datadir.OpenOrFindServer(data)
	switch {
	case err != nil:
		return err
	case server != nil:
		return do(ctx, here(*server))
	}
	return errors.Join(c.alone(ctx, p, dir, offline, do), dir.Close())
}

// pathCause returns the cause of an error about a file, without the operation and the path.
func pathCause(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// alone starts a server for the command, in a folder no other uses.
func (c *place) alone(ctx context.Context, p *process, dir *datadir.Dir, offline bool,
	do func(ctx context.Context, server *admin) error) error {
	if _, err := os.Stat(filepath.Join(dir.Path, datadir.DemoFile)); err == nil && !offline {
		return fmt.Errorf("%s is the folder of a demo, whose simulated API has to run; start understudy demo --data %s", dir.Path, dir.Path)
	}
	cfg, folder, err := c.settings(p)
	if err != nil {
		return err
	}
	a, err := app.Build(ctx, app.Options{Settings: cfg, Folder: folder, Secrets: config.FileSecrets(folder), Dir: dir, By: "config",
		Version: version(), Stderr: p.stderr, Headless: true, Offline: offline})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() {
		defer stop() // nothing is done any more
		ended <- a.Serve(ctx, nil, nil)
	}()
	err = do(ctx, here(a.Commands()))
	stop()
	return errors.Join(err, <-ended)
}

// data is the data folder.
func (c *place) data(p *process) (string, error) {
	if c.Data != "" {
		return c.Data, nil
	}
	cfg, _, err := c.settings(p)
	if err != nil {
		return "", err
	}
	return cfg.Data, nil
}

// settings are those of the server that uses the folder: a demo's folder says
// so itself.
func (c *place) settings(p *process) (cfg *config.Settings, folder string, err error) {
	if c.Config == "" && c.Data != "" {
		if _, err := os.Stat(filepath.Join(c.Data, datadir.DemoFile)); err == nil {
			cfg, err = config.Parse(demoSettings, p.env)
			if err == nil {
				cfg.Data = c.Data
			}
			return cfg, "", err
		}
	}
	path := cmp.Or(c.Config, "understudy.yml")
	if cfg, err = config.Read(path, p.env); err != nil {
		return nil, "", err
	}
	if c.Data != "" {
		cfg.Data = c.Data
	}
	return cfg, filepath.Dir(path), nil
}

// running are the flags that name the folder of a server that runs.
type running struct {
	Config string `group:"server" placeholder:"FILE" help:"Settings file of the running server (default understudy.yml)."`
	Data   string `group:"server" placeholder:"DIR" help:"Data folder of the running server (default: data of the settings file)."`
}

// find is the server that holds the folder.
func (c *running) find(p *process) (datadir.Running, error) {
	data, err := (*place)(c).data(p)
	if err != nil {
		return datadir.Running{}, fmt.Errorf("%w; or name the data folder of a running server with --data", err)
	}
	run, err := datadir.ReadRunning(data)
	if errors.Is(err, os.ErrNotExist) {
		return run, fmt.Errorf("no server runs in the data folder %s; start one with understudy serve, or name another with --data", data)
	}
	return run, err
}

// remote are the flags that name a server, here or elsewhere.
type remote struct {
	Running running `embed:""`
	URL     string  `group:"server" name:"url" placeholder:"URL" help:"Address of the viewer of another server, instead of a data folder."`
	User    string  `group:"server" placeholder:"NAME" help:"With --url: the user of a credential."`
	Secret  string  `group:"server" placeholder:"file:PATH" help:"With --url: the secret of the credential, as file:PATH or cmd:COMMAND."`
}

// server is the one that is named.
func (c *remote) server(ctx context.Context, p *process) (*admin, error) {
	switch {
	case c.URL != "" && (c.Running.Data != "" || c.Running.Config != ""):
		return nil, usageError{errors.New("--url names a server; leave out --data and --config")}
	case c.URL == "" && (c.User != "" || c.Secret != ""):
		return nil, usageError{errors.New("--user and --secret need --url")}
	case c.URL == "":
		run, err := c.Running.find(p)
		return here(run), err
	}
	a := &admin{url: strings.TrimSuffix(c.URL, "/"), user: c.User, client: http.DefaultClient}
	if c.Secret != "" {
		secret, err := config.ReadSecret(ctx, config.SecretRef(c.Secret), ".")
		if err != nil {
			return nil, fmt.Errorf("--secret: %w", err)
		}
		a.secret = secret.Reveal()
	}
	return a, nil
}
