// This file collects the counters of all packages for /-/stats and metrics.

package app

import (
	"cmp"
	"context"
	"log/slog"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"understudy"
	"understudy/internal/app/lastday"
	"understudy/internal/app/operations"
	"understudy/internal/callers"
	"understudy/internal/config"
	"understudy/internal/crawl"
	"understudy/internal/diagnostics"
	"understudy/internal/feed"
	"understudy/internal/fleet"
	"understudy/internal/jobs"
	"understudy/internal/store"
	"understudy/internal/store/contents"
	"understudy/kit/limiter"
	"understudy/kit/onlinestat"
	"understudy/mirror"
	"understudy/request"
	"understudy/spec"
	"understudy/upstream"
)

// figures reads the counters of all packages.
type figures struct {
	started  *config.Settings
	settings *liveSettings
	log      *slog.Logger
	sources  []*spec.Source
	clients  map[string]*upstream.Client
	db       *store.DB
	files    contents.Store
	mirror   *mirror.Mirror
	fleet    *fleet.Fleet // the processes on the same database; nil if there can be no others
	crawler  *crawl.Crawler
	jobs     *jobs.Runner
	feed     *feed.Feed
	archiver *operations.Archiver
	audit    auditLog // the audit log; nil if nothing is recorded
	ports    *ports
	names    *callers.Names
	exports  *exports
	inForce  func() *handlerSet
	traffic  *traffic
	// uncounted is true if the home page could not count the records. The error is logged only once.
	uncounted atomic.Bool
}

// newFigures returns a figures with the saved counts of the last day.
func (a *App) newFigures(ctx context.Context, e *enforcer, changes *feed.Feed) *figures {
	t := &traffic{recent: map[string]*recent{}, refusedWrites: map[string]*atomic.Int64{}}
	var names []string
	for _, src := range a.sources {
		names = append(names, src.Name)
		t.recent[src.Name], t.refusedWrites[src.Name] = newRecent(), &atomic.Int64{}
	}
	t.day = lastday.New(ctx, lastday.Options{KV: a.db.KV, Sources: names, Now: time.Now, Log: a.log, Read: func(source string) lastday.Counts {
		m, c := a.mirror.Stats(source), a.clients[source].Stats()
		return lastday.Counts{Warm: m.Warm, Stale: m.Stale, Cold: m.Cold, Composed: m.Composed,
			Readers: c.ByReason[request.ReasonWaiting], Walks: c.ByReason[request.ReasonSync], Upstream: c.Requests}
	}})
	return &figures{started: a.opts.Settings, settings: a.settings, log: a.log, sources: a.sources, clients: a.clients, db: a.db,
		files: a.files, mirror: a.mirror, fleet: a.saved.fleet, crawler: a.crawler, jobs: a.jobs, feed: changes, ports: a.ports,
		archiver: &a.eraser.Archiver, audit: a.audit,
		names: a.policies.visitors.names, exports: e.exports, inForce: e.current.Load, traffic: t}
}

// checkStore returns an error if the store cannot be read.
func (h *figures) checkStore(ctx context.Context) error {
	_, err := h.db.ReadKinds(ctx, h.sources[0].Name)
	return err
}

// readSnapshot collects the counters of all packages. If the store cannot be read, it returns an error together with the
// counters that are in memory.
func (h *figures) readSnapshot(ctx context.Context) (diagnostics.Snapshot, error) {
	s := diagnostics.Snapshot{
		Sources:      map[string]diagnostics.Source{},
		Limits:       h.limits(),
		Ports:        h.ports.loads(),
		Process:      readProcess(),
		Settings:     h.settings.status(),
		LogMoved:     h.ports.file != nil && h.ports.file.IsMoved(),
		Certificates: h.ports.tls.States(),
	}
	s.Nodes, _ = h.readNodes()
	space, failed := h.db.MeasureSpace(ctx)
	s.Store = space
	s.Store.Trouble = h.mirror.Stats(h.sources[0].Name).Trouble
	if s.Store.Damaged {
		s.Store.Trouble = understudy.ErrDamaged.Error()
	}
	files := h.files.Stats()
	s.Media = request.Media{Files: files.Files, Bytes: files.Bytes, Limit: files.Limit, FileLimit: files.MaxContentBytes,
		Evicted: files.Evicted, Forgotten: files.Forgotten}
	for _, src := range h.sources {
		m, c, health := h.mirror.Stats(src.Name), h.clients[src.Name].Stats(), h.clients[src.Name].Health()
		traffic := diagnostics.Traffic{Requests: m.Requests, Warm: m.Warm, Stale: m.Stale, Cold: m.Cold, Composed: m.Composed,
			Coalesced: m.Coalesced, NotStored: m.NotStored, Upstream: c}
		s.Hot = m.Hot
		s.Media.Add(&m.Media)
		s.Add(&traffic)
		held, err := h.readKinds(ctx, src, m.CaughtUp)
		failed = cmp.Or(failed, err)
		s.Sources[src.Name] = diagnostics.Source{
			State: health.State, Why: health.Why, Since: health.Since.UTC(), NextProbe: health.NextProbe.UTC(), Kinds: held,
			Limits: h.sourceLimits(src.Name, c), Times: h.times(src.Name), Spent: h.hourlySpending(src.Name), Traffic: traffic,
			Use: h.use(src.Name, traffic),
		}
	}
	if h.audit != nil {
		s.Audit = new(h.audit.Stats())
	}
	waiting, err := h.db.Eraser.CountWaiting(ctx)
	s.Erasing, failed = waiting, cmp.Or(failed, err)
	n, err := h.jobs.CountJobs(ctx)
	s.Jobs = h.jobs.Stats()
	s.Jobs.Waiting, s.Jobs.Running, s.Jobs.Archived = n.Waiting, n.Running, n.Archived
	s.Webhooks, failed = h.feed.Webhooks(), cmp.Or(failed, err)
	if h.archiver.Schedule.To != "" {
		last, err := h.archiver.ReadLast(ctx)
		s.Backup, failed = &last, cmp.Or(failed, err)
	}
	return s, failed
}

// readKinds returns the figures of a source's kinds.
func (h *figures) readKinds(ctx context.Context, src *spec.Source, caughtUp map[string]time.Time) (map[string]diagnostics.Kind, error) {
	kinds, err := h.db.ReadKinds(ctx, src.Name)
	if err != nil {
		return nil, err
	}
	held := map[string]diagnostics.Kind{}
	for _, k := range src.Spec.Kinds {
		held[k.Name] = diagnostics.Kind{CaughtUpTo: caughtUp[k.Name].UTC()}
	}
	for _, k := range kinds {
		kind := held[k.Kind]
		kind.Records = k.Records
		if sk := src.Spec.Kind(k.Kind); sk != nil && sk.Clock != "" {
			kind.NoClock = k.Unclocked
		}
		held[k.Kind] = kind
	}
	lists := h.mirror.Shadow().Scores(src.Name)
	for name, kind := range held {
		kind.Lists = knownScores(lists, name)
		if err := h.walkStats(ctx, src.Name, name, &kind); err != nil {
			return nil, err
		}
		held[name] = kind
	}
	return held, nil
}

// limits returns the limits of the whole process.
func (h *figures) limits() map[string]request.Load {
	l := h.mirror.Loads()
	out := map[string]request.Load{
		"waiters": l.Waiters, "waiters_each": l.PerFlow,
		"flights": l.Flights, "behind": l.Background, "hints": l.Hints, "lists": l.Lists,
		"feed_subscribers": h.feed.Load(), "unread": h.ports.unreadLoad(), "tracing": h.ports.tracer.Load(),
		"request_body": {Limit: int64(h.settings.current.Load().Limits.RequestBody), Refused: h.traffic.tooLarge.Load()},
	}
	for name, p := range map[string]*limiter.Limiter{"viewer_exports": h.exports.viewer, "search_exports": h.exports.search} {
		l := p.Load()
		out[name] = request.Load{Limit: int64(l.All), Now: int64(l.InUse), Refused: l.Refused}
		out[name+"_each"] = request.Load{Limit: int64(l.Each), Now: int64(l.Busiest), Refused: l.RefusedEach}
	}
	return out
}

// sourceLimits returns the limits of one source.
func (h *figures) sourceLimits(name string, c request.SentCounts) map[string]request.Load {
	q, writes := h.clients[name].Queue(), 0
	if d := h.inForce(); d != nil {
		writes = d.proxies[name].Writes()
	}
	limits := map[string]request.Load{
		"upstream": {},
		"queue": {Limit: int64(q.Limit), Now: int64(q.Now), Refused: q.Refused,
			OldestMS: q.Oldest.Milliseconds(), LongestMS: q.Longest.Milliseconds(),
			Reserve: math.Round(q.Reserve*100) / 100, AtOnce: q.AtOnce, Why: q.Why},
		"max_body": {Limit: config.MaxBody(h.started, name, os.ReadFile), Refused: c.TooLarge},
		"writes":   {Limit: int64(h.settings.current.Load().Limits.Writes), Now: int64(writes), Refused: h.traffic.refusedWrites[name].Load()},
	}
	for i, w := range q.Windows {
		key := "upstream"
		if i > 0 {
			key += "." + w.LimitName
		}
		limits[key] = request.Load{Limit: w.Limit, Now: w.Left}
	}
	return limits
}

// readProcess returns the resources that the process uses. A value that can't be read is 0.
func readProcess() diagnostics.Process {
	p := diagnostics.Process{Goroutines: runtime.NumGoroutine()}
	if dir, err := os.Open("/proc/self/fd"); err == nil {
		if names, err := dir.Readdirnames(-1); err == nil {
			p.Descriptors = len(names) - 1 // the descriptor of the listed directory itself does not count
		}
		_ = dir.Close()
	}
	data, err := os.ReadFile("/proc/self/statm")
	if fields := strings.Fields(string(data)); err == nil && len(fields) > 1 {
		pages, _ := strconv.ParseInt(fields[1], 10, 64)
		p.Resident = pages * int64(os.Getpagesize())
	}
	return p
}

// knownScores returns the scores of a kind's lists. It leaves out lists that have no score yet.
func knownScores(all []request.ListScore, kind string) []request.ListScore {
	return slices.DeleteFunc(slices.Clone(all), func(s request.ListScore) bool { return s.Kind != kind || !s.IsNotable() })
}

// walkStats adds the state of a kind's walks to the figures of the kind.
func (h *figures) walkStats(ctx context.Context, source, kind string, k *diagnostics.Kind) error {
	s, err := h.crawler.ReadState(ctx, source, kind)
	if err != nil || !s.Kept {
		if crawl.IsNeverSynced(err) {
			err = nil
		}
		return err
	}
	r := s.Report()
	k.Complete, k.Why, k.Swept, k.Sync = r.Complete, r.Why, r.Swept, r.Progress
	if !r.CaughtUp.IsZero() {
		k.CaughtUpTo = r.CaughtUp
	}
	return nil
}

// times returns the response times of a source's upstream, by kind and reason of the request.
func (h *figures) times(source string) []diagnostics.Times {
	each, _ := h.clients[source].Times()
	out := make([]diagnostics.Times, 0, len(each))
	for _, t := range each {
		out = append(out, diagnostics.Times{Kind: t.Kind, Reason: t.Reason.String(), Answers: t.Whole.Count, Lost: t.Lost,
			First: milliseconds(t.First), Whole: milliseconds(t.Whole)})
	}
	return out
}

// use returns how a source was used since the process began.
func (h *figures) use(source string, t diagnostics.Traffic) *diagnostics.Use {
	r := h.traffic.recent[source]
	answered := func(of *onlinestat.Sharded) diagnostics.Answered {
		s := of.Stat().Summary()
		return diagnostics.Answered{Answers: s.Count, Whole: milliseconds(s)}
	}
	u := &diagnostics.Use{Traffic: t,
		Times:       map[string]diagnostics.Answered{"stored": answered(r.fromStore), "upstream": answered(r.fromUpstream)},
		Credentials: map[string]diagnostics.Credential{"": {Requests: r.strangers.Counts()}}}
	d := h.inForce()
	if d == nil {
		return u
	}
	for _, book := range []*callers.Book{d.policy.tunnelled, d.policy.book} { // the rates shown are those outside of tunnels
		for c := range book.Callers() {
			if c.Source != source {
				continue
			}
			one := diagnostics.Credential{Requests: c.Usage.Counts()}
			if rate, ok := book.Rate(c); ok {
				one.Rate, one.Left = &rate.Limit, &rate.Remaining
			}
			u.Credentials[c.Name] = one
		}
	}
	return u
}

// spending returns the requests that were recently sent to a source.
func (h *figures) spending(source string) []request.Spending {
	return h.clients[source].Spending(h.names.NameOf)
}

// hourlySpending returns how many requests were sent to a source in each hour of the last day.
func (h *figures) hourlySpending(source string) (out []request.Spending) {
	for _, one := range h.spending(source) {
		from := one.From.Truncate(time.Hour).UTC()
		if len(out) == 0 || !out[len(out)-1].From.Equal(from) {
			out = append(out, request.Spending{From: from})
		}
		out[len(out)-1].Add(&one)
	}
	return slices.DeleteFunc(out, func(s request.Spending) bool { return s.Requests() == 0 })
}

// milliseconds returns a summary of durations in seconds as milliseconds, rounded to the microsecond.
func milliseconds(s onlinestat.Summary) diagnostics.Spread {
	ms := func(seconds float64) float64 { return float64(int64(seconds*1e6+0.5)) / 1e3 }
	return diagnostics.Spread{Mean: ms(s.Mean), Deviation: ms(s.Deviation), Min: ms(s.Min), Max: ms(s.Max), Range: ms(s.Max - s.Min),
		P50: ms(s.P50), P99: ms(s.P99), Sum: int64(s.Mean*float64(s.Count)*1e6 + 0.5)}
}

// completeness returns whether all records of a kind are stored, and up to which time the kind is current.
func (h *figures) completeness(ctx context.Context, source, kind string) (complete bool, caughtUp time.Time) {
	if s, err := h.crawler.ReadStateUncounted(ctx, source, kind); err == nil && s.Kept {
		complete, caughtUp = s.Complete, s.CaughtUp
	}
	if caughtUp.IsZero() {
		caughtUp = h.mirror.Stats(source).CaughtUp[kind]
	}
	return complete, caughtUp
}
