// The store commands: they show statistics of the database in a data folder, verify it, and repair it.

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"understudy/cmd/understudy/terminal"
	"understudy/internal/datadir"
	"understudy/internal/diagnostics"
	"understudy/internal/store"
)

type storeCmd struct {
	Stats   storeStatsCmd   `cmd:"" help:"Print counts and sizes in bytes for each kind."`
	Rebuild storeRebuildCmd `cmd:"" help:"Rebuild the search indexes from the records."`
	Verify  storeVerifyCmd  `cmd:"" help:"Read the whole database and print what is damaged."`
}

// openStore opens the database, which must exist already.
func (c *dataFlags) openStore(ctx context.Context, p *process) (*store.DB, error) {
	path := filepath.Join(c.Data, datadir.StoreFile)
	cfg, _, err := c.readSettings(p)
	switch {
	case err == nil:
		path = cmp.Or(cfg.Store.DSN, filepath.Join(cfg.Data, datadir.StoreFile))
	case c.Config != "" || c.Data == "":
		return nil, fmt.Errorf("%w; name the data folder with --data", err)
	}
	if _, err := os.Stat(path); err != nil && !store.IsPostgreSQL(path) {
		return nil, fmt.Errorf("the database %s cannot be read: %w; name a data folder with --data", path, stripPath(err))
	}
	return store.Open(ctx, store.Options{Path: path, Now: time.Now})
}

type storeStatsCmd struct {
	Output outputFlag `embed:""`
	Place  dataFlags  `embed:""`
}

// Run prints how many records of each kind are stored, and the sizes of the database.
func (c *storeStatsCmd) Run(ctx context.Context, p *process) (err error) {
	db, err := c.Place.openStore(ctx, p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	s, err := db.ReadStats(ctx)
	if err != nil {
		return err
	}
	return c.Output.print(p.stdout, s, func(w io.Writer) error { return printStats(w, s) })
}

// printStats prints a table of the kinds, and below it the sizes of the database in bytes.
func printStats(out io.Writer, s store.Stats) error {
	var table terminal.Table
	table.Add("SOURCE", "KIND", "RECORDS", "VERSIONS", "CHANGES", "AS SENT", "PACKED")
	for _, k := range s.Kinds {
		table.Add(k.Source, k.State.Kind, fmt.Sprint(k.State.Records), fmt.Sprint(k.Versions), fmt.Sprint(k.State.Changes),
			fmt.Sprint(k.Unpacked), fmt.Sprint(k.Packed))
	}
	if err := table.Print(out); err != nil {
		return err
	}
	on := s.Space
	fmt.Fprintf(out, "\n%d pages, %d records\n%d bytes on disk (log %d, free %d)\n%.1f bytes per record\n",
		s.Pages, s.Records, on.File+on.WAL, on.WAL, on.Free, s.PerRecord)
	when := "never"
	if !on.EvictedAt.IsZero() {
		when = on.EvictedAt.Format(time.RFC3339)
	}
	_, err := fmt.Fprintf(out, "evicted near the limit: %d pages, %d versions (last: %s)\n", on.EvictedPages, on.EvictedVersions, when)
	return err
}

type storeVerifyCmd struct {
	Output outputFlag `embed:""`
	Place  dataFlags  `embed:""`
}

// Run verifies the database. It prints what it has checked and what is damaged.
func (c *storeVerifyCmd) Run(ctx context.Context, p *process) (err error) {
	db, err := c.Place.openStore(ctx, p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	progress := terminal.NewProgress(p.stderr, "store verify", p.quiet)
	db.Verifier.OnRow = func(done, total int64) { progress.Set(terminal.State{Done: done, Total: total, Unit: "rows"}) }
	r, err := db.Verifier.Verify(ctx)
	progress.End()
	if err != nil {
		return err
	}
	err = c.Output.print(p.stdout, r, func(w io.Writer) error {
		fmt.Fprintf(w, "checked %d pages, %d blocks, %d versions, %d records (and %d deleted ones) and %d changes\n", r.Pages, r.Blocks,
			r.Versions, r.Records, r.Gone, r.Changes)
		for _, problem := range r.Problems {
			fmt.Fprintln(w, problem)
		}
		return nil
	})
	if err != nil {
		return err
	}
	indexes := func(problem string) bool { return strings.HasSuffix(problem, "run understudy store rebuild") }
	switch n := len(r.Problems); {
	case n > 0 && !slices.ContainsFunc(r.Problems, func(problem string) bool { return !indexes(problem) }):
		return fmt.Errorf("%s found, all in the indexes; run understudy store rebuild", formatCount(n, "problem"))
	case n > 0:
		return fmt.Errorf("%s found; keep a copy of the data folder, and start the server with a new one", formatCount(n, "problem"))
	case !c.Output.JSON:
		_, err = fmt.Fprintln(p.stdout, "no damage found")
	}
	return err
}

type storeRebuildCmd struct {
	Output outputFlag `embed:""`
	Place  dataFlags  `embed:""`
}

// Help returns what --help prints below the summary.
func (c *storeRebuildCmd) Help() string {
	return "Deletes the indexes of terms and words and builds them again. A running server continues to answer; searches wait until the " +
		"indexes are complete. After an interruption the next start of a server continues the work."
}

// Run asks the server to rebuild the indexes of the database, and shows the progress.
func (c *storeRebuildCmd) Run(ctx context.Context, p *process) error {
	return c.Place.askServer(ctx, p, true, func(ctx context.Context, server *admin) error {
		progress := terminal.NewProgress(p.stderr, "store rebuild", p.quiet)
		defer progress.End()
		var at diagnostics.Indexed
		method := http.MethodPost
		err := poll(ctx, func() (bool, error) {
			err := server.ask(ctx, method, "/-/index", nil, &at)
			method = http.MethodGet
			progress.Set(terminal.State{Done: at.Done, Total: at.Total, Unit: "records"})
			return at.Done >= at.Total, err
		})
		progress.End()
		switch {
		case ctx.Err() != nil:
			return errors.New("interrupted; the running server, or the next server that starts, continues to build the indexes")
		case err != nil:
			return err
		}
		return c.Output.print(p.stdout, at, func(w io.Writer) error {
			_, err := fmt.Fprintf(w, "the indexes are complete: %s\n", formatCount(int(at.Total), "record"))
			return err
		})
	})
}
