// Package tunnel is a part of the bench: a warm page through an open tunnel of the proxy
// (CONNECT), beside the same page at the drop-in.
package tunnel

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"understudy/bench/rig"
)

// most is how much longer a warm request may take through a tunnel, in ms.
const most = 0.3

// Measure lets one client ask for a warm page, one request after the other: at the drop-in, and
// in a tunnel over HTTP/1.1 and HTTP/2. The rounds alternate, and each begins with another way.
// A time in a tunnel has TLS in it, the client's part too.
func Measure(ctx context.Context, r *rig.Run) (err error) {
	g, err := r.Rig(ctx, rig.Setup{Mirror: "newest: 2h, older: 2h, settled_age: 24h", Extra: `connect: {listen: "127.0.0.1:0"}`})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	ways := []way{{"drop-in", 1, g.Through()}}
	for version, name := range map[int]string{1: "tunnel, HTTP/1.1", 2: "tunnel, HTTP/2"} {
		c, err := through(g, version)
		if err != nil {
			return err
		}
		ways = append(ways, way{name, version, c})
	}
	if ways[1].version > ways[2].version {
		ways[1], ways[2] = ways[2], ways[1]
	}
	uri, n := rig.Calls+"?PageSize=50", r.Times(2000, 20)
	for _, w := range ways {
		defer w.Close()
		if err := w.warm(ctx, uri); err != nil {
			return err
		}
	}
	rounds := r.Times(9, 2)
	r.Say("one client, %d warm requests a round, %d alternating rounds; p50 of a round in ms, and what is more than at the drop-in in the same round", n, rounds)
	times, more := make([][]float64, len(ways)), make([][]float64, len(ways))
	for round := range rounds {
		p50 := make([]float64, len(ways))
		for i := range ways {
			at := (round + i) % len(ways)
			var all []time.Duration
			for range n {
				a, err := ways[at].Page(ctx, uri)
				if err != nil {
					return fmt.Errorf("%s: %w", ways[at].name, err)
				}
				all = append(all, a.Took)
			}
			p50[at] = rig.Ms(rig.Median(all))
		}
		for i := range ways {
			times[i], more[i] = append(times[i], p50[i]), append(more[i], p50[i]-p50[0])
		}
	}
	rows := [][]string{{"way", "p50 ms", "quartiles", "more ms", "quartiles"}}
	for i, w := range ways {
		rows = append(rows, []string{w.name, fmt.Sprintf("%.3f", rig.Median(times[i])), quartiles(times[i]), fmt.Sprintf("%.3f", rig.Median(more[i])), quartiles(more[i])})
	}
	r.Table(rows)
	for i, w := range ways[1:] {
		r.AtMost("a warm page by "+w.name+", more than at the drop-in", rig.Median(more[i+1]), most, "ms")
	}
	return nil
}

// way is a client that asks by one way.
type way struct {
	name    string
	version int // of HTTP
	*rig.Client
}

// warm makes the page warm and the connection open, and makes sure that the way is the right one.
func (w way) warm(ctx context.Context, uri string) error {
	for range 3 {
		a, err := w.Page(ctx, uri)
		if err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		if !a.Waited() {
			return nil
		}
	}
	return fmt.Errorf("%s: the page does not become warm", w.name)
}

// through is a client that asks the vendor's own host through a tunnel.
func through(g *rig.Rig, version int) (*rig.Client, error) {
	pem, err := os.ReadFile(filepath.Join(g.Dir, "data", "ca.pem"))
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, errors.New("ca.pem has no certificate")
	}
	proxy, err := url.Parse(g.Serve.Addresses["connect"])
	if err != nil {
		return nil, err
	}
	tr := &http.Transport{Proxy: http.ProxyURL(proxy), TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: version == 2}
	if version == 1 {
		tr.TLSClientConfig.NextProtos = []string{"http/1.1"}
	}
	return &rig.Client{Base: "https://api.twilio.com", User: rig.Account, Password: rig.OurToken,
		Client: &http.Client{Transport: of{tr, version}}}, nil
}

// of is a transport whose answers are of one version of HTTP, or none.
type of struct {
	*http.Transport
	version int
}

// RoundTrip asks once.
func (o of) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := o.Transport.RoundTrip(r)
	if err == nil && resp.ProtoMajor != o.version {
		_ = resp.Body.Close()
		return nil, fmt.Errorf("answered by HTTP/%d, want %d", resp.ProtoMajor, o.version)
	}
	return resp, err
}

func quartiles(all []float64) string {
	return fmt.Sprintf("%.3f to %.3f", rig.Quantile(all, 0.25), rig.Quantile(all, 0.75))
}
