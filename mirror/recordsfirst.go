// Records first: which lists are made from records before upstream is asked, after it
// failed, or only.

package mirror

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"understudy"
	"understudy/mirror/compose"
	"understudy/request"
	"understudy/spec"
)

// recordsOnly answers what upstream cannot be asked: from records, or not at all.
func (rd *reader) recordsOnly(ctx context.Context, r *reading) (*request.Response, error) {
	a, err := rd.composer.fromRecords(ctx, r)
	if err != nil {
		r.source.counts.failed.Add(1)
		return nil, fmt.Errorf("mirror: %s: %w", r.request.Target.Key, err)
	}
	return a, nil
}

func (co *composer) fromRecords(ctx context.Context, r *reading) (*request.Response, error) {
	if x := co.findMade(ctx, r.kind, r.request.Local); x != nil {
		return co.answerList(r, x)
	}
	p, err := co.planCompose(ctx, r.source, r.kind, r.request.Target, r.request.Local)
	if a := co.refused(r.source, r.request.Target, err); a != nil {
		return a, nil
	}
	if err == nil && p.outdated && !r.request.OnlyIfCached {
		co.showWritten(ctx, r)
		p, err = co.planCompose(ctx, r.source, r.kind, r.request.Target, r.request.Local)
	}
	if err != nil {
		return nil, err
	}
	x, err := co.composeOnce(ctx, p)
	if err != nil {
		return nil, err
	}
	if r.request.Local != nil && r.request.Local.Made != nil && x.plan != nil {
		again := *x
		again.took = 0 // it comes from memory
		r.request.Local.Made.List.Store(&again)
	}
	return co.answerList(r, x)
}

// answerList answers with a list made from records, unless the request takes none of its age.
func (co *composer) answerList(r *reading, x *composedList) (*request.Response, error) {
	ask := r.request
	ask.AgeLimit = nil // a newer one is impossible
	h := x.held(co.env.ages())
	switch v, _ := co.env.ages().decide(&h, co.env.ages().bounds(&ask), r.now); {
	case v == spent:
		return nil, errWalkedLongAgo(r.kind)
	case v == wait && r.request.OnlyIfCached && (ask.NoCache || ask.MaxAge != nil || ask.MinFresh != nil):
		return nil, understudy.ErrNotHeld
	}
	return co.composedAnswer(r.source, x, "composed"), nil
}

// showWritten waits for the newest pages of a kind that are older than a write to
// it, where they are kept warm: a caller that has just written and finds some records
// alone is not answered by upstream itself, and its list must have what it wrote.
// While upstream is down, and once a page has come, it asks for nothing.
func (co *composer) showWritten(ctx context.Context, r *reading) {
	ctx, cancel := context.WithTimeout(ctx, co.env.ages().Wait)
	defer cancel()
	for _, p := range r.source.polls() {
		if p.kind == r.kind && p.list.Whole && !p.list.CaughtUp().After(r.kind.writes.Last()) {
			co.waitFor(ctx, r, p)
		}
	}
}

// waitFor waits for a polled page, with all that do, until what it shows is saved. The
// fetch began after the reader came or after all that was written before; one that
// brought nothing, as a purge came, is followed by another.
func (co *composer) waitFor(ctx context.Context, r *reading, p *poll) {
	for ctx.Err() == nil {
		f, err := co.waitOnce(ctx, r, p)
		switch {
		case err != nil || f.result.err != nil || f.result.page.Status >= 400:
			return
		case f.result.saveErr == nil:
			p.list.Completed(f.result.page, !f.invalidated())
			return
		case f.result.restSaved, !errors.Is(f.result.saveErr, understudy.ErrOutdated):
			return
		}
	}
}

// waitOnce waits for one flight to a polled page. A flight that a write has made
// old is not joined.
func (co *composer) waitOnce(ctx context.Context, r *reading, p *poll) (*flight, error) {
	want := fetchOptions{reason: request.Waiting, direct: true, flow: r.request.Flow}
	want.deadline, _ = ctx.Deadline()
	f, _, err := co.flights.join(p.list.Target, r.source, r.kind, want)
	if err != nil {
		return nil, err
	}
	defer co.flights.releaseReader(f, r.request.Flow, true)
	select {
	case <-f.signals.done:
		return f, nil
	case <-f.signals.tried:
		return nil, f.signals.failure
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// tipAge is how old the newest page may be that a list made from records rests
// on, while upstream is well: what readers of newest pages are used to.
func (a *Ages) tipAge() time.Duration { return a.Newest + a.Stale }

// recordsFirst answers from records before upstream is asked, nil when it has to be
// asked: what is held is not known to be all, or is too old for the request.
func (co *composer) recordsFirst(ctx context.Context, r *reading) *request.Response {
	if !r.trusted() {
		return nil
	}
	p, err := co.planFor(ctx, r)
	if a := co.refused(r.source, r.request.Target, err); a != nil {
		return a
	}
	if err != nil || p.list.Slides() {
		return nil // the other pages of a list by number are upstream's
	}
	if !co.good(r, &held{page: &understudy.Page{At: p.coverage.At}, state: stateOf(p.outdated)}, &p.coverage) {
		return nil
	}
	r.plan = nil                    // it is used here
	p.most = co.env.ages().Wait / 8 // then upstream is asked: it may know a shorter way
	x, err := co.composeOnce(ctx, p)
	if err != nil {
		co.env.log.Debug("mirror: a list could not be made from records, upstream is asked", "error", err)
		return nil
	}
	h := x.held(co.env.ages())
	if !co.good(r, &h, &x.coverage) {
		return nil
	}
	return co.composedAnswer(r.source, x, "composed")
}

// planFor is planCompose for the list a request names, made once for all that
// look at it before it is composed.
func (co *composer) planFor(ctx context.Context, r *reading) (*composePlan, error) {
	if r.plan == nil && r.planErr == nil {
		r.plan, r.planErr = co.planCompose(ctx, r.source, r.kind, r.request.Target, nil)
	}
	return r.plan, r.planErr
}

func stateOf(old bool) state {
	if old {
		return outdated
	}
	return current
}

// good reports whether the request takes a list of that age.
func (co *composer) good(r *reading, h *held, c *request.Coverage) bool {
	ages := co.env.ages()
	h.fresh = ages.Records
	if !c.Newest.IsZero() {
		if age, sane := ages.age(r.now, c.Newest); !sane || age >= ages.tipAge() {
			return false
		}
	}
	v, _ := ages.decide(h, ages.bounds(&r.request), r.now)
	return v == fresh || v == stale
}

// hasFallback reports whether there is an answer though upstream gives none. What
// is not held is planned by the first call, also after the reader's deadline. Many
// may call it at once.
func (co *composer) hasFallback(ctx context.Context, r *reading) bool {
	if r.held.page != nil {
		return true
	}
	co.prepareFallback(ctx, r)
	return r.planned
}

// prepareFallback is planFallback, once.
func (co *composer) prepareFallback(ctx context.Context, r *reading) {
	r.planning.Do(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), co.env.ages().Wait)
		defer cancel()
		co.planFallback(ctx, r)
		r.planned = r.composedFallback != nil || r.refusal != nil
	})
}

// planFallback finds out whether records can answer if upstream does not.
func (co *composer) planFallback(ctx context.Context, r *reading) {
	if co.coverage == nil || r.kind.name == "" || r.barred {
		return
	}
	if r.request.Target.List == nil {
		r.refusal = co.absent(ctx, r)
		return
	}
	p, err := co.planFor(ctx, r)
	defer func() { r.unplanned = err }()
	if r.refusal = refusalOf(r.request.Target, err, co.env.now()); err != nil {
		return
	}
	if !r.trusted() {
		err = &compose.Uncovered{Why: r.kind.name + ": that upstream's list shows all of them is not known yet"}
		return
	}
	if rows := r.request.Target.List.Rows; rows != nil && rows.Own { // it may lack one
		if _, err = co.composeOnce(ctx, p); err == nil {
			p, err = co.planCompose(ctx, r.source, r.kind, r.request.Target, nil)
		}
		if err != nil {
			return
		}
	}
	if age, sane := co.env.ages().age(co.env.now(), p.coverage.At); sane && age < co.env.ages().Hard {
		r.composedFallback = p
		return
	}
	err = errWalkedLongAgo(r.kind)
}

// errWalkedLongAgo returns the error of a list whose records are older than any answer may be.
func errWalkedLongAgo(k *kind) error {
	return &compose.Uncovered{Why: k.name + ": they were walked too long ago"}
}

// unanswered returns the error of a request that upstream did not answer, with the reason why
// records make no list either.
func (co *composer) unanswered(ctx context.Context, r *reading, err error) error {
	if r.request.SkipHeld || errors.As(err, new(*understudy.NotComposedError)) {
		return err
	}
	if !errors.Is(err, understudy.ErrUnavailable) && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if co.prepareFallback(ctx, r); r.unplanned == nil {
		return err
	}
	return &understudy.NotComposedError{Err: err, Why: r.unplanned}
}

// absent is upstream's 404 for a record that is not among those of a kind that
// is held whole; nil when that is not known. It is as old as the walks it rests
// on. Who asks while upstream is well is told by upstream: the record may have
// come since.
func (co *composer) absent(ctx context.Context, r *reading) *understudy.Page {
	t, s, sp := r.request.Target, r.source, r.request.Target.Kind
	if t.Instance == nil || t.ID == "" || t.Slashed || len(t.Query) > 0 || r.held.page != nil || sp.UnscopedVar() != "" ||
		sp.Retention.Unlisted || sp.Retention.WithParent {
		return nil
	}
	if !s.config.Reaches(t) {
		return nil
	}
	if slices.ContainsFunc(sp.Lists, func(l *spec.List) bool { return !l.Shows() && !l.Demands() }) {
		return nil // a list may filter by itself
	}
	c, whole := co.coverage.Covered(s.config.Name, r.kind.name, t.Root(), "", 0, 0)
	ages := co.env.ages()
	if age, sane := ages.age(co.env.now(), c.At); !whole || c.From != 0 || !sane || age >= ages.Hard || co.wroteSince(ctx, r.kind, &c) {
		return nil
	}
	if rec, err := co.holdings.lookUp(ctx, s, sp, t.ID); rec != nil || err != nil {
		return nil
	}
	return refusalOf(t, compose.NotFound(t), c.At)
}

// trusted reports whether records may answer for the list before upstream does, or
// instead of it. Where the spec does not say that the list filters nothing by
// itself, samples have to: without filters one, under filters as many as make it
// answered from records first.
func (r *reading) trusted() bool {
	l := r.source.lists.Of(r.request.Target)
	if l == nil || r.request.Target.List.Shows() || l.RecordsFirst() {
		return true
	}
	return r.request.Target.Whole() && l.Compared()
}

// fallback is the answer when upstream failed, or was too slow when why is nil:
// what is held or what records tell, whichever is younger. err is the error when
// there is neither.
func (rd *reader) fallback(ctx context.Context, r *reading, why *understudy.UpstreamError, err error) (*request.Response, error) {
	rd.composer.prepareFallback(ctx, r)
	detail := "upstream slow"
	if why != nil {
		detail = why.Short()
	}
	switch p := r.composedFallback; {
	case r.refusal != nil && r.held.page == nil:
		r.source.counts.composed.Add(1)
		age, _ := rd.env.ages().age(rd.env.now(), r.refusal.At)
		return &request.Response{Page: r.refusal, Outcome: request.Composed, Age: age, Detail: "composed: " + detail}, nil
	case p != nil && (r.held.page == nil || p.slides() || p.coverage.At.After(r.held.page.At)):
		r.composedFallback = nil // a plan is made once
		x, bad := rd.composer.composeOnce(context.WithoutCancel(ctx), p)
		if bad == nil {
			return rd.composer.composedAnswer(r.source, x, "composed: "+detail), nil
		}
		if errors.Is(bad, understudy.ErrClosed) {
			return nil, bad
		}
		err = &understudy.NotComposedError{Err: err, Why: bad}
	}
	if r.held.page == nil {
		return nil, err
	}
	return rd.fallbackHeld(r, why), nil
}

// composeOnce is composeList, shared with those who ask for the same at the same
// time. The key names what makes a list the same: a longer time it may take
// makes another one of it. A caller leaves with its context.
func (co *composer) composeOnce(ctx context.Context, p *composePlan) (*composedList, error) {
	if p.local != nil {
		return co.composeList(p)
	}
	name := fmt.Sprintf("%s %d %d %d", p.target.Key, p.kind.writes.Generation(), p.kind.writes.Changes(), p.most)
	call := co.group.DoChan(name, func() (list any, err error) {
		defer func() {
			if v := recover(); v != nil {
				err = fmt.Errorf("mirror: compose %s: panic: %v", p.target.Key, v)
			}
		}()
		return co.composeList(p)
	})
	select {
	case made := <-call:
		list, _ := made.Val.(*composedList)
		return list, made.Err
	case <-ctx.Done():
		return nil, fmt.Errorf("mirror: compose %s: %w", p.target.Key, ctx.Err())
	}
}
