// Composed lists: a list is made from stored records instead of being fetched.
//
// The plan says what is asked for and whether all records of the answer are stored. Then the records are read
// in order, one page is made, and the coverage is checked a second time.

package mirror

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/singleflight"

	"understudy"
	"understudy/internal/query"
	"understudy/mirror/compose"
	"understudy/request"
	"understudy/spec"
)

// composer makes lists from records.
type composer struct {
	env      *env
	flights  *flights
	holdings *holdings
	coverage Coverage           // nil if no list is covered
	records  compose.Store      // nil if the store cannot read records in order
	writes   func() int64       // the store's counter of writes; nil if it has none, then no list is reused
	group    singleflight.Group // shares the work on equal lists
	slots    chan struct{}      // limits how many lists are composed at once
}

// composePlan is the plan for one page of a list that can be made from records. Each plan is composed at most
// once.
type composePlan struct {
	source        *source
	kind          *kind
	target        *spec.Target
	local         *request.LocalQuery
	list          *compose.List
	seek          query.RecordQuery // the query for the records of the list
	timeDependent bool              // the list depends on the current time
	writes        int64             // the store's counter of writes before anything was read
	coverage      request.Coverage
	outdated      bool          // a write touched the kind, and its changes have not been seen yet
	timeLimit     time.Duration // the maximum time for composing before upstream is asked; 0 means Ages.Wait
	includeAbove  bool          // records newer than those of the newest page belong to the list
}

// hasNumberedPages reports whether the pages of the list are named by numbers. During an outage all such
// pages are made from records, so that no record is missing or repeated between pages.
func (p *composePlan) hasNumberedPages() bool {
	return p.target.Spec.PagingOf(p.target.List).IsSliding()
}

// composedList is the page made from a plan.
type composedList struct {
	page        *understudy.Page
	coverage    request.Coverage
	outdated    bool
	composeTime time.Duration
	plan        *composePlan // without the list; nil if the list must be composed anew each time
}

// planCompose plans how to make a list from records. A *compose.Refusal is upstream's own answer to an
// invalid request. It returns ErrNotMirrored if not all records are known to be stored, and ErrInvalid if the
// list is never made from records.
func (co *composer) planCompose(
	ctx context.Context, s *source, k *kind, t *spec.Target, localQuery *request.LocalQuery,
) (*composePlan, error) {
	switch {
	case co.coverage == nil || co.records == nil:
		return nil, &compose.Uncovered{Why: "nothing is walked here"}
	case t.List == nil || k.name == "":
		return nil, fmt.Errorf("%w: only lists of records are made from records", understudy.ErrInvalid)
	}
	if !s.config.CanReach(t) {
		return nil, &compose.Uncovered{Why: "only the records of " + s.config.User + " are walked"}
	}
	if localQuery == nil && len(t.OwnParams) > 0 { // upstream's links do not contain our own parameters
		bare := *t
		bare.OwnParams = nil
		t = &bare
	}
	p := &composePlan{source: s, kind: k, target: t, local: localQuery, timeDependent: t.Kind.Retention.Unlisted, writes: co.writeCount()}
	var above *understudy.Record
	now := func() time.Time { p.timeDependent = true; return co.env.now() }
	list, err := compose.New(s.config, t, compose.Options{Now: now, Local: localQuery, FindListed: co.listedFinder(s, t),
		FindRecord: func(kind, id string) *understudy.Record {
			of := s.config.Spec.Kind(kind)
			if of == nil {
				return nil
			}
			rec := co.holdings.knownRecord(ctx, s, of, id)
			if of.Name != t.Kind.Name {
				above = rec
			}
			return rec
		}})
	if err != nil {
		return nil, err
	}
	p.list, p.seek = list, list.Seek()
	if p.coverage, err = co.checkCoverage(p); err != nil {
		return nil, err
	}
	if c := &p.coverage; c.Above != "" && c.From != 0 && above != nil {
		of := s.config.Spec.Kind(c.Above)
		if clock := query.UnixIn(of, of.Clock, above.Body); clock != 0 && clock < c.From {
			return nil, &compose.Uncovered{Why: c.Above + " are kept from " + formatDay(c.From) + " on"}
		}
	}
	p.outdated = co.hasUnseenWrite(ctx, k, &p.coverage)
	return p, nil
}

// listedFinder returns a function that finds records as one list last showed them. It returns only records
// that have not changed in later walks. It is called for at most one page.
func (co *composer) listedFinder(s *source, t *spec.Target) func(*understudy.Record) *understudy.Record {
	return func(rec *understudy.Record) *understudy.Record {
		ctx, cancel := context.WithTimeout(co.env.ctx, co.env.ages().Wait)
		defer cancel()
		own, err := co.env.store.Record(ctx, s.config.Name, t.Kind.Name, t.List.Shape, rec.ID)
		if err != nil || own.Invalidated || !own.Seen.After(rec.Since) {
			return nil
		}
		return own
	}
}

// formatDay returns a clock as a date.
func formatDay(clock int64) string { return time.Unix(clock, 0).UTC().Format(time.DateOnly) }

// checkCoverage returns the coverage of a plan's records, or an error if not all of them are stored.
func (co *composer) checkCoverage(p *composePlan) (request.Coverage, error) {
	q := p.seek
	from, to := clockBounds(&q, p.target.Kind.Clock)
	c, ok := co.coverage.Coverage(p.source.config.Name, p.kind.name, p.target.RootID(), q.Parent, from, to)
	switch {
	case !ok && (c.From == 0 || c.Above != "" || q.OldestFirst):
		return c, &compose.Uncovered{Why: p.kind.name + ": " + c.Missing}
	case !slices.Contains(c.Shapes, q.Shape):
		return c, &compose.Uncovered{Why: p.kind.name + ": they are not held as this list shows them"}
	}
	if q.From != 0 && !hasTimeBound(&q, p.target.Kind.Clock) {
		// The bound of a row rule also admits records without a clock. Only walks of the whole list see
		// those. The coverage of an empty time range says when such a walk ended.
		now := co.env.now().Unix()
		rest, known := co.coverage.Coverage(p.source.config.Name, p.kind.name, p.target.RootID(), q.Parent, now, now)
		if !known {
			return rest, &compose.Uncovered{Why: p.kind.name + ": " + rest.Missing}
		}
		if rest.At.Before(c.At) {
			c.At = rest.At
		}
	}
	return c, nil
}

// hasTimeBound reports whether a query bounds the clock, so that records without a clock do not match.
func hasTimeBound(q *query.RecordQuery, clock string) bool {
	return slices.ContainsFunc(q.Predicates, func(t query.Predicate) bool { return t.Field == clock && (t.From != 0 || t.To != 0) })
}

// clockBounds returns the bounds that a query sets to a kind's clock; 0 means no bound.
func clockBounds(q *query.RecordQuery, clock string) (from, to int64) {
	from, to = q.From, q.To
	for _, t := range q.Predicates {
		if clock == "" || t.Field != clock || len(t.Any) > 0 || t.Number != "" {
			continue
		}
		from = max(from, t.From)
		if t.To != 0 && (to == 0 || t.To < to) {
			to = t.To
		}
	}
	return from, to
}

// composeList reads the records and makes the page. It has its own time limit, Ages.Wait or the plan's.
func (co *composer) composeList(p *composePlan) (*composedList, error) {
	ctx, cancel := context.WithTimeout(co.env.ctx, cmp.Or(p.timeLimit, co.env.ages().Wait))
	defer cancel()
	select {
	case co.slots <- struct{}{}:
		defer func() { <-co.slots }()
	case <-ctx.Done():
		return nil, fmt.Errorf("mirror: compose %s: too many lists are being made: %w", p.target.Key, ctx.Err())
	}
	begin := co.env.now()
	w := &compose.Bounded{Store: co.records, Kind: p.target.Kind, WalkedAt: p.coverage.At}
	if days := p.target.Kind.Retention.Days; p.target.Kind.Retention.Unlisted {
		w.ForgottenBefore = begin.Unix() - int64(days)*24*60*60
	}
	if p.coverage.Above == "" {
		w.CoveredFrom = p.coverage.From
	}
	var err error
	if !p.includeAbove && p.coverage.Head != nil && (p.local == nil || p.local.Since == 0) {
		err = w.EndAtNewest(ctx, p.source.config.Name, p.coverage.Head, p.coverage.Newest)
	}
	if err == nil {
		err = p.list.Fill(ctx, w)
	}
	if err == nil && p.timeLimit != 0 && p.list.HasNumberedPages() {
		return nil, errNumberedPages
	}
	if err == nil && w.FoundUnseen {
		err = &compose.Uncovered{Why: p.kind.name + ": not all that are held were seen by the last walk"}
	}
	if err == nil && w.CoveredFrom == 0 && (!p.includeAbove || p.list.HasTotalInBody()) {
		co.countRows(ctx, p, w)
	}
	if err == nil {
		err = co.recheckCoverage(ctx, p)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, fmt.Errorf("mirror: compose %s: %w: that is too much to look through; narrow it by a filter", p.target.Key,
			understudy.ErrInvalid)
	}
	if err != nil {
		return nil, fmt.Errorf("mirror: compose %s: %w", p.target.Key, err)
	}
	page, err := p.list.BuildPage(p.coverage.At)
	if err != nil {
		return nil, fmt.Errorf("mirror: compose %s: %w", p.target.Key, err)
	}
	if w.CoveredFrom != 0 && (w.ReachedUncovered || page.Next.IsZero()) {
		return nil, &compose.Uncovered{Why: p.kind.name + " are kept from " + formatDay(w.CoveredFrom) + " on"}
	}
	x := &composedList{page: page, coverage: p.coverage, outdated: p.outdated || w.Invalid, composeTime: co.env.now().Sub(begin)}
	if !p.timeDependent && !x.outdated && co.writes != nil {
		x.plan = &composePlan{source: p.source, kind: p.kind, target: p.target, seek: p.seek, writes: p.writes}
	}
	return x, nil
}

// errNumberedPages is the reason why a list by page numbers is not composed while upstream works.
var errNumberedPages = errors.New("mirror: the other pages of a list by number are upstream's")

// countRows counts the rows of the other pages of a list. It uses at most half of the time for composing. If
// the count fails, the answer lacks the total, or the list is not composed.
func (co *composer) countRows(ctx context.Context, p *composePlan, w *compose.Bounded) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(p.timeLimit, co.env.ages().Wait)/2)
	defer cancel()
	if err := p.list.Count(ctx, w); err != nil {
		co.env.log.Debug("mirror: the rows of a list could not be counted", "list", p.target.Key.String(), "error", err)
	}
}

// writeCount returns the store's counter of writes, or 0 if it has none.
func (co *composer) writeCount() int64 {
	if co.writes == nil {
		return 0
	}
	return co.writes()
}

// findComposed returns the list that was composed before for the same query. It returns nil if the store was
// written since or the coverage has changed.
func (co *composer) findComposed(ctx context.Context, k *kind, localQuery *request.LocalQuery) *composedList {
	if localQuery == nil || localQuery.Cache == nil {
		return nil
	}
	x, _ := localQuery.Cache.List.Load().(*composedList)
	if x == nil || x.plan.kind != k || x.plan.writes != co.writeCount() {
		return nil
	}
	c, err := co.checkCoverage(x.plan)
	same := c.At.Equal(x.coverage.At) && c.Newest.Equal(x.coverage.Newest) && c.From == x.coverage.From && c.Above == x.coverage.Above
	if err != nil || !same || co.hasUnseenWrite(ctx, k, &c) {
		return nil
	}
	return x
}

// recheckCoverage checks again that all records are stored. It first waits for saves under way, because a
// newest page may have revealed a gap.
func (co *composer) recheckCoverage(ctx context.Context, p *composePlan) error {
	for _, k := range []*kind{p.kind, p.source.kinds[p.coverage.Above]} {
		if k == nil || len(k.saveLock) == 0 {
			continue
		}
		if err := k.lock(ctx); err != nil {
			return err
		}
		k.unlock()
	}
	c, err := co.checkCoverage(p)
	if err == nil && c.At.Before(p.coverage.At) {
		p.coverage = c
	}
	return err
}

// heldPage returns the list as a stored page that is as old as the oldest walk it depends on.
func (x *composedList) heldPage(a *Ages) heldPage {
	h := heldPage{page: x.page, fresh: a.Records, composed: true, stored: true, loadTime: x.composeTime}
	if x.outdated {
		h.state = outdated
	}
	return h
}

// answerComposed returns the response with a composed list. Its Age is the age of the oldest walk, for
// records that may be missing. Newest is the age of the newest page, for new records.
func (co *composer) answerComposed(s *source, x *composedList, detail string) *request.Response {
	s.counts.composed.Add(1)
	age, _ := co.env.ages().age(co.env.now(), x.coverage.At)
	a := &request.Response{Page: x.page, Outcome: request.Composed, Age: age, TTL: co.env.ages().Records - age, Stored: true, Detail: detail,
		StoreTime: x.composeTime}
	if !x.coverage.Newest.IsZero() {
		newest, _ := co.env.ages().age(co.env.now(), x.coverage.Newest)
		a.Newest = max(min(newest, age), 1)
	}
	return a
}

// refusalPage returns upstream's refusal as it is known without a request, or nil if err is no refusal.
func refusalPage(t *spec.Target, err error, now time.Time) *understudy.Page {
	var r *compose.Refusal
	if !errors.As(err, &r) {
		return nil
	}
	return r.Page(t, now)
}

// answerRefusal returns the response to a request that upstream would refuse, or nil if err is no refusal.
func (co *composer) answerRefusal(s *source, t *spec.Target, err error) *request.Response {
	p := refusalPage(t, err, co.env.now())
	if p == nil {
		return nil
	}
	s.counts.composed.Add(1)
	return &request.Response{Page: p, Outcome: request.Composed, TTL: co.env.ages().NotFound, Detail: "composed"}
}
