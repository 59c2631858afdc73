// Indexes: filled by a job, and made anew on request.

package app

import (
	"context"
	"time"

	"understudy"
	"understudy/internal/diagnostics"
	"understudy/internal/jobs"
)

// indexes fills the indexes of the store in a job.
type indexes struct{ *App }

// indexJob fills what an index lacks.
const indexJob = "fill indexes"

// indexKind is the job.
func (h indexes) indexKind() jobs.Kind {
	return jobs.Kind{Name: indexJob, Concurrency: 1, Attempts: 20, MaxBackoff: 5 * time.Minute,
		Run: func(ctx context.Context, r *jobs.Run) error {
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
func (h indexes) indexSoon(ctx context.Context) (at diagnostics.Indexed, err error) {
	at.Done, at.Total, err = h.db.Indexed(ctx)
	if err == nil && at.Done < at.Total {
		_, err = h.jobs.Enqueue(ctx, understudy.Job{Kind: indexJob, Key: "all", Priority: understudy.Steady})
	}
	return at, err
}

// index says how far the indexes are, with anew after they were emptied.
func (h indexes) index(ctx context.Context, anew bool) (diagnostics.Indexed, error) {
	if anew {
		if err := h.db.Empty(ctx); err != nil {
			return diagnostics.Indexed{}, err
		}
	}
	return h.indexSoon(ctx)
}
