// Ask: a reader waits for upstream, with what is held as its second choice.

package mirror

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"understudy"
	"understudy/request"
)

// ask joins the key's flight. With nothing held the reader waits as long as it
// likes. With something held it waits for one try, for its own deadline or for
// Ages.Wait, whichever ends first, and then gets that. With SkipHeld it waits as long, and
// then gets an error.
func (rd *reader) ask(ctx context.Context, r *reading) (*request.Response, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("mirror: %s: %w", r.request.Target.Key, err)
	}
	f, joined, err := rd.joinFor(ctx, r)
	if err != nil {
		return rd.unjoined(ctx, r, err)
	}
	a, err := rd.wait(ctx, r, f, joined)
	if joined && f.completed() && f.result.err != nil &&
		(errors.As(err, new(*overQuotaError)) || f.hurried() && errors.Is(err, understudy.ErrUnavailable)) && !rd.composer.hasFallback(ctx, r) {
		// What was joined was begun with less patience than this reader has, or
		// ended by the filler that had to weigh it.
		if f, joined, err = rd.joinFor(ctx, r); err != nil {
			return rd.unjoined(ctx, r, err)
		}
		a, err = rd.wait(ctx, r, f, joined)
	}
	if err != nil {
		r.source.counts.failed.Add(1)
		err = rd.composer.unanswered(ctx, r, err)
	}
	return a, err
}

// unjoined answers a reader who could not join: what completed meanwhile, or, when
// too many wait already, what is held.
func (rd *reader) unjoined(ctx context.Context, r *reading, err error) (*request.Response, error) {
	var busy *understudy.UpstreamError
	switch {
	case errors.Is(err, errCompleted):
		again := reading{request: r.request, source: r.source, kind: r.kind, now: rd.env.now(), again: true,
			entry: rd.entries.hot.Find(r.request.Target.Key)}
		return rd.search(ctx, &again)
	case errors.As(err, &busy) && rd.composer.hasFallback(ctx, r):
		return rd.fallback(ctx, r, busy, err)
	}
	r.source.counts.failed.Add(1)
	return nil, rd.composer.unanswered(ctx, r, err)
}

func (rd *reader) joinFor(ctx context.Context, r *reading) (*flight, bool, error) {
	// What is never held was completed for those who waited for it alone.
	direct := within(&r.request) == 0 || r.kind.name == ""
	want := fetchOptions{reason: request.Waiting, direct: direct, flow: r.request.Flow,
		patient: func() bool { return !r.request.SkipHeld && !rd.composer.hasFallback(ctx, r) }}
	want.deadline, _ = ctx.Deadline()
	if r.held.page != nil {
		want.since = r.held.page.At
	}
	// No third look, and none for a request that may find what completed too old.
	want.blind = r.again || within(&r.request) != math.MaxInt64
	return rd.flights.join(r.request.Target, r.source, r.kind, want)
}

// wait waits for the flight and leaves it.
func (rd *reader) wait(ctx context.Context, r *reading, f *flight, joined bool) (*request.Response, error) {
	timer := time.NewTimer(rd.env.ages().Wait)
	defer timer.Stop()
	tried, late := f.signals.tried, timer.C
	keep := false
	defer func() { rd.flights.releaseReader(f, r.request.Flow, keep) }()
	for {
		var why *understudy.UpstreamError
		err := error(errSlow)
		select {
		case <-f.signals.done:
			return rd.answerOf(ctx, r, f, joined)
		case <-f.signals.offered:
			if !f.completed() {
				keep = true
				return rd.answerWith(r, f, f.signals.unsaved, joined, &request.Response{Detail: "not stored yet: saving it takes long"}), nil
			}
			return rd.answerOf(ctx, r, f, joined)
		case <-tried:
			why, err = f.signals.failure, fmt.Errorf("mirror: fetch %s: %w", r.request.Target.Key, f.signals.failure)
		case <-late:
		case <-ctx.Done():
			err = fmt.Errorf("mirror: %s: %w", r.request.Target.Key, ctx.Err())
		}
		switch left := ctx.Err(); {
		case left != nil && f.completed():
			return rd.answerOf(ctx, r, f, joined)
		case !errors.Is(left, context.Canceled) && rd.composer.hasFallback(ctx, r):
			keep = true
			return rd.fallback(ctx, r, why, err)
		case left != nil:
			return nil, rd.leaving(r, f, left)
		case r.request.SkipHeld: // as soon as with something held
			keep = true
			return nil, err
		}
		tried, late = nil, nil // upstream is all there is
	}
}

// leaving returns the error of a reader whose deadline ended before its flight: with the failure
// that the flight waits after, and what is left of the time that upstream wants.
func (rd *reader) leaving(r *reading, f *flight, left error) error {
	select {
	case <-f.signals.tried:
		failure := *f.signals.failure
		failure.Page = nil // the next try may bring another
		failure.RetryAfter = max(0, failure.RetryAfter-rd.env.now().Sub(f.signals.failedAt))
		return fmt.Errorf("mirror: %s: %w: %w", r.request.Target.Key, left, &failure)
	default:
		return fmt.Errorf("mirror: %s: %w", r.request.Target.Key, left)
	}
}

// errSlow: upstream has not answered in time, and what there was instead is gone.
var errSlow = &understudy.UpstreamError{Why: understudy.FailUnreachable, Err: errors.New("no answer in time")}

// answerOf answers from a flight that has completed.
func (rd *reader) answerOf(ctx context.Context, r *reading, f *flight, joined bool) (*request.Response, error) {
	switch {
	case f.result.err == nil:
		return rd.fetched(r, f, joined), nil
	case errors.Is(f.result.err, understudy.ErrClosed) || !rd.composer.hasFallback(ctx, r):
		return nil, f.result.err
	}
	var why *understudy.UpstreamError
	if !errors.As(f.result.err, &why) {
		why = &understudy.UpstreamError{Why: understudy.FailUnusable}
	}
	return rd.fallback(ctx, r, why, f.result.err)
}

// fetched is the answer upstream gave.
func (rd *reader) fetched(r *reading, f *flight, joined bool) *request.Response {
	a := &request.Response{Stored: f.result.stored, Detail: f.result.detail, Store: r.held.took + f.result.saving}
	return rd.answerWith(r, f, f.result.page, joined, a)
}

// answerWith is the answer upstream gave, completed with what is the same whether or
// not its page is saved already.
func (rd *reader) answerWith(r *reading, f *flight, p *understudy.Page, joined bool, a *request.Response) *request.Response {
	counts := &r.source.counts
	counts.cold.Add(1)
	if joined {
		counts.coalesced.Add(1)
	}
	if l := r.source.lists.Of(r.request.Target); !f.waiting.followed.Swap(true) && (l == nil || !l.RecordsFirst()) {
		rd.addCandidate(p, r.source, nil)
	}
	p = rd.shown(r, f, p)
	age, _ := rd.env.ages().age(rd.env.now(), p.At)
	a.Page, a.Outcome, a.Age, a.TTL = p, request.Cold, age, rd.env.ages().freshFor(&r.request, p, rd.env.ages().fresh(r.request.Target, p))-age
	a.Fwd, a.Joined, a.Upstream = r.fwd(), joined, p.Took
	if r.kind.name == "" {
		a.TTL = 0
	}
	return a
}

// fallbackHeld is the held answer: upstream failed, or was too slow when why
// is nil.
func (rd *reader) fallbackHeld(r *reading, why *understudy.UpstreamError) *request.Response {
	detail := "stale: upstream slow"
	if why != nil {
		detail = "stale: " + why.Short()
	}
	age, _ := rd.env.ages().age(rd.env.now(), r.held.page.At)
	return rd.answerStale(r, &r.held, age, detail)
}

// fwd is why the request went upstream (RFC 9211, 2.2).
func (r *reading) fwd() string {
	switch {
	case r.held.page == nil && !r.request.NoCache:
		return "uri-miss"
	case within(&r.request) == 0, r.forced:
		return "request"
	}
	return "stale"
}
