// Index: the indexes of terms and words, made anew while the server answers.

package diagnostics

import (
	"context"
	"net/http"
	"time"

	"understudy"
	"understudy/kit/jsonhttp"
)

// Indexed is how many of how many records the indexes have. When they are as
// many, nothing is being built.
type Indexed struct {
	Done  int64 `json:"done"`
	Total int64 `json:"total"`
}

const indexTime = 30 * time.Second

// index answers how far the indexes are. With POST they are emptied first and made
// anew. Access is as of purge.
func (d *Diagnostics) index(w http.ResponseWriter, r *http.Request) {
	if !d.ours(w, r) {
		return
	}
	if d.o.Index == nil {
		jsonhttp.Error(w, http.StatusNotFound, "there are no indexes")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), indexTime)
	defer cancel()
	anew := r.Method == http.MethodPost
	var at Indexed
	var err error
	if anew {
		err = d.audit(r, understudy.AuditEntry{Action: understudy.ActionAdminister, What: "index anew"})
	}
	if err == nil {
		at, err = d.o.Index(ctx, anew)
	}
	if err != nil {
		d.o.Logger.Error("index", "anew", anew, "err", err)
		jsonhttp.Error(w, http.StatusServiceUnavailable, understudy.PlainText(err))
		return
	}
	if anew {
		d.o.Logger.Info("indexes are made anew", "records", at.Total)
	}
	jsonhttp.Write(w, http.StatusOK, at)
}
