// This file gives free space of the database back to the disk.

package operations

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"understudy/internal/datadir"
	"understudy/internal/diagnostics"
	"understudy/internal/store"
	"understudy/kit/lockwatch"
)

// Shrinker shrinks the database when a command asks for it.
type Shrinker struct {
	DB   *store.DB
	Path string // the database file, or the DSN of a PostgreSQL database
	Log  *slog.Logger
	Wake chan struct{} // has room for one element, which asks Run to begin

	mu    lockwatch.Mutex
	state diagnostics.Shrunk
}

// BackupSuffix follows the name of the database in the name of the copy that becomes a part of a backup.
const BackupSuffix = "-backup"

// RemoveCopies deletes copies that a crash has left, because erasures would not reach them.
func (s *Shrinker) RemoveCopies() error {
	for _, suffix := range []string{store.CopySuffix, BackupSuffix} {
		for _, log := range []string{"", "-journal", "-wal", "-shm"} {
			if err := os.Remove(s.Path + suffix + log); err != nil && !errors.Is(err, os.ErrNotExist) && !store.IsPostgreSQL(s.Path) {
				return fmt.Errorf("a copy of the database is left and cannot be deleted: %w", err)
			}
		}
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
		if err := checkRoom(filepath.Dir(s.Path), space); isFile && err != nil {
			return diagnostics.Shrunk{}, err
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

// checkRoom returns an error if the disk of a folder has no room for a copy of the database.
func checkRoom(folder string, space store.Space) error {
	free, err := datadir.CountFree(folder)
	if need := space.File - space.Free; err == nil && free < need {
		err = newInvalid("the copy needs %d bytes and the disk has %d free bytes; free space there", need, free)
	}
	return err
}
