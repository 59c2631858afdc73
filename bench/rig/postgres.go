// Postgres: a PostgreSQL server under measurement, and further processes on its database.

package rig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"understudy/internal/store/pgtest"
)

// StartPostgres starts PostgreSQL on this machine's disk. Its settings are those with which Debian installs it: every commit is flushed to
// the disk. stop stops it and removes its files.
func StartPostgres() (dsn string, stop func() error, err error) {
	return pgtest.Start("fsync=on", "synchronous_commit=on", "full_page_writes=on", "wal_level=replica", "max_wal_senders=10", "max_wal_size=1GB",
		"checkpoint_timeout=5min", "autovacuum=on", "jit=on", "shared_buffers=128MB", "dynamic_shared_memory_type=posix")
}

// OnPostgres returns the setup with its records in a PostgreSQL database.
func (s Setup) OnPostgres(dsn string) Setup {
	s.Extra += fmt.Sprintf("\nstore: {dsn: %q}\nnodes: {secret: \"file:nodes.secret\"}\n", dsn)
	return s
}

// HeldOnPostgres is Held with the records in a PostgreSQL database of its own. stop stops the rig and the database.
func (r *Run) HeldOnPostgres(ctx context.Context, s Setup, kind string) (g *Rig, stop func() error, err error) {
	dsn, stopServer, err := StartPostgres()
	if err != nil {
		return nil, nil, err
	}
	if g, err = r.Held(ctx, s.OnPostgres(dsn), kind); err != nil {
		return nil, nil, errors.Join(err, stopServer())
	}
	return g, func() error { return errors.Join(g.Close(), stopServer()) }, nil
}

// Another starts a further process with the settings of the rig, in a data folder of its own.
func (g *Rig) Another(ctx context.Context, name string) (*Child, error) {
	settings, err := os.ReadFile(filepath.Join(g.Dir, "understudy.yml"))
	if err != nil {
		return nil, err
	}
	data := []byte("data: " + filepath.Join(g.Dir, "data"))
	settings = bytes.Replace(settings, data, append(data, "-"+name...), 1)
	path := filepath.Join(g.Dir, name+".yml")
	if err := os.WriteFile(path, settings, 0o600); err != nil {
		return nil, err
	}
	return Start(ctx, g.Dir, name, "Ctrl-C", g.Bin, "serve", "--config", path)
}
