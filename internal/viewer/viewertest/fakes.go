// This file has fakes for history, jobs, contents and credentials. They do what a test tells them.

package viewertest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"understudy"
	"understudy/internal/credentials"
	"understudy/internal/viewer/page"
	"understudy/request"
)

// History is a history that returns what a test has set.
type History struct {
	Versions map[string][]understudy.Version // by id, newest first
	Err      error
	Limits   []int
	Change   int64 // what ReadEdition returns; 0: it is not known
}

// ReadHistory returns the versions that were given for a record, the newest first.
func (a *History) ReadHistory(_ context.Context, source, kind, id string, limit int) ([]understudy.Version, error) {
	a.Limits = append(a.Limits, limit)
	all := a.Versions[source+"/"+kind+"/"+id]
	if a.Err != nil {
		return nil, a.Err
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("store: history: %w", understudy.ErrNotFound)
	}
	return all[:min(len(all), limit)], nil
}

// ReadEdition returns the change it was given.
func (a *History) ReadEdition(context.Context, string) (change, silent int64, err error) {
	if a.Change == 0 {
		return 0, 0, errors.ErrUnsupported
	}
	return a.Change, 0, nil
}

// Ago returns a moment before Noon.
func Ago(minutes int) time.Time { return Noon.Add(-time.Duration(minutes) * time.Minute) }

// Jobs is a runner that does as it is told.
type Jobs struct {
	All       []understudy.Job
	Err       error
	Cancelled []int64
	Replayed  []int64
}

// ListJobs returns the jobs in some states.
func (w *Jobs) ListJobs(_ context.Context, f understudy.JobFilter) ([]understudy.Job, error) {
	var all []understudy.Job
	for _, j := range w.All {
		if slices.Contains(f.States, j.State) {
			all = append(all, j)
		}
	}
	return all[:min(len(all), f.Limit)], w.Err
}

func (w *Jobs) find(number int64, live bool) error {
	for _, j := range w.All {
		if j.Number != number {
			continue
		}
		if live != (j.State <= understudy.JobRunning) {
			return fmt.Errorf("jobs: cancel job %d: %w: it is %s", number, understudy.ErrInvalid, j.State)
		}
		return nil
	}
	return fmt.Errorf("jobs: job %d: %w", number, understudy.ErrNotFound)
}

// Cancel notes the number of a job that has not ended.
func (w *Jobs) Cancel(_ context.Context, number int64) error {
	if err := w.find(number, true); err != nil {
		return err
	}
	w.Cancelled = append(w.Cancelled, number)
	return nil
}

// Replay notes the number of a job that has ended.
func (w *Jobs) Replay(_ context.Context, number int64) (int64, error) {
	if err := w.find(number, false); err != nil {
		return 0, err
	}
	w.Replayed = append(w.Replayed, number)
	return number + 100, nil
}

// Recording is upstream's path of the sound of a recording.
const Recording = Root + "/Recordings/RE00000000000000000000000000000001.wav"

// NoMedia opens no contents. Pages only need to know that it exists.
type NoMedia struct{}

// Open returns an error.
func (NoMedia) Open(context.Context, request.MediaRequest) (*request.MediaResponse, error) {
	return nil, errors.New("nothing to hear")
}

// WithPrograms gives a viewer a credential of the settings, demo.
func WithPrograms(o *page.Options) {
	o.Programs = &page.Programs{Configured: []credentials.Credential{
		{Name: "demo", Scope: credentials.Scope{Source: "twilio", Role: "support"}, Secrets: []credentials.Secret{{User: Account}}},
	}, Credentials: noneMade{}}
	o.Holders = []page.Holder{{Role: "support", Name: "demo", How: "a program, by the settings"}}
}

// noneMade has no credentials.
type noneMade struct{ page.Credentials }

// All returns none.
func (noneMade) All() []credentials.Credential { return nil }

// Discard is a ResponseWriter that keeps the length of a body and not the body.
type Discard struct {
	Head   http.Header
	Length int
	Status int
}

// Header returns the header.
func (d *Discard) Header() http.Header { return d.Head }

// Write counts the bytes.
func (d *Discard) Write(b []byte) (int, error) {
	d.Length += len(b)
	return len(b), nil
}

// WriteHeader keeps the status.
func (d *Discard) WriteHeader(status int) { d.Status = status }

// Flush does nothing.
func (d *Discard) Flush() {}
