// This file serves the part of /-/jobs that is for programs which enqueue and run jobs.

package jobs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"understudy"
	"understudy/internal/jsonapi"
)

// Limits of the requests of workers.
const (
	maxWait  = time.Minute // the longest time that a claim waits
	maxLease = 24 * time.Hour
	maxAfter = 30 * 24 * time.Hour // the longest pause before a retry
	maxBody  = understudy.MaxJobPayload + 1<<10
)

// uuid matches the id of a job (RFC 9562, 4).
var uuid = regexp.MustCompile(`^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$`)

// jobBody is the body that enqueues a job. It is stored as the payload of the job.
type jobBody struct {
	Data      json.RawMessage `json:"data"`
	RunAfter  time.Time       `json:"run_after,omitzero"`
	ExpiresAt time.Time       `json:"expires_at,omitzero"`
	Lane      string          `json:"lane,omitempty"`
}

// claimBody asks for a job. Durations are texts such as 30s.
type claimBody struct {
	Kinds []string `json:"kinds"`
	Lease string   `json:"lease"`
	Wait  string   `json:"wait"`
}

// runBody reports about a run: as a heartbeat Lease and Progress, at the end Result, Error and After.
type runBody struct {
	Fence    int64        `json:"fence"`
	Lease    string       `json:"lease"`
	Progress progressJSON `json:"progress"`
	Result   string       `json:"result"`
	Error    string       `json:"error"`
	After    string       `json:"after"`
}

// results are the values of runBody.Result.
var results = map[string]understudy.JobState{"done": understudy.JobDone, "retry": understudy.JobWaiting, "failed": understudy.JobFailed}

// addWorkerRoutes adds the routes of workers.
func (h *handler) addWorkerRoutes(mux *http.ServeMux, api jsonapi.Options) {
	api.Identify, api.MaxBody, api.BodyError, api.Timeout = h.authorizeWorker, maxBody, "the body: ", requestTimeout+maxWait
	mux.Handle("PUT /-/jobs/{kind}/{id}", jsonapi.HandleBody(&api, h.enqueue))
	mux.Handle("POST /-/jobs/claim", jsonapi.HandleBody(&api, h.claim))
	mux.Handle("POST /-/jobs/{kind}/{id}/heartbeat", jsonapi.HandleBody(&api, h.renew))
	mux.Handle("POST /-/jobs/{kind}/{id}/finish", jsonapi.HandleBody(&api, h.finish))
}

// authorizeWorker allows credentials for jobs, and everybody whom authorize allows.
func (h *handler) authorizeWorker(r *http.Request) (understudy.Caller, error) {
	if c, err := jsonapi.AuthorizeCommand(h.o.Token)(r); err == nil {
		return c, nil
	}
	c, err := h.o.Worker(r)
	if err == nil && c.Grant.Service != understudy.ServiceJobs && !h.o.SeesAll(c) {
		err = fmt.Errorf("%w: this needs a credential with allow: jobs, or the role %s", understudy.ErrForbidden, understudy.RoleAll)
	}
	return c, err
}

// parseDuration parses a duration of at least a second and at most max. The empty text gives 0.
func parseDuration(name, text string, max time.Duration) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := understudy.ParseDuration(text)
	if err != nil || d < time.Second || d > max {
		return 0, fmt.Errorf("%w: %s: write a duration from 1s to %v, such as 30s", understudy.ErrInvalid, name, max)
	}
	return d, nil
}

// parseJob returns a job with the kind and the id in an address.
func parseJob(r *http.Request) (j understudy.Job, err error) {
	if j.Kind, j.Key = r.PathValue("kind"), strings.ToLower(r.PathValue("id")); !uuid.MatchString(j.Key) {
		err = fmt.Errorf("%w: the id of a job is a UUID, such as 0f3b0c52-5d0c-4c2a-9c7e-6a1f5f0d7f11", understudy.ErrInvalid)
	}
	return j, err
}

// enqueue adds the job that the client has named, once.
func (h *handler) enqueue(ctx context.Context, c understudy.Caller, r *http.Request, in *jobBody) (any, error) {
	j, err := parseJob(r)
	if err != nil {
		return nil, err
	}
	for lane := cmp.Or(in.Lane, understudy.PrioritySteady.String()); j.Priority.String() != lane; j.Priority++ {
		if int(j.Priority) == understudy.PriorityCount {
			return nil, fmt.Errorf("%w: lane: write soon, steady or bulk", understudy.ErrInvalid)
		}
	}
	j.RunAfter, j.ExpiresAt = in.RunAfter, in.ExpiresAt
	if j.Payload, err = json.Marshal(in); err != nil {
		return nil, fmt.Errorf("%w: data: %w", understudy.ErrInvalid, err)
	}
	if err := h.record(ctx, c, "job enqueue "+understudy.Clip(j.Kind)); err != nil {
		return nil, err
	}
	if j, err = h.o.Jobs.EnqueueOutside(ctx, j); err != nil {
		return nil, err
	}
	return jobToJSON(&j), nil
}

// claim waits for a job. If there is none in time, the response is 204.
func (h *handler) claim(ctx context.Context, c understudy.Caller, _ *http.Request, in *claimBody) (any, error) {
	lease, err := parseDuration("lease", in.Lease, maxLease)
	wait, werr := parseDuration("wait", cmp.Or(in.Wait, "30s"), maxWait)
	if err = errors.Join(err, werr); err == nil && (len(in.Kinds) == 0 || len(in.Kinds) > maxKinds) {
		err = fmt.Errorf("%w: kinds: name at least one kind", understudy.ErrInvalid)
	}
	if err != nil {
		return nil, err
	}
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	isValid := func() bool { return c.Grant == understudy.CommandCaller.Grant || h.o.Recheck(c) } // the token of run.json is not revoked
	j, err := h.o.Jobs.ClaimOutside(waiting, in.Kinds, lease, isValid)
	switch {
	case waiting.Err() != nil && errors.Is(err, waiting.Err()):
		return nil, nil // no job in time, or the worker has gone
	case err != nil:
		return nil, err
	}
	var body jobBody
	_ = json.Unmarshal(j.Payload, &body) // enqueue has marshalled it
	a := jobToJSON(&j)
	a.Fence, a.LeaseEnd, a.Data = j.Fence, j.LeaseEnd, body.Data
	return a, nil
}

// renew renews the lease of a job.
func (h *handler) renew(ctx context.Context, _ understudy.Caller, r *http.Request, in *runBody) (any, error) {
	j, err := parseJob(r)
	lease, lerr := parseDuration("lease", in.Lease, maxLease)
	if err = errors.Join(err, lerr); err != nil {
		return nil, err
	}
	j.Fence, j.Progress = in.Fence, understudy.Progress{Done: in.Progress.Done, Total: in.Progress.Total, Note: in.Progress.Note}
	var out struct {
		LeaseEnd time.Time `json:"lease_end"`
		Stop     bool      `json:"stop"` // somebody has cancelled the job
	}
	out.LeaseEnd, out.Stop, err = h.o.Jobs.RenewOutside(ctx, j, lease)
	return out, err
}

// finish ends a worker's run of a job.
func (h *handler) finish(ctx context.Context, c understudy.Caller, r *http.Request, in *runBody) (any, error) {
	j, err := parseJob(r)
	pause, perr := parseDuration("after", in.After, maxAfter)
	if j.State = results[in.Result]; j.State == 0 {
		perr = fmt.Errorf("%w: result: write done, retry or failed", understudy.ErrInvalid)
	}
	if err = errors.Join(err, perr); err == nil {
		err = h.record(ctx, c, "job finish "+understudy.Clip(j.Kind))
	}
	if err != nil {
		return nil, err
	}
	j.Fence, j.Error = in.Fence, in.Error
	state, err := h.o.Jobs.EndOutside(ctx, j, pause)
	return struct {
		State string `json:"state"`
	}{state.String()}, err
}
