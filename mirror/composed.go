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

// composer composes lists from stored records.
type composer struct {
	env      *env
	flights  *flights
	holdings *pageFinder
	coverage Coverage           // reports whether all records of a list are stored; nil if no list can be composed
	records  compose.Store      // the records of the store in order; nil if the store cannot read them in order
	writes   func() int64       // returns the number of writes to the store; if it is nil, every list is composed again for each request
	group    singleflight.Group // requests for the same list at the same time share its composition
	slots    chan struct{}      // a semaphore that limits how many lists are composed at once
}

// composePlan is the plan to compose one page of a list from records. It can be carried out only once.
type composePlan struct {
	source        *source
	kind          *kind
	target        *spec.Target
	local         *request.LocalQuery
	list          *compose.List
	seek          query.RecordQuery // the query that reads the records of the list from the store
	timeDependent bool              // whether the records in the list depend on the current time
	writes        int64             // the number of writes to the store before anything was read for the plan
	coverage      request.Coverage
	outdated      bool          // whether a write has touched the kind and its result has not been fetched yet
	timeLimit     time.Duration // how long composing may take before upstream is asked instead; 0 means Ages.Wait
	includeAbove  bool          // whether the list also shows records newer than those on the stored newest page
}

// hasNumberedPages reports whether the pages of the list are named by numbers. During an outage, all such pages are
// composed from records, so that no record is missing between two pages or on both.
func (p *composePlan) hasNumberedPages() bool {
	return p.target.Spec.PagingOf(p.target.List).IsSliding()
}

// composedList is the composed page of a list.
type composedList struct {
	page        *understudy.Page
	coverage    request.Coverage
	outdated    bool
	composeTime time.Duration
	plan        *composePlan // the plan without its list; nil if the page must not be reused
}

// planCompose plans how to compose a list from records. It returns a *compose.Refusal if upstream would refuse the request,
// ErrNotMirrored if records may be missing from the store, and ErrInvalid if the list cannot be composed at all.
func (co *composer) planCompose(
	ctx context.Context, s *source, k *kind, t *spec.Target, localQuery *request.LocalQuery,
) (*composePlan, error) {
	switch {
	case co.coverage == nil || co.records == nil:
		return nil, &compose.Uncovered{Why: "this server syncs nothing"}
	case t.List == nil || k.name == "":
		return nil, fmt.Errorf("%w: only lists of records can be built from stored records", understudy.ErrInvalid)
	}
	if !s.config.CanReach(t) {
		return nil, &compose.Uncovered{Why: "only records of " + s.config.User + " are synced"}
	}
	if localQuery == nil && len(t.OwnParams) > 0 { // upstream's links do not have the parameters of Understudy, so links must be composed
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
			return nil, &compose.Uncovered{Why: c.Above + " are kept only from " + formatDay(c.From) + " on"}
		}
	}
	p.outdated = co.hasUnseenWrite(ctx, k, &p.coverage)
	return p, nil
}

// listedFinder returns a function that finds records in the form in which the list last showed them. It finds only
// records that have not changed since. The function is called for one page at most.
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

// formatDay returns a clock value as a date, for error messages.
func formatDay(clock int64) string { return time.Unix(clock, 0).UTC().Format(time.DateOnly) }

// checkCoverage returns how completely the records of a plan are stored. It returns an error if some are missing.
func (co *composer) checkCoverage(p *composePlan) (request.Coverage, error) {
	q := p.seek
	from, to := clockBounds(&q, p.target.Kind.Clock)
	c, ok := co.coverage.Coverage(p.source.config.Name, p.kind.name, p.target.RootID(), q.Parent, from, to)
	switch {
	case !ok && (c.From == 0 || c.Above != "" || q.OldestFirst || p.local != nil && p.local.Near != nil):
		return c, &compose.Uncovered{Why: p.kind.name + ": " + c.Missing}
	case !slices.Contains(c.Shapes, q.Shape):
		return c, &compose.Uncovered{Why: p.kind.name + ": not stored in the form that this list shows"}
	}
	if q.From != 0 && !hasTimeBound(&q, p.target.Kind.Clock) {
		// The role may see records without a clock value, too. Only full reads of the list see those, so it asks when
		// the last of them ended, which an empty time range means.
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

// hasTimeBound reports whether the query limits the clock field, so that no record without a clock value matches.
func hasTimeBound(q *query.RecordQuery, clock string) bool {
	return slices.ContainsFunc(q.Predicates, func(t query.Predicate) bool { return t.Field == clock && (t.From != 0 || t.To != 0) })
}

// clockBounds returns the limits that a query sets to the clock field of a kind; 0 means no limit.
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

// composeList reads the records and composes the page. It may take Ages.Wait, or the time limit of the plan.
func (co *composer) composeList(p *composePlan) (*composedList, error) {
	ctx, cancel := context.WithTimeout(co.env.ctx, cmp.Or(p.timeLimit, co.env.ages().Wait))
	defer cancel()
	select {
	case co.slots <- struct{}{}:
		defer func() { <-co.slots }()
	case <-ctx.Done():
		return nil, fmt.Errorf("mirror: compose %s: too many lists are being built: %w", p.target.Key, ctx.Err())
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
		err = &compose.Uncovered{Why: p.kind.name + ": the last walk did not see all stored records"}
	}
	if err == nil && w.CoveredFrom == 0 && (!p.includeAbove || p.list.HasTotalInBody()) {
		// counting takes at most half of the time for composing; if it fails, the answer has no total, or the list is not composed
		counting, cancel := context.WithTimeout(ctx, cmp.Or(p.timeLimit, co.env.ages().Wait)/2)
		if err := p.list.Count(counting, w); err != nil {
			co.env.log.Debug("mirror: the rows of a list could not be counted", "list", p.target.Key.String(), "error", err)
		}
		cancel()
	}
	if err == nil {
		err = co.recheckCoverage(ctx, p)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, fmt.Errorf("mirror: compose %s: %w: there are too many records to search in time; add a filter", p.target.Key,
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
		return nil, &compose.Uncovered{Why: p.kind.name + " are kept only from " + formatDay(w.CoveredFrom) + " on"}
	}
	x := &composedList{page: page, coverage: p.coverage, outdated: p.outdated || w.Invalid, composeTime: co.env.now().Sub(begin)}
	if !p.timeDependent && !x.outdated && co.writes != nil {
		x.plan = &composePlan{source: p.source, kind: p.kind, target: p.target, seek: p.seek, writes: p.writes}
	}
	return x, nil
}

// errNumberedPages is the reason why a list with numbered pages is not composed while upstream works.
var errNumberedPages = errors.New("mirror: the other pages of a list by number are upstream's")

// writeCount returns the number of writes to the store, or 0 if the store does not count them.
func (co *composer) writeCount() int64 {
	if co.writes == nil {
		return 0
	}
	return co.writes()
}

// findComposed returns the list that has been composed for the same query, if nothing has changed since. It returns
// nil if the store was written to, or if fewer or more records are now covered.
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

// recheckCoverage checks again that all records of the list are stored. Before that it waits for pages that are being
// saved, because a newest page may show that records are missing.
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

// storedPage returns the composed list as a stored page. Its age is that of the oldest full read of its records.
func (x *composedList) storedPage(a *Ages) storedPage {
	h := storedPage{page: x.page, fresh: a.Records, composed: true, stored: true, loadTime: x.composeTime}
	if x.outdated {
		h.state = outdated
	}
	return h
}

// answerComposed returns the response with a composed list. Its Age says how old the oldest full read of the records
// is, because a record may have been missing since. Newest is the age of the newest page, which shows new records.
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

// refusalPage returns the response with which upstream would refuse the request, without asking upstream. It returns
// nil if err is no such refusal.
func refusalPage(t *spec.Target, err error, now time.Time) *understudy.Page {
	var r *compose.Refusal
	if !errors.As(err, &r) {
		return nil
	}
	return r.Page(t, now)
}

// answerRefusal returns the response with which upstream would refuse the request. It returns nil if err is no such refusal.
func (co *composer) answerRefusal(s *source, t *spec.Target, err error) *request.Response {
	p := refusalPage(t, err, co.env.now())
	if p == nil {
		return nil
	}
	s.counts.composed.Add(1)
	return &request.Response{Page: p, Outcome: request.Composed, TTL: co.env.ages().NotFound, Detail: "composed"}
}
