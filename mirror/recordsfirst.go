// Records first: which lists are composed from records before upstream is asked, after upstream has failed, or always.

package mirror

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"understudy"
	"understudy/mirror/compose"
	"understudy/request"
	"understudy/spec"
)

// answerQuery composes the answer to a query. If a write has touched the kind, it first waits until the newest page
// shows the result of the write.
func (co *composer) answerQuery(ctx context.Context, r *reading) (*request.Response, error) {
	if x := co.findComposed(ctx, r.kind, r.request.Local); x != nil {
		return co.answerList(r, x)
	}
	p, err := co.planCompose(ctx, r.source, r.kind, r.request.Target, r.request.Local)
	if a := co.answerRefusal(r.source, r.request.Target, err); a != nil {
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
	if r.request.Local != nil && r.request.Local.Cache != nil && x.plan != nil {
		again := *x
		again.composeTime = 0 // the list has been composed for an earlier request, so composing took no time now
		r.request.Local.Cache.List.Store(&again)
	}
	return co.answerList(r, x)
}

// answerList answers with a composed list, unless the request does not accept its age.
func (co *composer) answerList(r *reading, x *composedList) (*request.Response, error) {
	ask := r.request
	ask.AgeLimit = nil // a fetch from upstream would not give a newer list
	h := x.storedPage(co.env.ages())
	switch v, _ := co.env.ages().decide(&h, co.env.ages().requestBounds(&ask), r.now); {
	case v == tooOld:
		return nil, buildTooOldError(r.kind)
	case v == askFirst && r.request.OnlyIfCached && (ask.NoCache || ask.MaxAge != nil || ask.MinFresh != nil):
		return nil, understudy.ErrNoStoredAnswer
	}
	return co.answerComposed(r.source, x, "composed"), nil
}

// showWritten fetches the polled newest pages of a kind that are older than the last write to it, and waits for them.
// Without that, a caller would not find a record that it has just created in a composed list. It sends no request if
// upstream is down, or if a page has been fetched since the write.
func (co *composer) showWritten(ctx context.Context, r *reading) {
	ctx, cancel := context.WithTimeout(ctx, co.env.ages().Wait)
	defer cancel()
	for _, p := range r.source.polls() {
		if p.kind == r.kind && p.list.Whole && !p.list.NewestAt().After(r.kind.writes.LastWrite()) {
			co.waitFor(ctx, r, p)
		}
	}
}

// waitFor waits until a polled page has been fetched and its records are saved. It shares the fetch with all readers
// of the page. The fetch must have begun after the request or after all earlier writes. If a purge outdates the page,
// it waits for another fetch.
func (co *composer) waitFor(ctx context.Context, r *reading, p *poll) {
	for ctx.Err() == nil {
		f, err := co.waitOnce(ctx, r, p)
		switch {
		case err != nil || f.result.err != nil || f.result.page.Status >= 400:
			return
		case f.result.saveErr == nil:
			p.list.SetNewest(f.result.page, !f.isInvalidated())
			return
		case f.result.restSaved, !errors.Is(f.result.saveErr, understudy.ErrOutdated):
			return
		}
	}
}

// waitOnce waits for one flight to a polled page. It does not join a flight that a write has invalidated.
func (co *composer) waitOnce(ctx context.Context, r *reading, p *poll) (*flight, error) {
	want := fetchOptions{reason: request.ReasonWaiting, requireNew: true, flow: r.request.Flow}
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

// tryRecordsFirst answers with a composed list before upstream is asked. It returns nil if upstream must be asked,
// because records may be missing or are too old for the request.
func (co *composer) tryRecordsFirst(ctx context.Context, r *reading) *request.Response {
	if !r.canTrustRecords() {
		return nil
	}
	p, err := co.planFor(ctx, r)
	if a := co.answerRefusal(r.source, r.request.Target, err); a != nil {
		return a
	}
	if err != nil || p.list.HasNumberedPages() {
		return nil // other pages of a list with numbered pages come from upstream, so this page must too
	}
	stored := storedPage{page: &understudy.Page{At: p.coverage.At}, state: current}
	if p.outdated {
		stored.state = outdated
	}
	if !co.isAcceptable(r, &stored, &p.coverage) {
		return nil
	}
	r.plan = nil                         // composing uses up the plan
	p.timeLimit = co.env.ages().Wait / 8 // this is short, because upstream can be asked instead and may be faster
	x, err := co.composeOnce(ctx, p)
	if err != nil {
		co.env.log.Debug("mirror: a list could not be built from records; upstream is asked", "error", err)
		return nil
	}
	h := x.storedPage(co.env.ages())
	if !co.isAcceptable(r, &h, &x.coverage) {
		return nil
	}
	return co.answerComposed(r.source, x, "composed")
}

// planFor returns the plan of the composed list for a request. It makes the plan once and returns it until the list
// is composed.
func (co *composer) planFor(ctx context.Context, r *reading) (*composePlan, error) {
	if r.plan == nil && r.planErr == nil {
		r.plan, r.planErr = co.planCompose(ctx, r.source, r.kind, r.request.Target, nil)
	}
	return r.plan, r.planErr
}

// isAcceptable reports whether the request accepts a composed list of this age.
func (co *composer) isAcceptable(r *reading, h *storedPage, c *request.Coverage) bool {
	ages := co.env.ages()
	h.fresh = ages.Records
	if !c.Newest.IsZero() {
		// Readers of the newest page itself may get a page of the same age.
		if age, sane := ages.age(r.now, c.Newest); !sane || age >= ages.Newest+ages.Stale {
			return false
		}
	}
	v, _ := ages.decide(h, ages.requestBounds(&r.request), r.now)
	return v == fresh || v == stale
}

// hasFallback reports whether the request can be answered if upstream does not answer. If no page is stored, the
// first call plans a composed list, even after the reader's deadline. It is safe for concurrent use.
func (co *composer) hasFallback(ctx context.Context, r *reading) bool {
	if r.stored.page != nil {
		return true
	}
	co.prepareFallback(ctx, r)
	return r.hasPlan
}

// prepareFallback calls planFallback unless this request has called it before.
func (co *composer) prepareFallback(ctx context.Context, r *reading) {
	r.planning.Do(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), co.env.ages().Wait)
		defer cancel()
		co.planFallback(ctx, r)
		r.hasPlan = r.composedFallback != nil || r.refusal != nil
	})
}

// planFallback decides whether an answer can be composed from records if upstream does not answer.
func (co *composer) planFallback(ctx context.Context, r *reading) {
	if co.coverage == nil || r.kind.name == "" || r.storedForbidden {
		return
	}
	if r.request.Target.List == nil {
		r.refusal = co.absentPage(ctx, r)
		return
	}
	p, err := co.planFor(ctx, r)
	defer func() { r.planFailure = err }()
	if r.refusal = refusalPage(r.request.Target, err, co.env.now()); err != nil {
		return
	}
	if !r.canTrustRecords() {
		err = &compose.Uncovered{Why: r.kind.name + ": not yet known whether upstream's list shows all of them"}
		return
	}
	// the list's newest record may be missing, because its form in this list is not known
	if rows := r.request.Target.List.Rows; rows != nil && rows.AsSeen {
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
	err = buildTooOldError(r.kind)
}

// buildTooOldError returns the error that the records of a list are older than any answer may be.
func buildTooOldError(k *kind) error {
	return &compose.Uncovered{Why: k.name + ": the last walk is too long ago"}
}

// explainUnanswered adds to an error of upstream why the list could not be composed from records either.
func (co *composer) explainUnanswered(ctx context.Context, r *reading, err error) error {
	if r.request.SkipStored || errors.As(err, new(*understudy.NotComposedError)) {
		return err
	}
	if !errors.Is(err, understudy.ErrUnavailable) && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if co.prepareFallback(ctx, r); r.planFailure == nil {
		return err
	}
	return &understudy.NotComposedError{Err: err, Why: r.planFailure}
}

// absentPage returns the 404 response that upstream would send for a record that does not exist. It returns nil
// unless all records of the kind are stored. The response is as old as the last full read of them. It is used only if
// upstream fails, because the record may be new.
func (co *composer) absentPage(ctx context.Context, r *reading) *understudy.Page {
	t, s, sp := r.request.Target, r.source, r.request.Target.Kind
	if t.Instance == nil || t.ID == "" || t.Slashed || len(t.Query) > 0 || r.stored.page != nil || sp.UnscopedVar() != "" ||
		sp.Retention.Unlisted || sp.Retention.WithParent {
		return nil
	}
	if !s.config.CanReach(t) {
		return nil
	}
	if slices.ContainsFunc(sp.Lists, func(l *spec.List) bool { return !l.IsComplete() && !l.HasRequiredFilter() }) {
		return nil // upstream leaves some records out of its lists, so the record may exist
	}
	c, whole := co.coverage.Coverage(s.config.Name, r.kind.name, t.RootID(), "", 0, 0)
	ages := co.env.ages()
	if age, sane := ages.age(co.env.now(), c.At); !whole || c.From != 0 || !sane || age >= ages.Hard || co.hasUnseenWrite(ctx, r.kind, &c) {
		return nil
	}
	if rec, err := co.holdings.findRecord(ctx, s, sp, t.ID); rec != nil || err != nil {
		return nil
	}
	return refusalPage(t, compose.RefuseNotFound(t), c.At)
}

// canTrustRecords reports whether a list composed from records may be the answer, before upstream is asked or instead of that.
// If the spec does not say that the list shows all records, a comparison must have shown it. For a list without filters one
// comparison is enough. A list with filters must have had enough equal comparisons in a row to be composed first.
func (r *reading) canTrustRecords() bool {
	l := r.source.lists.Find(r.request.Target)
	if l == nil || r.request.Target.List.IsComplete() || l.IsRecordsFirst() {
		return true
	}
	return r.request.Target.IsWholeList() && l.HasEqualSample()
}

// answerFallback answers after upstream has failed, or if why is nil, was too slow. It uses the stored page or a
// composed list, whichever is newer. If there is neither, it returns err.
func (rd *reader) answerFallback(ctx context.Context, r *reading, why *understudy.UpstreamError, err error) (*request.Response, error) {
	rd.composer.prepareFallback(ctx, r)
	detail := "upstream slow"
	if why != nil {
		detail = why.ShortText()
	}
	switch p := r.composedFallback; {
	case r.refusal != nil && r.stored.page == nil:
		r.source.counts.composed.Add(1)
		age, _ := rd.env.ages().age(rd.env.now(), r.refusal.At)
		return &request.Response{Page: r.refusal, Outcome: request.Composed, Age: age, Detail: "composed: " + detail}, nil
	case p != nil && (r.stored.page == nil || p.hasNumberedPages() || p.coverage.At.After(r.stored.page.At)):
		r.composedFallback = nil // composing uses up the plan
		x, bad := rd.composer.composeOnce(context.WithoutCancel(ctx), p)
		if bad == nil {
			return rd.composer.answerComposed(r.source, x, "composed: "+detail), nil
		}
		if errors.Is(bad, understudy.ErrClosed) {
			return nil, bad
		}
		err = &understudy.NotComposedError{Err: err, Why: bad}
	}
	if r.stored.page == nil {
		return nil, err
	}
	return rd.answerStored(r, why), nil
}

// composeOnce composes a list once for all callers who want the same list at the same time, unless their time limits
// differ. A caller stops waiting when its context ends.
func (co *composer) composeOnce(ctx context.Context, p *composePlan) (*composedList, error) {
	cause := request.TraceOf(ctx)
	defer cause.End(cause.Begin("compose"), 0)
	if p.local != nil {
		return co.composeList(p)
	}
	name := fmt.Sprintf("%s %d %d %d", p.target.Key, p.kind.writes.Generation(), p.kind.writes.Changes(), p.timeLimit)
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
