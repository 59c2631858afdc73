// This file removes pages and records from the store for a command, which a running server accepts only from its
// own machine.

package diagnostics

import (
	"context"
	"net/http"
	"time"

	"understudy"
	"understudy/internal/jsonapi"
)

// Purge is the body of POST /-/purge: the page or record to remove.
type Purge struct {
	Source string `json:"source"`
	What   string `json:"what"` // the key of a page, or KIND/ID of a record
}

// Purged is the response to POST /-/purge: what was removed.
type Purged struct {
	Pages    int `json:"pages"`
	Versions int `json:"versions"` // the number of removed versions of a record
	Files    int `json:"files"`    // the number of removed files with the record's media content
	Samples  int `json:"samples"`  // the number of removed samples of time series from numbers on the page
}

const (
	maxPurge     = 16 << 10         // the maximum size of a purge request's body, in bytes
	purgeTimeout = 60 * time.Second // the time limit of one purge request
)

// purge removes what a command names. The status is 400 for an unknown name.
func (d *Diagnostics) purge(ctx context.Context, c understudy.Caller, _ *http.Request, p *Purge) (any, error) {
	e := understudy.AuditEntry{Action: understudy.ActionDelete, What: "purge", Source: p.Source, Values: []string{p.What}}
	err := jsonapi.RecordAudit(ctx, d.o.Audit, c, e)
	var done Purged
	if err == nil {
		done, err = d.o.Purge(ctx, *p)
	}
	if err == nil {
		d.o.Logger.Info("purged", "source", p.Source, "pages", done.Pages, "versions", done.Versions, "files", done.Files)
	} else if understudy.OwnPathStatus(err) == http.StatusServiceUnavailable {
		d.o.Logger.Error("purge", "source", p.Source, "err", err)
	}
	return done, err
}
