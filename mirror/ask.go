// Ask: a reader waits for upstream, with what is held as its second choice.

package mirror

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"understudy"
)

// ask joins the key's flight. With nothing held the reader waits as long as it
// likes. With something held it waits for one try, for its own deadline or for
// Ages.Wait, whichever ends first, and then gets that.
func (m *Mirror) ask(ctx context.Context, r *reading) (*understudy.Answer, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("mirror: %s: %w", r.Target.Key, err)
	}
	m.spareFor(ctx, r)
	f, joined, err := m.joinFor(ctx, r)
	if err != nil {
		return m.unjoined(ctx, r, err)
	}
	a, err := m.wait(ctx, r, f, joined)
	if joined && f.landed() && f.err != nil && !r.seconds() && (errors.As(err, new(*heavyError)) || (!f.patient || !f.by.IsZero()) && errors.Is(err, understudy.ErrUnavailable)) {
		// What was joined was begun with less patience than this reader has, or
		// ended by whoever had to weigh it.
		if f, joined, err = m.joinFor(ctx, r); err != nil {
			return m.unjoined(ctx, r, err)
		}
		a, err = m.wait(ctx, r, f, joined)
	}
	if err != nil {
		r.source.counts.failed.Add(1)
	}
	return a, err
}

// unjoined answers a reader who could not join: what landed meanwhile, or, when
// too many wait already, what is held.
func (m *Mirror) unjoined(ctx context.Context, r *reading, err error) (*understudy.Answer, error) {
	var busy *understudy.UpstreamError
	switch {
	case errors.Is(err, errLanded):
		return m.searchAgain(ctx, r)
	case errors.As(err, &busy) && r.seconds():
		return m.second(ctx, r, busy, err)
	}
	r.source.counts.failed.Add(1)
	return nil, err
}

func (m *Mirror) joinFor(ctx context.Context, r *reading) (*flight, bool, error) {
	// What is never held was landed for those who waited for it, and nobody else.
	direct := within(&r.Ask) == 0 || r.kind.name == ""
	want := errand{reason: understudy.Waiting, patient: !r.seconds(), direct: direct, turn: r.Turn}
	want.by, _ = ctx.Deadline()
	if r.held.page != nil {
		want.since = r.held.page.At
	}
	// No third look, and none for an asker who may find what landed too old.
	want.blind = r.again || within(&r.Ask) != math.MaxInt64
	return m.join(r.Target, r.source, r.kind, want)
}

// searchAgain looks once more at what is held.
func (m *Mirror) searchAgain(ctx context.Context, r *reading) (*understudy.Answer, error) {
	return m.search(ctx, &reading{Ask: r.Ask, source: r.source, kind: r.kind, now: m.now(), again: true})
}

// wait waits for the flight and leaves it.
func (m *Mirror) wait(ctx context.Context, r *reading, f *flight, joined bool) (*understudy.Answer, error) {
	var tried <-chan struct{}
	var late <-chan time.Time
	if r.seconds() {
		timer := time.NewTimer(m.ages().Wait)
		defer timer.Stop()
		tried, late = f.tried, timer.C
	}
	keep := false
	defer func() { m.part(f, r.Turn, keep) }()
	select {
	case <-f.done:
		return m.landedFor(ctx, r, f, joined)
	case <-f.brought:
		if !f.landed() {
			keep = true
			return m.given(r, f, f.unsaved, joined, &understudy.Answer{Detail: "not stored yet: saving it takes long"}), nil
		}
		return m.landedFor(ctx, r, f, joined)
	case <-tried:
		keep = true
		return m.second(ctx, r, f.failure, fmt.Errorf("mirror: fetch %s: %w", r.Target.Key, f.failure))
	case <-late:
		keep = true
		return m.second(ctx, r, nil, errSlow)
	case <-ctx.Done():
	}
	switch {
	case f.landed():
		return m.landedFor(ctx, r, f, joined)
	case r.seconds() && errors.Is(ctx.Err(), context.DeadlineExceeded):
		keep = true
		return m.second(ctx, r, nil, fmt.Errorf("mirror: %s: %w", r.Target.Key, ctx.Err()))
	}
	return nil, fmt.Errorf("mirror: %s: %w", r.Target.Key, ctx.Err())
}

// errSlow: upstream has not answered in time, and what there was instead is gone.
var errSlow = &understudy.UpstreamError{Why: understudy.FailUnreachable, Err: errors.New("no answer in time")}

// landedFor answers from a flight that has landed.
func (m *Mirror) landedFor(ctx context.Context, r *reading, f *flight, joined bool) (*understudy.Answer, error) {
	switch {
	case f.err == nil:
		return m.fetched(r, f, joined), nil
	case !r.seconds() || errors.Is(f.err, understudy.ErrClosed):
		return nil, f.err
	}
	var why *understudy.UpstreamError
	if !errors.As(f.err, &why) {
		why = &understudy.UpstreamError{Why: understudy.FailUnusable}
	}
	return m.second(ctx, r, why, f.err)
}

// fetched is the answer upstream gave.
func (m *Mirror) fetched(r *reading, f *flight, joined bool) *understudy.Answer {
	return m.given(r, f, f.page, joined, &understudy.Answer{Stored: f.stored, Detail: f.detail, Store: r.held.took + f.saving})
}

// given is the answer upstream gave, completed with what is the same whether or
// not its page is saved already.
func (m *Mirror) given(r *reading, f *flight, p *understudy.Page, joined bool, a *understudy.Answer) *understudy.Answer {
	counts := &r.source.counts
	counts.cold.Add(1)
	if joined {
		counts.coalesced.Add(1)
	}
	if l := r.source.listing(r.Target); !f.followed.Swap(true) && (l == nil || !l.first()) {
		m.hope(p, r.source, nil)
	}
	age, _ := m.ages().age(m.now(), p.At)
	a.Page, a.How, a.Age, a.TTL = p, understudy.Cold, age, m.ages().freshFor(&r.Ask, p, m.ages().fresh(r.Target, p))-age
	a.Fwd, a.Joined, a.Upstream = r.fwd(), joined, p.Took
	if r.kind.name == "" {
		a.TTL = 0
	}
	return a
}

// secondChoice is the held answer: upstream failed, or was too slow when why
// is nil.
func (m *Mirror) secondChoice(r *reading, why *understudy.UpstreamError) *understudy.Answer {
	detail := "stale: upstream slow"
	if why != nil {
		detail = "stale: " + why.Short()
	}
	age, _ := m.ages().age(m.now(), r.held.page.At)
	return m.pastFresh(r, &r.held, age, detail)
}

// fwd is why the request went upstream (RFC 9211, 2.2).
func (r *reading) fwd() string {
	switch {
	case r.held.page == nil && !r.NoCache:
		return "uri-miss"
	case within(&r.Ask) == 0, r.forced:
		return "request"
	}
	return "stale"
}
