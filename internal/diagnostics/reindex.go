// This file builds the indexes of terms and words again, shrinks the database and writes backups, while the server runs.

package diagnostics

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"understudy"
	"understudy/internal/jsonapi"
)

// Indexed says how many records the indexes contain, out of how many. If both numbers are equal, the indexes are complete.
type Indexed struct {
	Done  int64 `json:"done"`
	Total int64 `json:"total"`
}

const indexTimeout = 30 * time.Second

// index responds with how many records the indexes contain. POST empties the indexes first, so that they are built again.
func (d *Diagnostics) index(ctx context.Context, c understudy.Caller, r *http.Request) (any, error) {
	if d.o.Index == nil {
		return nil, fmt.Errorf("%w: there are no indexes", understudy.ErrNotFound)
	}
	rebuild := r.Method == http.MethodPost
	var at Indexed
	var err error
	if rebuild {
		err = jsonapi.RecordAudit(ctx, d.o.Audit, c, understudy.AuditEntry{Action: understudy.ActionAdminister, What: "rebuild the indexes"})
	}
	if err == nil {
		at, err = d.o.Index(ctx, rebuild)
	}
	if err != nil {
		d.o.Logger.Error("the search indexes could not be read or rebuilt", "rebuild", rebuild, "err", err)
	} else if rebuild {
		d.o.Logger.Info("the search indexes are being rebuilt", "records", at.Total)
	}
	return at, err
}

// Shrunk describes the newest run that gives free space of the database back to the disk. All sizes are in bytes.
type Shrunk struct {
	Running bool  `json:"running"`
	Before  int64 `json:"before"` // the size of the database with its log
	After   int64 `json:"after"`
	Live    int64 `json:"live"`              // about the size of the copy
	Copied  int64 `json:"copied,omitempty"`  // the size of the copy until now
	Distant bool  `json:"distant,omitempty"` // the database is PostgreSQL
	// LongIDs is how many bytes shorter ids would save. They were not stored, because other processes use the database.
	LongIDs int64  `json:"long_ids,omitempty"`
	Error   string `json:"error,omitempty"`
}

// shrink responds with the state of the newest run. POST begins a run.
func (d *Diagnostics) shrink(ctx context.Context, c understudy.Caller, r *http.Request) (any, error) {
	begin := r.Method == http.MethodPost
	if begin {
		err := jsonapi.RecordAudit(ctx, d.o.Audit, c, understudy.AuditEntry{Action: understudy.ActionAdminister, What: "shrink the database"})
		if err != nil {
			return nil, err
		}
	}
	return d.o.Shrink(ctx, begin)
}

// Backup is the body of POST /-/backup: what to write, and where.
type Backup struct {
	To       string `json:"to"` // a path on the server's machine, or s3://BUCKET/NAME
	Contents bool   `json:"contents,omitempty"`
	Keys     bool   `json:"keys,omitempty"`
}

// BackedUp describes the newest backup that a command has begun. All sizes are in bytes.
type BackedUp struct {
	Running bool   `json:"running"`
	To      string `json:"to"`
	Done    int64  `json:"done"`              // the bytes that were copied or packed
	Total   int64  `json:"total"`             // the bytes of the step: first of the database's copy, then of all parts
	Size    int64  `json:"size,omitempty"`    // the size of the backup
	Distant bool   `json:"distant,omitempty"` // the database is PostgreSQL, and not a part of the backup
	Error   string `json:"error,omitempty"`
}

// saveBackup responds with the state of the newest backup. POST begins one.
func (d *Diagnostics) saveBackup(ctx context.Context, c understudy.Caller, r *http.Request, in *Backup) (any, error) {
	if r.Method != http.MethodPost {
		return d.o.Backup(ctx, nil)
	}
	e := understudy.AuditEntry{Action: understudy.ActionAdminister, What: "back up to " + understudy.Clip(in.To)}
	if err := jsonapi.RecordAudit(ctx, d.o.Audit, c, e); err != nil {
		return nil, err
	}
	return d.o.Backup(ctx, in)
}

// resume ends the pause of a restored data folder.
func (d *Diagnostics) resume(ctx context.Context, c understudy.Caller, _ *http.Request) (any, error) {
	err := jsonapi.RecordAudit(ctx, d.o.Audit, c, understudy.AuditEntry{Action: understudy.ActionAdminister, What: "resume"})
	if err != nil {
		return nil, err
	}
	return nil, d.o.Resume()
}
