// Slow pages: pages of the viewer while upstream takes a second.

package html

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	"understudy/bench/rig"
)

// slowLatency is what upstream takes for a list, give or take a fifth.
const slowLatency = time.Second

// slowPages asks for pages that need upstream, each once, by one client: when
// its first byte is there, and when all of it is.
func slowPages(ctx context.Context, r *rig.Run) (err error) {
	g, err := r.Rig(ctx, rig.Setup{Latency: slowLatency, Settings: []string{"rate: 1000"}, Mirror: "newest: 24h, older: 24h"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	held, err := heldCalls(ctx, g, 1)
	if err != nil {
		return err
	}
	direct := g.Direct()
	defer direct.Close()
	far, err := direct.Page(ctx, rig.Calls+"?PageSize=50&Page=50")
	if err != nil {
		return err
	}
	var unheld struct{ Calls []rig.CallRow }
	if err := json.Unmarshal(far.Body, &unheld); err != nil {
		return err
	}
	n := r.Times(15, 2)
	if len(held) < n || len(unheld.Calls) < n {
		return fmt.Errorf("%d calls are held, %d are not, want %d of each", len(held), len(unheld.Calls), n)
	}
	pages := []struct {
		name string
		uri  func(i int) string
	}{
		{"detail, its record held", func(i int) string { return "/twilio/calls/" + held[i].SID }},
		{"detail, nothing held", func(i int) string { return "/twilio/calls/" + unheld.Calls[i].SID }},
		{"list, nothing held", func(i int) string { return "/twilio/messages?To=" + url.QueryEscape(fmt.Sprint("+1500555", 1000+i)) }},
		{"number, nothing held", func(i int) string { return "/twilio/number/" + url.PathEscape(fmt.Sprint("+1500556", 1000+i)) }},
	}
	first := [][]string{append([]string{"ms to the first byte, upstream takes 1 s"}, rig.SpreadHead[1:]...)}
	all := [][]string{append([]string{"ms to the last byte, upstream takes 1 s"}, rig.SpreadHead[1:]...)}
	w := rig.NewClient(g.Serve.Addresses["viewer"], "", "")
	defer w.Close()
	var figures [][2][]time.Duration
	for _, p := range pages {
		var begun, ended []time.Duration
		for i := range n {
			at := time.Now()
			t, err := firstByte(ctx, w, p.uri(i), htmlHeaders("all", "gzip"))
			if err != nil {
				return err
			}
			begun, ended = append(begun, t), append(ended, time.Since(at))
		}
		first, all = append(first, rig.Spread(p.name, begun)), append(all, rig.Spread(p.name, ended))
		figures = append(figures, [2][]time.Duration{begun, ended})
	}
	r.Table(first)
	r.Table(all)
	r.AtMost("first byte, "+pages[0].name+", median", rig.Ms(rig.Median(figures[0][0])), 10, "ms")
	for i, p := range pages {
		r.AtMost("first byte, "+p.name+", 99 %", rig.Ms(rig.Quantile(figures[i][0], 0.99)), 30, "ms")
		r.AtMost("last byte over upstream's slowest answer, "+p.name+", 99 %", rig.Ms(rig.Quantile(figures[i][1], 0.99)-slowLatency*6/5), 20, "ms")
	}
	r.Say("")
	return leavers(ctx, r, g, n)
}

// leavers open a page of a number and leave it once upstream is asked: how long
// that goes on. The counters are read again and again.
func leavers(ctx context.Context, r *rig.Run, g *rig.Rig, n int) error {
	viewer := rig.NewClient(g.Serve.Addresses["viewer"], "", "")
	defer viewer.Close()
	until := func(asks bool) (took time.Duration, err error) {
		for began := time.Now(); ; {
			var c struct {
				Limits struct{ Flights struct{ Now int } }
			}
			if err := viewer.Json(ctx, "/-/stats", &c); err != nil {
				return 0, err
			}
			if took = time.Since(began); asks == (c.Limits.Flights.Now > 0) {
				return took, nil
			}
			if took > 2*slowLatency {
				return 0, fmt.Errorf("%d requests are under way after %v", c.Limits.Flights.Now, took)
			}
		}
	}
	var left []time.Duration
	for i := range n {
		if _, err := until(false); err != nil { // what the page before has asked ahead
			return err
		}
		page, leave := context.WithCancel(ctx)
		var reading sync.WaitGroup
		reading.Go(func() {
			w := rig.NewClient(g.Serve.Addresses["viewer"], "", "")
			defer w.Close()
			_, _ = w.Get(page, "/twilio/number/"+url.PathEscape(fmt.Sprint("+1500557", 1000+i)), htmlHeaders("all", "gzip")...)
		})
		_, err := until(true)
		leave()
		if err == nil {
			var took time.Duration
			took, err = until(false)
			left = append(left, took)
		}
		reading.Wait()
		if err != nil {
			return err
		}
	}
	r.Table([][]string{append([]string{"ms from a reader's leaving to upstream's"}, rig.SpreadHead[1:]...), rig.Spread("number, nothing held", left)})
	r.AtMost("what a reader has left goes on for, 99 %", rig.Ms(rig.Quantile(left, 0.99)), 50, "ms")
	r.Say("")
	return nil
}
