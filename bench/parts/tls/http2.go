// HTTP/2: a closed loop of clients, by h2load or by the client of net/http.

package tls

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"sync"
	"time"

	"understudy/bench/rig"
)

// findDriver returns h2load if it is installed, and the client of net/http otherwise and in a quick run.
func findDriver(r *rig.Run) rig.Driver {
	if r.Quick {
		return rig.Driver{Name: "net/http's client", Run: ownLoad}
	}
	if _, err := exec.LookPath("h2load"); err == nil {
		return rig.Driver{Name: "h2load, one thread", Run: h2load}
	}
	return rig.Driver{Name: "net/http's client (h2load is not installed: it is in Debian's package nghttp2-client)", Run: ownLoad}
}

var (
	h2loadRate  = regexp.MustCompile(`(?m)^finished in [^,]+, ([0-9.]+) req/s`)
	h2loadCount = regexp.MustCompile(`(?m)^requests: .* ([0-9]+) succeeded, 0 failed, 0 errored, 0 timeout$`)
	h2loadGood  = regexp.MustCompile(`(?m)^status codes: [0-9]+ 2xx, 0 3xx, 0 4xx, 0 5xx$`)
	h2loadHTTP2 = regexp.MustCompile(`(?m)^Application protocol: h2$`)
)

func h2load(ctx context.Context, a rig.Target) (l rig.Load, err error) {
	args := []string{"-t1", "-m1", fmt.Sprintf("-c%d", a.Clients), fmt.Sprintf("-D%d", max(1, int(a.Long/time.Second)))}
	for _, h := range a.Headers {
		args = append(args, "-H", h)
	}
	out, err := exec.CommandContext(ctx, "h2load", append(args, a.URL)...).CombinedOutput()
	if err != nil {
		return l, fmt.Errorf("h2load: %w: %s", err, out)
	}
	rate, count := h2loadRate.FindSubmatch(out), h2loadCount.FindSubmatch(out)
	if rate == nil || count == nil || !h2loadGood.Match(out) || !h2loadHTTP2.Match(out) {
		return l, fmt.Errorf("h2load: requests failed: %s", out)
	}
	l.Rate, _ = strconv.ParseFloat(string(rate[1]), 64)
	l.Requests, _ = strconv.Atoi(string(count[1]))
	return l, nil
}

// ownLoad sends the same request again and again on a connection for each client.
func ownLoad(ctx context.Context, a rig.Target) (rig.Load, error) {
	counts, errs := make([]int, a.Clients), make([]error, a.Clients)
	began := time.Now()
	var wg sync.WaitGroup
	for i := range a.Clients {
		wg.Go(func() {
			t := newTransport(2)
			defer t.CloseIdleConnections()
			for time.Since(began) < a.Long && errs[i] == nil {
				_, errs[i] = get(ctx, t, a, 2)
				counts[i]++
			}
		})
	}
	wg.Wait()
	var l rig.Load
	for _, n := range counts {
		l.Requests += n
	}
	l.Rate = float64(l.Requests) / time.Since(began).Seconds()
	return l, errors.Join(errs...)
}
