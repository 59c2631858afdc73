// The slowapi command: it runs the simulated API without a server in front.

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"understudy/internal/config"
	"understudy/internal/frontend"
)

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
	log := slog.New(slog.NewTextHandler(p.stderr, nil))
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
