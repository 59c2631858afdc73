// Index: the indexes of terms and words, made anew while the server answers.

package diagnostics

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"understudy"
	"understudy/internal/jsonapi"
)

// Indexed is how many of how many records the indexes have. When they are as
// many, nothing is being built.
type Indexed struct {
	Done  int64 `json:"done"`
	Total int64 `json:"total"`
}

const indexTime = 30 * time.Second

// index answers how far the indexes are. With POST they are emptied first and made anew.
func (d *Diagnostics) index(ctx context.Context, c understudy.Caller, r *http.Request) (any, error) {
	if d.o.Index == nil {
		return nil, fmt.Errorf("%w: there are no indexes", understudy.ErrNotFound)
	}
	anew := r.Method == http.MethodPost
	var at Indexed
	var err error
	if anew {
		err = jsonapi.Audit(ctx, d.o.Audit, c, understudy.AuditEntry{Action: understudy.ActionAdminister, What: "index anew"})
	}
	if err == nil {
		at, err = d.o.Index(ctx, anew)
	}
	if err != nil {
		d.o.Logger.Error("index", "anew", anew, "err", err)
	} else if anew {
		d.o.Logger.Info("indexes are made anew", "records", at.Total)
	}
	return at, err
}
