// The home page: how many records of each source are stored, how fresh they are, and the state of each upstream.

package viewer

import (
	"context"
	"math"
	"net/http"
	"strings"
	"time"

	"understudy"
	"understudy/internal/viewer/outlook"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/plan"
)

// homePage is the data of the template home.html. Each source is a part of the page.
type homePage struct {
	Parts         *page.Parts
	Empty         bool              // whether the caller may see none of the sources
	HasSearch     bool              // whether the search box finds records by words
	HasLookup     bool              // whether the search box can look up whole phone numbers
	SavedSearches []page.SearchLink // searches that the caller has saved
	SpecSearches  []page.SearchLink // searches that the specs define
}

// sourceView describes a source to people who read its records.
type sourceView struct {
	Name, Title string
	Health      page.Health
	Today       []todayKind
	Numbers     []outlook.Line // the newest values of the source's sampled numbers, such as the balance of the account
	Groups      []page.KindViews
	Server      *serverView // the server's state; nil unless the caller is an administrator
}

// serverView shows an administrator how well the server works for a source.
type serverView struct {
	FasterBy, OurMedian, UpstreamMedian string // how many times faster stored answers are than upstream's, and the median times of both
	Answers                             []answerShare
	Total                               int64
	// The requests sent to upstream: those that a reader waited for, those of full syncs, and those of other work in
	// the background.
	ReaderRequests, SyncRequests, BackgroundRequests int64
	Webhooks                                         []webhookView
	DropIn                                           string
}

// webhookView is the state of one webhook, which receives the changes of records.
type webhookView struct {
	Name, Tone, State, Reason string
	Since                     *page.When
	Behind                    int64
}

// answerShare is the share of all answers that came from one place, such as the cache.
type answerShare struct {
	Label, Class string
	Count        int64
	X, Width     float64 // the position and the width of this share in a bar that is 100 units wide
}

// serveHome shows every source that the caller may read.
func serveHome(q *page.Exchange) error {
	if q.R.URL.RawQuery != "" {
		name, _, _ := strings.Cut(q.R.URL.RawQuery, "=")
		return page.NewBadRequest("There is no parameter “"+understudy.Clip(name)+"” here", "The home page has no parameters.", nil)
	}
	if q.DataFormat != "" {
		return sendHome(q)
	}
	var all []*page.Part
	for _, s := range q.V.Planned {
		if kinds := q.Rights.ReadableKinds(s); len(kinds) > 0 {
			all = append(all, makeSourcePart(q, s))
		}
	}
	out := homePage{Empty: len(all) == 0, HasSearch: q.V.Options.Search != nil, HasLookup: q.Rights.CanLookUp(),
		SavedSearches: q.Rights.SavedSearches(q.Ctx), SpecSearches: q.Rights.SpecSearches()}
	out.Parts = q.Parts("home", all...)
	return q.Render(http.StatusOK, "home", "Home", out)
}

// makeSourcePart starts to read the state of a source and the number of its records. It returns the part of the page
// that shows them.
func makeSourcePart(q *page.Exchange, s *plan.Source) *page.Part {
	var snap page.Snapshot
	var lines []outlook.Line
	var today []todayKind
	asked := q.Tasks.Begin("how "+s.Name+" does", q.V.PartTimeout, func(ctx context.Context) error {
		snap = q.V.Snapshots.ReadFresh(ctx, q, s)
		lines = outlook.Lines(ctx, q, s)
		return nil
	})
	about := failureSearches(q, s)
	counted := q.Tasks.Begin("what failed of "+s.Name, q.V.PartTimeout, func(ctx context.Context) error {
		today = countToday(ctx, q, s, about)
		return nil
	})
	of := func() []any { return []any{s.Name, snap, lines, today, asked.Err != nil} }
	return &page.Part{Title: s.Spec.Title, Needs: []*page.Future{asked, counted}, Inputs: of, Draw: func() (string, any) {
		if asked.Err != nil {
			return "broken", s.Spec.Title
		}
		out := sourceView{Name: s.Name, Title: s.Spec.Title, Health: q.Clock.HealthOf(snap, s.Spec.Title), Numbers: lines,
			Today: removeUncertainCounts(today, &snap), Groups: q.Rights.KindGroups(s, &snap, &q.Clock)}
		if page.IsAdministrator(q) {
			out.Server = showServer(q, s.Spec.Title, &snap)
		}
		return "source", out
	}}
}

// showServer returns how well the server works for a source. title is the name of the source's API.
func showServer(q *page.Exchange, title string, snap *page.Snapshot) *serverView {
	out := &serverView{
		FasterBy: snap.Latencies.Speedup(), DropIn: snap.DropIn,
		OurMedian: page.FormatMillis(snap.Latencies.StoredTimes.P50), UpstreamMedian: page.FormatMillis(snap.Latencies.UpstreamTimes.P50),
	}
	day := snap.Day
	out.Total = day.Warm + day.Stale + day.Cold + day.Composed
	out.ReaderRequests, out.SyncRequests, out.BackgroundRequests = day.Readers, day.Walks, day.Upstream-day.Readers-day.Walks
	x := 0.0
	for _, sh := range []answerShare{
		{Label: "cached", Class: "warm", Count: day.Warm}, {Label: "cached, refreshed in the background", Class: "stale", Count: day.Stale},
		{Label: "assembled from records", Class: "composed", Count: day.Composed},
		{Label: "fetched from " + title, Class: "cold", Count: day.Cold},
	} {
		if out.Total > 0 {
			sh.X, sh.Width = x, math.Round(1000*float64(sh.Count)/float64(out.Total))/10
			x += sh.Width
		}
		out.Answers = append(out.Answers, sh)
	}
	for _, w := range snap.Webhooks {
		out.Webhooks = append(out.Webhooks, webhookView{Name: w.Name, Tone: page.WebhookTone(w.State), State: w.State, Reason: w.Why,
			Since: q.Clock.Moment(w.Failing), Behind: w.Behind})
	}
	return out
}

// sendHome sends the home page as JSON.
func sendHome(q *page.Exchange) error {
	type syncData struct {
		Done  int64  `json:"done"`
		Total *int64 `json:"total"` // the number of records to sync; null if it is not known
		ETA   int64  `json:"eta"`
		Walk  string `json:"walk,omitempty"`
	}
	type kindData struct {
		Name     string     `json:"name"`
		Title    string     `json:"title"`
		Href     string     `json:"href"`
		Records  *int64     `json:"records"` // the number of stored records; null if the role may see only some of the kind's records
		Complete bool       `json:"complete"`
		Why      string     `json:"why"`
		Sync     *syncData  `json:"sync"`
		CaughtUp *time.Time `json:"caught_up_to"`
	}
	type sourceData struct {
		Name      string     `json:"name"`
		Title     string     `json:"title"`
		State     string     `json:"state"`
		Why       string     `json:"why"`
		Since     *time.Time `json:"since"`
		NextProbe *time.Time `json:"next_probe"`
		DropIn    string     `json:"drop_in"`
		Kinds     []kindData `json:"kinds"`
	}
	all := []sourceData{}
	for _, s := range q.V.Planned {
		kinds := q.Rights.ReadableKinds(s)
		if len(kinds) == 0 {
			continue
		}
		snap := q.V.Options.Snapshot(q.Ctx, s.Name)
		d := sourceData{s.Name, s.Spec.Title, snap.State, snap.Why, utcSecond(snap.Since), utcSecond(snap.NextProbe), snap.DropIn, nil}
		for _, k := range kinds {
			held := snap.Kinds[k.Spec.Name]
			if !q.Rights.CanCount(k) {
				d.Kinds = append(d.Kinds, kindData{Name: k.Spec.Name, Title: plan.UpperFirst(k.Spec.Title), Href: k.Href,
					Why: "your role can see only some of them, so they are not counted"})
				continue
			}
			if !held.Complete && held.Why == "" {
				held.Why = "they are not synced, so some may be missing"
			}
			kd := kindData{k.Spec.Name, plan.UpperFirst(k.Spec.Title), k.Href, &held.Records, held.Complete, held.Why, nil,
				utcSecond(held.CaughtUp)}
			if held.Running {
				if kd.Sync = (&syncData{held.Done, nil, int64(held.ETA / time.Second), held.Walk}); held.Total > 0 {
					kd.Sync.Total = &held.Total
				}
			}
			d.Kinds = append(d.Kinds, kd)
		}
		all = append(all, d)
	}
	return q.SendJSON(map[string]any{"sources": all})
}

// utcSecond returns a time for JSON, in UTC and whole seconds. It returns nil for the zero time.
func utcSecond(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC().Truncate(time.Second)
	return &t
}
