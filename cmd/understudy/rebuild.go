// Rebuild: makes the indexes of the database anew, in a running server or its
// folder.

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"understudy/internal/app"
	"understudy/internal/config"
	"understudy/internal/datadir"
	"understudy/internal/diagnostics"
)

type storeRebuildCmd struct{ place }

// rebuildEvery is how often a running server is asked how far it is.
const rebuildEvery = 500 * time.Millisecond

// Help is what --help says below the flags.
func (c *storeRebuildCmd) Help() string {
	return "Makes the indexes of terms and words anew from the records. A server that runs goes on answering; searches wait until it is " +
		"done. Interrupted, it goes on with the next start."
}

// Run asks the server that holds the folder, or does it in the folder itself
// when none does.
func (c *storeRebuildCmd) Run(ctx context.Context, p *process) error {
	bar := newBuildBar(p.stdout)
	return c.work(p, func(server admin) error {
		return server.rebuild(ctx, bar)
	}, func(cfg *config.Settings, settings string, dir *datadir.Dir) (err error) {
		db, _, err := app.OpenStore(ctx, dir, cfg, settings)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, db.Close()) }()
		var all int64
		err = db.Rebuild(ctx, func(done, total int64) {
			all = total
			bar.at(diagnostics.Indexed{Done: done, Total: total})
		})
		return bar.end(all, err)
	})
}

// rebuild has the running server do it.
func (r admin) rebuild(ctx context.Context, bar *buildBar) error {
	var at diagnostics.Indexed
	err := r.ask(ctx, http.MethodPost, "/-/index", nil, &at)
	tick := time.NewTicker(rebuildEvery)
	defer tick.Stop()
	for err == nil && at.Done < at.Total {
		bar.at(at)
		select {
		case <-tick.C:
			err = r.ask(ctx, http.MethodGet, "/-/index", nil, &at)
		case <-ctx.Done():
			err = errors.New("interrupted; the server goes on")
		}
	}
	return bar.end(at.Total, err)
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
	b.show.text(fmt.Sprintf("[%s%s] %d of %d records %3d %%  %s", strings.Repeat("#", full), strings.Repeat("-", barWidth-full), i.Done,
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
