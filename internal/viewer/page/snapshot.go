// Snapshots: the state of each source, read at most once a second for all pages together.

package page

import (
	"cmp"
	"context"
	"time"

	"understudy/internal/viewer/plan"
	"understudy/kit/lockwatch"
	"understudy/request"
)

// maxSnapshotAge is the maximum age of the state of a source on a page.
const maxSnapshotAge = time.Second

// snapshots have the newest state of each source by its name. The zero value is ready to use.
type snapshots struct {
	mu   lockwatch.Mutex
	last map[string]timedSnapshot
}

type timedSnapshot struct {
	at       time.Time
	snapshot Snapshot
}

// lastSnapshot returns the newest stored snapshot of a source. fresh is true if the snapshot is younger than maxSnapshotAge.
func (c *snapshots) lastSnapshot(name string, now time.Time) (what Snapshot, fresh bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	last, ok := c.last[name]
	age := now.Sub(last.at)
	return last.snapshot, ok && age >= 0 && age < maxSnapshotAge
}

// Get returns the state of a source, which is less than maxSnapshotAge old. If the page can't wait any longer, Get
// returns an older snapshot if there is one.
func (c *snapshots) Get(q *Exchange, s *plan.Source) Snapshot {
	if snap, fresh := c.lastSnapshot(s.Name, q.Clock.Start); fresh {
		return snap
	}
	asked := q.Tasks.Begin("how "+s.Name+" does", q.V.PartTimeout, func(ctx context.Context) error {
		c.ReadFresh(ctx, q, s)
		return nil
	})
	select {
	case <-asked.done:
	case <-q.Tasks.partsWait.Done():
	}
	snap, _ := c.lastSnapshot(s.Name, q.Clock.Start)
	return snap
}

// ReadFresh returns the state of a source, which is less than maxSnapshotAge old.
func (c *snapshots) ReadFresh(ctx context.Context, q *Exchange, s *plan.Source) Snapshot {
	if snap, fresh := c.lastSnapshot(s.Name, q.Clock.Start); fresh {
		return snap
	}
	snap := q.V.Options.Snapshot(ctx, s.Name)
	if ctx.Err() == nil { // a snapshot may be incomplete if its context ended
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.last == nil {
			c.last = map[string]timedSnapshot{}
		}
		c.last[s.Name] = timedSnapshot{q.Clock.Start, snap}
	}
	return snap
}

// Snapshot is the state of a source at one moment. Every field may be zero.
type Snapshot struct {
	State     string // "ok", "down", "credential" or "limited"; empty if it is not known
	Why       string // a sentence without secrets that says why the source has this state
	Since     time.Time
	NextProbe time.Time
	Kinds     map[string]StoredKind // the stored records of each kind
	Webhooks  []request.Webhook     // the webhooks that receive changes, shown only to callers who may see everything

	Day       Day
	Requests  RequestCounts
	Latencies Latencies
	// DropIn is the address of this server that programs use in place of upstream's.
	DropIn string
}

// Day counts, for the last 24 hours, the answers to readers by their origin and the requests to upstream. Upstream
// counts all requests, Readers those for which somebody waited, and Walks those of full syncs.
type Day struct {
	Warm, Stale, Cold, Composed, Readers, Walks, Upstream int64
}

// RequestCounts counts the requests to upstream.
type RequestCounts struct {
	Upstream int64 // the number of requests sent since the start
	// AtOnce is the maximum number of requests that may run at the same time. AtOnceWhy says what limits it; it is
	// empty if the settings do.
	AtOnce    int
	AtOnceWhy string
}

// Latencies has the times of recent answers, and summaries of the times of all answers.
type Latencies struct {
	// StoredDurations are the times of recent answers from the store, and UpstreamDurations those of recent answers
	// from upstream. Both begin with the oldest answer.
	StoredDurations, UpstreamDurations []time.Duration
	// StoredTimes summarize all answers to programs from the store since the start, and ColdTimes all answers to programs that
	// needed upstream. UpstreamTimes summarize all answers from upstream, and Times do so by kind and reason.
	StoredTimes, ColdTimes, UpstreamTimes Times
	Times                                 []Times
}

const (
	minComparedAnswers = 30 // the number of answers without which no comparison with upstream is shown
	// shorter answers count as this long, because the network, which we do not measure, adds to them at the client
	minAnswerTime = time.Millisecond
)

// Speedup returns how many times faster stored answers are than upstream's, by their medians, such as "1,200". It
// returns "" if there are fewer than minComparedAnswers answers, or if stored answers are not twice as fast.
func (l *Latencies) Speedup() string {
	ours := max(l.StoredTimes.P50, minAnswerTime)
	if l.StoredTimes.Answers < minComparedAnswers || l.UpstreamTimes.P50 < 2*ours {
		return ""
	}
	return Thousands(int64(l.UpstreamTimes.P50 / ours))
}

// Times summarizes how long some answers took. Every field may be zero.
type Times struct {
	Kind, Reason string // which answers of upstream these are; Kind is empty for paths that the spec does not name
	Answers      int64
	Unanswered   int64 // the number of requests that upstream did not answer

	Mean, Deviation, Min, Max, P50, P99 time.Duration
}

// StoredKind describes the stored records of one kind.
type StoredKind struct {
	Records  int64
	CaughtUp time.Time // until this moment, no change of upstream's is missing; zero if it is not known
	Complete bool      // whether all of upstream's records of the kind are stored
	Why      string    // why Complete is false, in a few words; empty if nothing has been checked yet
	// Running reports whether a full sync is running. The sync has read Done of Total records. Total is 0 if upstream
	// does not say how many there are.
	Running     bool
	Done, Total int64
	Walk        string              // which of the sync's passes over the list is running, such as "1 of 2"; empty if there is only one
	ETA         time.Duration       // how long the sync will still take, by estimate; 0 if it is not known
	Lists       []request.ListScore // for each list that is checked: how often an answer composed from records equals upstream's answer
}

// Health is the state of a source in words for the reader.
type Health struct {
	Tone, Word, Why string
	Since, Probe    *When
}

type kindView struct {
	Href, Title   string
	Stored        int64
	Complete      bool
	Why           string
	Sync          *Bar // the progress of the full sync
	CaughtUp      *When
	StoredAsPages bool // whether upstream's pages are stored but not their records, so that there is no number of records
	CountHidden   bool // whether the number of records is hidden, because the caller may see only some of them
}

// KindViews is a group of kinds with a heading. The group of the main kinds has no heading.
type KindViews struct {
	Title string
	Kinds []kindView
}

// Bar is a progress bar.
type Bar struct {
	Label       string // the name of the work in progress, for screen readers
	Done, Total int64  // the finished and the whole work; Total is 0 if it is not known
	Text        string // the progress in words, such as "1,204 of 5,000"
	Note        string
	TimeLeft    string // the estimated remaining time, such as "about 3 min left"
}

// NewBar returns a progress bar. left is the estimated time until the work is done, or 0 if it is not known.
func NewBar(label string, done, total int64, note string, left time.Duration) *Bar {
	b := &Bar{Label: label, Done: done, Total: max(total, 0), Text: Thousands(done), Note: note}
	if total > 0 {
		b.Done = min(done, total)
		b.Text += " of " + Thousands(total)
	}
	if left > 0 {
		b.TimeLeft = "about " + FormatDuration(left) + " left"
	}
	return b
}

// KindGroups returns the kinds of a source that the caller may list, in groups and with the number of their records.
func (r *Rights) KindGroups(s *plan.Source, snap *Snapshot, c *Clock) []KindViews {
	var all []KindViews
	for _, part := range r.groupKinds(s) {
		out := KindViews{Title: part.title}
		for _, k := range part.kinds {
			held := snap.Kinds[k.Spec.Name]
			v := kindView{
				Href: k.Href, Title: plan.UpperFirst(k.Spec.Title), Stored: held.Records, Complete: held.Complete,
				CaughtUp: c.Moment(held.CaughtUp), StoredAsPages: len(k.Spec.ID) == 0,
			}
			if !r.CanCount(k) {
				v.Stored, v.Complete, v.CaughtUp, v.CountHidden = 0, false, nil, true
				out.Kinds = append(out.Kinds, v)
				continue
			}
			if !held.Complete {
				v.Why = held.Why
			}
			if held.Running {
				title := "Sync of " + k.Spec.Title
				if held.Walk != "" {
					title += ", pass " + held.Walk
				}
				v.Sync = NewBar(title, held.Done, held.Total, "", held.ETA)
			}
			out.Kinds = append(out.Kinds, v)
		}
		all = append(all, out)
	}
	return all
}

// healthTexts has the texts for the states of upstream: the tone (a CSS class), and what the page says after the API's name.
var healthTexts = map[string][2]string{
	"ok": {"good", " is online"}, "down": {"bad", " is down"},
	"credential": {"bad", " refuses our credential"}, "limited": {"busy", " limits our request rate"},
}

// HealthOf returns the state of a source in words. title is the name of the source's API.
func (c *Clock) HealthOf(s Snapshot, title string) Health {
	h := Health{Why: s.Why, Since: c.Moment(s.Since), Probe: c.Moment(s.NextProbe)}
	h.Tone, h.Word = healthTexts[s.State][0], title+cmp.Or(healthTexts[s.State][1], " has not been contacted yet")
	return h
}

// WebhookTone returns the tone (a CSS class) for the state of a webhook.
func WebhookTone(state string) string {
	return cmp.Or(map[string]string{"ok": "good", "paused": "bad"}[state], "busy")
}
