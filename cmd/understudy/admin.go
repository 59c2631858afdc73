// Admin: how commands send requests to a server, at the port of its viewer. If no server uses the data folder, the
// command starts one for itself, which opens no other ports.

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
	"understudy/internal/certificate"
	"understudy/internal/config"
	"understudy/internal/datadir"
	"understudy/kit/retry"
)

// admin sends requests of a command to a server.
type admin struct {
	url, user, secret string // user and secret are a credential; if user is empty, secret is a token
	client            *http.Client
}

// newLocalAdmin returns an admin for the running server of a data folder on this machine. It uses no proxy.
func newLocalAdmin(run datadir.Running) *admin {
	known := certificate.NewClientConfig(func(fingerprint string) bool { return fingerprint == run.Certificate })
	return &admin{url: run.Viewer, secret: run.Token,
		client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: known}}}
}

// refusal is the error with which the server refused a request.
type refusal struct {
	Status int    `json:"-"`
	Text   string `json:"error"`
	At     *int   `json:"at"` // the position in query of the first wrong byte; the wrong part ends before the byte End
	End    *int   `json:"end"`
	query  string
}

// Error returns the server's message. Below the query it has carets that mark the wrong part.
func (r *refusal) Error() string {
	text := terminal.Printable(r.Text)
	if r.At != nil && r.End != nil && *r.At >= 0 && *r.At <= *r.End && *r.End <= len(r.query) && utf8.ValidString(r.query) {
		text += "\n" + terminal.Underline(r.query, *r.At, *r.End)
	}
	return text
}

// isMistake reports whether the request itself was wrong, or named something that does not exist.
func (r *refusal) isMistake() bool {
	return r.Status == http.StatusBadRequest || r.Status == http.StatusNotFound
}

// send sends a request and returns the response, whose body the caller must close. body is sent as JSON, or not at
// all if it is nil. If the status of the response is an error, send returns a *refusal.
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
		if cause, ok := errors.AsType[*url.Error](err); ok {
			err = cause.Err // the cause without the method and the address of the request
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
	askTimeout     = 2 * time.Minute        // the maximum time until the response is complete
	maxAnswerBytes = 256 << 20              // the maximum size in bytes of a response body
	pollInterval   = 100 * time.Millisecond // the time between two requests for the progress of long work
)

// ask sends a request and decodes the JSON response into the value that into points to. If into is nil, it ignores the body.
func (a *admin) ask(ctx context.Context, method, path string, body, into any) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	resp, err := a.send(ctx, method, path, body)
	if err != nil {
		return err
	}
	return a.read(resp, into)
}

// read decodes a JSON response into the value that into points to, and closes the response. If into is nil, it
// ignores the body.
func (a *admin) read(resp *http.Response, into any) error {
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNoContent || into == nil {
		return nil
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxAnswerBytes)).Decode(into); err != nil {
		return fmt.Errorf("the server at %s did not answer with JSON: %w; check that it is Understudy", a.url, err)
	}
	return nil
}

// setQuery sets those parameters whose value is not empty.
func setQuery(values url.Values, parameters map[string]string) {
	for name, value := range parameters {
		if value != "" {
			values.Set(name, value)
		}
	}
}

// poll calls look every pollInterval. It returns when look returns true or an error, or when ctx ends.
func poll(ctx context.Context, look func() (done bool, err error)) error {
	for {
		if done, err := look(); done || err != nil {
			return err
		}
		if err := retry.Wait(ctx, pollInterval); err != nil {
			return err
		}
	}
}

// dataFlags has the flags that choose a data folder.
type dataFlags struct {
	Config string `group:"data" placeholder:"FILE" help:"Settings file (default understudy.yml). The folder of a demo needs none."`
	Data   string `group:"data" placeholder:"DIR" help:"Data folder (default: data of the settings file)."`
}

// askServer calls do with the server that uses the data folder. If there is none, it starts a server for the time of
// the call. If offline is true, that server sends no requests to the provider, and the data folder must exist.
func (c *dataFlags) askServer(ctx context.Context, p *process, offline bool,
	do func(ctx context.Context, server *admin) error) error {
	data, err := c.findData(p)
	if err != nil {
		return err
	}
	if _, err := os.Stat(data); err != nil && (offline || c.Data != "" && c.Config == "") {
		return fmt.Errorf("the data folder %s cannot be read: %w; name it with --data", data, stripPath(err))
	}
	server, dir, err := datadir.OpenOrFindServer(data)
	switch {
	case err != nil:
		return err
	case server != nil:
		return do(ctx, newLocalAdmin(*server))
	}
	return errors.Join(c.runServer(ctx, p, dir, offline, do), dir.Close())
}

// ask sends a request to the server that uses the data folder, which askServer starts if there is none.
func (c *dataFlags) ask(ctx context.Context, p *process, method, path string, body, into any) error {
	return c.askServer(ctx, p, true, func(ctx context.Context, server *admin) error { return server.ask(ctx, method, path, body, into) })
}

// stripPath returns the cause of an error about a file, without the name of the operation and the path.
func stripPath(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err
	}
	return err
}

// runServer starts a server in a data folder that no other server uses, calls do, and stops the server again.
func (c *dataFlags) runServer(ctx context.Context, p *process, dir *datadir.Dir, offline bool,
	do func(ctx context.Context, server *admin) error) error {
	if _, err := os.Stat(filepath.Join(dir.Path, datadir.DemoFile)); err == nil && !offline {
		return fmt.Errorf("%s is the folder of a demo, whose simulated API has to run; start understudy demo --data %s", dir.Path, dir.Path)
	}
	cfg, folder, err := c.readSettings(p)
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
		defer stop() // when the server ends, so does do, because nobody answers its requests
		ended <- a.Serve(ctx, nil, nil)
	}()
	err = do(ctx, newLocalAdmin(a.Commands()))
	stop()
	return errors.Join(err, <-ended)
}

// findData returns the path of the data folder. It comes from the flags, or if they do not name it, from the settings.
func (c *dataFlags) findData(p *process) (string, error) {
	if c.Data != "" {
		return c.Data, nil
	}
	cfg, _, err := c.readSettings(p)
	if err != nil {
		return "", err
	}
	return cfg.Data, nil
}

// readSettings returns the settings of the server that uses the data folder, and the folder that contains the
// settings file. A demo has its own settings in its data folder.
func (c *dataFlags) readSettings(p *process) (cfg *config.Settings, folder string, err error) {
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

// localFlags has the flags that choose a running server by its data folder.
type localFlags struct {
	Config string `group:"server" placeholder:"FILE" help:"Settings file of the running server (default understudy.yml)."`
	Data   string `group:"server" placeholder:"DIR" help:"Data folder of the running server (default: data of the settings file)."`
}

// findServer returns the address and the token of the running server.
func (c *localFlags) findServer(p *process) (datadir.Running, error) {
	return c.find(p, datadir.ReadRunning)
}

// noServerError is the error if no server listens that uses the data folder.
type noServerError struct{ error }

// find reads with read which process uses the data folder.
func (c *localFlags) find(p *process, read func(path string) (datadir.Running, error)) (datadir.Running, error) {
	data, err := (*dataFlags)(c).findData(p)
	if err != nil {
		return datadir.Running{}, fmt.Errorf("%w; or name the data folder of a running server with --data", err)
	}
	run, err := read(data)
	switch {
	case errors.Is(err, os.ErrNotExist) && run.PID != 0:
		return run, noServerError{fmt.Errorf("process %d uses the data folder %s and does not listen yet; try again soon", run.PID, data)}
	case errors.Is(err, os.ErrNotExist):
		return run, noServerError{fmt.Errorf("no server runs in the data folder %s; start one with understudy serve, "+
			"or name another with --data", data)}
	}
	return run, err
}

// ask sends a request to the running server, as admin.ask does.
func (c *localFlags) ask(ctx context.Context, p *process, method, path string, body, into any) error {
	run, err := c.findServer(p)
	if err != nil {
		return err
	}
	return newLocalAdmin(run).ask(ctx, method, path, body, into)
}

// serverFlags has the flags that choose a running server, on this machine or on another.
type serverFlags struct {
	Running localFlags `embed:""`
	URL     string     `group:"server" name:"url" placeholder:"URL" help:"Address of the viewer of another server, instead of a data folder."`
	User    string     `group:"server" placeholder:"NAME" help:"With --url: the user of a credential."`
	Secret  string     `group:"server" placeholder:"file:PATH" help:"With --url: the secret of the credential, as file:PATH or cmd:COMMAND."`
}

// findServer returns an admin for the server that the flags choose.
func (c *serverFlags) findServer(ctx context.Context, p *process) (*admin, error) {
	switch {
	case c.URL != "" && (c.Running.Data != "" || c.Running.Config != ""):
		return nil, usageError{errors.New("--url already names a server; remove --data and --config")}
	case c.URL == "" && (c.User != "" || c.Secret != ""):
		return nil, usageError{errors.New("--user and --secret need --url")}
	case c.URL == "":
		run, err := c.Running.findServer(p)
		return newLocalAdmin(run), err
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
