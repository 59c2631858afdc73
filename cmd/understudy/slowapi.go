// Slowapi: the simulated API alone.

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
	"understudy/internal/config"
)

const defaultSlowapi = "127.0.0.1:4116"

type slowapiCmd struct {
	worldFlags
	Listen  string `default:"127.0.0.1:4116" placeholder:"HOST:PORT" help:"Where to listen; port 0 picks one."`
	Journal string `placeholder:"FILE" help:"Keep writes, deletions and advances over a restart."`
}

// Run serves until the first signal.
func (c *slowapiCmd) Run(ctx context.Context, p *process) (err error) {
	w, err := c.asked()
	if err != nil {
		return err
	}
	if err := config.CheckAddress(c.Listen); err != nil {
		return usageError{fmt.Errorf("--listen: %w", err)}
	}
	log := slog.New(slog.NewTextHandler(p.stderr, nil))
	api, err := c.open(w, c.Journal, time.Now, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, api.Close()) }()
	l, err := listen(ctx, c.Listen, "--listen")
	if err != nil {
		return err
	}
	var limits config.Limits
	limits.Defaults()
	f := newFace("slowapi", l, api, &limits, plainRefusal(), log)
	fmt.Fprintf(p.stdout, "%-9s %s\n", f.name, f.url())
	printReady(p.stdout)
	return serveFaces(ctx, []*face{f}, nil)
}
