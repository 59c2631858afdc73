// Package flights is a part of the bench: many clients on one cold key, a leader that is killed, a
// deadline.
package flights

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"understudy/bench/rig"
)

// crowd is how many clients ask at once.
const crowd = 100

// Measure measures the three promises about shared fetches.
func Measure(ctx context.Context, r *rig.Run) (err error) {
	latency := time.Second
	if r.Quick {
		latency = 400 * time.Millisecond
	}
	g, err := r.Rig(ctx, rig.Setup{Latency: latency})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	if err := together(ctx, r, g); err != nil {
		return err
	}
	if err := leaderKilled(ctx, r, g); err != nil {
		return err
	}
	return impatient(ctx, r)
}

// together lets a hundred clients ask for one cold key at once.
func together(ctx context.Context, r *rig.Run, g *rig.Rig) error {
	rows := [][]string{{"100 clients, one cold key", "first answer ms", "last answer ms", "errors", "upstream requests for it"}}
	bad, most := 0, 0
	for round := range r.Times(5, 1) {
		uri := fmt.Sprintf("%s?PageSize=%d", rig.Calls, 20+round)
		t, err := tally(ctx, g, uri, ask(ctx, g, uri, crowd))
		if err != nil {
			return err
		}
		bad, most = bad+t.bad, max(most, t.upstream)
		rows = append(rows, append([]string{fmt.Sprintf("round %d", round+1)}, t.row()...))
	}
	r.Table(rows)
	r.Exactly("upstream requests for the key 100 clients asked for", most, 1)
	r.Exactly("clients of them that got an error", bad, 0)
	r.Say("")
	return nil
}

// leaderKilled lets one client ask, 99 join, and the first one leave after
// 300 ms, while upstream still works on the answer.
func leaderKilled(ctx context.Context, r *rig.Run, g *rig.Rig) error {
	rows := [][]string{{"leader killed after 300 ms", "first answer ms", "last answer ms", "errors", "upstream requests for it"}}
	bad, most := 0, 0
	for round := range r.Times(5, 1) {
		uri := fmt.Sprintf("%s?PageSize=%d", rig.Calls, 30+round)
		others, err := joinAndKill(ctx, g, uri)
		if err != nil {
			return err
		}
		t, err := tally(ctx, g, uri, others)
		if err != nil {
			return err
		}
		bad, most = bad+t.bad, max(most, t.upstream)
		rows = append(rows, append([]string{fmt.Sprintf("round %d", round+1)}, t.row()...))
	}
	r.Table(rows)
	r.Exactly("errors at the 99 others when the leader is killed", bad, 0)
	r.Exactly("upstream requests for that key", most, 1)
	r.Say("")
	return nil
}

func joinAndKill(ctx context.Context, g *rig.Rig, uri string) ([]outcome, error) {
	leaderCtx, kill := context.WithTimeout(ctx, 300*time.Millisecond)
	defer kill()
	leader := make(chan error, 1)
	w := g.Through()
	defer w.Close()
	go func() { _, err := w.Page(leaderCtx, uri); leader <- err }()
	for { // until the fetch is under way, and the leader's
		counts, err := g.Asked(ctx)
		if err != nil {
			return nil, err
		}
		if counts.ByTarget[uri] > 0 {
			break
		}
	}
	others := ask(ctx, g, uri, crowd-1)
	if err := <-leader; !errors.Is(err, context.DeadlineExceeded) {
		return nil, fmt.Errorf("the leader was to be killed, but: %w", err)
	}
	return others, nil
}

// tallied sums up what a crowd got.
type tallied struct {
	first, last   time.Duration
	bad, upstream int
}

func (t tallied) row() []string {
	return []string{rig.Figure(rig.Ms(t.first)), rig.Figure(rig.Ms(t.last)), fmt.Sprint(t.bad), fmt.Sprint(t.upstream)}
}

func tally(ctx context.Context, g *rig.Rig, uri string, got []outcome) (tallied, error) {
	var t tallied
	var took []time.Duration
	for _, o := range got {
		took = append(took, o.answer.Took)
		if o.err != nil || o.answer.Status != http.StatusOK {
			t.bad++
		}
	}
	t.first, t.last = rig.Quantile(took, 0), rig.Quantile(took, 1)
	counts, err := g.Asked(ctx)
	t.upstream = counts.ByTarget[uri]
	return t, err
}

// impatient lets a client with a deadline and one without ask for the same
// cold key of an upstream that needs five seconds.
func impatient(ctx context.Context, r *rig.Run) (err error) {
	latency, wait := 5*time.Second, 2*time.Second
	if r.Quick {
		latency, wait = 2*time.Second, time.Second
	}
	g, err := r.Rig(ctx, rig.Setup{Latency: latency})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	w := g.Through()
	defer w.Close()
	uri := rig.Calls + "?PageSize=33"
	patient := make(chan outcome, 1)
	go func() { a, err := w.Get(ctx, uri); patient <- outcome{a, err} }()
	a, err := w.Get(ctx, uri, fmt.Sprintf("Prefer: wait=%d", int(wait/time.Second)))
	if err != nil {
		return err
	}
	p := <-patient
	if p.err != nil {
		return p.err
	}
	r.Say("upstream needs %v: a waiter with a %v deadline got status %d after %s ms, one without got %d after %s ms",
		latency, wait, a.Status, rig.Figure(rig.Ms(a.Took)), p.answer.Status, rig.Figure(rig.Ms(p.answer.Took)))
	r.AtMost(fmt.Sprintf("a waiter with a %v deadline returns, away from it", wait), max(rig.Ms(a.Took-wait), rig.Ms(wait-a.Took)), 50, "ms")
	r.Exactly("status of the one without a deadline", p.answer.Status, http.StatusOK)
	return nil
}

// outcome is an answer or why there is none.
type outcome struct {
	answer rig.Answer
	err    error
}

// ask lets n clients, each with a connection of its own, ask at once.
func ask(ctx context.Context, g *rig.Rig, uri string, n int) []outcome {
	out := make([]outcome, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			w := g.Through()
			defer w.Close()
			a, err := w.Get(ctx, uri)
			out[i] = outcome{a, err}
		})
	}
	wg.Wait()
	return out
}
