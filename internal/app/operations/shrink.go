// This file gives free space of the database back to the disk.

package operations

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"understudy"
	"understudy/internal/datadir"
	"understudy/internal/diagnostics"
	"understudy/internal/store"
)

// Shrinker shrinks the database when a command asks for it.
type Shrinker struct {
	DB   *store.DB
	Path string // the database file, or the DSN of a PostgreSQL database
	Log  *slog.Logger
	Wake chan struct{} // has room for one element, which asks Run to begin

	mu    sync.Mutex
	state diagnostics.Shrunk
}

// RemoveCopy deletes a copy that a crash has left, because erasures would not reach it.
func (s *Shrinker) RemoveCopy() error {
	if err := os.Remove(s.Path + store.CopySuffix); err != nil && !errors.Is(err, os.ErrNotExist) && !store.IsPostgreSQL(s.Path) {
		return fmt.Errorf("a copy of the database is left and cannot be deleted: %w", err)
	}
	return nil
}

// Run shrinks the database whenever Shrink asks for it.
func (s *Shrinker) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.Wake:
		}
		before, after, err := s.DB.Shrink(ctx)
		s.mu.Lock()
		s.state.Running, s.state.After, s.state.LongIDs = false, after.File+after.WAL, after.LongIDs
		if err != nil {
			s.state.Error = err.Error()
		}
		s.mu.Unlock()
		s.Log.Info("the database was shrunk", "before", before.File+before.WAL, "after", after.File+after.WAL, "err", err)
	}
}

// Shrink returns the state of the newest run. If begin is true and no run is going on, it begins one. On PostgreSQL a run
// needs no free space.
func (s *Shrinker) Shrink(ctx context.Context, begin bool) (diagnostics.Shrunk, error) {
	space, err := s.DB.MeasureSpace(ctx)
	if err != nil {
		return diagnostics.Shrunk{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	isFile := !store.IsPostgreSQL(s.Path)
	if begin && !s.state.Running {
		if isFile {
			free, err := datadir.CountFree(filepath.Dir(s.Path))
			if need := space.File - space.Free; err != nil || free < need {
				return diagnostics.Shrunk{}, fmt.Errorf("%w: the copy needs %d bytes and the disk has %d free bytes; free space there (%v)",
					understudy.ErrInvalid, need, free, err)
			}
		}
		s.state = diagnostics.Shrunk{Running: true, Before: space.File + space.WAL, Live: space.File - space.Free, Distant: !isFile}
		s.Wake <- struct{}{}
	}
	state := s.state
	if info, err := os.Stat(s.Path + store.CopySuffix); err == nil && isFile {
		state.Copied = info.Size()
	}
	return state, nil
}
