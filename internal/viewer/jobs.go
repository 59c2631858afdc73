// Jobs: what runs, what waits and what failed, for those who see everything.

package viewer

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"understudy"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/plan"
)

// mostJobs bounds how many jobs of each sort the page shows.
const mostJobs = 100

// jobsPage is what jobs.html shows.
type jobsPage struct {
	Parts []jobPart
	Empty bool
}

// jobPart is the jobs in some states, under a heading.
type jobPart struct {
	ID, Title string
	Jobs      []jobView
	Cut       bool // there may be more
}

// jobView is one job.
type jobView struct {
	Number    int64
	Kind, Key string
	State     string
	Tone      string
	Tries     string // "try 2 of 5"
	Bar       *page.Bar
	jobMoment
	Error string
	jobActions
	Lane, Size string
}

// jobMoment is the moment of a job that matters now.
type jobMoment struct {
	When string // what the moment is
	At   *page.When
}

// jobActions are what may be done with a job.
type jobActions struct {
	Stop      bool // asked to end
	CanCancel bool
	CanReplay bool
}

// jobsView is the page of the jobs.
type jobsView struct{ *page.Exchange }

// mayJobs refuses everyone but those who see everything of every source: a job
// names records in its key and its error.
func (q jobsView) mayJobs() error {
	if q.V.Jobs == nil {
		return page.NotFound("There are no jobs here", "This server does no work of its own.", "")
	}
	if !q.SeesJobs() {
		return fmt.Errorf("%w: jobs are shown to the role %s alone, as they name records", understudy.ErrForbidden, understudy.RoleAll)
	}
	return nil
}

// serveJobs shows them.
func serveJobs(q *page.Exchange) error {
	p := jobsView{q}
	if err := p.mayJobs(); err != nil {
		return err
	}
	if q.R.URL.RawQuery != "" {
		return page.BadRequest("The jobs' page takes no parameters", "Programs ask /-/jobs.", nil)
	}
	page := jobsPage{Empty: true}
	for _, part := range []struct {
		id, title string
		states    []understudy.JobState
		limit     int
	}{
		{"running", "Running", []understudy.JobState{understudy.JobRunning}, mostJobs},
		{"waiting", "Waiting", []understudy.JobState{understudy.JobWaiting}, mostJobs},
		{"failed", "Failed", []understudy.JobState{understudy.JobFailed, understudy.JobExpired}, mostJobs},
		{"ended", "Ended lately", []understudy.JobState{understudy.JobDone, understudy.JobCancelled}, 20},
	} {
		out := jobPart{ID: part.id, Title: part.title}
		all, err := q.V.Jobs.Jobs(q.Ctx, understudy.JobFilter{States: part.states, Limit: part.limit})
		if err != nil {
			return fmt.Errorf("viewer: jobs: %w", err)
		}
		out.Cut = len(all) >= part.limit
		slices.SortStableFunc(all, laterFirst)
		for _, j := range all {
			out.Jobs = append(out.Jobs, p.jobView(j))
		}
		page.Empty = page.Empty && len(all) == 0
		page.Parts = append(page.Parts, out)
	}
	return q.Render(http.StatusOK, "jobs", "Jobs", page)
}

// laterFirst orders ended jobs by their end, all others by their number.
func laterFirst(a, b understudy.Job) int {
	return cmp.Or(b.Ended.Compare(a.Ended), cmp.Compare(b.Number, a.Number))
}

func (q jobsView) jobView(j understudy.Job) jobView {
	out := jobView{Number: j.Number, Kind: plan.UpperFirst(j.Kind), Key: j.Key, State: j.State.String(), Error: j.Error,
		Lane: j.Priority.String(), Size: size(j.Weight), jobActions: jobActions{Stop: j.Stop}}
	if j.Attempt > 1 || j.Error != "" && j.Attempts > 0 {
		out.Tries = "try " + strconv.Itoa(j.Attempt)
		if j.Attempts > 0 {
			out.Tries += " of " + strconv.Itoa(j.Attempts)
		}
	}
	if p := j.Progress; p.Done > 0 || p.Total > 0 || p.Note != "" {
		var left time.Duration
		if !p.End.IsZero() {
			left = p.End.Sub(q.Start)
		}
		out.Bar = page.NewBar(out.Kind, p.Done, p.Total, p.Note, left)
	}
	switch j.State {
	case understudy.JobRunning:
		out.Tone, out.When, out.At = "busy", "began", q.Moment(j.Started)
		out.CanCancel = !j.Stop
	case understudy.JobWaiting:
		out.When, out.At = "not before", q.Moment(j.RunAfter)
		if j.RunAfter.Before(q.Start) {
			out.When, out.At = "waits since", q.Moment(cmp.Or(j.RunAfter, j.Created))
		}
		out.CanCancel = true
	case understudy.JobFailed, understudy.JobExpired:
		out.Tone, out.When, out.At, out.CanReplay = "bad", "ended", q.Moment(j.Ended), true
	default:
		out.When, out.At, out.CanReplay = "ended", q.Moment(j.Ended), true
		if j.State == understudy.JobDone {
			out.Tone = "good"
		}
	}
	return out
}

// size is a number of bytes in words, "" for none.
func size(n int64) string {
	switch {
	case n <= 0:
		return ""
	case n < 1<<20:
		return strconv.FormatInt(max(n>>10, 1), 10) + " KiB"
	}
	return strconv.FormatInt(n>>20, 10) + " MiB"
}

// cancelJob and replayJob are what the buttons of the page do.
func cancelJob(q *page.Exchange) error {
	return jobsView{q}.withJob("cancel", func(number int64) (string, error) {
		return fmt.Sprintf("Job %d is cancelled; one that runs ends soon.", number), q.V.Jobs.Cancel(q.Ctx, number)
	})
}

func replayJob(q *page.Exchange) error {
	return jobsView{q}.withJob("replay", func(number int64) (string, error) {
		again, err := q.V.Jobs.Replay(q.Ctx, number)
		return fmt.Sprintf("Job %d does the work of job %d again.", again, number), err
	})
}

// withJob does something to the job an address names and goes back to the page, which
// says what was done.
func (q jobsView) withJob(what string, do func(number int64) (said string, err error)) error {
	if err := q.mayJobs(); err != nil {
		return err
	}
	said := ""
	number, err := strconv.ParseInt(q.R.PathValue("number"), 10, 64)
	if err == nil {
		err = page.Audit(q.Exchange, understudy.AuditEntry{Action: understudy.ActionAdminister, What: fmt.Sprintf("job %d/%s", number, what)})
	}
	if err == nil {
		said, err = do(number)
	}
	switch {
	case errors.Is(err, understudy.ErrNotFound), errors.Is(err, strconv.ErrSyntax), errors.Is(err, strconv.ErrRange):
		return &page.Problem{Title: "There is no such job", Hint: "It may have ended in the meantime.", Href: "/" + plan.JobsWord,
			Link: "See all jobs", Kind: understudy.ErrNotFound}
	case errors.Is(err, understudy.ErrInvalid):
		return &page.Problem{Title: "This cannot be done to the job now", Hint: page.Sentence(err), Href: "/" + plan.JobsWord,
			Link: "See all jobs", Kind: understudy.ErrInvalid}
	case err != nil:
		return fmt.Errorf("viewer: job %d: %w", number, err)
	}
	q.GoBack("/"+plan.JobsWord, said)
	return nil
}
