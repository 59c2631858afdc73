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
	"understudy/internal/config"

	"understudy"
	"understudy/internal/diagnostics"
	"understudy/internal/jobs"
)

// indexJob fills what an index lacks.
const indexJob = "fill indexes"

// indexKind is the job.
func (h *house) indexKind() jobs.Kind {
	return jobs.Kind{Name: indexJob, Concurrency: 1, Attempts: 20, MaxBackoff: 5 * time.Minute, Run: func(ctx context.Context, r *jobs.Run) error {
		began, told := time.Now(), time.Now()
		filled := false
		err := h.db.Index(ctx, func(done, total int64) {
			r.Progress(done, total, "")
			if filled = done == total; time.Since(told) >= indexTell {
				told = time.Now()
				h.log.Info("the indexes are being filled; lists come from upstream and searches wait", "done", done, "of", total)
			}
		})
		if filled && err == nil {
			h.log.Info("the indexes are filled", "took", time.Since(began).Round(time.Millisecond))
		}
		return err
	}}
}

// indexTell is how often the log says how far the indexes are.
const indexTell = 10 * time.Second

// indexSoon plans the job when there is something to do.
func (h *house) indexSoon(ctx context.Context) (at diagnostics.Indexed, err error) {
	at.Done, at.Total, err = h.db.Indexed(ctx)
	if err == nil && at.Done < at.Total {
		_, err = h.jobs.Enqueue(ctx, understudy.Job{Kind: indexJob, Key: "all", Lane: understudy.Steady})
	}
	return at, err
}

// index says how far the indexes are, with anew after they were emptied.
func (h *house) index(ctx context.Context, anew bool) (diagnostics.Indexed, error) {
	if anew {
		if err := h.db.Empty(ctx); err != nil {
			return diagnostics.Indexed{}, err
		}
	}
	return h.indexSoon(ctx)
}

type storeRebuildCmd struct{ place }

// rebuildEvery is how often a running server is asked how far it is.
const rebuildEvery = 500 * time.Millisecond

// Help is what --help says below the flags.
func (c *storeRebuildCmd) Help() string {
	return "Makes the indexes of terms and words anew from the records. A server that runs goes on answering; searches wait until it is done. Interrupted, it goes on with the next start."
}

// Run asks the server that holds the folder, or does it in the folder itself
// when nobody does.
func (c *storeRebuildCmd) Run(ctx context.Context, p *process) error {
	bar := newBuildBar(p.stdout)
	return c.work(p, func(server runInfo) error {
		return server.rebuild(ctx, bar)
	}, func(cfg *config.Settings, settings string, dir *folder) (err error) {
		db, _, err := dir.open(ctx, cfg, settings)
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
func (r runInfo) rebuild(ctx context.Context, bar *buildBar) error {
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
	b.show.text(fmt.Sprintf("[%s%s] %d of %d records %3d %%  %s", strings.Repeat("#", full), strings.Repeat("-", barWidth-full), i.Done, i.Total, i.Done*100/i.Total, left))
}

func (b *buildBar) end(records int64, err error) error {
	b.show.end()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(b.out, "the indexes are whole: %s\n", countOf(int(records), "record"))
	return err
}
