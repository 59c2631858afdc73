// The jobs page: running, waiting and failed jobs, for callers who may see every record.

package viewer

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"time"

	"understudy"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/plan"
)

// The page shows at most maxJobs running, maxJobs waiting and maxJobs failed jobs, and maxEndedJobs jobs that ended
// without failure.
const (
	maxJobs      = 100
	maxEndedJobs = 20
)

// jobsPage is the data of the template jobs.html.
type jobsPage struct {
	Counts    []string // the number of jobs in each state, such as "2 running"
	Jobs      []jobView
	Truncated bool // whether there may be more jobs than the page shows
}

// jobView is one job on the page.
type jobView struct {
	Number          int64
	Kind, Key       string
	State           string
	Tone            string
	AttemptText     string // the number of the attempt, such as "try 2 of 5"
	Duration        string // how long the job's last run took, or how long a running job has been running
	Bar             *page.Bar
	TimeLabel       string     // says what Time means; empty if Time is the start of the last run
	Time            *page.When // the start of the job's last run, or the earliest start of its next run
	Result          string
	Error           string
	CancelRequested bool // whether somebody has cancelled the job, although its run has not ended yet
	CanCancel       bool
	CanReplay       bool
}

// checkJobs returns an error unless the caller may see everything of every source. Only such callers may see jobs,
// because a job's key and its error name records.
func checkJobs(q *page.Exchange) error {
	if q.V.Options.Jobs == nil {
		return page.NewNotFound("Jobs are not available here", "This server has no background jobs.", "")
	}
	if !q.CanSeeJobs() {
		return fmt.Errorf("%w: only the role %s can see jobs, because they name records", understudy.ErrForbidden, understudy.RoleAll)
	}
	return nil
}

// serveJobs shows the jobs.
func serveJobs(q *page.Exchange) error {
	if err := checkJobs(q); err != nil {
		return err
	}
	if q.R.URL.RawQuery != "" {
		return page.NewBadRequest("The jobs' page takes no parameters", "Programs use /-/jobs.", nil)
	}
	var out jobsPage
	for _, part := range []struct {
		title  string
		states []understudy.JobState
		limit  int
	}{
		{"running", []understudy.JobState{understudy.JobRunning}, maxJobs},
		{"waiting", []understudy.JobState{understudy.JobWaiting}, maxJobs},
		{"failed", []understudy.JobState{understudy.JobFailed, understudy.JobExpired}, maxJobs},
		{"finished", []understudy.JobState{understudy.JobDone, understudy.JobCancelled}, maxEndedJobs},
	} {
		all, err := q.V.Options.Jobs.ListJobs(q.Ctx, understudy.JobFilter{States: part.states, Limit: part.limit})
		if err != nil {
			return fmt.Errorf("viewer: jobs: %w", err)
		}
		out.Truncated = out.Truncated || len(all) >= part.limit
		// jobs that have ended are sorted by their end, newest first, and other jobs by their number
		slices.SortStableFunc(all, func(a, b understudy.Job) int {
			return cmp.Or(b.Ended.Compare(a.Ended), cmp.Compare(b.Number, a.Number))
		})
		for _, j := range all {
			out.Jobs = append(out.Jobs, showJob(q, j))
		}
		if len(all) > 0 {
			out.Counts = append(out.Counts, strconv.Itoa(len(all))+" "+part.title)
		}
	}
	return q.Render(http.StatusOK, "jobs", "Jobs", out)
}

// showJob returns a job as the page shows it.
func showJob(q *page.Exchange, j understudy.Job) jobView {
	out := jobView{Number: j.Number, Kind: plan.UpperFirst(j.Kind), Key: j.Key, State: j.State.String(), Error: j.Error,
		CancelRequested: j.StopRequested}
	if j.Attempt > 1 || j.Error != "" && j.MaxAttempts > 0 {
		out.AttemptText = "try " + strconv.Itoa(j.Attempt)
		if j.MaxAttempts > 0 {
			out.AttemptText += " of " + strconv.Itoa(j.MaxAttempts)
		}
	}
	if !j.Started.IsZero() {
		out.Time = q.Clock.Moment(j.Started)
	}
	end := j.Ended
	switch j.State {
	case understudy.JobRunning:
		out.Tone, out.CanCancel, end = "busy", !j.StopRequested, q.Clock.Start
		if p := j.Progress; p.Done > 0 || p.Total > 0 || p.Note != "" {
			var left time.Duration
			if !p.End.IsZero() {
				left = p.End.Sub(q.Clock.Start)
			}
			out.Bar = page.NewBar(out.Kind, p.Done, p.Total, p.Note, left)
		}
	case understudy.JobWaiting:
		out.TimeLabel, out.Time = "starts after", q.Clock.Moment(j.RunAfter)
		if j.RunAfter.Before(q.Clock.Start) {
			out.TimeLabel, out.Time = "waiting since", q.Clock.Moment(cmp.Or(j.RunAfter, j.Created))
		}
		out.CanCancel, end = true, time.Time{}
	case understudy.JobFailed, understudy.JobExpired:
		out.Tone, out.CanReplay = "bad", true
	case understudy.JobDone:
		out.Tone, out.CanReplay = "good", true
	default:
		out.CanReplay = true
	}
	if out.Bar == nil {
		out.Result = resultText(j.Progress)
	}
	if took := end.Sub(j.Started); !j.Started.IsZero() && took >= 0 {
		out.Duration = page.FormatDuration(took)
	}
	return out
}

var longNumberPattern = regexp.MustCompile(`\b[0-9]{4,}\b`)

// resultText describes how much of its work a run has done. If the run left a note, it returns the note.
func resultText(p understudy.Progress) string {
	switch {
	case p.Note != "":
		return longNumberPattern.ReplaceAllStringFunc(p.Note, func(digits string) string {
			if n, err := strconv.ParseInt(digits, 10, 64); err == nil {
				return page.Thousands(n)
			}
			return digits
		})
	case p.Total > p.Done:
		return page.Thousands(p.Done) + " of " + page.Thousands(p.Total)
	case p.Done > 0:
		return page.Thousands(p.Done) + " done"
	}
	return ""
}

func cancelJob(q *page.Exchange) error {
	return changeJob(q, "cancel", func(number int64) (string, error) {
		return fmt.Sprintf("Job %d is cancelled. If it is running, it stops soon.", number), q.V.Options.Jobs.Cancel(q.Ctx, number)
	})
}

func replayJob(q *page.Exchange) error {
	return changeJob(q, "replay", func(number int64) (string, error) {
		again, err := q.V.Options.Jobs.Replay(q.Ctx, number)
		return fmt.Sprintf("Job %d runs again as job %d.", number, again), err
	})
}

// changeJob calls do with the number of the job in the address. It then redirects to the page of jobs, which shows
// the message that do returned.
func changeJob(q *page.Exchange, what string, do func(number int64) (said string, err error)) error {
	if err := checkJobs(q); err != nil {
		return err
	}
	said := ""
	number, err := strconv.ParseInt(q.R.PathValue("number"), 10, 64)
	if err == nil {
		err = page.WriteAudit(q, understudy.AuditEntry{Action: understudy.ActionAdminister, What: fmt.Sprintf("job %d/%s", number, what)})
	}
	if err == nil {
		said, err = do(number)
	}
	switch {
	case errors.Is(err, understudy.ErrNotFound), errors.Is(err, strconv.ErrSyntax), errors.Is(err, strconv.ErrRange):
		return &page.Problem{Title: "This job does not exist", Hint: "It may have ended in the meantime.", Href: "/" + plan.JobsWord,
			Link: "See all jobs", Kind: understudy.ErrNotFound}
	case errors.Is(err, understudy.ErrInvalid):
		return &page.Problem{Title: "This can't be done with the job now", Hint: page.Sentence(err), Href: "/" + plan.JobsWord,
			Link: "See all jobs", Kind: understudy.ErrInvalid}
	case err != nil:
		return fmt.Errorf("viewer: job %d: %w", number, err)
	}
	q.RedirectBack("/"+plan.JobsWord, said)
	return nil
}
