// Asking upstream: a reader waits for a flight, a shared request to upstream. If the flight fails, the reader gets
// the stored page.

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

// askUpstream joins the flight for the request's key and waits for its page. Without a fallback, the reader waits
// until its own deadline. With a fallback, it gets the fallback after the first failed attempt, at its own deadline,
// or after Ages.Wait. With SkipStored, it waits equally long, but then gets an error.
func (rd *reader) askUpstream(ctx context.Context, r *reading) (*request.Response, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("mirror: %s: %w", r.request.Target.Key, err)
	}
	f, joined, err := rd.joinForReader(ctx, r)
	if err != nil {
		return rd.answerUnjoined(ctx, r, err)
	}
	a, err := rd.waitForFlight(ctx, r, f, joined)
	if joined && f.isCompleted() && f.result.err != nil &&
		(errors.As(err, new(*overQuotaError)) || f.isImpatient() && errors.Is(err, understudy.ErrUnavailable)) &&
		!rd.composer.hasFallback(ctx, r) {
		// The flight ended early, because it was started with less patience than this reader has, or because the fill
		// that started it had no memory left. Join again.
		if f, joined, err = rd.joinForReader(ctx, r); err != nil {
			return rd.answerUnjoined(ctx, r, err)
		}
		a, err = rd.waitForFlight(ctx, r, f, joined)
	}
	if err != nil {
		r.source.counts.failed.Add(1)
		err = rd.composer.explainUnanswered(ctx, r, err)
	}
	return a, err
}

// answerUnjoined answers a reader that could not join a flight. If a flight has completed in the meantime, it looks
// up the page again. If too many readers wait, it answers with the fallback.
func (rd *reader) answerUnjoined(ctx context.Context, r *reading, err error) (*request.Response, error) {
	var busy *understudy.UpstreamError
	switch {
	case errors.Is(err, errCompleted):
		again := reading{request: r.request, source: r.source, kind: r.kind, now: rd.env.now(), secondLook: true,
			entry: rd.entries.hot.Find(r.request.Target.Key)}
		return rd.search(ctx, &again)
	case errors.As(err, &busy) && rd.composer.hasFallback(ctx, r):
		return rd.answerFallback(ctx, r, busy, err)
	}
	r.source.counts.failed.Add(1)
	return nil, rd.composer.explainUnanswered(ctx, r, err)
}

// joinForReader joins the flight for the request's key. If none is running, it starts one.
func (rd *reader) joinForReader(ctx context.Context, r *reading) (*flight, bool, error) {
	// A completed flight of a kind that is not stored may answer only the readers that waited for it.
	direct := ageLimit(&r.request) == 0 || r.kind.name == ""
	want := fetchOptions{reason: request.ReasonWaiting, requireNew: direct, flow: r.request.Flow,
		cause:     request.TraceOf(ctx),
		isPatient: func() bool { return !r.request.SkipStored && !rd.composer.hasFallback(ctx, r) }}
	want.deadline, _ = ctx.Deadline()
	if r.stored.page != nil {
		want.newerThan = r.stored.page.At
	}
	// A second lookup is enough, and there is none if the request might reject the age of the page that was found.
	want.skipCacheCheck = r.secondLook || ageLimit(&r.request) != math.MaxInt64
	return rd.flights.join(r.request.Target, r.source, r.kind, want)
}

// waitForFlight waits for the flight and answers from its page, or with the fallback. It releases the flight.
func (rd *reader) waitForFlight(ctx context.Context, r *reading, f *flight, joined bool) (*request.Response, error) {
	tried, late := f.signals.tried, time.After(rd.env.ages().Wait)
	keep, cause := false, request.TraceOf(ctx)
	defer cause.End(cause.Begin("flight"), 0)
	defer func() { rd.flights.releaseReader(f, r.request.Flow, keep) }()
	for {
		var why *understudy.UpstreamError
		err := error(errUpstreamSlow)
		select {
		case <-f.signals.done:
			return rd.answerOf(ctx, r, f, joined)
		case <-f.signals.offered:
			if !f.isCompleted() {
				keep = true
				return rd.answerWith(r, f, f.signals.unsaved, joined, &request.Response{Detail: "not stored yet: saving takes long"}), nil
			}
			return rd.answerOf(ctx, r, f, joined)
		case <-tried:
			why, err = f.signals.failure, fmt.Errorf("mirror: fetch %s: %w", r.request.Target.Key, f.signals.failure)
		case <-late:
		case <-ctx.Done():
			err = fmt.Errorf("mirror: %s: %w", r.request.Target.Key, ctx.Err())
		}
		switch left := ctx.Err(); {
		case left != nil && f.isCompleted():
			return rd.answerOf(ctx, r, f, joined)
		case !errors.Is(left, context.Canceled) && rd.composer.hasFallback(ctx, r):
			keep = true
			return rd.answerFallback(ctx, r, why, err)
		case left != nil:
			return nil, rd.buildDeadlineError(r, f, left)
		case r.request.SkipStored: // the request refuses stored pages, but waits only as long as if there were a fallback
			keep = true
			return nil, err
		}
		tried, late = nil, nil // without a fallback, the reader waits for upstream until its deadline
	}
}

// buildDeadlineError returns the error for a reader whose deadline passed before the flight ended. The error has the
// failure of the first attempt and the rest of upstream's Retry-After.
func (rd *reader) buildDeadlineError(r *reading, f *flight, left error) error {
	select {
	case <-f.signals.tried:
		failure := *f.signals.failure
		failure.Page = nil // the page of this failure is left out, because the next attempt may have another response
		failure.RetryAfter = max(0, failure.RetryAfter-rd.env.now().Sub(f.signals.failedAt))
		return fmt.Errorf("mirror: %s: %w: %w", r.request.Target.Key, left, &failure)
	default:
		return fmt.Errorf("mirror: %s: %w", r.request.Target.Key, left)
	}
}

// errUpstreamSlow is the error that upstream did not answer in time and that no stored answer could be used.
var errUpstreamSlow = &understudy.UpstreamError{Why: understudy.FailUnreachable, Err: errors.New("no answer in time")}

// answerOf answers with the page of a completed flight, or if the flight failed, with the fallback.
func (rd *reader) answerOf(ctx context.Context, r *reading, f *flight, joined bool) (*request.Response, error) {
	switch {
	case f.result.err == nil:
		a := &request.Response{Stored: f.result.stored, Detail: f.result.detail, StoreTime: r.stored.loadTime + f.result.saveDuration}
		return rd.answerWith(r, f, f.result.page, joined, a), nil
	case errors.Is(f.result.err, understudy.ErrClosed) || !rd.composer.hasFallback(ctx, r):
		return nil, f.result.err
	}
	var why *understudy.UpstreamError
	if !errors.As(f.result.err, &why) {
		why = &understudy.UpstreamError{Why: understudy.FailUnusable}
	}
	return rd.answerFallback(ctx, r, why, f.result.err)
}

// answerWith fills in the response for a fetched page, whether or not the page has been saved yet.
func (rd *reader) answerWith(r *reading, f *flight, p *understudy.Page, joined bool, a *request.Response) *request.Response {
	counts := &r.source.counts
	counts.cold.Add(1)
	if joined {
		counts.coalesced.Add(1)
	}
	if l := r.source.lists.Find(r.request.Target); !f.waiting.followed.Swap(true) && (l == nil || !l.IsRecordsFirst()) {
		rd.addCandidate(p, r.source, nil)
	}
	p = rd.addMovedRows(r, f, p)
	age, _ := rd.env.ages().age(rd.env.now(), p.At)
	ages := rd.env.ages()
	a.Page, a.Outcome, a.Age = p, request.Cold, age
	a.TTL = ages.requestFreshTime(&r.request, p, ages.pageFreshTime(r.request.Target, p)) - age
	a.ForwardReason, a.Joined, a.UpstreamTime = r.forwardReason(), joined, p.Took
	if r.kind.name == "" {
		a.TTL = 0
	}
	return a
}

// answerStored answers with the stored page because upstream failed, or was too slow if why is nil.
func (rd *reader) answerStored(r *reading, why *understudy.UpstreamError) *request.Response {
	detail := "stale: upstream slow"
	if why != nil {
		detail = "stale: " + why.ShortText()
	}
	age, _ := rd.env.ages().age(rd.env.now(), r.stored.page.At)
	return rd.answerStale(r, &r.stored, age, detail)
}

// forwardReason returns the reason, as RFC 9211, 2.2 names it, why the request was sent to upstream.
func (r *reading) forwardReason() string {
	switch {
	case r.stored.page == nil && !r.request.NoCache:
		return "uri-miss"
	case ageLimit(&r.request) == 0, r.forced:
		return "request"
	}
	return "stale"
}
