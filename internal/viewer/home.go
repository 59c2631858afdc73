// Home: what is held of each source, how fresh it is, and how its upstream does.

package viewer

import (
	"context"
	"net/http"
	"strings"
	"time"
	"understudy/internal/viewer/plan"

	"understudy"
)

// homePage is what home.html shows: the jobs, and each source, are parts.
type homePage struct {
	Parts *parts
	Empty bool // the caller sees no source
}

// webhookView is one receiver of changes.
type webhookView struct {
	Name, Tone, State, Why string
	Since                  *when
	Behind                 int64
}

type sourceView struct {
	Name, Title string
	Health      health
	Groups      []kindViews
	Chart       *chart
	Times       []timeRow // upstream's, by kind and reason
	Answers     []share
	Total       int64
	Saved       int64
	Upstream    int64
	Webhooks    []webhookView
	DropIn      string
}

// share is one way answers came, and its part of all.
type share struct {
	Word, Class string
	Count       int64
	X, Width    float64 // of a bar 100 wide
}

// serveHome shows every source the caller may ask.
func serveHome(q *exchange) error {
	p := homeView{q}
	if q.r.URL.RawQuery != "" {
		name, _, _ := strings.Cut(q.r.URL.RawQuery, "=")
		return badRequest("There is no parameter “"+clip(name)+"” here", "The home page takes none.", nil)
	}
	if q.data != "" {
		return p.homeData()
	}
	all, empty := []*part{jobsView{q}.workPart()}, true
	for _, s := range q.v.sources {
		if kinds := q.readable(s); len(kinds) > 0 {
			all, empty = append(all, p.sourcePart(s)), false
		}
	}
	return q.render(http.StatusOK, "home", "Home", homePage{q.parts("home", all...), empty})
}

// homeView is the page of all sources.
type homeView struct{ *exchange }

// sourcePart begins to ask how a source does.
func (q homeView) sourcePart(s *plan.Source) *part {
	var snap Snapshot
	asked := q.begin("how "+s.Name+" does", q.v.glance, func(ctx context.Context) error {
		snap = q.v.snapshots.ask(ctx, q.exchange, s)
		return nil
	})
	of := func() []any { return []any{s.Name, snap, asked.err != nil} }
	return &part{title: s.Spec.Title, needs: []*future{asked}, of: of, draw: func() (string, any) {
		if asked.err != nil {
			return "broken", s.Spec.Title
		}
		return "source", q.sourceView(s, snap)
	}}
}

func (q homeView) sourceView(s *plan.Source, snap Snapshot) sourceView {
	out := sourceView{
		Name: s.Name, Title: s.Spec.Title, Health: healthOf(q.exchange, snap), Groups: kindGroups(q.exchange, s, snap), Chart: newChart(&snap),
		Upstream: snap.Upstream, DropIn: snap.DropIn,
	}
	out.Total = snap.Warm + snap.Stale + snap.Cold + snap.Composed
	out.Saved = max(0, out.Total-out.Upstream) // each answer would have been a request; polls and walks are among those sent
	x := 0.0
	for _, sh := range []share{{Word: "warm", Count: snap.Warm}, {Word: "stale", Count: snap.Stale}, {Word: "composed", Count: snap.Composed}, {Word: "cold", Count: snap.Cold}} {
		sh.Class = sh.Word
		if out.Total > 0 {
			sh.X, sh.Width = x, round(100*float64(sh.Count)/float64(out.Total))
			x += sh.Width
		}
		out.Answers = append(out.Answers, sh)
	}
	if q.caller.Role() == understudy.RoleAll {
		out.Times = q.timeRows(s, snap.Times)
		for _, w := range snap.Webhooks {
			out.Webhooks = append(out.Webhooks, q.webhook(w))
		}
	}
	return out
}

// webhook says how a receiver of changes does.
func (q homeView) webhook(w Webhook) webhookView {
	out := webhookView{Name: w.Name, State: w.State, Why: w.Why, Since: q.moment(w.Since), Behind: w.Behind}
	switch w.State {
	case "ok":
		out.Tone = "good"
	case "paused":
		out.Tone = "bad"
	default:
		out.Tone = "busy"
	}
	return out
}

// homeData is the home page as data.
func (q homeView) homeData() error {
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
	for _, s := range q.v.sources {
		kinds := q.readable(s)
		if len(kinds) == 0 {
			continue
		}
		snap := snapshotOf(q.exchange, s)
		d := sourceData{s.Name, s.Spec.Title, snap.State, snap.Why, stamp(snap.Since), stamp(snap.NextProbe), snap.DropIn, nil}
		for _, k := range kinds {
			held := snap.Kinds[k.Name]
			if !q.counts(k) {
				d.Kinds = append(d.Kinds, kindData{Name: k.Name, Title: plan.UpperFirst(k.Title), Href: k.Href})
				continue
			}
			kd := kindData{k.Name, plan.UpperFirst(k.Title), k.Href, &held.Records, held.Complete, held.Why, nil, stamp(held.CaughtUp)}
			if held.Running {
				if kd.Sync = (&syncData{held.Done, nil, int64(held.ETA / time.Second), held.Walk}); held.Total > 0 {
					kd.Sync.Total = &held.Total
				}
			}
			d.Kinds = append(d.Kinds, kd)
		}
		all = append(all, d)
	}
	return q.sendJSON(map[string]any{"sources": all})
}

// stamp is a time for data: whole seconds of UTC, nil when not known.
func stamp(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC().Truncate(time.Second)
	return &t
}
