// Place: where a command does its work, in the server that holds a data folder
// or, when nobody does, in the folder itself.

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"understudy/internal/config"
	"understudy/internal/datadir"
)

// place are the flags that name it.
type place struct {
	Config string `placeholder:"FILE" help:"Settings file (default understudy.yml); a demo's folder needs none."`
	Data   string `placeholder:"DIR" help:"Data folder (default: what the settings say)."`
}

// work has the server that holds the folder do something or, when nobody does,
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
