// Purge: a command that a running server accepts only from its own machine.

package diagnostics

import (
	"context"
	"net/http"
	"time"

	"understudy"
	"understudy/internal/jsonapi"
)

// Purge is the body of POST /-/purge: what is to be removed.
type Purge struct {
	Source string `json:"source"`
	What   string `json:"what"` // a key, or KIND/ID
}

// Purged is the response: what was removed.
type Purged struct {
	Pages    int `json:"pages"`
	Versions int `json:"versions"` // versions of a record
	Files    int `json:"files"`    // files with the record's content
	Samples  int `json:"samples"`  // samples of time series from numbers on the page
}

const (
	maxPurge     = 16 << 10         // bytes of a request body
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
