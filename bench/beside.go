// Beside: a page that is held, asked in alternation with a bare server.

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

// stored reads the page until it is answered from memory with a gzip variant
// ready, and gives the bytes both ways.
func stored(ctx context.Context, g *Rig, uri string) (plain, zipped []byte, err error) {
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
	rig    *Rig
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
func (d driver) measure(ctx context.Context, c *child, a Target) (measured, error) {
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
func (b *beside) aim(url, encoding string, clients int, long time.Duration) Target {
	token := base64.StdEncoding.EncodeToString([]byte(account + ":" + ourToken))
	return Target{url, []string{"Authorization: Basic " + token, "Accept-Encoding: " + encoding}, clients, long}
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
