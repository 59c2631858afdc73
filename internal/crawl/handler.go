// Handler: /-/sync, for callers that may command the server.

package crawl

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"understudy"
	"understudy/kit/accesslog"
	"understudy/kit/jsonhttp"
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
	Kept     bool      `json:"kept"`
	Complete bool      `json:"complete"`
	Why      string    `json:"why,omitempty"`
	Failed   bool      `json:"failed,omitempty"` // Why is an error a person has to see to
	Down     string    `json:"down,omitempty"`   // why upstream cannot be asked now
	Stuck    time.Time `json:"stuck,omitzero"`   // since when it comes no further, though it tries
	Ended    string    `json:"ended,omitempty"`
	CaughtUp time.Time `json:"caught_up_to,omitzero"`
	Swept    time.Time `json:"swept,omitzero"`
	Progress *Progress `json:"sync,omitempty"`
}

// Progress is how far a sync has come, in records.
type Progress struct {
	Done    int64  `json:"done"`
	Total   *int64 `json:"total"`          // null: not known
	ETA     int64  `json:"eta,omitempty"`  // seconds; 0: not known, or nothing is under way
	Walk    string `json:"walk,omitempty"` // which walk of how many, "1 of 2"
	Running bool   `json:"running,omitempty"`
}

// Report is a state as JSON.
func (s State) Report() Report {
	r := Report{
		Kept: s.Kept, Complete: s.Complete, Why: s.Why, Failed: s.Failed, Down: s.Down, Ended: s.Ended,
		Stuck: s.Stuck.UTC(), CaughtUp: s.CaughtUp.UTC(), Swept: s.Swept.UTC(),
	}
	if s.Kept {
		r.Progress = &Progress{Done: s.Done, ETA: int64(s.ETA / time.Second), Walk: s.Walk, Running: s.Running}
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
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		switch {
		case !jsonhttp.Local(r):
			jsonhttp.Error(rw, http.StatusForbidden, "only from the machine the server runs on")
		case !jsonhttp.Bears(r, token):
			rw.Header().Set("WWW-Authenticate", `Bearer realm="run.json"`)
			jsonhttp.Error(rw, http.StatusUnauthorized, "the token of run.json is needed")
		case r.Method != http.MethodPost && r.Method != http.MethodGet:
			rw.Header().Set("Allow", "GET, POST")
			jsonhttp.Error(rw, http.StatusMethodNotAllowed, "/-/sync takes GET and POST")
		default:
			accesslog.Of(r.Context()).Caller = understudy.CommandCaller.Name
			w.serve(rw, r, audit)
		}
	})
}

func (w *Crawler) serve(rw http.ResponseWriter, r *http.Request, audit understudy.Auditor) {
	o := Order{Source: r.URL.Query().Get("source"), Kind: r.URL.Query().Get("kind")}
	var err error
	if r.Method == http.MethodPost {
		if err = jsonhttp.Read(rw, r, maxOrder, &o); err != nil {
			err = fmt.Errorf("%w: the body is not what is expected: %w", understudy.ErrInvalid, understudy.Plain(err))
		} else {
			err = w.take(r.Context(), o, audit)
		}
	}
	var s State
	if err == nil {
		s, err = w.State(r.Context(), o.Source, o.Kind)
	}
	switch {
	case err == nil:
		jsonhttp.Write(rw, http.StatusOK, s.Report())
	case Never(err):
		jsonhttp.Error(rw, http.StatusConflict, understudy.PlainText(err))
	default:
		status := understudy.OwnStatus(err)
		if status == http.StatusServiceUnavailable {
			w.o.Logger.Error("walk: an order could not be taken", "error", err)
		}
		jsonhttp.Error(rw, status, understudy.PlainText(err))
	}
}

// take does what an order says.
func (w *Crawler) take(ctx context.Context, o Order, audit understudy.Auditor) error {
	e := understudy.AuditEntry{Caller: understudy.CommandCaller, Action: understudy.ActionAdminister, What: "sync", Source: o.Source,
		Kind: o.Kind, Request: accesslog.Of(ctx).ID}
	if o.End {
		e.What = "sync end"
	}
	if err := understudy.Audit(ctx, audit, e); err != nil {
		return err
	}
	if o.End {
		return w.Drop(ctx, o.Source, o.Kind)
	}
	return w.Keep(ctx, o.Source, o.Kind)
}
