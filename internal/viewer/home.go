// Home: what is held of each source, how fresh it is, and how its upstream does.

package viewer

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Snapshot is what is known of a source at one moment. Everything may be zero.
type Snapshot struct {
	State     string // "ok", "down", "credential" or "limited"; "" = not known
	Why       string // one sentence, without secrets
	Since     time.Time
	NextProbe time.Time
	Kinds     map[string]Held // by kind

	// Answers so far, by how they came, and requests sent upstream.
	Warm, Stale, Cold, Composed, Coalesced, Upstream int64
	// Ours and Theirs are recent answer times, oldest first.
	Ours, Theirs []time.Duration
	// DropIn is the address programs use in upstream's stead.
	DropIn string
}

// Held is what is held of one kind.
type Held struct {
	Records  int64
	CaughtUp time.Time // until when nothing was missed; zero when not known
	Complete bool      // every record upstream has is held
}

// homePage is what home.html shows.
type homePage struct{ Sources []sourceView }

type sourceView struct {
	Name, Title string
	Health      health
	Groups      []kindViews
	Chart       *chart
	Answers     []share
	Total       int64
	Saved       int64
	Upstream    int64
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
	CaughtUp    *when
	Pages       bool // kept as pages, not records: there is nothing to count
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

// home shows every source the caller may ask.
func (v *Viewer) home(q *visit) error {
	if q.r.URL.RawQuery != "" {
		name, _, _ := strings.Cut(q.r.URL.RawQuery, "=")
		return badRequest("There is no parameter “"+clip(name)+"” here", "The home page takes none.", nil)
	}
	if q.json {
		return q.homeData()
	}
	var p homePage
	for _, s := range v.sources {
		if kinds := q.readable(s); len(kinds) > 0 {
			p.Sources = append(p.Sources, q.sourceView(s))
		}
	}
	return q.render(http.StatusOK, "home", "Home", p)
}

func (q *visit) snapshot(s *sourcePlan) Snapshot {
	if q.v.Snapshot == nil {
		return Snapshot{}
	}
	return q.v.Snapshot(q.ctx, s.Name)
}

func (q *visit) sourceView(s *sourcePlan) sourceView {
	snap := q.snapshot(s)
	out := sourceView{
		Name: s.Name, Title: s.Spec.Title, Health: q.health(snap), Groups: q.kindGroups(s, snap), Chart: newChart(snap.Ours, snap.Theirs),
		Saved: snap.Warm + snap.Stale + snap.Composed + snap.Coalesced, Upstream: snap.Upstream, DropIn: snap.DropIn,
	}
	out.Total = snap.Warm + snap.Stale + snap.Cold + snap.Composed
	x := 0.0
	for _, sh := range []share{{Word: "warm", Count: snap.Warm}, {Word: "stale", Count: snap.Stale}, {Word: "composed", Count: snap.Composed}, {Word: "cold", Count: snap.Cold}} {
		sh.Class = sh.Word
		if out.Total > 0 {
			sh.X, sh.Width = x, round(100*float64(sh.Count)/float64(out.Total))
			x += sh.Width
		}
		out.Answers = append(out.Answers, sh)
	}
	return out
}

// kindGroups are the kinds of a source the caller may list.
func (q *visit) kindGroups(s *sourcePlan, snap Snapshot) []kindViews {
	var all []kindViews
	for _, part := range q.byGroup(s) {
		out := kindViews{Title: part.title}
		for _, k := range part.kinds {
			held := snap.Kinds[k.Name]
			out.Kinds = append(out.Kinds, kindView{
				Href: k.href, Title: upperFirst(k.Title), Held: held.Records, Complete: held.Complete, CaughtUp: q.moment(held.CaughtUp), Pages: len(k.ID) == 0,
			})
		}
		all = append(all, out)
	}
	return all
}

func (q *visit) moment(t time.Time) *when {
	if t.IsZero() {
		return nil
	}
	w := say(t, q.start, q.zone, true)
	if rest, today := strings.CutPrefix(w.Text, "Today "); today {
		w.Text = rest
	}
	return &w
}

// health says in words how upstream does.
func (q *visit) health(s Snapshot) health {
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
func (q *visit) homeData() error {
	type kindData struct {
		Name     string     `json:"name"`
		Title    string     `json:"title"`
		Href     string     `json:"href"`
		Records  int64      `json:"records"`
		Complete bool       `json:"complete"`
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
		snap := q.snapshot(s)
		d := sourceData{s.Name, s.Spec.Title, snap.State, snap.Why, stamp(snap.Since), stamp(snap.NextProbe), snap.DropIn, nil}
		for _, k := range kinds {
			held := snap.Kinds[k.Name]
			d.Kinds = append(d.Kinds, kindData{k.Name, upperFirst(k.Title), k.href, held.Records, held.Complete, stamp(held.CaughtUp)})
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

// chart draws our answer times against upstream's on one logarithmic scale.
type chart struct {
	Ours, Theirs             string // points of the lines
	OursMedian, TheirsMedian string
	Times                    string // "2,400"; "" when there is nothing to compare
	Grid                     []gridLine
}

type gridLine struct {
	Y    float64
	Text string
}

// The chart's box and the answer times at its edges.
const (
	chartLeft, chartRight = 60.0, 596.0
	chartTop, chartBottom = 8.0, 132.0
	chartLow, chartHigh   = 100 * time.Microsecond, 10 * time.Second
	chartPoints           = 60
)

func newChart(ours, theirs []time.Duration) *chart {
	if len(ours) == 0 && len(theirs) == 0 {
		return nil
	}
	c := &chart{Ours: polyline(ours), Theirs: polyline(theirs), OursMedian: medianText(ours), TheirsMedian: medianText(theirs)}
	for _, g := range []struct {
		at   time.Duration
		text string
	}{{time.Millisecond, "1 ms"}, {10 * time.Millisecond, "10 ms"}, {100 * time.Millisecond, "100 ms"}, {time.Second, "1 s"}} {
		c.Grid = append(c.Grid, gridLine{chartY(g.at), g.text})
	}
	if a, b := median(ours), median(theirs); a > 0 && b >= 2*a {
		c.Times = thousands(int64(b / a))
	}
	return c
}

func polyline(times []time.Duration) string {
	if len(times) > chartPoints {
		times = times[len(times)-chartPoints:]
	}
	if len(times) == 1 {
		times = []time.Duration{times[0], times[0]}
	}
	var b strings.Builder
	for i, d := range times {
		x := chartLeft + (chartRight-chartLeft)*float64(i)/float64(len(times)-1)
		fmt.Fprintf(&b, "%g,%g ", round(x), chartY(d))
	}
	return strings.TrimSuffix(b.String(), " ")
}

func chartY(d time.Duration) float64 {
	low, high := math.Log(float64(chartLow)), math.Log(float64(chartHigh))
	at := math.Log(float64(min(max(d, chartLow), chartHigh)))
	return round(chartBottom - (chartBottom-chartTop)*(at-low)/(high-low))
}

func round(x float64) float64 { return math.Round(x*10) / 10 }

func median(times []time.Duration) time.Duration {
	if len(times) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(times))
	return s[len(s)/2]
}

func medianText(times []time.Duration) string {
	if len(times) == 0 {
		return ""
	}
	return millis(median(times))
}
