// Package observe is a part of the bench. It measures what it costs to watch the server: its access log, metrics, traces and locks.
package observe

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"sync"
	"time"

	"understudy/bench/rig"
)

// traceCount is the number of different traces that the clients send. More would only fill the caches that wrk shares with the server.
const traceCount = 16

// Measure requests the warm drop-in page with 16 clients, in alternating rounds from two servers. One has no access log, nobody
// reads its metrics, and its clients send no trace. The other writes its access log into a file, exports traces, watches its locks, has its
// metrics read, and its clients send the traces of requests that are not sampled, in each request another one.
func Measure(ctx context.Context, r *rig.Run) (err error) {
	collector := httptest.NewServer(http.NotFoundHandler())
	defer collector.Close()
	const mirror = "newest: 2h, older: 2h, settled_age: 24h"
	uri := rig.Calls + "?PageSize=50"
	var servers [2]*rig.Rig
	for i, s := range []rig.Setup{
		{Mirror: mirror, Log: "access: off"},
		{Mirror: mirror, Log: "access: " + filepath.Join(r.Dir, "access.log"), Extra: fmt.Sprintf("tracing: {endpoint: %q}", collector.URL)},
	} {
		if servers[i], err = r.Rig(ctx, s); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, servers[i].Close()) }()
		if _, _, err := rig.Stored(ctx, servers[i], uri); err != nil {
			return err
		}
	}
	watched, err := http.PostForm(servers[1].Serve.Addresses["viewer"]+"/-/locks", url.Values{"watch": {"on"}})
	if err != nil {
		return err
	}
	if err := watched.Body.Close(); err != nil || watched.StatusCode != http.StatusOK { // of the page to which it redirects
		return fmt.Errorf("the locks are not watched: %s (%w)", watched.Status, err)
	}
	var traces []string
	for range traceCount {
		traces = append(traces, fmt.Sprintf("Traceparent: 00-%016x%016x-%016x-00", rand.Uint64(), rand.Uint64(), rand.Uint64()))
	}
	d, long := r.FindDriver(), r.Long(time.Second) // many short rounds, because the machine changes from second to second
	rows := [][]string{{"16 clients", "off, req/s", "CPU us/req", "p99 ms", "on, req/s", "CPU us/req", "p99 ms", "more CPU us"}}
	var more []float64
	for round := range r.Times(60, 2) {
		var cells [2]rig.Measured
		for i := range servers {
			n := (i + round) % 2
			a := rig.Aim(servers[n].Serve.Addresses["twilio"]+uri, "gzip", 16, long)
			a.Together = 1 // so that wrk works as much without traces
			var reader sync.WaitGroup
			if n == 1 {
				a.Varying = traces
				reader.Go(func() { scrape(ctx, servers[n]) })
			}
			cells[n], err = d.Measure(ctx, servers[n].Serve, a)
			reader.Wait()
			if err != nil {
				return err
			}
		}
		more = append(more, rig.Us(cells[1].Each)-rig.Us(cells[0].Each))
		row := []string{fmt.Sprintf("round %d", round+1)}
		for _, c := range cells {
			row = append(row, fmt.Sprintf("%.0f", c.Rate), fmt.Sprintf("%.2f", rig.Us(c.Each)), rig.Figure(rig.Ms(c.P99)))
		}
		rows = append(rows, append(row, fmt.Sprintf("%.2f", more[round])))
	}
	r.Table(rows)
	counts, err := servers[1].Counted(ctx)
	if err != nil {
		return err
	}
	r.Say("answers of the express lane with a trace: %d of %d", counts.Faces["twilio"].Express, counts.Requests)
	r.Say("more CPU: median %.2f us, quartiles %.2f to %.2f us", rig.Median(more), rig.Quantile(more, 0.25), rig.Quantile(more, 0.75))
	r.AtMost("CPU more for a warm request with access log, metrics, trace and lock watch, median of the rounds", rig.Median(more), 0.5, "us")
	return nil
}

// scrape reads the metrics once in a round. Prometheus reads them every 15 s to 60 s by default.
func scrape(ctx context.Context, g *rig.Rig) {
	w := rig.NewClient(g.Serve.Addresses["viewer"], "", "")
	defer w.Close()
	_, _ = w.Get(ctx, "/-/metrics") // a read that fails costs less, which the next one shows
}
