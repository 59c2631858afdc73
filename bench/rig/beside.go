// Beside: a page that is held, asked in alternation with a bare server.

package rig

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

// Stored requests a page until it is answered from memory with a gzipped variant, and returns the plain and the
// gzipped bytes.
func Stored(ctx context.Context, g *Rig, uri string) (plain, zipped []byte, err error) {
	w := g.Through()
	defer w.Close()
	for range 50 {
		a, err := w.Get(ctx, uri, "Accept-Encoding: gzip")
		if err != nil {
			return nil, nil, err
		}
		if a.Status != http.StatusOK {
			return nil, nil, fmt.Errorf("status %d", a.Status)
		}
		if a.Header.Get("Content-Encoding") == "gzip" {
			zipped = a.Body
		}
		if a, err = w.Get(ctx, uri, "Accept-Encoding: identity"); err != nil {
			return nil, nil, err
		}
		plain = a.Body
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

// Bare starts the bench's own binary as a server of net/http that sends stored bytes.
func (r *Run) Bare(ctx context.Context, plain, zipped []byte) (*Child, error) {
	return r.stored(ctx, "bare", plain, zipped)
}

// Loop starts the bench's own binary as a server with an epoll loop.
func (r *Run) Loop(ctx context.Context, plain, zipped []byte) (*Child, error) {
	return r.stored(ctx, "loop", plain, zipped)
}

func (r *Run) stored(ctx context.Context, name string, plain, zipped []byte) (*Child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p, z := filepath.Join(r.Dir, "plain"), filepath.Join(r.Dir, "zipped")
	if err := errors.Join(os.WriteFile(p, plain, 0o600), os.WriteFile(z, zipped, 0o600)); err != nil {
		return nil, err
	}
	return Start(ctx, r.Dir, name, name+" ", self, name, "-identity", p, "-gzip", z)
}

// Beside measures two servers alternately with the same load: Understudy and a bare server.
type Beside struct {
	*Run
	Driver Driver
	Bare   *Child
	Rig    *Rig
	URI    string
}

// Measured is the result of one load, with the CPU time that the server used for each request.
type Measured struct {
	Load
	Each time.Duration
}

func (b *Beside) Measure(ctx context.Context, c *Child, address, encoding string, clients int, long time.Duration) (Measured, error) {
	return b.Driver.Measure(ctx, c, Aim(address+b.URI, encoding, clients, long))
}

// Measure runs a load against a server and measures the CPU time that the server uses.
func (d Driver) Measure(ctx context.Context, c *Child, a Target) (Measured, error) {
	before, err := c.Cpu()
	if err != nil {
		return Measured{}, err
	}
	l, err := d.Run(ctx, a)
	if err != nil {
		return Measured{}, err
	}
	after, err := c.Cpu()
	return Measured{l, (after - before) / time.Duration(max(1, l.Requests))}, err
}

// Aim returns a target whose requests look like a program's: with a credential, and for one content encoding.
func Aim(url, encoding string, clients int, long time.Duration) Target {
	token := base64.StdEncoding.EncodeToString([]byte(Account + ":" + OurToken))
	return Target{URL: url, Headers: []string{"Authorization: Basic " + token, "Accept-Encoding: " + encoding}, Clients: clients, Long: long}
}

// Pair measures both servers. The server that is measured first changes with every round.
func (b *Beside) Pair(ctx context.Context, round int, encoding string, clients int, long time.Duration) (ours, bare Measured, err error) {
	us := func() (err error) {
		ours, err = b.Measure(ctx, b.Rig.Serve, b.Rig.Serve.Addresses["twilio"], encoding, clients, long)
		return err
	}
	them := func() (err error) {
		bare, err = b.Measure(ctx, b.Bare, b.Bare.Addresses["bare"], encoding, clients, long)
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
