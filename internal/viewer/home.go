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

// Snapshot is what is known of a source at one moment. Everything may be zero.
type Snapshot struct {
	State     string // "ok", "down", "credential" or "limited"; "" = not known
	Why       string // one sentence, without secrets
	Since     time.Time
	NextProbe time.Time
	Kinds     map[string]Held // by kind
	Webhooks  []Webhook       // shown to those who see everything

	// Answers so far, by how they came, and requests sent upstream.
	Warm, Stale, Cold, Composed, Coalesced, Upstream int64
	// Ours and Theirs are recent answer times, oldest first.
	Ours, Theirs []time.Duration
	// OurTimes and TheirTimes sum up all answer times since the start, and Times
	// upstream's by kind and reason; these are shown to those who see everything.
	OurTimes, TheirTimes Times
	Times                []Times
	// DropIn is the address programs use in upstream's stead.
	DropIn string
}

// Times sum up how long answers took. Everything may be zero.
type Times struct {
	Kind, Reason string // of upstream's; Kind "" = paths the spec does not name
	Answers      int64
	Lost         int64 // tries upstream was silent to

	Mean, Deviation, Min, Max, P50, P99 time.Duration
}

// Held is what is held of one kind.
type Held struct {
	Records  int64
	CaughtUp time.Time // until when nothing was missed; zero when not known
	Complete bool      // every record upstream has is held
	Why      string    // why it is not complete, in a few words; "" = nobody has looked
	// Done of Total records are walked by the sync that runs; Running is false
	// when none does, Total 0 when upstream does not tell.
	Running     bool
	Done, Total int64
	Walk        string        // which walk of how many, "1 of 2"; "" = the only one
	ETA         time.Duration // how long it may still take; 0 = not known
	Lists       []HeldList    // those of which it is known how well records tell what upstream says
}

// HeldList is how one list of a kind is answered, and how well records tell what
// upstream says.
type HeldList struct {
	Path, Title string // as the spec has them
	Records     bool   // it is made from records before upstream is asked
	Pinned      bool   // the settings say so, or that it is not
	// Equal samples in a row were without a difference; with Enough of them it
	// turns to records first.
	Equal, Enough      int64
	Samples, Differing int64
	Field, Where       string    // what differed last, and where; "" = nothing ever did
	Differed           time.Time // when
}

// Webhook is one receiver of changes.
type Webhook struct {
	Name   string
	State  string // "ok", "retrying" or "paused"
	Why    string // one sentence, without secrets
	Since  time.Time
	Behind int64 // changes it has not had yet
}

// homePage is what home.html shows: the jobs, and each source, are parts.
type homePage struct {
	Parts *parts
	Empty bool // the caller sees no source
}

// work counts the jobs.
type work struct{ Running, Waiting, Failed string }

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

type health struct {
	Tone, Word, Why string
	Since, Probe    *when
}

type kindView struct {
	Href, Title string
	Held        int64
	Complete    bool
	Why         string
	Sync        *bar // of the walk that runs
	CaughtUp    *when
	Pages       bool // kept as pages, not records: there is nothing to count
	Uncounted   bool // the caller finds some of them alone: how many are held is not told
}

// kindViews are kinds under a heading; "" are the main ones.
type kindViews struct {
	Title string
	Kinds []kindView
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

func snapshotOf(q *exchange, s *plan.Source) Snapshot {
	if q.v.Snapshot == nil {
		return Snapshot{}
	}
	return q.v.Snapshot(q.ctx, s.Name)
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

// kindGroups are the kinds of a source the caller may list.
func kindGroups(q *exchange, s *plan.Source, snap Snapshot) []kindViews {
	var all []kindViews
	for _, part := range (layout{q}).byGroup(s) {
		out := kindViews{Title: part.title}
		for _, k := range part.kinds {
			held := snap.Kinds[k.Name]
			v := kindView{
				Href: k.Href, Title: plan.UpperFirst(k.Title), Held: held.Records, Complete: held.Complete, CaughtUp: q.moment(held.CaughtUp), Pages: len(k.ID) == 0,
			}
			if !q.counts(k) {
				v.Held, v.Complete, v.CaughtUp, v.Uncounted = 0, false, nil, true
				out.Kinds = append(out.Kinds, v)
				continue
			}
			if !held.Complete {
				v.Why = held.Why
			}
			if held.Running {
				v.Sync = newBar(barTitle(k, held.Walk), held.Done, held.Total, "", held.ETA)
			}
			out.Kinds = append(out.Kinds, v)
		}
		all = append(all, out)
	}
	return all
}

// barTitle names the bar of a kind's sync.
func barTitle(k *plan.Kind, walk string) string {
	if walk == "" {
		return "Sync of " + k.Title
	}
	return "Sync of " + k.Title + ", walk " + walk
}

func (q *exchange) moment(t time.Time) *when {
	if t.IsZero() {
		return nil
	}
	w := say(t, q.start, q.zone, true)
	if rest, today := strings.CutPrefix(w.Text, "Today "); today {
		w.Text = rest
	}
	return &w
}

// healthOf says in words how upstream does.
func healthOf(q *exchange, s Snapshot) health {
	h := health{Why: s.Why, Since: q.moment(s.Since), Probe: q.moment(s.NextProbe)}
	switch s.State {
	case "ok":
		h.Tone, h.Word = "good", "Upstream answers"
	case "down":
		h.Tone, h.Word = "bad", "Upstream is down"
	case "credential":
		h.Tone, h.Word = "bad", "Upstream refuses our credential"
	case "limited":
		h.Tone, h.Word = "busy", "Upstream limits our rate"
	default:
		h.Tone, h.Word = "", "Upstream not asked yet"
	}
	return h
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
