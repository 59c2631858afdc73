// The administration page: the state of the server, and links to its settings.

// Package administration shows callers with the role all how the server works, and lets them change it.
package administration

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"understudy"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/plan"
	"understudy/internal/watch"
	"understudy/request"
)

// The paths of these pages.
const (
	Path         = page.ControlPrefix + "administration"
	sessionsPath = Path + "/sessions"
)

// Routes returns the routes of these pages.
func Routes() []page.Route {
	admitted := func(run page.Handler) page.Handler { return page.AdministratorHandler("open the administration", run) }
	return []page.Route{
		{Pattern: "GET " + Path, Handler: admitted(serve)},
		{Pattern: "GET " + sessionsPath, Handler: admitted(serveSessions)},
		{Pattern: "POST " + sessionsPath + "/{id}/end", Handler: admitted(endSession)},
		{Pattern: "GET " + usersPath, Handler: admitUsers(false, serveUsers)},
		{Pattern: "POST " + usersPath, Handler: admitUsers(true, invite)},
		{Pattern: "POST " + usersPath + "/{name}/role", Handler: admitUsers(true, setUserRole)},
		{Pattern: "POST " + usersPath + "/{name}/remove", Handler: admitUsers(true, removeUser)},
		{Pattern: "POST " + usersPath + "/{name}/withdraw", Handler: admitUsers(true, removeInvitation)},
		{Pattern: "POST " + Path + "/webhooks/{name}/resume", Handler: admitted(resumeWebhook)},
		{Pattern: "POST " + Path + "/webhooks/{name}/pause", Handler: admitted(pauseWebhook)},
	}
}

// maxJobs is the number of jobs in one state above which the page does not count them.
const maxJobs = 100

// administrationPage is the data of the template administration.html.
type administrationPage struct {
	Ways     []adminLink
	Sources  []sourceView
	Webhooks []webhookView
	Nodes    *nodesView
}

// adminLink is a link to a page for administrators, with facts about what the page shows.
type adminLink struct {
	Href, Title, What string
	Facts             []fact
}

// fact is a short text about what a linked page shows, such as a number of jobs.
type fact struct{ Text, Tone string }

// sourceView is the state of a source for administrators.
type sourceView struct {
	Name, Title string
	Health      page.Health
	Figures     []figure
	Budget      *budget
	Chart       *chart
}

// figure is a number with a title.
type figure struct{ Name, Value, Tone string }

// serve shows the page.
func serve(q *page.Exchange) error {
	if q.R.URL.RawQuery != "" {
		return page.NewBadRequest("This page takes no parameters", "Programs use /-/stats.", nil)
	}
	p := administrationPage{}
	jobs, err := countJobs(q.Ctx, q)
	if err != nil {
		return err
	}
	p.Ways = adminLinks(q, jobs)
	for _, s := range q.V.Planned {
		p.Sources = append(p.Sources, source(q, s))
	}
	if q.V.Options.Webhooks != nil {
		for _, w := range q.V.Options.Webhooks.Webhooks() {
			p.Webhooks = append(p.Webhooks, webhook(q, w))
		}
	}
	p.Nodes = newNodesView(q)
	return q.Render(http.StatusOK, "administration", "Administration", p)
}

// adminLinks returns links to the administration pages that this server has.
func adminLinks(q *page.Exchange, jobs []fact) (all []adminLink) {
	if q.V.Options.Jobs != nil {
		all = append(all, adminLink{"/" + plan.JobsWord, "Jobs", "Work in the background", jobs})
	}
	if programs := q.V.Options.Programs; programs != nil {
		facts := []fact{{Text: count(int64(len(programs.Configured)), "in the settings", "in the settings")}}
		if programs.Credentials != nil {
			facts = append(facts, fact{Text: count(int64(len(programs.All())), "created here", "created here")})
		}
		all = append(all, adminLink{"/-/connect", "Credentials", "What programs sign in with", facts})
	}
	all = append(all, adminLink{"/-/roles", "Roles", "Who may see what, and which setting decides", nil})
	if q.V.Options.Trail != nil {
		all = append(all, adminLink{"/-/audit", "Audit log", "Who looked at what, and who did what",
			[]fact{{Text: count(q.V.Options.Trail.Stats().Entries, "entry", "entries") + " since the start"}}})
	}
	if who := q.V.Options.People; who != nil && who.Users != nil {
		all = append(all, adminLink{usersPath, "Users", "Who may sign in with a password",
			[]fact{{Text: count(int64(len(who.Users.All())), "user", "users")}}})
	}
	if q.V.Options.People != nil {
		people, sessions := map[string]bool{}, q.V.Options.People.Sessions.All()
		for _, s := range sessions {
			people[s.Name] = true
		}
		all = append(all, adminLink{sessionsPath, "Sessions", "Who is signed in, and in which browser",
			[]fact{{Text: count(int64(len(sessions)), "session", "sessions")}, {Text: count(int64(len(people)), "person", "people")}}})
	}
	if q.V.Options.Control != nil {
		all = append(all, adminLink{page.ControlPrefix + "profile", "Profiles", "Where the server spends memory and time", nil},
			adminLink{page.ControlPrefix + "slow", "Slow requests", "The recent slow requests, and the stages of their answers", nil})
	}
	if q.V.Options.Watches != nil {
		facts := watchFacts(q.V.Options.Watches.Watches(q.Rights.Caller, true))
		all = append(all, adminLink{"/-/watches", "Watches", "Saved searches that notify people of new matches", facts})
	}
	if q.V.Options.Forecasts != nil {
		for _, s := range q.V.Planned {
			for _, one := range q.V.Options.Forecasts.Series(s.Name) {
				all = append(all, adminLink{"/-/forecast/" + one.Source + "/" + one.Kind + "." + one.Field, "Forecast",
					s.Spec.Title + ", " + one.Kind + "." +
						one.Field, nil})
			}
		}
	}
	return all
}

// countJobs counts the jobs in each state.
func countJobs(ctx context.Context, q *page.Exchange) (all []fact, err error) {
	if q.V.Options.Jobs == nil {
		return nil, nil
	}
	for _, part := range []struct {
		state      understudy.JobState
		word, tone string
	}{{understudy.JobRunning, "running", ""}, {understudy.JobWaiting, "waiting", ""}, {understudy.JobFailed, "failed", "bad"}} {
		jobs, err := q.V.Options.Jobs.ListJobs(ctx, understudy.JobFilter{States: []understudy.JobState{part.state}, Limit: maxJobs})
		if err != nil {
			return nil, fmt.Errorf("viewer: jobs: %w", err)
		}
		f := fact{Text: strconv.Itoa(len(jobs)) + " " + part.word}
		if len(jobs) >= maxJobs {
			f.Text = strconv.Itoa(len(jobs)) + " or more " + part.word
		}
		if len(jobs) > 0 {
			f.Tone = part.tone
		}
		all = append(all, f)
	}
	return all, nil
}

// watchFacts returns how many watches there are in each state. A watch that a person has paused does not count as failed.
func watchFacts(watches []watch.Status) []fact {
	stopped := 0
	for i := range watches {
		if why := watches[i].State.Stopped; why != "" && why != watch.Paused {
			stopped++
		}
	}
	facts := []fact{{Text: count(int64(len(watches)), "watch", "watches")}}
	if stopped > 0 {
		facts = append(facts, fact{Text: strconv.Itoa(stopped) + " stopped", Tone: "bad"})
	}
	return facts
}

// count returns a number followed by a noun: one for the number 1, else many.
func count(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return page.Thousands(n) + " " + many
}

// source returns the state of a source for administrators.
func source(q *page.Exchange, s *plan.Source) sourceView {
	snap := q.V.Snapshots.ReadFresh(q.Ctx, q, s)
	out := sourceView{Name: s.Name, Title: s.Spec.Title, Health: q.Clock.HealthOf(snap, s.Spec.Title)}
	out.Chart = newChart(s, &snap.Latencies)
	var spent []request.Spending
	if q.V.Options.Spending != nil {
		spent = q.V.Options.Spending(s.Name)
	}
	out.Budget = newBudget(q, spent)
	for _, span := range []struct {
		name  string
		spans int
	}{{"Last hour", hourSpans}, {"Last 24 hours", daySpans}} {
		sum := sumOf(spent, q.Clock.Start, span.spans)
		sent, failed := sum.Requests(), sum.Failed
		f := figure{Name: span.name, Value: count(sent, "request", "requests") + ", " + failureRate(failed, sent)}
		if failed > 0 && failed*failedShare > sent {
			f.Tone = "bad"
		}
		out.Figures = append(out.Figures, f)
	}
	out.Figures = append(out.Figures, figure{Name: "Since the start", Value: count(snap.Requests.Upstream, "request", "requests")})
	if snap.Requests.AtOnce > 0 {
		at := figure{Name: "At the same time", Value: "at most " + count(int64(snap.Requests.AtOnce), "request", "requests")}
		if snap.Requests.AtOnceWhy != "" {
			at.Value += ", because " + snap.Requests.AtOnceWhy
		}
		out.Figures = append(out.Figures, at)
	}
	return out
}

// failedShare decides when failed requests are highlighted: if at least one in failedShare requests has failed.
const failedShare = 20

// failureRate returns the share of failed requests in words.
func failureRate(failed, sent int64) string {
	switch {
	case failed == 0:
		return "none failed"
	case sent == 0 || failed >= sent:
		return count(failed, "failed", "failed")
	}
	return fmt.Sprintf("%s failed (%.1f %%)", page.Thousands(failed), 100*float64(failed)/float64(sent))
}
