// Purge: forgets a page or a record, in a running server or in its folder.

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"understudy/internal/app"
	"understudy/internal/config"
	"understudy/internal/datadir"
	"understudy/internal/diagnostics"
)

type purgeCmd struct {
	Source string `arg:"" help:"A configured source."`
	What   string `arg:"" name:"key-or-record" help:"A path with its query as a program asks for it, or KIND/ID."`
	place
}

// purgeWait bounds a purge in a running server.
const purgeWait = 90 * time.Second

// Help is what --help says below the flags.
func (c *purgeCmd) Help() string {
	return "Forgets the page held under a key, or a record in every shape with the pages that show it and its files. The next reader gets " +
		"it from upstream, where nothing changes.\n" +
		"docs/purge.md shows examples."
}

// Run asks the server that holds the folder, or does it in the folder itself
// when none does.
func (c *purgeCmd) Run(ctx context.Context, p *process) error {
	wanted := diagnostics.Purge{Source: c.Source, What: c.What}
	var done diagnostics.Purged
	err := c.work(p, func(server admin) (err error) {
		done, err = server.purge(ctx, wanted)
		return err
	}, func(cfg *config.Settings, settings string, dir *datadir.Dir) (err error) {
		done, err = app.PurgeFolder(ctx, cfg, settings, dir, wanted)
		return mistake(err)
	})
	if err != nil {
		return err
	}
	return printPurged(p.stdout, c.What, done)
}

func printPurged(w io.Writer, what string, done diagnostics.Purged) error {
	if done == (diagnostics.Purged{}) {
		_, err := fmt.Fprintf(w, "nothing was held of %s\n", what)
		return err
	}
	_, err := fmt.Fprintf(w, "forgotten: %s, %s, %s\n", countOf(done.Pages, "page"), countOf(done.Versions, "version"),
		countOf(done.Files, "file"))
	return err
}

func countOf(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// purge asks the running server.
func (r admin) purge(ctx context.Context, p diagnostics.Purge) (done diagnostics.Purged, err error) {
	ctx, cancel := context.WithTimeout(ctx, purgeWait)
	defer cancel()
	body, err := json.Marshal(p)
	if err != nil {
		return done, err
	}
	return done, r.ask(ctx, http.MethodPost, "/-/purge", body, &done)
}
