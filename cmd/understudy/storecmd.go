// The store commands: look at the database of a data folder.

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
	"text/tabwriter"
	"time"

	"understudy/internal/datadir"
	"understudy/internal/diagnostics"
	"understudy/internal/store"
)

type storeCmd struct {
	Stats   storeStatsCmd   `cmd:"" help:"Print counts and sizes in bytes for each kind."`
	Rebuild storeRebuildCmd `cmd:"" help:"Rebuild the search indexes from the records."`
	Verify  storeVerifyCmd  `cmd:"" help:"Read the whole database and print what is damaged."`
}

// openStore opens the database of the folder, which must be there.
func (c *place) openStore(ctx context.Context, p *process) (*store.DB, error) {
	path := filepath.Join(c.Data, datadir.StoreFile)
	cfg, _, err := c.settings(p)
	switch {
	case err == nil:
		path = cmp.Or(cfg.Store.DSN, filepath.Join(cfg.Data, datadir.StoreFile))
	case c.Config != "" || c.Data == "":
		return nil, fmt.Errorf("%w; name the data folder with --data", err)
	}
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("%w; name a data folder with --data", err)
	}
	return store.Open(ctx, store.Options{Path: path, Now: time.Now})
}

type storeStatsCmd place

// Run prints a table by kind and the file's size.
func (c *storeStatsCmd) Run(ctx context.Context, p *process) (err error) {
	db, err := (*place)(c).openStore(ctx, p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	s, err := db.ReadStats(ctx)
	if err != nil {
		return err
	}
	return printStats(p.stdout, s)
}

func printStats(out io.Writer, s store.Stats) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SOURCE\tKIND\tRECORDS\tVERSIONS\tCHANGES\tAS SENT\tPACKED")
	for _, k := range s.Kinds {
		is := k.State
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%d\t%d\n", k.Source, is.Kind, is.Records, k.Versions, is.Changes, k.Unpacked, k.Packed)
	}
	if err := w.Flush(); err != nil {
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

type storeVerifyCmd place

// Run verifies and prints what was read.
func (c *storeVerifyCmd) Run(ctx context.Context, p *process) (err error) {
	db, err := (*place)(c).openStore(ctx, p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	r, err := db.Verifier.Verify(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(p.stdout, "%d pages, %d blocks, %d versions, %d records (%d more went) and %d changes checked\n", r.Pages, r.Blocks,
		r.Versions, r.Records, r.Gone, r.Changes)
	for _, problem := range r.Problems {
		fmt.Fprintln(p.stdout, problem)
	}
	indexes := func(problem string) bool { return strings.HasSuffix(problem, "run understudy store rebuild") }
	switch n := len(r.Problems); {
	case n > 0 && !slices.ContainsFunc(r.Problems, func(problem string) bool { return !indexes(problem) }):
		return fmt.Errorf("%d problems found, all in the indexes: understudy store rebuild makes them anew", n)
	case n > 0:
		return fmt.Errorf("%d problems found; keep a copy of the data folder, then let the mirror fill a new one", len(r.Problems))
	}
	_, err = fmt.Fprintln(p.stdout, "everything is whole")
	return err
}

type storeRebuildCmd place

// Help returns what --help prints below the summary.
func (c *storeRebuildCmd) Help() string {
	return "Deletes the indexes of terms and words and builds them again. A running server goes on answering; searches wait until the " +
		"indexes are complete. After an interruption the next start of a server goes on with it."
}

// Run has the server do it, and shows how far it is.
func (c *storeRebuildCmd) Run(ctx context.Context, p *process) error {
	bar := newBuildBar(p.stdout)
	return (*place)(c).work(ctx, p, true, func(ctx context.Context, server *admin) error {
		var at diagnostics.Indexed
		method := http.MethodPost
		err := poll(ctx, func() (bool, error) {
			err := server.ask(ctx, method, "/-/index", nil, &at)
			method = http.MethodGet
			bar.at(at)
			return at.Done >= at.Total, err
		})
		if ctx.Err() != nil {
			err = errors.New("interrupted; a server that runs goes on, or the next that starts")
		}
		return bar.end(at.Total, err)
	})
}

// buildBar shows how far it is, on a terminal.
type buildBar struct {
	show  *show
	out   io.Writer
	began time.Time
	first int64
}

func newBuildBar(out io.Writer) *buildBar { return &buildBar{show: newShow(out), out: out} }

const barWidth = 30

func (b *buildBar) at(i diagnostics.Indexed) {
	if b.began.IsZero() {
		b.began, b.first = time.Now(), i.Done
	}
	if b.show.w == nil || i.Total == 0 {
		return
	}
	left := ""
	if new := i.Done - b.first; new > 0 && i.Done < i.Total {
		left = (time.Duration(float64(time.Since(b.began)) * float64(i.Total-i.Done) / float64(new))).Round(time.Second).String() + " left"
	}
	full := int(i.Done * barWidth / i.Total)
	b.show.say(fmt.Sprintf("[%s%s] %d of %d records %3d %%  %s", strings.Repeat("#", full), strings.Repeat("-", barWidth-full), i.Done,
		i.Total, i.Done*100/i.Total, left))
}

func (b *buildBar) end(records int64, err error) error {
	b.show.end()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(b.out, "the indexes are whole: %s\n", countOf(int(records), "record"))
	return err
}
