// The backup, restore and resume commands. A server writes a backup, because it knows what it is changing. Restoring needs no server.

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"understudy/cmd/understudy/terminal"
	"understudy/internal/backup"
	"understudy/internal/config"
	"understudy/internal/datadir"
	"understudy/internal/diagnostics"
	"understudy/internal/store/contents"
)

type backupCmd struct {
	To         string     `arg:"" name:"file" help:"New file, or s3://BUCKET/NAME in the object store of store.s3."`
	NoContents bool       `help:"Leave out audio and images, which can be fetched again."`
	Keys       bool       `help:"Add the keys of the audit log and of the proxy, and the file of users."`
	Output     outputFlag `embed:""`
	Place      dataFlags  `embed:""`
}

// Run asks the server to write a backup, and shows the progress.
func (c *backupCmd) Run(ctx context.Context, p *process) (err error) {
	to := c.To
	if !contents.IsS3(to) {
		if to, err = filepath.Abs(to); err != nil {
			return err
		}
	}
	want := diagnostics.Backup{To: to, Contents: !c.NoContents, Keys: c.Keys}
	interrupted := errors.New("interrupted; a running server goes on, and the file appears when it is complete")
	at, err := watchWork(ctx, p, &c.Place, "backup", "/-/backup", want, interrupted, func(at diagnostics.BackedUp) (terminal.State, bool) {
		return terminal.State{Done: at.Done, Total: at.Total, Unit: "bytes"}, !at.Running
	})
	if err == nil && at.Error != "" {
		err = errors.New(at.Error)
	}
	if err != nil {
		return err
	}
	return c.Output.print(p.stdout, at, func(w io.Writer) error {
		if at.Distant {
			fmt.Fprintln(w, "the PostgreSQL database is not in this backup; copy it, too: pg_dump --format=custom --file=understudy.dump DSN")
		}
		_, err := fmt.Fprintf(w, "%s: %d bytes\n", at.To, at.Size)
		return err
	})
}

type restoreCmd struct {
	From   string `arg:"" name:"file" help:"Backup to restore, or s3://BUCKET/NAME in the object store of store.s3."`
	To     string `placeholder:"DIR" help:"New or empty data folder (default: data of the settings file)."`
	Config string `placeholder:"FILE" help:"Settings file (default understudy.yml)."`
}

// Run restores a backup to a data folder that no server uses.
func (c *restoreCmd) Run(ctx context.Context, p *process) (err error) {
	data, err := (&dataFlags{Config: c.Config, Data: c.To}).findData(p)
	if err != nil {
		return fmt.Errorf("%w; or name the folder with --to", err)
	}
	in, err := c.open(ctx, p)
	if err != nil {
		return fmt.Errorf("the backup %s cannot be read: %w", c.From, stripPath(err))
	}
	defer in.Close()
	dir, err := datadir.Open(data, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	m, err := backup.Restore(ctx, in, data)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.stdout, "restored %s to %s\na server in this folder sends nothing by itself until: understudy resume\n"+
		"records that were erased after %s are back: erase them again\n", c.From, data, m.At.Format(time.RFC3339))
	return err
}

// open opens the backup.
func (c *restoreCmd) open(ctx context.Context, p *process) (io.ReadCloser, error) {
	if !contents.IsS3(c.From) {
		return os.Open(c.From)
	}
	cfg, folder, err := (&dataFlags{Config: c.Config, Data: c.To}).readSettings(p)
	if err != nil {
		return nil, err
	}
	a, name, err := cfg.Store.OpenArchive(ctx, c.From, config.FileSecrets(folder), time.Now)
	if err != nil {
		return nil, err
	}
	return a.Get(ctx, name)
}

type resumeCmd struct {
	Place dataFlags `embed:""`
}

// Run ends the pause of a restored data folder. A running server starts again.
func (c *resumeCmd) Run(ctx context.Context, p *process) error {
	if err := c.Place.ask(ctx, p, http.MethodPost, "/-/resume", nil, nil); err != nil {
		return err
	}
	_, err := fmt.Fprintln(p.stdout, "resumed")
	return err
}
