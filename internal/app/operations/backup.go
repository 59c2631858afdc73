// This file writes backups of the data folder.

package operations

import (
	"context"
	"log/slog"
	"os"
	"sync"

	"understudy"
	"understudy/internal/backup"
	"understudy/internal/diagnostics"
	"understudy/internal/store"
)

// Archiver writes a backup when a command asks for it.
type Archiver struct {
	DB    *store.DB
	Parts backup.Options // what every backup contains
	Log   *slog.Logger
	Wake  chan diagnostics.Backup // has room for one element, which asks Run to begin

	mu    sync.Mutex
	state diagnostics.BackedUp
}

// Run writes a backup whenever Save asks for it.
func (h *Archiver) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case want := <-h.Wake:
			o := h.Parts
			o.Contents, o.Keys, o.Report = want.Contents, want.Keys, h.report
			size, err := backup.Write(ctx, o, want.To)
			h.Log.Info("a backup was written", "to", want.To, "bytes", size, "err", err)
			h.mu.Lock()
			h.state.Running, h.state.Size = false, size
			if err != nil {
				h.state.Error = understudy.PlainText(err)
			}
			h.mu.Unlock()
		}
	}
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
		switch err := checkRoom(h.Parts.Dir, space); {
		case h.state.Running:
			return h.state, newInvalid("a backup to %s is being written; try again when it is complete", h.state.To)
		case h.Parts.CopyPath != "" && err != nil:
			return h.state, err
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
