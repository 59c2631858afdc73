// Handler: /-/sync, for callers that may command the server.

package crawl

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"understudy"
	"understudy/internal/jsonapi"
	"understudy/request"
)

// Order is the body of POST /-/sync: a kind that is to be synced and kept up,
// or no longer.
type Order struct {
	Source string `json:"source"`
	Kind   string `json:"kind"`
	End    bool   `json:"end,omitempty"`
}

// Report is the answer: how complete the kind is. Its names are only added to.
type Report struct {
	Kept     bool              `json:"kept"`
	Complete bool              `json:"complete"`
	Why      string            `json:"why,omitempty"`
	Failed   bool              `json:"failed,omitempty"` // Why is an error a person has to see to
	Down     string            `json:"down,omitempty"`   // why upstream cannot be asked now
	Stuck    time.Time         `json:"stuck,omitzero"`   // since when it comes no further, though it tries
	Ended    string            `json:"ended,omitempty"`
	CaughtUp time.Time         `json:"caught_up_to,omitzero"`
	Swept    time.Time         `json:"swept,omitzero"`
	Progress *request.Progress `json:"sync,omitempty"`
}

// Report is a state as JSON.
func (s State) Report() Report {
	r := Report{
		Kept: s.Kept, Complete: s.Complete, Why: s.Why, Failed: s.Failed, Down: s.Down, Ended: s.Ended,
		Stuck: s.Stuck.UTC(), CaughtUp: s.CaughtUp.UTC(), Swept: s.Swept.UTC(),
	}
	if s.Kept {
		r.Progress = &request.Progress{Done: s.Done, ETA: int64(s.ETA / time.Second), Walk: s.Walk, Running: s.Running}
		if s.Total >= 0 {
			r.Progress.Total = &s.Total
		}
	}
	return r
}

const maxOrder = 4 << 10 // bytes of a body

// Handler answers /-/sync to callers with the token on this machine:
// POST with an Order begins or ends, GET with source and kind only looks. The
// answer is a Report, or {"error"} with 400 for what is no kind and 409 for one
// that can never be complete. audit (nil: none) lists orders before they are taken.
func (w *Crawler) Handler(token string, audit understudy.Auditor) http.Handler {
	o := &jsonapi.Options{Who: jsonapi.Command(token), Methods: []string{http.MethodGet, http.MethodPost}, MaxBody: maxOrder,
		Body: "the body is not what is expected: "}
	o.Explain = func(_ *http.Request, err error, a *jsonapi.Refusal) {
		if Never(err) {
			a.Status = http.StatusConflict
		} else if a.Status == http.StatusServiceUnavailable {
			w.o.Logger.Error("walk: an order could not be taken", "error", err)
		}
	}
	return jsonapi.HandleBody(o, func(ctx context.Context, c understudy.Caller, r *http.Request, o *Order) (any, error) {
		q := r.URL.Query()
		o.Source, o.Kind = cmp.Or(o.Source, q.Get("source")), cmp.Or(o.Kind, q.Get("kind"))
		if r.Method == http.MethodPost {
			if err := w.take(ctx, c, o, audit); err != nil {
				return nil, err
			}
		}
		s, err := w.State(ctx, o.Source, o.Kind)
		return s.Report(), err
	})
}

// take does what an order says.
func (w *Crawler) take(ctx context.Context, c understudy.Caller, o *Order, audit understudy.Auditor) error {
	e := understudy.AuditEntry{Action: understudy.ActionAdminister, What: "sync", Source: o.Source, Kind: o.Kind}
	if o.End {
		e.What = "sync end"
	}
	if err := jsonapi.Audit(ctx, audit, c, e); err != nil {
		return err
	}
	if o.End {
		return w.Drop(ctx, o.Source, o.Kind)
	}
	return w.Keep(ctx, o.Source, o.Kind)
}
