// Snapshots: the state of each source, read at most once a second for all pages together.

package page

import (
	"cmp"
	"context"
	"sync"
	"time"

	"understudy/internal/viewer/plan"
	"understudy/request"
)

// maxSnapshotAge is how old the state of a source on a page may be.
const maxSnapshotAge = time.Second

// snapshots are the newest snapshot of each source, by name. The zero value is ready to use.
type snapshots struct {
	mu   sync.Mutex
	last map[string]timedSnapshot
}

type timedSnapshot struct {
	at   time.Time
	what Snapshot
}

// lastSnapshot returns the newest snapshot of a source. fresh is true if it is less than maxSnapshotAge old.
func (c *snapshots) lastSnapshot(name string, now time.Time) (what Snapshot, fresh bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	last, ok := c.last[name]
	age := now.Sub(last.at)
	return last.what, ok && age >= 0 && age < maxSnapshotAge
}

// Get returns a source's snapshot, less than maxSnapshotAge old. A page that may wait no longer gets the previous
// snapshot, if there is one.
func (c *snapshots) Get(q *Exchange, s *plan.Source) Snapshot {
	if snap, fresh := c.lastSnapshot(s.Name, q.Clock.Start); fresh {
		return snap
	}
	asked := q.Tasks.Begin("how "+s.Name+" does", q.V.PartTimeout, func(ctx context.Context) error {
		c.Ask(ctx, q, s)
		return nil
	})
	select {
	case <-asked.done:
	case <-q.Tasks.partsWait.Done():
	}
	snap, _ := c.lastSnapshot(s.Name, q.Clock.Start)
	return snap
}

// Ask returns a source's snapshot, less than maxSnapshotAge old.
func (c *snapshots) Ask(ctx context.Context, q *Exchange, s *plan.Source) Snapshot {
	if snap, fresh := c.lastSnapshot(s.Name, q.Clock.Start); fresh {
		return snap
	}
	snap := q.V.Options.Snapshot(ctx, s.Name)
	if ctx.Err() == nil { // a snapshot that was interrupted may be incomplete
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
	Why       string // the reason for the state in one sentence, without secrets
	Since     time.Time
	NextProbe time.Time
	Kinds     map[string]StoredKind // the stored records of each kind
	Webhooks  []request.Webhook     // the receivers of changes, shown only to callers that see everything

	Day       Day
	Requests  RequestCounts
	Latencies Latencies
	// DropIn is the address that programs use instead of upstream's.
	DropIn string
}

// Day counts the answers to readers in the last 24 hours by their origin, and the requests to upstream. Readers are
// the requests that somebody waited for, Walks those of full syncs, and Upstream all requests.
type Day struct {
	Warm, Stale, Cold, Composed, Readers, Walks, Upstream int64
}

// RequestCounts counts the requests to upstream.
type RequestCounts struct {
	Upstream int64 // the number of requests sent since the start
	// AtOnce is how many requests may run at once, and AtOnceWhy says what limits them, or is empty if the settings
	// do.
	AtOnce    int
	AtOnceWhy string
}

// Latencies has recent answer times, and summaries of all answer times.
type Latencies struct {
	// StoredDurations are the times of recent answers from the store, and UpstreamDurations those of upstream's recent answers, oldest
	// first.
	StoredDurations, UpstreamDurations []time.Duration
	// StoredTimes summarize the answers to programs from the store since the start, ColdTimes those that needed
	// upstream. UpstreamTimes summarize all of upstream's answers, and Times the same by kind and reason.
	StoredTimes, ColdTimes, UpstreamTimes Times
	Times                                 []Times
}

const (
	minCompared   = 30               // the number of answers that a comparison needs
	minAnswerTime = time.Millisecond // the shortest time of an answer at the client; our own measurement leaves out the network
)

// Speedup returns how many times faster stored answers were than upstream's, at the median, such as "1,200". It
// returns "" if there are too few answers, or if they were less than twice as fast.
func (l *Latencies) Speedup() string {
	ours := max(l.StoredTimes.P50, minAnswerTime)
	if l.StoredTimes.Answers < minCompared || l.UpstreamTimes.P50 < 2*ours {
		return ""
	}
	return Thousands(int64(l.UpstreamTimes.P50 / ours))
}

// Times summarizes how long answers took. Every field may be zero.
type Times struct {
	Kind, Reason string // times of upstream's answers; Kind is empty for paths that the spec does not name
	Answers      int64
	Unanswered   int64 // the number of requests without an answer

	Mean, Deviation, Min, Max, P50, P99 time.Duration
}

// StoredKind describes the stored records of one kind.
type StoredKind struct {
	Records  int64
	CaughtUp time.Time // the moment until which no change is missing; zero if it is not known
	Complete bool      // every record of upstream is stored
	Why      string    // a short reason why Complete is false; empty if nothing has been checked yet
	// Running reports whether a full sync is running. It has read Done of Total records; Total is 0 if upstream
	// does not say it.
	Running     bool
	Done, Total int64
	Walk        string              // the number of the current walk, such as "1 of 2"; empty if there is only one
	ETA         time.Duration       // the estimated time until the end of the sync; 0 if it is not known
	Lists       []request.ListScore // the lists for which it is known how often answers from records equal upstream's
}

// Health is the state of a source in words.
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
	StoredAsPages bool // stored as pages, not records, so there is no count
	CountHidden   bool // the caller may find only some of the records, so their number is not shown
}

// KindViews is a group of kinds with a heading. The main kinds have none.
type KindViews struct {
	Title string
	Kinds []kindView
}

// Bar is a progress bar.
type Bar struct {
	Label       string // the name of the work in progress, for screen readers
	Done, Total int64  // Total is 0 if it is not known
	Text        string // the progress in words, such as "1,204 of 5,000"
	Note        string
	TimeLeft    string // the estimated remaining time, such as "about 3 min left"
}

// NewBar returns a progress bar. left is the estimated time until the end, or 0 if it is not known.
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

// barTitle returns the label of the progress bar of a kind's sync.
func barTitle(k *plan.Kind, walk string) string {
	if walk == "" {
		return "Sync of " + k.Spec.Title
	}
	return "Sync of " + k.Spec.Title + ", pass " + walk
}

// KindGroups returns the kinds of a source that the caller may list.
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
				v.Sync = NewBar(barTitle(k, held.Walk), held.Done, held.Total, "", held.ETA)
			}
			out.Kinds = append(out.Kinds, v)
		}
		all = append(all, out)
	}
	return all
}

// healths are the tone of each state of upstream, and its text after the title of the API.
var healths = map[string][2]string{
	"ok": {"good", " is online"}, "down": {"bad", " is down"},
	"credential": {"bad", " refuses our credential"}, "limited": {"busy", " limits our request rate"},
}

// HealthOf returns the state of upstream in words. The title is that of its API.
func (c *Clock) HealthOf(s Snapshot, title string) Health {
	h := Health{Why: s.Why, Since: c.Moment(s.Since), Probe: c.Moment(s.NextProbe)}
	h.Tone, h.Word = healths[s.State][0], title+cmp.Or(healths[s.State][1], " has not been contacted yet")
	return h
}

// WebhookTone returns the tone of a webhook's state.
func WebhookTone(state string) string {
	return cmp.Or(map[string]string{"ok": "good", "paused": "bad"}[state], "busy")
}
