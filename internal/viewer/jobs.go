// Jobs: what runs, what waits and what failed, for those who see everything.

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

// The page shows at most mostJobs that run, that wait and that failed, and mostEnded that ended otherwise.
const (
	mostJobs  = 100
	mostEnded = 20
)

// jobsPage is what jobs.html shows.
type jobsPage struct {
	Counts []string // "2 running"
	Jobs   []jobView
	Cut    bool // there may be more
}

// jobView is one job.
type jobView struct {
	Number    int64
	Kind, Key string
	State     string
	Tone      string
	Tries     string // "try 2 of 5"
	Took      string // how long its last run took, or takes until now
	Bar       *page.Bar
	When      string     // what the moment At is; "": the begin
	At        *page.When // when the last run of a job began, or when its next one may begin
	Result    string
	Error     string
	Stop      bool // asked to end
	CanCancel bool
	CanReplay bool
}

// checkJobs refuses everyone but those who see everything of every source: a job
// names records in its key and its error.
func checkJobs(q *page.Exchange) error {
	if q.V.Options.Jobs == nil {
		return page.NotFound("There are no jobs here", "This server does no work of its own.", "")
	}
	if !q.SeesJobs() {
		return fmt.Errorf("%w: jobs are shown to the role %s alone, as they name records", understudy.ErrForbidden, understudy.RoleAll)
	}
	return nil
}

// serveJobs shows them.
func serveJobs(q *page.Exchange) error {
	if err := checkJobs(q); err != nil {
		return err
	}
	if q.R.URL.RawQuery != "" {
		return page.BadRequest("The jobs' page takes no parameters", "Programs ask /-/jobs.", nil)
	}
	var out jobsPage
	for _, part := range []struct {
		title  string
		states []understudy.JobState
		limit  int
	}{
		{"running", []understudy.JobState{understudy.JobRunning}, mostJobs},
		{"waiting", []understudy.JobState{understudy.JobWaiting}, mostJobs},
		{"failed", []understudy.JobState{understudy.JobFailed, understudy.JobExpired}, mostJobs},
		{"ended", []understudy.JobState{understudy.JobDone, understudy.JobCancelled}, mostEnded},
	} {
		all, err := q.V.Options.Jobs.ListJobs(q.Ctx, understudy.JobFilter{States: part.states, Limit: part.limit})
		if err != nil {
			return fmt.Errorf("viewer: jobs: %w", err)
		}
		out.Cut = out.Cut || len(all) >= part.limit
		slices.SortStableFunc(all, func(a, b understudy.Job) int { // by their end, what has not ended by its number
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

func showJob(q *page.Exchange, j understudy.Job) jobView {
	out := jobView{Number: j.Number, Kind: plan.UpperFirst(j.Kind), Key: j.Key, State: j.State.String(), Error: j.Error,
		Stop: j.Stop}
	if j.Attempt > 1 || j.Error != "" && j.Attempts > 0 {
		out.Tries = "try " + strconv.Itoa(j.Attempt)
		if j.Attempts > 0 {
			out.Tries += " of " + strconv.Itoa(j.Attempts)
		}
	}
	if !j.Started.IsZero() {
		out.At = q.Clock.Moment(j.Started)
	}
	end := j.Ended
	switch j.State {
	case understudy.JobRunning:
		out.Tone, out.CanCancel, end = "busy", !j.Stop, q.Clock.Start
		if p := j.Progress; p.Done > 0 || p.Total > 0 || p.Note != "" {
			var left time.Duration
			if !p.End.IsZero() {
				left = p.End.Sub(q.Clock.Start)
			}
			out.Bar = page.NewBar(out.Kind, p.Done, p.Total, p.Note, left)
		}
	case understudy.JobWaiting:
		out.When, out.At = "not before", q.Clock.Moment(j.RunAfter)
		if j.RunAfter.Before(q.Clock.Start) {
			out.When, out.At = "waits since", q.Clock.Moment(cmp.Or(j.RunAfter, j.Created))
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
		out.Result = resultOf(j.Progress)
	}
	if took := end.Sub(j.Started); !j.Started.IsZero() && took >= 0 {
		out.Took = page.LongAgo(took)
	}
	return out
}

var longNumber = regexp.MustCompile(`\b[0-9]{4,}\b`)

// resultOf says in words how far a run came: by its note where it has one.
func resultOf(p understudy.Progress) string {
	switch {
	case p.Note != "":
		return longNumber.ReplaceAllStringFunc(p.Note, func(digits string) string {
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

// cancelJob and replayJob are what the buttons of the page do.
func cancelJob(q *page.Exchange) error {
	return changeJob(q, "cancel", func(number int64) (string, error) {
		return fmt.Sprintf("Job %d is cancelled; one that runs ends soon.", number), q.V.Options.Jobs.Cancel(q.Ctx, number)
	})
}

func replayJob(q *page.Exchange) error {
	return changeJob(q, "replay", func(number int64) (string, error) {
		again, err := q.V.Options.Jobs.Replay(q.Ctx, number)
		return fmt.Sprintf("Job %d does the work of job %d again.", again, number), err
	})
}

// changeJob does something to the job an address names and goes back to the page, which
// says what was done.
func changeJob(q *page.Exchange, what string, do func(number int64) (said string, err error)) error {
	if err := checkJobs(q); err != nil {
		return err
	}
	said := ""
	number, err := strconv.ParseInt(q.R.PathValue("number"), 10, 64)
	if err == nil {
		err = page.Audit(q, understudy.AuditEntry{Action: understudy.ActionAdminister, What: fmt.Sprintf("job %d/%s", number, what)})
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
