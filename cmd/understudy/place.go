// Place: where a command does its work, in the server that holds a data folder
// or, when nobody does, in the folder itself.

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
	"time"
	"understudy/internal/config"

	"understudy"
	"understudy/internal/store"
)

// place are the flags that name it.
type place struct {
	Config string `placeholder:"FILE" help:"Settings file (default understudy.yml); a demo's folder needs none."`
	Data   string `placeholder:"DIR" help:"Data folder (default: what the settings say)."`
}

// work has the server that holds the folder do something or, when nobody does,
// does it alone, with the settings, the folder they stand in, and the data folder
// for itself.
func (c *place) work(p *process, ask func(server runInfo) error, alone func(cfg *config.Settings, settings string, dir *folder) error) error {
	data, err := c.data(p)
	if err != nil {
		return err
	}
	if _, err := os.Stat(data); err != nil {
		return fmt.Errorf("data folder: %w; name it with --data", err)
	}
	server, dir, err := hold(data)
	switch {
	case err != nil:
		return err
	case server != nil:
		return ask(*server)
	}
	cfg, settings, err := c.settings(p)
	if err == nil {
		err = alone(cfg, settings, dir)
	}
	return errors.Join(err, dir.close())
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
		if _, err := os.Stat(filepath.Join(c.Data, demoFile)); err == nil {
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

// hold is the server that holds a data folder or, when nobody does, the folder,
// which the caller closes.
func hold(data string) (server *runInfo, dir *folder, err error) {
	dir, err = openFolder(data, false)
	var held heldError
	if errors.As(err, &held) && held.by.Viewer != "" {
		return &held.by, nil, nil
	}
	return nil, dir, err
}

// store is the path of the database.
func (f *folder) store(cfg *config.Settings) string {
	if cfg.Store.DSN != "" {
		return cfg.Store.DSN
	}
	return filepath.Join(f.path, storeFile)
}

// open opens the database of a folder no server uses, for the sources of the
// settings.
func (f *folder) open(ctx context.Context, cfg *config.Settings, settings string) (*store.DB, []*understudy.Source, error) {
	sources, err := cfg.ReadSources(settings)
	if err != nil {
		return nil, nil, err
	}
	specs := map[string]*understudy.Spec{}
	for _, src := range sources {
		specs[src.Name] = src.Spec
	}
	db, err := store.Open(ctx, store.Options{Path: f.store(cfg), Specs: specs, Retention: cfg.Retained(), Now: time.Now})
	return db, sources, err
}

// ask sends one request to the running server and reads its answer. What the
// server says was the caller's mistake is a usageError.
func (r runInfo) ask(ctx context.Context, method, path string, body []byte, into any) error {
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
