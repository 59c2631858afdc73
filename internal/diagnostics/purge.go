// Purge: the one command a running server takes, from its own machine only.

package diagnostics

import (
	"context"
	"net/http"
	"time"

	"understudy"
	"understudy/internal/jsonapi"
)

// Purge is the body of POST /-/purge: what is to be forgotten.
type Purge struct {
	Source string `json:"source"`
	What   string `json:"what"` // a key, or KIND/ID
}

// Purged is the answer: what went.
type Purged struct {
	Pages    int `json:"pages"`
	Versions int `json:"versions"` // bodies of a record
	Files    int `json:"files"`    // of its content
	Samples  int `json:"samples"`  // of the numbers on the page that are kept as series
}

const (
	maxPurge  = 16 << 10         // bytes of a body
	purgeTime = 60 * time.Second // for one of them
)

// purge forgets what a command names. It answers 400 for an unknown name.
func (d *Diagnostics) purge(ctx context.Context, c understudy.Caller, _ *http.Request, p *Purge) (any, error) {
	e := understudy.AuditEntry{Action: understudy.ActionDelete, What: "purge", Source: p.Source, Values: []string{p.What}}
	err := jsonapi.Audit(ctx, d.o.Audit, c, e)
	var done Purged
	if err == nil {
		done, err = d.o.Purge(ctx, *p)
	}
	if err == nil {
		d.o.Logger.Info("purged", "source", p.Source, "pages", done.Pages, "versions", done.Versions, "files", done.Files)
	} else if understudy.OwnStatus(err) == http.StatusServiceUnavailable {
		d.o.Logger.Error("purge", "source", p.Source, "err", err)
	}
	return done, err
}
