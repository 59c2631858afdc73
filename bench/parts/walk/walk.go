// Package walk is a part of the bench: all 5,000 calls with Twilio's own SDK, and
// as many of GitHub's issues with Google's.
package walk

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/twilio/twilio-go/client"
	twilio "github.com/twilio/twilio-go/rest/api/v2010"

	"understudy/bench/rig"
)

// Measure lists every call three times: directly, through Understudy for the
// first time, and through Understudy again. The SDK is as it is; only its
// Transport sends the provider's host elsewhere.
func Measure(ctx context.Context, r *rig.Run) (err error) {
	s := rig.Setup{Latency: time.Second}
	if r.Quick {
		s = rig.Setup{Latency: 50 * time.Millisecond, Records: 500, Settings: []string{"rate: 1000"}}
	}
	g, err := r.Rig(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	direct, want, err := listCalls(ctx, g.Direct())
	if err != nil {
		return fmt.Errorf("direct: %w", err)
	}
	var took []time.Duration
	rows := [][]string{{"walk", "calls", "seconds", "times faster than direct"}, row("direct", len(want), direct, direct)}
	for _, name := range []string{"through Understudy, first time", "second time", "third time"} {
		d, got, err := listCalls(ctx, g.Through())
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := same(want, got); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		took = append(took, d)
		rows = append(rows, row(name, len(got), d, direct))
	}
	r.Table(rows)
	r.AtLeast(fmt.Sprintf("walk of %d calls, second time against direct", len(want)), float64(direct)/float64(took[1]), 100, "times faster")
	return issues(ctx, r)
}

func row(name string, n int, d, direct time.Duration) []string {
	return []string{name, fmt.Sprint(n), fmt.Sprintf("%.3f", d.Seconds()), rig.Figure(float64(direct) / float64(d))}
}

// listCalls reads all calls page by page and gives their SIDs in order.
func listCalls(ctx context.Context, w *rig.Client) (time.Duration, []string, error) {
	defer w.Close()
	to, err := url.Parse(w.Base)
	if err != nil {
		return 0, nil, err
	}
	c := &client.Client{
		Credentials: client.NewCredentials(w.User, w.Password),
		HTTPClient:  &http.Client{Transport: elsewhere{ctx, to, w.Client.Transport}, Timeout: 10 * time.Second},
	}
	c.SetAccountSid(rig.Account)
	began := time.Now()
	list, err := twilio.NewApiServiceWithClient(c).ListCall(&twilio.ListCallParams{})
	took := time.Since(began)
	if err != nil {
		return took, nil, err
	}
	var sids []string
	for _, call := range list {
		sids = append(sids, *call.Sid)
	}
	return took, sids, ctx.Err()
}

// elsewhere sends every request to another host, and gives up with ctx.
type elsewhere struct {
	ctx  context.Context
	to   *url.URL
	next http.RoundTripper
}

// RoundTrip changes scheme and host only.
func (e elsewhere) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := e.ctx.Err(); err != nil {
		return nil, err
	}
	req = req.Clone(req.Context())
	req.URL.Scheme, req.URL.Host, req.Host = e.to.Scheme, e.to.Host, ""
	return e.next.RoundTrip(req)
}

func same(want, got []string) error {
	if len(want) != len(got) {
		return fmt.Errorf("%d records, direct %d", len(got), len(want))
	}
	for i := range want {
		if want[i] != got[i] {
			return fmt.Errorf("record %d is %s, direct %s", i, got[i], want[i])
		}
	}
	return nil
}
