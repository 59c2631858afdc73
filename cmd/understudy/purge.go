// Purge: forgets a page or a record, in a running server or in its folder.

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"understudy/internal/diagnostics"
)

type purgeCmd struct {
	Source string `arg:"" help:"A configured source."`
	What   string `arg:"" name:"key-or-record" help:"A path with its query as a program asks for it, or KIND/ID."`
	place
}

// Help is what --help says below the flags.
func (c *purgeCmd) Help() string {
	return "Forgets the page held under a key, or a record in every shape with the pages that show it and its files. The next reader gets " +
		"it from upstream, where nothing changes.\n" +
		"docs/purge.md shows examples."
}

// Run has the server forget it.
func (c *purgeCmd) Run(ctx context.Context, p *process) error {
	return c.work(ctx, p, true, func(ctx context.Context, server *admin) error {
		var done diagnostics.Purged
		err := server.ask(ctx, http.MethodPost, "/-/purge", diagnostics.Purge{Source: c.Source, What: c.What}, &done)
		if err != nil {
			return err
		}
		return printPurged(p.stdout, c.What, done)
	})
}

func printPurged(w io.Writer, what string, done diagnostics.Purged) error {
	if done == (diagnostics.Purged{}) {
		_, err := fmt.Fprintf(w, "nothing was held of %s\n", what)
		return err
	}
	samples := ""
	if done.Samples > 0 {
		samples = ", " + countOf(done.Samples, "sample")
	}
	_, err := fmt.Fprintf(w, "forgotten: %s, %s, %s%s\n", countOf(done.Pages, "page"), countOf(done.Versions, "version"),
		countOf(done.Files, "file"), samples)
	return err
}

func countOf(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}
