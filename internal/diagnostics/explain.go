package diagnostics

import (
	"context"
	"net/http"

	"understudy"
	"understudy/internal/jsonapi"
)

// explain responds with what a role sees of a record.
func (d *Diagnostics) explain(ctx context.Context, c understudy.Caller, r *http.Request) (any, error) {
	q := r.URL.Query()
	err := jsonapi.RecordAudit(ctx, d.o.Audit, c, understudy.AuditEntry{Action: understudy.ActionRecord,
		What: "explain to " + understudy.Clip(q.Get("role")), Source: q.Get("source"), Kind: q.Get("kind"), IDs: []string{q.Get("id")}})
	if err != nil {
		return nil, err
	}
	return d.o.Explain(q.Get("role"), q.Get("source"), q.Get("kind"), q.Get("id"))
}
