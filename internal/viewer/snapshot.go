// Snapshot: how each source and the jobs do, asked at most once a second however
// many pages are read.

package viewer

import (
	"context"
	"sync"
	"time"
	"understudy"
	"understudy/internal/viewer/plan"
)

// bannerAge is how old what a page says of a source or of the jobs may be.
const bannerAge = time.Second

// lately remembers what was said last, by name. The zero value is ready.
type lately[T any] struct {
	mu   sync.Mutex
	last map[string]said[T]
}

type said[T any] struct {
	at   time.Time
	what T
}

// known is what was said last; fresh: it is at most bannerAge old.
func (l *lately[T]) known(name string, now time.Time) (what T, fresh bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k, ok := l.last[name]
	age := now.Sub(k.at)
	return k.what, ok && age >= 0 && age < bannerAge
}

func (l *lately[T]) keep(name string, now time.Time, what T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == nil {
		l.last = map[string]said[T]{}
	}
	l.last[name] = said[T]{now, what}
}

// snapshots are those of the sources.
type snapshots struct{ lately[Snapshot] }

// of is a source's snapshot, at most bannerAge old. A page that may wait no
// longer has the one before, if any.
func (c *snapshots) of(q *exchange, s *plan.Source) Snapshot {
	if snap, fresh := c.known(s.Name, q.start); fresh {
		return snap
	}
	asked := q.begin("how "+s.Name+" does", q.v.glance, func(ctx context.Context) error {
		c.ask(ctx, q, s)
		return nil
	})
	select {
	case <-asked.done:
	case <-q.soon.Done():
	}
	snap, _ := c.known(s.Name, q.start)
	return snap
}

// ask is a source's snapshot, at most bannerAge old.
func (c *snapshots) ask(ctx context.Context, q *exchange, s *plan.Source) Snapshot {
	if q.v.Snapshot == nil {
		return Snapshot{}
	}
	if snap, fresh := c.known(s.Name, q.start); fresh {
		return snap
	}
	snap := q.v.Snapshot(ctx, s.Name)
	if ctx.Err() == nil { // else it may lack something
		c.keep(s.Name, q.start, snap)
	}
	return snap
}

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

// work counts the jobs.
type work struct{ Running, Waiting, Failed string }

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

// bar is how far something has come.
type bar struct {
	Label       string // of what, for screen readers
	Done, Total int64  // Total 0: not known
	Text        string // "1,204 of 5,000"
	Note        string
	Left        string // "about 3 min left"
}

// newBar says how far work has come; left is how long it may still take, 0 when
// nobody knows.
func newBar(label string, done, total int64, note string, left time.Duration) *bar {
	b := &bar{Label: label, Done: done, Total: max(total, 0), Text: thousands(done), Note: note}
	if total > 0 {
		b.Done = min(done, total)
		b.Text += " of " + thousands(total)
	}
	if left > 0 {
		b.Left = "about " + longAgo(left) + " left"
	}
	return b
}

// barTitle names the bar of a kind's sync.
func barTitle(k *plan.Kind, walk string) string {
	if walk == "" {
		return "Sync of " + k.Title
	}
	return "Sync of " + k.Title + ", walk " + walk
}

func snapshotOf(q *exchange, s *plan.Source) Snapshot {
	if q.v.Snapshot == nil {
		return Snapshot{}
	}
	return q.v.Snapshot(q.ctx, s.Name)
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

// timeRow is a row of the table of answer times.
type timeRow struct {
	Who, Reason                string
	Answers, Lost              int64
	Mean, Range, Half, Slowest string
}

func newTimeRow(who, reason string, t Times) timeRow {
	row := timeRow{Who: who, Reason: reason, Answers: t.Answers, Lost: t.Lost}
	if t.Answers > 0 {
		row.Mean, row.Range = millis(t.Mean)+" ± "+millis(t.Deviation), millis(t.Min)+" – "+millis(t.Max)
		row.Half, row.Slowest = millis(t.P50), millis(t.P99)
	}
	return row
}

// Usual is how long upstream takes for the page's kind, to answer readers that wait
// when that is known, and otherwise for all of the source; nil for a caller who does
// not see everything, when it is not known, and on lists, whose bytes on the wire
// are few.
func (f footer) Usual() *timeRow {
	q := f.q
	list := q.kind != nil && q.r.PathValue("id") == ""
	if q.source == nil || list || q.caller.Role() != understudy.RoleAll {
		return nil
	}
	snap, _ := q.v.snapshots.known(q.source.Name, q.start)
	of, who := snap.TheirTimes, q.source.Spec.Title
	for _, t := range snap.Times {
		if q.kind != nil && t.Kind == q.kind.Name && t.Answers > 0 && (of.Kind == "" || t.Reason == understudy.Waiting.String()) {
			of, who = t, plan.UpperFirst(q.kind.Title)
		}
	}
	if of.Answers == 0 {
		return nil
	}
	row := newTimeRow(who, of.Reason, of)
	return &row
}
