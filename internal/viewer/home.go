// Home: what is held of each source, how fresh it is, and how its upstream does.

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

// homePage is what home.html shows: each source is a part.
type homePage struct {
	Parts *page.Parts
	Empty bool         // the caller sees no source
	Finds bool         // words can be searched for
	Looks bool         // numbers are looked up by the box
	Saved []page.Ready // searches
	Ready []page.Ready // searches that the specs bring along
}

// sourceView is a source for whoever reads its records.
type sourceView struct {
	Name, Title string
	Health      page.Health
	Today       []todayView
	Numbers     []outlook.Line // that are sampled: a balance
	Groups      []page.KindViews
	Server      *serverView // nil for those who do not administer
}

// serverView is how the server does for a source.
type serverView struct {
	Faster, Ours, Theirs string // the times, and both medians
	Answers              []share
	Total                int64
	// Requests sent upstream: for readers who waited, for walks through all records, and for what is done behind answers.
	Readers, Walks, Background int64
	Webhooks                   []webhookView
	DropIn                     string
}

// webhookView is one receiver of changes.
type webhookView struct {
	Name, Tone, State, Why string
	Since                  *page.When
	Behind                 int64
}

// share is one way answers came, and its part of all.
type share struct {
	Word, Class string
	Count       int64
	X, Width    float64 // of a bar 100 wide
}

// serveHome shows every source the caller may ask.
func serveHome(q *page.Exchange) error {
	if q.R.URL.RawQuery != "" {
		name, _, _ := strings.Cut(q.R.URL.RawQuery, "=")
		return page.BadRequest("There is no parameter “"+understudy.Clip(name)+"” here", "The home page takes none.", nil)
	}
	if q.Data != "" {
		return sendHome(q)
	}
	var all []*page.Part
	for _, s := range q.V.Planned {
		if kinds := q.Rights.Readable(s); len(kinds) > 0 {
			all = append(all, makeSourcePart(q, s))
		}
	}
	out := homePage{Empty: len(all) == 0, Finds: q.V.Options.Search != nil, Looks: q.Rights.Looks(), Saved: q.Rights.SavedSearches(q.Ctx),
		Ready: q.Rights.ReadySearches()}
	out.Parts = q.Parts("home", all...)
	return q.Render(http.StatusOK, "home", "Home", out)
}

// makeSourcePart begins to ask how a source does, and what there is to look at.
func makeSourcePart(q *page.Exchange, s *plan.Source) *page.Part {
	var snap page.Snapshot
	var lines []outlook.Line
	var today []todayView
	asked := q.Tasks.Begin("how "+s.Name+" does", q.V.Glance, func(ctx context.Context) error {
		snap = q.V.Snapshots.Ask(ctx, q, s)
		lines = outlook.Lines(ctx, q, s)
		return nil
	})
	about := askToday(q, s)
	counted := q.Tasks.Begin("what failed of "+s.Name, q.V.Glance, func(ctx context.Context) error {
		today = countToday(ctx, q, s, about)
		return nil
	})
	of := func() []any { return []any{s.Name, snap, lines, today, asked.Err != nil} }
	return &page.Part{Title: s.Spec.Title, Needs: []*page.Future{asked, counted}, Of: of, Draw: func() (string, any) {
		if asked.Err != nil {
			return "broken", s.Spec.Title
		}
		out := sourceView{Name: s.Name, Title: s.Spec.Title, Health: q.Clock.HealthOf(snap), Numbers: lines,
			Today: keepFetched(today, &snap), Groups: q.Rights.KindGroups(s, &snap, &q.Clock)}
		if page.Administers(q) {
			out.Server = showServer(q, &snap)
		}
		return "source", out
	}}
}

// showServer says how the server does.
func showServer(q *page.Exchange, snap *page.Snapshot) *serverView {
	out := &serverView{
		Faster: snap.Latencies.Faster(), DropIn: snap.DropIn,
		Ours: page.Millis(snap.Latencies.HeldTimes.P50), Theirs: page.Millis(snap.Latencies.TheirTimes.P50),
	}
	day := snap.Day
	out.Total = day.Warm + day.Stale + day.Cold + day.Composed
	out.Readers, out.Walks, out.Background = day.Readers, day.Walks, day.Upstream-day.Readers-day.Walks
	x := 0.0
	for _, sh := range []share{
		{Word: "fresh", Class: "warm", Count: day.Warm}, {Word: "older, refreshed behind", Class: "stale", Count: day.Stale},
		{Word: "made from records", Class: "composed", Count: day.Composed}, {Word: "upstream asked", Class: "cold", Count: day.Cold},
	} {
		if out.Total > 0 {
			sh.X, sh.Width = x, math.Round(1000*float64(sh.Count)/float64(out.Total))/10
			x += sh.Width
		}
		out.Answers = append(out.Answers, sh)
	}
	for _, w := range snap.Webhooks {
		out.Webhooks = append(out.Webhooks, webhookView{Name: w.Name, Tone: page.WebhookTone(w.State), State: w.State, Why: w.Why,
			Since: q.Clock.Moment(w.Failing), Behind: w.Behind})
	}
	return out
}

// sendHome sends the home page as data.
func sendHome(q *page.Exchange) error {
	type syncData struct {
		Done  int64  `json:"done"`
		Total *int64 `json:"total"` // null: not known
		ETA   int64  `json:"eta"`
		Walk  string `json:"walk,omitempty"`
	}
	type kindData struct {
		Name     string     `json:"name"`
		Title    string     `json:"title"`
		Href     string     `json:"href"`
		Records  *int64     `json:"records"` // null where the role finds some alone
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
		kinds := q.Rights.Readable(s)
		if len(kinds) == 0 {
			continue
		}
		snap := q.V.Options.Snapshot(q.Ctx, s.Name)
		d := sourceData{s.Name, s.Spec.Title, snap.State, snap.Why, stamp(snap.Since), stamp(snap.NextProbe), snap.DropIn, nil}
		for _, k := range kinds {
			held := snap.Kinds[k.Spec.Name]
			if !q.Rights.Counts(k) {
				d.Kinds = append(d.Kinds, kindData{Name: k.Spec.Name, Title: plan.UpperFirst(k.Spec.Title), Href: k.Href,
					Why: "your role finds only some of them, so how many are held is not said"})
				continue
			}
			if !held.Complete && held.Why == "" {
				held.Why = "they are not synced, so some may be missing"
			}
			kd := kindData{k.Spec.Name, plan.UpperFirst(k.Spec.Title), k.Href, &held.Records, held.Complete, held.Why, nil,
				stamp(held.CaughtUp)}
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

// stamp is a time for data: whole seconds of UTC, nil when not known.
func stamp(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC().Truncate(time.Second)
	return &t
}
