// This file serves /-/sync to callers with the command token.

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

// Command is the body of POST /-/sync: a kind to keep complete, or to stop keeping complete.
type Command struct {
	Source string `json:"source"`
	Kind   string `json:"kind"`
	End    bool   `json:"end,omitempty"`
}

// Report is the response: how complete the kind is. Fields are only added, never renamed.
type Report struct {
	Kept     bool              `json:"kept"`
	Complete bool              `json:"complete"`
	Why      string            `json:"why,omitempty"`
	Failed   bool              `json:"failed,omitempty"` // whether Why is an error that a person must solve
	Down     string            `json:"down,omitempty"`   // why upstream cannot be reached now
	Stuck    time.Time         `json:"stuck,omitzero"`   // the time since which retries have made no progress
	Ended    string            `json:"ended,omitempty"`
	CaughtUp time.Time         `json:"caught_up_to,omitzero"`
	Swept    time.Time         `json:"swept,omitzero"`
	Progress *request.Progress `json:"sync,omitempty"`
}

// Report returns a state as JSON.
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

const maxCommand = 4 << 10 // the maximum size of a request body, in bytes

// Handler answers /-/sync to callers on this machine with the token. POST with a Command starts or stops keeping a kind
// complete; GET with source and kind only reports. The response is a Report, or {"error"} with 400 for an unknown kind and
// 409 for a kind that can never be complete. Commands are written to audit before they are executed, unless audit is nil.
func (w *Crawler) Handler(token string, audit understudy.Auditor) http.Handler {
	o := &jsonapi.Options{Identify: jsonapi.AuthorizeCommand(token), Methods: []string{http.MethodGet, http.MethodPost}, MaxBody: maxCommand,
		BodyError: "the request body is not valid: "}
	o.Explain = func(_ *http.Request, err error, a *jsonapi.Refusal) {
		if IsNeverSynced(err) {
			a.Status = http.StatusConflict
		} else if a.Status == http.StatusServiceUnavailable {
			w.o.Logger.Error("walk: a command could not be saved", "error", err)
		}
	}
	return jsonapi.HandleBody(o, func(ctx context.Context, c understudy.Caller, r *http.Request, o *Command) (any, error) {
		q := r.URL.Query()
		o.Source, o.Kind = cmp.Or(o.Source, q.Get("source")), cmp.Or(o.Kind, q.Get("kind"))
		if r.Method == http.MethodPost {
			if err := w.execute(ctx, c, o, audit); err != nil {
				return nil, err
			}
		}
		s, err := w.ReadState(ctx, o.Source, o.Kind)
		return s.Report(), err
	})
}

// execute records a command in the audit log and executes it.
func (w *Crawler) execute(ctx context.Context, c understudy.Caller, o *Command, audit understudy.Auditor) error {
	e := understudy.AuditEntry{Action: understudy.ActionAdminister, What: "sync", Source: o.Source, Kind: o.Kind}
	if o.End {
		e.What = "sync end"
	}
	if err := jsonapi.RecordAudit(ctx, audit, c, e); err != nil {
		return err
	}
	if o.End {
		return w.Drop(ctx, o.Source, o.Kind)
	}
	return w.Keep(ctx, o.Source, o.Kind)
}
