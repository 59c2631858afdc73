// Admin: the commands of a running server, asked over its viewer's port, or done
// in the data folder itself when no server holds it.

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"

	"understudy/internal/config"
	"understudy/internal/datadir"
)

// admin is a running server that a command asks.
type admin struct{ datadir.Running }

// ask sends one request to the running server and reads its answer. What the
// server says was the caller's mistake is a usageError.
func (r admin) ask(ctx context.Context, method, path string, body []byte, into any) error {
	req, err := http.NewRequestWithContext(ctx, method, r.Viewer+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+r.Token)
	req.Header.Set("Content-Type", "application/json")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // no proxy: it is this machine
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("the server with viewer %s (process %d) does not answer: %w", r.Viewer, r.PID, err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, 4<<20))
	var failure struct {
		Error string `json:"error"`
	}
	if err != nil || json.Unmarshal(data, &failure) != nil {
		return fmt.Errorf("the server with viewer %s answered %s and nothing that can be read", r.Viewer, resp.Status)
	}
	switch {
	case resp.StatusCode == http.StatusBadRequest || resp.StatusCode == http.StatusNotFound:
		return usageError{errors.New(failure.Error)}
	case resp.StatusCode/100 != 2:
		return fmt.Errorf("the server with viewer %s answered %s: %s", r.Viewer, resp.Status, failure.Error)
	}
	return json.Unmarshal(data, into)
}

// place are the flags that name it.
type place struct {
	Config string `placeholder:"FILE" help:"Settings file (default understudy.yml); a demo's folder needs none."`
	Data   string `placeholder:"DIR" help:"Data folder (default: what the settings say)."`
}

// work has the server that holds the folder do something or, when none does,
// does it alone, with the settings, the folder they stand in, and the data folder
// for itself.
func (c *place) work(p *process, ask func(server admin) error,
	alone func(cfg *config.Settings, settings string, dir *datadir.Dir) error) error {
	data, err := c.data(p)
	if err != nil {
		return err
	}
	if _, err := os.Stat(data); err != nil {
		return fmt.Errorf("data folder: %w; name it with --data", err)
	}
	server, dir, err := datadir.Hold(data)
	switch {
	case err != nil:
		return err
	case server != nil:
		return ask(admin{*server})
	}
	cfg, settings, err := c.settings(p)
	if err == nil {
		err = alone(cfg, settings, dir)
	}
	return errors.Join(err, dir.Close())
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
	path := c.Config
	if path == "" {
		path = "understudy.yml"
	}
	cfg, err = config.Read(path, p.env)
	if err != nil {
		return nil, "", err
	}
	if c.Data != "" {
		cfg.Data = c.Data
	}
	return cfg, filepath.Dir(path), nil
}
