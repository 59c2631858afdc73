// Warm: a page that is held, beside a bare handler with the same bytes.

package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// warm measures the drop-in's answer from memory: the time of one client
// alone, then requests a second of 16 clients beside a bare net/http server
// that hands out the same bytes, both with Go's default of all cores and both
// asked with the same headers, in alternating rounds.
func warm(ctx context.Context, r *run) (err error) {
	// Fresh throughout: this is about answering, not about refreshing.
	g, err := r.rig(ctx, set{mirror: "newest: 2h, older: 2h, final: 24h"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	uri := calls + "?PageSize=50"
	plain, zipped, err := stored(ctx, g, uri)
	if err != nil {
		return err
	}
	bareServer, err := r.bare(ctx, plain, zipped)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bareServer.stop()) }()
	d := r.findDriver()
	r.say("the page: %d bytes, %d gzipped; load by %s; access log to a file, as it is by default", len(plain), len(zipped), d.name)
	r.say("")
	b := &beside{run: r, driver: d, bare: bareServer, rig: g, uri: uri}
	if err := b.alone(ctx); err != nil {
		return err
	}
	for _, encoding := range []string{"gzip", "identity"} {
		if err := b.crowd(ctx, encoding); err != nil {
			return err
		}
	}
	return insideWarm(ctx, r, d, b.aim(uri, "gzip", 16, r.long(4*time.Second)))
}

// stored reads the page until it is answered from memory with a gzip variant
// ready, and gives the bytes both ways.
func stored(ctx context.Context, g *rig, uri string) (plain, zipped []byte, err error) {
	w := g.through()
	defer w.close()
	for range 50 {
		a, err := w.get(ctx, uri, "Accept-Encoding: gzip")
		if err != nil {
			return nil, nil, err
		}
		if a.status != http.StatusOK {
			return nil, nil, fmt.Errorf("status %d", a.status)
		}
		if a.header.Get("Content-Encoding") == "gzip" {
			zipped = a.body
		}
		if a, err = w.get(ctx, uri, "Accept-Encoding: identity"); err != nil {
			return nil, nil, err
		}
		plain = a.body
	}
	if zipped == nil {
		return nil, nil, errors.New("the page is never answered gzipped")
	}
	z, err := gzip.NewReader(bytes.NewReader(zipped))
	if err != nil {
		return nil, nil, err
	}
	unpacked, err := io.ReadAll(z)
	if err == nil && !bytes.Equal(unpacked, plain) {
		err = errors.New("the gzipped answer is not the plain one")
	}
	return plain, zipped, err
}

// bare starts the bench's own binary as a bare server.
func (r *run) bare(ctx context.Context, plain, zipped []byte) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p, z := filepath.Join(r.dir, "plain"), filepath.Join(r.dir, "zipped")
	if err := errors.Join(os.WriteFile(p, plain, 0o600), os.WriteFile(z, zipped, 0o600)); err != nil {
		return nil, err
	}
	return start(ctx, r.dir, "bare", "bare ", self, "bare", "-identity", p, "-gzip", z)
}

// beside measures two servers alternately with the same load.
type beside struct {
	*run
	driver driver
	bare   *child
	rig    *rig
	uri    string
}

// measured is one cell: a load and what the server spent on each request.
type measured struct {
	load
	each time.Duration
}

func (b *beside) measure(ctx context.Context, c *child, address, encoding string, clients int, long time.Duration) (measured, error) {
	return b.driver.measure(ctx, c, b.aim(address+b.uri, encoding, clients, long))
}

// measure runs a load against a server and says what that spent.
func (d driver) measure(ctx context.Context, c *child, a aim) (measured, error) {
	before, err := c.cpu()
	if err != nil {
		return measured{}, err
	}
	l, err := d.run(ctx, a)
	if err != nil {
		return measured{}, err
	}
	after, err := c.cpu()
	return measured{l, (after - before) / time.Duration(max(1, l.requests))}, err
}

// aim asks as a program does: with a credential, for one encoding.
func (b *beside) aim(url, encoding string, clients int, long time.Duration) aim {
	token := base64.StdEncoding.EncodeToString([]byte(account + ":" + ourToken))
	return aim{url, []string{"Authorization: Basic " + token, "Accept-Encoding: " + encoding}, clients, long}
}

// pair measures both, the one that goes first changing every round.
func (b *beside) pair(ctx context.Context, round int, encoding string, clients int, long time.Duration) (ours, bare measured, err error) {
	us := func() (err error) {
		ours, err = b.measure(ctx, b.rig.serve, b.rig.serve.addresses["twilio"], encoding, clients, long)
		return err
	}
	them := func() (err error) {
		bare, err = b.measure(ctx, b.bare, b.bare.addresses["bare"], encoding, clients, long)
		return err
	}
	if round%2 == 1 {
		us, them = them, us
	}
	if err = us(); err == nil {
		err = them()
	}
	return ours, bare, err
}

// alone is one client, one request at a time.
func (b *beside) alone(ctx context.Context) error {
	rows := [][]string{{"one client", "p50 ms", "p99 ms", "bare p50 ms", "bare p99 ms"}}
	slowest := 0.0
	for _, encoding := range []string{"gzip", "identity"} {
		var ours, bare [2][]time.Duration
		for round := range b.times(3, 1) {
			o, n, err := b.pair(ctx, round, encoding, 1, b.long(2*time.Second))
			if err != nil {
				return err
			}
			ours[0], ours[1] = append(ours[0], o.p50), append(ours[1], o.p99)
			bare[0], bare[1] = append(bare[0], n.p50), append(bare[1], n.p99)
		}
		slowest = max(slowest, ms(median(ours[0])))
		rows = append(rows, []string{encoding, figure(ms(median(ours[0]))), figure(ms(median(ours[1]))), figure(ms(median(bare[0]))), figure(ms(median(bare[1])))})
	}
	b.table(rows)
	b.atMost("warm page at one client, p50", slowest, 1, "ms")
	b.say("")
	return nil
}

// crowd is 16 clients; the ratio is taken within each round.
func (b *beside) crowd(ctx context.Context, encoding string) error {
	rows := [][]string{{"16 clients, " + encoding, "req/s", "CPU us/req", "p50 ms", "p99 ms", "bare req/s", "CPU us/req", "p50 ms", "p99 ms", "ratio"}}
	var ratios []float64
	for round := range b.times(9, 2) {
		o, n, err := b.pair(ctx, round, encoding, 16, b.long(4*time.Second))
		if err != nil {
			return err
		}
		ratios = append(ratios, o.rate/n.rate)
		row := []string{fmt.Sprintf("round %d", round+1)}
		for _, m := range []measured{o, n} {
			row = append(row, fmt.Sprintf("%.0f", m.rate), fmt.Sprintf("%.1f", float64(m.each)/1e3), figure(ms(m.p50)), figure(ms(m.p99)))
		}
		rows = append(rows, append(row, fmt.Sprintf("%.3f", o.rate/n.rate)))
	}
	b.table(rows)
	low, mid, high := quantile(ratios, 0.25), median(ratios), quantile(ratios, 0.75)
	b.say("ratio %s: median %.3f, quartiles %.3f to %.3f", encoding, mid, low, high)
	b.atLeast("requests a second beside a bare handler, "+encoding+", lower quartile", low, 0.85, "of it")
	b.say("")
	return nil
}
