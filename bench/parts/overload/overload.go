// Package overload is a part of the bench: three times as many cold questions as upstream's budget
// can answer, beside warm ones.
package overload

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"understudy/bench/rig"
)

// What the part asks of a budget of 10 requests a second.
const (
	budgetRate   = 10
	overTimes    = 3
	warmClients  = 8
	warmPace     = 20 * time.Millisecond // of one warm client
	coldPatience = 8 * time.Second       // of the queue
)

// Measure asks for cold pages at three times the rate upstream may be asked
// with, and for warm ones all the while.
func Measure(ctx context.Context, r *rig.Run) (err error) {
	long := time.Duration(r.Times(45, 4)) * time.Second
	g, err := r.Rig(ctx, rig.Setup{Latency: time.Second, Settings: []string{fmt.Sprintf("rate: %d", budgetRate)}, Mirror: "newest: 10m, older: 10m"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	w := g.Through()
	defer w.Close()
	if _, err := w.Page(ctx, rig.Calls); err != nil { // warm from now on
		return err
	}
	before, err := warmFor(ctx, g, time.Duration(r.Times(10, 1))*time.Second)
	if err != nil {
		return err
	}
	running, end := context.WithTimeout(ctx, long)
	defer end()
	var cold coldTold
	began := time.Now()
	var wg sync.WaitGroup
	wg.Go(func() { cold.flood(running, w) })
	during, err := warmFor(running, g, long)
	end()
	wg.Wait()
	answering := time.Since(began) // the last of them queue after the last question
	if err = errors.Join(err, cold.err); err != nil {
		return err
	}
	q, err := queue(ctx, g)
	if err != nil {
		return err
	}
	r.Table([][]string{
		rig.SpreadHead, rig.Spread("warm, nothing else going on", before), rig.Spread("warm, in the overload", during),
		rig.Spread("cold, answered", cold.answered), rig.Spread("cold, 503 with Retry-After", cold.refused),
	})
	r.Say("%v of %d cold questions a second where %d a second may be answered: %d answered, %d refused; the queue turned away %d",
		long, budgetRate*overTimes, budgetRate, len(cold.answered), len(cold.refused), q.Refused)
	r.AtMost("99 % of warm answers in the overload came within", rig.Ms(rig.Quantile(during, 0.99)), 100, "ms")
	r.AtMost("the longest any cold question queued", float64(q.LongestMS), rig.Ms(coldPatience), "ms")
	r.AtMost("99 % of refusals came within", rig.Ms(rig.Quantile(cold.refused, 0.99)), 100, "ms")
	r.Exactly("refusals without Retry-After, and other answers", int(cold.odd.Load()), 0)
	r.AtLeast("cold answers a second, of 10", float64(len(cold.answered))/answering.Seconds(), 8, "")
	return nil
}

// warmFor lets the warm clients ask for so long, each at its pace.
func warmFor(ctx context.Context, g *rig.Rig, long time.Duration) ([]time.Duration, error) {
	ctx, end := context.WithTimeout(ctx, long)
	defer end()
	took, errs := make([][]time.Duration, warmClients), make([]error, warmClients)
	var wg sync.WaitGroup
	for i := range warmClients {
		wg.Go(func() {
			w := g.Through()
			defer w.Close()
			pace := time.NewTicker(warmPace)
			defer pace.Stop()
			for ctx.Err() == nil {
				a, err := w.Page(ctx, rig.Calls)
				switch {
				case ctx.Err() != nil:
					return
				case err == nil && a.Waited():
					err = errors.New("a warm page waited for upstream")
				}
				if err != nil {
					errs[i] = err
					return
				}
				took[i] = append(took[i], a.Took)
				select {
				case <-pace.C:
				case <-ctx.Done():
				}
			}
		})
	}
	wg.Wait()
	var all []time.Duration
	for _, t := range took {
		all = append(all, t...)
	}
	return all, errors.Join(errs...)
}

// coldTold is the results of the clients that requested cold pages.
type coldTold struct {
	mu                sync.Mutex
	answered, refused []time.Duration
	odd               atomic.Int64 // neither
	err               error
}

// flood sends cold requests at an even pace, whether or not earlier ones have been answered, and waits for all answers.
func (c *coldTold) flood(ctx context.Context, w *rig.Client) {
	pace := time.NewTicker(time.Second / (budgetRate * overTimes))
	defer pace.Stop()
	var wg sync.WaitGroup
	for n := 0; ctx.Err() == nil; n++ {
		// Asked to its end, also when that is after the last second.
		wg.Go(func() {
			c.ask(context.WithoutCancel(ctx), w, fmt.Sprintf("%s?From=%%2B1555%07d&PageSize=5", rig.Calls, n))
		})
		select {
		case <-pace.C:
		case <-ctx.Done():
		}
	}
	wg.Wait()
}

func (c *coldTold) ask(ctx context.Context, w *rig.Client, uri string) {
	a, err := w.Get(ctx, uri)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err != nil:
		c.err = errors.Join(c.err, err)
	case a.Status == http.StatusOK:
		c.answered = append(c.answered, a.Took)
	case a.Status == http.StatusServiceUnavailable && a.Header.Get("Retry-After") != "" && json.Valid(a.Body):
		c.refused = append(c.refused, a.Took)
	default:
		c.odd.Add(1)
	}
}

// queued is how full a source's queue is and was.
type queued struct {
	Limit, Now, Refused int64
	LongestMS           int64 `json:"longest_ms"`
}

func queue(ctx context.Context, g *rig.Rig) (queued, error) {
	var s struct {
		Sources struct {
			Twilio struct{ Limits struct{ Queue queued } }
		}
	}
	err := rig.NewClient(g.Serve.Addresses["viewer"], "", "").Json(ctx, "/-/stats", &s)
	return s.Sources.Twilio.Limits.Queue, err
}
