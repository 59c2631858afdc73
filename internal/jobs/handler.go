// This file serves /-/jobs: it lists running, waiting and archived jobs as JSON, and cancels and replays jobs.

package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"understudy"
	"understudy/internal/jsonapi"
	"understudy/kit/jsonhttp"
)

// Control is the part of a runner that the handler needs. Runner implements it.
type Control interface {
	ListJobs(ctx context.Context, f understudy.JobFilter) ([]understudy.Job, error)
	Cancel(ctx context.Context, number int64) error
	Replay(ctx context.Context, number int64) (int64, error)
	EnqueueOutside(ctx context.Context, j understudy.Job) (understudy.Job, error)
	ClaimOutside(ctx context.Context, kinds []string, lease time.Duration, isValid func() bool) (understudy.Job, error)
	RenewOutside(ctx context.Context, j understudy.Job, lease time.Duration) (end time.Time, stop bool, err error)
	EndOutside(ctx context.Context, j understudy.Job, pause time.Duration) (understudy.JobState, error)
}

// HandlerOptions are the options of the handler of /-/jobs.
type HandlerOptions struct {
	Jobs Control
	// Worker returns the caller of a request of a worker, who may have no role. Recheck reports whether such a caller still exists. If
	// Worker is nil, workers are not served.
	Worker  func(*http.Request) (understudy.Caller, error)
	Recheck func(understudy.Caller) bool
	// Person returns the caller of a request. Only a caller who sees every record of every source gets a
	// response, because a job's key and error may name any record.
	Person func(*http.Request) (understudy.Caller, error)
	// SeesAll reports whether a caller sees every record. If SeesAll is nil, these are the callers with the role `all`.
	SeesAll func(understudy.Caller) bool
	// Audit records each change before it is made. If Audit is nil, nothing is recorded.
	Audit understudy.Auditor
	// Token gives access to a request from this machine that carries it, without a person. An empty token gives no access.
	Token string
	// PublicURL is the viewer's origin if a server in front of it changes the origin. Forms from that origin are accepted.
	PublicURL string
	Logger    *slog.Logger // nil means no log
}

// Routes returns the patterns that the handler serves.
func Routes() []string {
	return []string{"GET /-/jobs", "POST /-/jobs/{number}/cancel", "POST /-/jobs/{number}/replay", "PUT /-/jobs/{kind}/{id}",
		"POST /-/jobs/claim", "POST /-/jobs/{kind}/{id}/heartbeat", "POST /-/jobs/{kind}/{id}/finish"}
}

// requestTimeout is the longest time that one request may take.
const requestTimeout = 30 * time.Second

// NewHandler returns the handler for Routes. Payloads and marks are never shown, because they may contain
// hidden fields. A POST from a page of another site is refused by Sec-Fetch-Site and Origin, as in the viewer.
func NewHandler(o HandlerOptions) (http.Handler, error) {
	understudy.SetDefaults(&o.Logger, nil)
	if o.SeesAll == nil {
		o.SeesAll = func(c understudy.Caller) bool { return c.Role() == understudy.RoleAll }
	}
	forms, err := jsonhttp.NewFormProtection(o.PublicURL)
	if err != nil {
		return nil, fmt.Errorf("jobs: public_url: %w", err)
	}
	h := &handler{o}
	api := &jsonapi.Options{Identify: h.authorize, Forms: forms, ForeignError: "this form comes from another site", Timeout: requestTimeout,
		Explain: h.explain}
	mux := http.NewServeMux()
	mux.Handle("GET /-/jobs", jsonapi.Handle(api, h.list))
	mux.Handle("POST /-/jobs/{number}/cancel", jsonapi.Handle(api, h.cancel))
	mux.Handle("POST /-/jobs/{number}/replay", jsonapi.Handle(api, h.replay))
	if o.Worker != nil {
		h.addWorkerRoutes(mux, *api)
	}
	return mux, nil
}

type handler struct{ o HandlerOptions }

// jobJSON is one job in JSON.
type jobJSON struct {
	Number    int64         `json:"number"`
	Kind      string        `json:"kind"`
	Key       string        `json:"key,omitempty"`
	State     string        `json:"state"`
	Lane      string        `json:"lane"`
	Once      bool          `json:"once,omitempty"`
	Attempt   int           `json:"attempt"`
	Attempts  int           `json:"attempts"`
	Weight    int64         `json:"weight,omitempty"` // expected memory use in bytes
	Created   time.Time     `json:"created,omitzero"`
	RunAfter  time.Time     `json:"run_after,omitzero"`
	ExpiresAt time.Time     `json:"expires_at,omitzero"`
	Started   time.Time     `json:"started,omitzero"`
	Ended     time.Time     `json:"ended,omitzero"`
	Stopping  bool          `json:"stopping,omitempty"` // whether the job was cancelled but its run has not ended yet
	Error     string        `json:"error,omitempty"`
	Progress  *progressJSON `json:"progress,omitempty"`

	// For the worker that has claimed the job.
	Fence    int64           `json:"fence,omitempty"`
	LeaseEnd time.Time       `json:"lease_end,omitzero"`
	Data     json.RawMessage `json:"data,omitempty"`
}

type progressJSON struct {
	Done  int64     `json:"done"`
	Total int64     `json:"total,omitempty"` // the expected number of steps; absent if unknown
	Note  string    `json:"note,omitempty"`
	End   time.Time `json:"end,omitzero"` // when the job is expected to be done
}

// jobPage is the response to GET. Before is the parameter of the next page; it is absent on the last page.
type jobPage struct {
	Jobs   []jobJSON `json:"jobs"`
	Before int64     `json:"before,omitempty"`
}

// jobToJSON returns the JSON form of a job, without its payload and its mark.
func jobToJSON(j *understudy.Job) jobJSON {
	s := jobJSON{
		Number: j.Number, Kind: j.Kind, Key: j.Key, State: j.State.String(), Lane: j.Priority.String(), Once: j.AtMostOnce, Attempt: j.Attempt,
		Attempts: j.MaxAttempts, Weight: j.Weight, Created: j.Created, ExpiresAt: j.ExpiresAt, Started: j.Started,
		Ended: j.Ended, Error: understudy.PlainText(errors.New(j.Error)),
	}
	switch j.State {
	case understudy.JobWaiting:
		s.RunAfter = j.RunAfter
	case understudy.JobRunning:
		s.Stopping = j.StopRequested
	}
	if p := j.Progress; p.Done != 0 || p.Total != 0 || p.Note != "" {
		s.Progress = &progressJSON{p.Done, p.Total, p.Note, p.End}
	}
	return s
}

// authorize allows callers who see every record, and requests from this machine with the token.
func (h *handler) authorize(r *http.Request) (understudy.Caller, error) {
	if strings.HasPrefix(r.Header.Get("Authorization"), "Bearer ") && h.o.Token != "" {
		if c, err := jsonapi.AuthorizeCommand(h.o.Token)(r); err == nil {
			return c, nil
		}
		if _, err := h.o.Person(r); errors.Is(err, understudy.ErrForbidden) {
			return understudy.Caller{}, err
		}
		return understudy.Caller{}, fmt.Errorf("%w: the token is not the one in run.json, or the request is not from the server's machine",
			understudy.ErrUnauthorized)
	}
	caller, err := h.o.Person(r)
	if err == nil && !h.o.SeesAll(caller) {
		err = fmt.Errorf("%w: only the role %s can see jobs, because they name records", understudy.ErrForbidden, understudy.RoleAll)
	}
	return caller, err
}

// errState means that the job is in the wrong state for the request.
var errState = errors.New("the job's state does not allow this")

// explain sets the response for an error. A job in the wrong state gives status 409. Errors of the store give a fixed text.
func (h *handler) explain(_ *http.Request, err error, a *jsonapi.Refusal) {
	switch {
	case errors.Is(err, errState), errors.Is(err, understudy.ErrLeaseLost):
		a.Status = http.StatusConflict
	case a.Status == http.StatusServiceUnavailable:
		h.o.Logger.Error("jobs: a request", "err", err)
		if a.Error = "the database does not answer; the server log says why"; errors.Is(err, understudy.ErrNotAudited) {
			a.Error = understudy.ErrNotAudited.Error()
		}
	}
}

// list returns a page of jobs.
func (h *handler) list(ctx context.Context, _ understudy.Caller, r *http.Request) (any, error) {
	f, err := filterOf(r.URL.RawQuery)
	if err != nil {
		return nil, err
	}
	most := f.Limit
	f.Limit++ // one job more than wanted, to know whether there is a next page
	all, err := h.o.Jobs.ListJobs(ctx, f)
	if err != nil {
		return nil, err
	}
	p := jobPage{Jobs: []jobJSON{}}
	for i := range all[:min(len(all), most)] {
		p.Jobs = append(p.Jobs, jobToJSON(&all[i]))
	}
	if len(all) > most {
		p.Before = all[most-1].Number
	}
	return p, nil
}

// filterOf parses the query of GET: kind, state (several, also separated by commas), before and limit.
func filterOf(query string) (f understudy.JobFilter, err error) {
	q, err := url.ParseQuery(query)
	if err != nil {
		return f, fmt.Errorf("%w: the query string cannot be parsed", understudy.ErrInvalid)
	}
	f.Limit = 100
	for name, values := range q {
		for _, v := range values {
			switch name {
			case "kind":
				f.Kind = v
			case "state":
				for word := range strings.SplitSeq(v, ",") {
					state, ok := stateOf(word)
					if !ok {
						return f, fmt.Errorf("%w: state: write waiting, running, done, failed, cancelled or expired", understudy.ErrInvalid)
					}
					if !slices.Contains(f.States, state) {
						f.States = append(f.States, state)
					}
				}
			case "before":
				if f.Before, err = strconv.ParseInt(v, 10, 64); err != nil || f.Before < 1 {
					return f, fmt.Errorf("%w: before: write a job's number", understudy.ErrInvalid)
				}
			case "limit":
				if f.Limit, err = strconv.Atoi(v); err != nil || f.Limit < 1 || f.Limit >= understudy.MaxJobs {
					return f, fmt.Errorf("%w: limit: write a number from 1 to %d", understudy.ErrInvalid, understudy.MaxJobs-1)
				}
			default:
				return f, fmt.Errorf("%w: unknown parameter; the parameters are kind, state, before and limit", understudy.ErrInvalid)
			}
		}
	}
	return f, nil
}

func stateOf(word string) (understudy.JobState, bool) {
	for s := understudy.JobWaiting; s <= understudy.JobExpired; s++ {
		if s.String() == word {
			return s, true
		}
	}
	return 0, false
}

// record writes a change to the audit log.
func (h *handler) record(ctx context.Context, c understudy.Caller, what string) error {
	return jsonapi.RecordAudit(ctx, h.o.Audit, c, understudy.AuditEntry{Action: understudy.ActionAdminister, What: what})
}

// begin records the change in the audit log and returns the number of the job.
func (h *handler) begin(ctx context.Context, c understudy.Caller, r *http.Request) (int64, error) {
	if err := h.record(ctx, c, "job "+understudy.Clip(strings.TrimPrefix(r.URL.Path, "/-/jobs/"))); err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(r.PathValue("number"), 10, 64)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("%w: no job has that number", understudy.ErrNotFound)
	}
	return n, nil
}

// wrapStateError turns an ErrInvalid of the runner into errState: the job is in the wrong state, but the request is valid.
func wrapStateError(err error) error {
	if errors.Is(err, understudy.ErrInvalid) {
		return fmt.Errorf("%w: %w", errState, err)
	}
	return err
}

// cancel cancels a job and returns it.
func (h *handler) cancel(ctx context.Context, c understudy.Caller, r *http.Request) (any, error) {
	n, err := h.begin(ctx, c, r)
	if err != nil {
		return nil, err
	}
	if err := h.o.Jobs.Cancel(ctx, n); err != nil {
		return nil, wrapStateError(err)
	}
	h.o.Logger.Info("job cancelled", "job", n)
	all, err := h.o.Jobs.ListJobs(ctx, understudy.JobFilter{Number: n, Limit: 1})
	if err != nil || len(all) == 0 {
		return struct {
			Number int64 `json:"number"`
		}{n}, nil // the job was cancelled, but its row cannot be read, so only its number is returned
	}
	return jobToJSON(&all[0]), nil
}

func (h *handler) replay(ctx context.Context, c understudy.Caller, r *http.Request) (any, error) {
	n, err := h.begin(ctx, c, r)
	if err != nil {
		return nil, err
	}
	again, err := h.o.Jobs.Replay(ctx, n)
	if err != nil {
		return nil, wrapStateError(err)
	}
	h.o.Logger.Info("job replayed", "job", n, "as", again)
	return struct {
		Number int64 `json:"number"`
	}{again}, nil
}
