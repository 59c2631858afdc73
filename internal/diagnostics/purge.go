// Purge: the one command a running server takes, from its own machine only.

package diagnostics

import (
	"context"
	"net/http"
	"time"

	"understudy"
	"understudy/kit/jsonhttp"
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

// purge takes a command from this machine with the token of run.json. It answers 400
// for an unknown name, and 401 or 403 without permission.
func (d *Diagnostics) purge(w http.ResponseWriter, r *http.Request) {
	if !d.ours(w, r) {
		return
	}
	var p Purge
	if err := jsonhttp.Read(w, r, maxPurge, &p); err != nil {
		jsonhttp.Error(w, http.StatusBadRequest, understudy.PlainText(err))
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), purgeTime)
	defer cancel()
	err := d.audit(r, understudy.AuditEntry{Action: understudy.ActionDelete, What: "purge", Source: p.Source, Values: []string{p.What}})
	var done Purged
	if err == nil {
		done, err = d.o.Purge(ctx, p)
	}
	switch status := understudy.OwnStatus(err); {
	case err == nil:
		d.o.Logger.Info("purged", "source", p.Source, "pages", done.Pages, "versions", done.Versions, "files", done.Files)
		jsonhttp.Write(w, http.StatusOK, done)
	case status == http.StatusServiceUnavailable:
		d.o.Logger.Error("purge", "source", p.Source, "err", err)
		fallthrough
	default:
		jsonhttp.Error(w, status, understudy.PlainText(err))
	}
}
