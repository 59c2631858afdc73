// Composed: a list made from records instead of being fetched.
//
//	plan: what is asked for, and whether the records that answer it are held
//	make: the records in order, one page of them, and a second look whether
//	      they were all there

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
	env       *env
	flights   *flights
	holdings  *holdings
	coverage  Coverage           // nil: nothing is covered
	records   compose.Store      // nil: the store has no order of records
	writes    func() int64       // the store's counter of writes; nil: it has none, and no list is answered again
	group     singleflight.Group // of lists being made, by what makes them the same
	composing chan struct{}      // a place for each list being made
}

// composePlan is one page of a list that can be made from records. It is made once.
type composePlan struct {
	source   *source
	kind     *kind
	target   *spec.Target
	local    *request.LocalQuery
	list     *compose.List
	seek     query.RecordQuery // the records that it is made of
	timed    bool              // the list depends on the time
	writes   int64             // the store's counter before anything was read
	coverage request.Coverage
	outdated bool          // a write touched the kind, and what it changed is not known yet
	most     time.Duration // that making may take, before upstream is asked; 0: Ages.Wait
	above    bool          // what stands above the newest page's records belongs to it, too
}

// slides reports whether pages of the list are named by numbers. In an outage all of them are
// made from records then, so that none is missing and none twice between two of them.
func (p *composePlan) slides() bool { return p.target.Spec.PagingOf(p.target.List).Slides() }

// composedList is the page of a plan.
type composedList struct {
	page     *understudy.Page
	coverage request.Coverage
	outdated bool
	took     time.Duration
	plan     *composePlan // without the list; nil: the list is made anew each time
}

// planCompose finds out whether a list can be made from records. Errors: a
// *compose.Refusal is upstream's own answer; ErrNotMirrored: not all of its
// records are known to be held; ErrInvalid: it is never made from records.
func (co *composer) planCompose(ctx context.Context, s *source, k *kind, t *spec.Target, wish *request.LocalQuery) (*composePlan, error) {
	switch {
	case co.coverage == nil || co.records == nil:
		return nil, &compose.Uncovered{Why: "nothing is walked here"}
	case t.List == nil || k.name == "":
		return nil, fmt.Errorf("%w: only lists of records are made from records", understudy.ErrInvalid)
	}
	if !s.config.Reaches(t) {
		return nil, &compose.Uncovered{Why: "only the records of " + s.config.User + " are walked"}
	}
	if wish == nil && len(t.Own) > 0 { // nothing of ours stands in upstream's links
		bare := *t
		bare.Own = nil
		t = &bare
	}
	p := &composePlan{source: s, kind: k, target: t, local: wish, timed: t.Kind.Retention.Unlisted, writes: co.writeCount()}
	var above *understudy.Record
	now := func() time.Time { p.timed = true; return co.env.now() }
	list, err := compose.New(s.config, t, compose.Options{Now: now, Local: wish, Own: co.own(s, t),
		Held: func(kind, id string) *understudy.Record {
			of := s.config.Spec.Kind(kind)
			if of == nil {
				return nil
			}
			rec := co.holdings.known(ctx, s, of, id)
			if of.Name != t.Kind.Name {
				above = rec
			}
			return rec
		}})
	if err != nil {
		return nil, err
	}
	p.list, p.seek = list, list.Seek()
	if p.coverage, err = co.covers(p); err != nil {
		return nil, err
	}
	if c := &p.coverage; c.Above != "" && c.From != 0 && above != nil {
		of := s.config.Spec.Kind(c.Above)
		if clock := query.UnixIn(of, of.Clock, above.Body); clock != 0 && clock < c.From {
			return nil, &compose.Uncovered{Why: c.Above + " are kept from " + day(c.From) + " on"}
		}
	}
	p.outdated = co.wroteSince(ctx, k, &p.coverage)
	return p, nil
}

// own finds records as one list last showed them: those that have looked the
// same to the walks ever since. It is asked for a page at most.
func (co *composer) own(s *source, t *spec.Target) func(*understudy.Record) *understudy.Record {
	return func(rec *understudy.Record) *understudy.Record {
		ctx, cancel := context.WithTimeout(co.env.ctx, co.env.ages().Wait)
		defer cancel()
		own, err := co.env.store.Record(ctx, s.config.Name, t.Kind.Name, t.List.Shape, rec.ID)
		if err != nil || own.Invalid || !own.Seen.After(rec.Since) {
			return nil
		}
		return own
	}
}

// day is a clock for people.
func day(clock int64) string { return time.Unix(clock, 0).UTC().Format(time.DateOnly) }

// covers asks whether the records of a plan are held.
func (co *composer) covers(p *composePlan) (request.Coverage, error) {
	q := p.seek
	from, to := clocks(&q, p.target.Kind.Clock)
	c, ok := co.coverage.Covered(p.source.config.Name, p.kind.name, p.target.Root(), q.Parent, from, to)
	switch {
	case !ok && (c.From == 0 || c.Above != "" || q.Up):
		return c, &compose.Uncovered{Why: p.kind.name + ": " + c.Why}
	case !slices.Contains(c.Shapes, q.Shape):
		return c, &compose.Uncovered{Why: p.kind.name + ": they are not held as this list shows them"}
	}
	if q.From != 0 && !timed(&q, p.target.Kind.Clock) {
		// A row rule's bound leaves in what has no clock. Walks of the whole list
		// alone see that: it is what an empty window rests on.
		now := co.env.now().Unix()
		rest, known := co.coverage.Covered(p.source.config.Name, p.kind.name, p.target.Root(), q.Parent, now, now)
		if !known {
			return rest, &compose.Uncovered{Why: p.kind.name + ": " + rest.Why}
		}
		if rest.At.Before(c.At) {
			c.At = rest.At
		}
	}
	return c, nil
}

// timed reports whether a question asks for a time of a clock, so that what has
// none is not meant.
func timed(q *query.RecordQuery, clock string) bool {
	return slices.ContainsFunc(q.Predicates, func(t query.Predicate) bool { return t.Field == clock && (t.From != 0 || t.To != 0) })
}

// clocks are the bounds that a question sets to a kind's clock, 0 = open.
func clocks(q *query.RecordQuery, clock string) (from, to int64) {
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

// composeList reads the records and makes the page. It ends by itself in good time,
// those that wait for it.
func (co *composer) composeList(p *composePlan) (*composedList, error) {
	ctx, cancel := context.WithTimeout(co.env.ctx, cmp.Or(p.most, co.env.ages().Wait))
	defer cancel()
	select {
	case co.composing <- struct{}{}:
		defer func() { <-co.composing }()
	case <-ctx.Done():
		return nil, fmt.Errorf("mirror: compose %s: too many lists are being made: %w", p.target.Key, ctx.Err())
	}
	begin := co.env.now()
	w := &compose.Bounded{Store: co.records, Kind: p.target.Kind, Walked: p.coverage.At}
	if days := p.target.Kind.Retention.Days; p.target.Kind.Retention.Unlisted {
		w.None = begin.Unix() - int64(days)*24*60*60
	}
	if p.coverage.Above == "" {
		w.From = p.coverage.From
	}
	var err error
	if !p.above && p.coverage.Head != nil && (p.local == nil || p.local.Since == 0) {
		err = w.EndAbove(ctx, p.source.config.Name, p.coverage.Head, p.coverage.Newest)
	}
	if err == nil {
		err = p.list.Fill(ctx, w)
	}
	if err == nil && p.most != 0 && p.list.Slides() {
		return nil, errSlides
	}
	if err == nil && w.Strange {
		err = &compose.Uncovered{Why: p.kind.name + ": not all that are held were seen by the last walk"}
	}
	if err == nil && w.From == 0 && (!p.above || p.list.WritesTotal()) {
		co.countRows(ctx, p, w)
	}
	if err == nil {
		err = co.settled(ctx, p)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, fmt.Errorf("mirror: compose %s: %w: that is too much to look through; narrow it by a filter", p.target.Key,
			understudy.ErrInvalid)
	}
	if err != nil {
		return nil, fmt.Errorf("mirror: compose %s: %w", p.target.Key, err)
	}
	page, err := p.list.Page(p.coverage.At)
	if err != nil {
		return nil, fmt.Errorf("mirror: compose %s: %w", p.target.Key, err)
	}
	if w.From != 0 && (w.Short || page.Next.Zero()) {
		return nil, &compose.Uncovered{Why: p.kind.name + " are kept from " + day(w.From) + " on"}
	}
	x := &composedList{page: page, coverage: p.coverage, outdated: p.outdated || w.Invalid, took: co.env.now().Sub(begin)}
	if !p.timed && !x.outdated && co.writes != nil {
		x.plan = &composePlan{source: p.source, kind: p.kind, target: p.target, seek: p.seek, writes: p.writes}
	}
	return x, nil
}

// errSlides is why a list is not made from records before upstream is asked.
var errSlides = errors.New("mirror: the other pages of a list by number are upstream's")

// countRows counts the rows of a list's other pages, in at most half the time that making the
// list may take. Without the number, the answer says less or is not made.
func (co *composer) countRows(ctx context.Context, p *composePlan, w *compose.Bounded) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(p.most, co.env.ages().Wait)/2)
	defer cancel()
	if err := p.list.Count(ctx, w); err != nil {
		co.env.log.Debug("mirror: the rows of a list could not be counted", "list", p.target.Key.String(), "error", err)
	}
}

// writeCount returns the store's counter of writes, 0 when it has none.
func (co *composer) writeCount() int64 {
	if co.writes == nil {
		return 0
	}
	return co.writes()
}

// findMade returns the list that was made for the same query. It is nil when the list may be
// another one now: the store was written since, or what the list rests on has changed.
func (co *composer) findMade(ctx context.Context, k *kind, wish *request.LocalQuery) *composedList {
	if wish == nil || wish.Made == nil {
		return nil
	}
	x, _ := wish.Made.List.Load().(*composedList)
	if x == nil || x.plan.kind != k || x.plan.writes != co.writeCount() {
		return nil
	}
	c, err := co.covers(x.plan)
	same := c.At.Equal(x.coverage.At) && c.Newest.Equal(x.coverage.Newest) && c.From == x.coverage.From && c.Above == x.coverage.Above
	if err != nil || !same || co.wroteSince(ctx, k, &c) {
		return nil
	}
	return x
}

// settled looks once more whether all is covered, after whatever was being
// saved while the records were read has been told to the walker: a newest
// page may have left a gap.
func (co *composer) settled(ctx context.Context, p *composePlan) error {
	for _, k := range []*kind{p.kind, p.source.kinds[p.coverage.Above]} {
		if k == nil || len(k.keeping) == 0 {
			continue
		}
		if err := k.lock(ctx); err != nil {
			return err
		}
		k.unlock()
	}
	c, err := co.covers(p)
	if err == nil && c.At.Before(p.coverage.At) {
		p.coverage = c
	}
	return err
}

// held is the page as something that is held, to be judged by its age: that of
// the oldest walk it rests on.
func (x *composedList) held(a *Ages) held {
	h := held{page: x.page, fresh: a.Records, composed: true, stored: true, took: x.took}
	if x.outdated {
		h.state = outdated
	}
	return h
}

// composedAnswer is the answer made from records: as old as the oldest walk it
// rests on, for what may be missing, and as the newest page, for what is new.
func (co *composer) composedAnswer(s *source, x *composedList, detail string) *request.Response {
	s.counts.composed.Add(1)
	age, _ := co.env.ages().age(co.env.now(), x.coverage.At)
	a := &request.Response{Page: x.page, Outcome: request.Composed, Age: age, TTL: co.env.ages().Records - age, Stored: true, Detail: detail,
		Store: x.took}
	if !x.coverage.Newest.IsZero() {
		newest, _ := co.env.ages().age(co.env.now(), x.coverage.Newest)
		a.Newest = max(min(newest, age), 1)
	}
	return a
}

// refusalOf is upstream's own refusal, known without asking; nil when err is
// none.
func refusalOf(t *spec.Target, err error, now time.Time) *understudy.Page {
	var r *compose.Refusal
	if !errors.As(err, &r) {
		return nil
	}
	return r.Page(t, now)
}

// refused is the answer to a request that upstream refuses; nil when err says
// nothing of that.
func (co *composer) refused(s *source, t *spec.Target, err error) *request.Response {
	p := refusalOf(t, err, co.env.now())
	if p == nil {
		return nil
	}
	s.counts.composed.Add(1)
	return &request.Response{Page: p, Outcome: request.Composed, TTL: co.env.ages().NotFound, Detail: "composed"}
}
