// This file fills the indexes of the store in a job.

package operations

import (
	"context"
	"log/slog"
	"time"

	"understudy"
	"understudy/internal/diagnostics"
	"understudy/internal/jobs"
	"understudy/internal/store"
)

// Indexer fills the indexes of the store in a job.
type Indexer struct {
	DB   *store.DB
	Jobs *jobs.Runner
	Now  func() time.Time
	Log  *slog.Logger
}

// indexJob is the name of the job that completes the indexes.
const indexJob = "fill indexes"

// indexLogInterval is how often the progress of the indexes is logged.
const indexLogInterval = 10 * time.Second

// JobKind returns the kind of the indexer's job.
func (h *Indexer) JobKind() jobs.Kind {
	return jobs.Kind{Name: indexJob, Run: h.fill, Local: true, Concurrency: 1, Attempts: 20, MaxBackoff: 5 * time.Minute}
}

// fill is the job that adds all records to the indexes.
func (h *Indexer) fill(ctx context.Context, r *jobs.Run) error {
	begun, logged := h.Now(), h.Now()
	filled := false
	err := h.DB.Index.Build(ctx, func(done, total int64) {
		r.SetProgress(done, total, "")
		if filled = done == total; h.Now().Sub(logged) >= indexLogInterval {
			logged = h.Now()
			h.Log.Info("the indexes are being filled; until then lists come from upstream and searches are refused", "done", done, "of", total)
		}
	})
	if filled && err == nil {
		h.Log.Info("the indexes are filled", "took", h.Now().Sub(begun).Round(time.Millisecond))
	}
	return err
}

// Run adds the job if an index is incomplete. It ends with ctx, because a task that ends earlier ends the server.
func (h *Indexer) Run(ctx context.Context) error {
	if _, err := h.plan(ctx); err != nil {
		h.Log.Error("searches are refused until the indexes are filled", "err", err)
	}
	if err := h.DB.Index.Learn(ctx); err != nil && ctx.Err() == nil { // loads into memory what searches need
		h.Log.Warn("the words in the index", "err", err)
	}
	<-ctx.Done()
	return nil
}

// plan adds the job if an index is incomplete. It returns how many records the indexes have.
func (h *Indexer) plan(ctx context.Context) (at diagnostics.Indexed, err error) {
	at.Done, at.Total, err = h.DB.Index.CountIndexed(ctx)
	if err == nil && at.Done < at.Total {
		_, err = h.Jobs.Enqueue(ctx, understudy.Job{Kind: indexJob, Key: "all", Priority: understudy.PrioritySteady})
	}
	return at, err
}

// Index returns how many records the indexes have. If anew is true, it empties them first, so that they are built again.
func (h *Indexer) Index(ctx context.Context, anew bool) (diagnostics.Indexed, error) {
	if anew {
		if err := h.DB.Index.Clear(ctx); err != nil {
			return diagnostics.Indexed{}, err
		}
	}
	return h.plan(ctx)
}
