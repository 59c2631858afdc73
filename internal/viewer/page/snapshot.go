// Snapshot: how each source and the jobs do, asked at most once a second however
// many pages are read.

package page

import (
	"cmp"
	"context"
	"sync"
	"time"

	"understudy/internal/viewer/plan"
	"understudy/request"
)

// bannerAge is how old what a page says of a source or of the jobs may be.
const bannerAge = time.Second

// snapshots are the last of each source, by its name. The zero value is ready.
type snapshots struct {
	mu   sync.Mutex
	last map[string]timedSnapshot
}

type timedSnapshot struct {
	at   time.Time
	what Snapshot
}

// known returns the last snapshot of a source; fresh: it is at most bannerAge old.
func (c *snapshots) known(name string, now time.Time) (what Snapshot, fresh bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	last, ok := c.last[name]
	age := now.Sub(last.at)
	return last.what, ok && age >= 0 && age < bannerAge
}

// Of is a source's snapshot, at most bannerAge old. A page that may wait no
// longer has the one before, if any.
func (c *snapshots) Of(q *Exchange, s *plan.Source) Snapshot {
	if snap, fresh := c.known(s.Name, q.Clock.Start); fresh {
		return snap
	}
	asked := q.Tasks.Begin("how "+s.Name+" does", q.V.Glance, func(ctx context.Context) error {
		c.Ask(ctx, q, s)
		return nil
	})
	select {
	case <-asked.done:
	case <-q.Tasks.soon.Done():
	}
	snap, _ := c.known(s.Name, q.Clock.Start)
	return snap
}

// Ask is a source's snapshot, at most bannerAge old.
func (c *snapshots) Ask(ctx context.Context, q *Exchange, s *plan.Source) Snapshot {
	if snap, fresh := c.known(s.Name, q.Clock.Start); fresh {
		return snap
	}
	snap := q.V.Options.Snapshot(ctx, s.Name)
	if ctx.Err() == nil { // else it may lack something
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.last == nil {
			c.last = map[string]timedSnapshot{}
		}
		c.last[s.Name] = timedSnapshot{q.Clock.Start, snap}
	}
	return snap
}

// Snapshot is what is known of a source at one moment. Everything may be zero.
type Snapshot struct {
	State     string // "ok", "down", "credential" or "limited"; "" = not known
	Why       string // one sentence, without secrets
	Since     time.Time
	NextProbe time.Time
	Kinds     map[string]Held   // by kind
	Webhooks  []request.Webhook // shown to those who see everything

	Day       Day
	Sending   Sending
	Latencies Latencies
	// DropIn is the address programs use in upstream's stead.
	DropIn string
}

// Day counts the answers to readers in the last 24 hours, by how they came, and the requests sent
// upstream: Readers those for which somebody waited, Walks those of walks through all records,
// Upstream all.
type Day struct {
	Warm, Stale, Cold, Composed, Readers, Walks, Upstream int64
}

// Sending are requests to upstream.
type Sending struct {
	Upstream int64 // sent since the start
	// AtOnce is how many of those go out at once at most, and AtOnceWhy what bounds them; "": the settings.
	AtOnce    int
	AtOnceWhy string
}

// Latencies are recent answer times and sums of all.
type Latencies struct {
	// Ours are recent answers from what is held, Theirs recent ones of upstream, oldest first.
	Ours, Theirs []time.Duration
	// HeldTimes sum up the answers to programs from what is held since the start, AskedTimes those that
	// upstream was asked for, TheirTimes all of upstream's, and Times these by kind and reason.
	HeldTimes, AskedTimes, TheirTimes Times
	Times                             []Times
}

const (
	leastCompared  = 30               // answers that make a comparison
	leastOfNetwork = time.Millisecond // what an answer takes at least where it is read: our times end at our door
)

// Faster is how many times faster than upstream's answers those from what is held were, at the
// median: "1,200". "" where too few answers came, or they were not twice as fast.
func (l *Latencies) Faster() string {
	ours := max(l.HeldTimes.P50, leastOfNetwork)
	if l.HeldTimes.Answers < leastCompared || l.TheirTimes.P50 < 2*ours {
		return ""
	}
	return Thousands(int64(l.TheirTimes.P50 / ours))
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
	Why      string    // why it is not complete, in a few words; "" = not looked at yet
	// Done of Total records are walked by the sync that runs; Running is false
	// when none does, Total 0 when upstream does not tell.
	Running     bool
	Done, Total int64
	Walk        string              // which walk of how many, "1 of 2"; "" = the only one
	ETA         time.Duration       // how long it may still take; 0 = not known
	Lists       []request.ListScore // those of which it is known how well records tell what upstream says
}

// Health is how a source does, in words.
type Health struct {
	Tone, Word, Why string
	Since, Probe    *When
}

type kindView struct {
	Href, Title string
	Held        int64
	Complete    bool
	Why         string
	Sync        *Bar // of the walk that runs
	CaughtUp    *When
	Pages       bool // kept as pages, not records: there is nothing to count
	Uncounted   bool // the caller finds some of them alone: how many are held is not told
}

// KindViews are kinds under a heading; "" are the main ones.
type KindViews struct {
	Title string
	Kinds []kindView
}

// Bar is how far something has come.
type Bar struct {
	Label       string // of what, for screen readers
	Done, Total int64  // Total 0: not known
	Text        string // "1,204 of 5,000"
	Note        string
	Left        string // "about 3 min left"
}

// NewBar says how far work has come; left is how long it may still take, 0 when
// that is not known.
func NewBar(label string, done, total int64, note string, left time.Duration) *Bar {
	b := &Bar{Label: label, Done: done, Total: max(total, 0), Text: Thousands(done), Note: note}
	if total > 0 {
		b.Done = min(done, total)
		b.Text += " of " + Thousands(total)
	}
	if left > 0 {
		b.Left = "about " + LongAgo(left) + " left"
	}
	return b
}

// barTitle names the bar of a kind's sync.
func barTitle(k *plan.Kind, walk string) string {
	if walk == "" {
		return "Sync of " + k.Spec.Title
	}
	return "Sync of " + k.Spec.Title + ", walk " + walk
}

// KindGroups are the kinds of a source the caller may list.
func (r *Rights) KindGroups(s *plan.Source, snap *Snapshot, c *Clock) []KindViews {
	var all []KindViews
	for _, part := range r.byGroup(s) {
		out := KindViews{Title: part.title}
		for _, k := range part.kinds {
			held := snap.Kinds[k.Spec.Name]
			v := kindView{
				Href: k.Href, Title: plan.UpperFirst(k.Spec.Title), Held: held.Records, Complete: held.Complete,
				CaughtUp: c.Moment(held.CaughtUp), Pages: len(k.Spec.ID) == 0,
			}
			if !r.Counts(k) {
				v.Held, v.Complete, v.CaughtUp, v.Uncounted = 0, false, nil, true
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

// healths are the tones and the words of upstream's states.
var healths = map[string][2]string{
	"ok": {"good", "Upstream answers"}, "down": {"bad", "Upstream is down"},
	"credential": {"bad", "Upstream refuses our credential"}, "limited": {"busy", "Upstream limits our rate"},
}

// HealthOf says in words how upstream does.
func (c *Clock) HealthOf(s Snapshot) Health {
	h := Health{Why: s.Why, Since: c.Moment(s.Since), Probe: c.Moment(s.NextProbe)}
	if h.Tone, h.Word = healths[s.State][0], healths[s.State][1]; h.Word == "" {
		h.Word = "Upstream not asked yet"
	}
	return h
}

// WebhookTone returns the tone of the state of a webhook.
func WebhookTone(state string) string {
	return cmp.Or(map[string]string{"ok": "good", "paused": "bad"}[state], "busy")
}
