// This file writes backups of the data folder.

package operations

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"os"

	"understudy"
	"understudy/internal/backup"
	"understudy/internal/diagnostics"
	"understudy/internal/store"
	"understudy/internal/store/contents"
	"understudy/kit/lockwatch"
)

// Archiver writes backups.
type Archiver struct {
	DB    *store.DB
	Parts backup.Options // what every backup contains
	// Bucket returns the folder of a file s3://BUCKET/FOLDER/NAME, and the name of the file.
	Bucket   func(ctx context.Context, url string) (*contents.Archive, string, error)
	Schedule Schedule // when regular backups are written
	Log      *slog.Logger
	Wake     chan diagnostics.Backup // has room for one element, which asks Run to begin

	writing lockwatch.Mutex // locked while a backup is written
	mu      lockwatch.Mutex
	state   diagnostics.BackedUp
}

// Run writes a backup whenever Save asks for it.
func (h *Archiver) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case want := <-h.Wake:
			size, err := h.write(ctx, want, h.report)
			h.mu.Lock()
			h.state.Running, h.state.Size = false, size
			if err != nil {
				h.state.Error = understudy.PlainText(err)
			}
			h.mu.Unlock()
		}
	}
}

// write writes a backup and returns its size. report may be nil.
func (h *Archiver) write(ctx context.Context, want diagnostics.Backup, report func(done, total int64)) (size int64, err error) {
	h.writing.Lock()
	defer h.writing.Unlock()
	o := h.Parts
	o.Contents, o.Keys, o.Report = want.Contents, want.Keys, report
	if contents.IsS3(want.To) {
		a, name, berr := h.Bucket(ctx, want.To)
		err, o.Put = berr, func(ctx context.Context, write func(io.Writer) error) (int64, error) { return a.Put(ctx, name, write) }
	}
	if space, serr := h.DB.MeasureSpace(ctx); err == nil && o.CopyPath != "" {
		err = cmp.Or(serr, checkRoom(o.Dir, space))
	}
	if err == nil {
		size, err = backup.Write(ctx, o, want.To)
	}
	if err != nil {
		h.Log.Error("no backup was written", "to", want.To, "err", err)
	} else {
		h.Log.Info("a backup was written", "to", want.To, "bytes", size)
	}
	return size, err
}

// report notes how many bytes of the parts are written.
func (h *Archiver) report(done, total int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.state.Done, h.state.Total = done, total
}

// Save returns the state of the newest backup. If begin is not nil, it begins a backup.
func (h *Archiver) Save(ctx context.Context, begin *diagnostics.Backup) (diagnostics.BackedUp, error) {
	space, err := h.DB.MeasureSpace(ctx)
	if err != nil {
		return diagnostics.BackedUp{}, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if begin != nil {
		if h.state.Running {
			return h.state, newInvalid("a backup to %s is being written; try again when it is complete", h.state.To)
		}
		h.state = diagnostics.BackedUp{Running: true, To: begin.To, Distant: h.Parts.CopyPath == ""}
		h.Wake <- *begin
	}
	state := h.state
	if info, err := os.Stat(h.Parts.CopyPath); err == nil && state.Total == 0 {
		state.Done, state.Total = min(info.Size(), space.File-space.Free), space.File-space.Free
	}
	return state, nil
}
