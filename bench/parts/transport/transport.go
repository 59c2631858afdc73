// Package transport is a part of the bench: a hundred reads over one connection with a long way
// between client and server: one after the other, pipelined (RFC 9112, 9.3.2) and by HTTP/2.
package transport

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"understudy/bench/rig"
	"understudy/internal/config"
	"understudy/internal/frontend"
)

const (
	requests = 100
	trip     = 50 * time.Millisecond // there and back
)

// Measure gives a hundred reads to each server over each transport. A handler works for no
// time, or for as long as the way there and back takes.
func Measure(ctx context.Context, r *rig.Run) error {
	r.Say("%d reads of 2 KB over one connection, %v there and back; median of the rounds, in ms", requests, trip)
	rows := [][]string{{"transport", "no work", "50 ms of work", "bytes a request", "bytes of an answer's head"}}
	took := map[string][2]float64{}
	for _, way := range ways {
		row := []string{way.name}
		var each [2]float64
		var up, down int64
		for i, work := range []time.Duration{0, trip} {
			var times []float64
			for range r.Times(3, 1) {
				t, sent, received, err := once(ctx, way, work, r.Size(requests, 8))
				if err != nil {
					return fmt.Errorf("%s: %w", way.name, err)
				}
				times, up, down = append(times, rig.Ms(t)), sent, received
			}
			each[i] = rig.Quantile(times, 0.5)
			row = append(row, fmt.Sprintf("%.0f", each[i]))
		}
		took[way.name] = each
		n := int64(r.Size(requests, 8))
		rows = append(rows, append(row, fmt.Sprint(up/n), fmt.Sprint(down/n-int64(len(body)))))
	}
	r.Table(rows)
	pipelined := took["pipelined, our server"]
	r.AtMost("pipelined reads without work, our server", pipelined[0]/took["one after the other, net/http"][0], 0.1, "of one after the other")
	r.AtMost("pipelined reads with work, our server", pipelined[1]/took["pipelined, net/http"][1], 0.2, "of net/http's")
	return nil
}

// MeasureTimes gives n reads to each server over each transport, with a distance of 50 ms there and back, in turns. It
// returns the milliseconds of each round without work and with 50 ms of work, and the bytes of a request.
func MeasureTimes(ctx context.Context, r *rig.Run, n, rounds int) (names []string, ms [][2][]float64, bytes []int64, err error) {
	ms, bytes = make([][2][]float64, len(ways)), make([]int64, len(ways))
	for _, w := range ways {
		names = append(names, w.name)
	}
	for round := range rounds {
		for i := range ways {
			k := (i + round) % len(ways)
			for j, work := range []time.Duration{0, trip} {
				took, sent, _, err := once(ctx, ways[k], work, n)
				if err != nil {
					return nil, nil, nil, fmt.Errorf("%s: %w", ways[k].name, err)
				}
				ms[k][j], bytes[k] = append(ms[k][j], rig.Ms(took)), sent/int64(n)
			}
		}
	}
	return names, ms, bytes, nil
}

// way is a transport and a server.
type way struct {
	name  string
	serve func(ctx context.Context, l net.Listener, h http.Handler) error
	ask   func(ctx context.Context, address string, n int) error
}

var ways = []way{
	{"one after the other, net/http", plain, serial(false)},
	{"one after the other, our server", ours, serial(false)},
	{"pipelined, net/http", plain, pipelined},
	{"pipelined, our server", ours, pipelined},
	{"HTTP/2, net/http", plain, serial(true)},
}

var body = strings.Repeat("0123456789abcdef", 128)

// once measures one transport: how long all took, and what was sent and received.
func once(ctx context.Context, w way, work time.Duration, n int) (took time.Duration, sent, received int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, 0, 0, err
	}
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if work > 0 && rig.Pause(r.Context(), work) != nil {
			return
		}
		for name, value := range map[string]string{"Content-Type": "application/json", "Cache-Control": "private", "Cache-Status": "understudy; hit; ttl=20",
			"Vary": "Authorization, Accept-Encoding", "Content-Length": fmt.Sprint(len(body))} {
			w.Header().Set(name, value)
		}
		_, _ = io.WriteString(w, body)
	})
	ended := make(chan error, 1)
	serving, stop := context.WithCancel(ctx)
	go func() { ended <- w.serve(serving, l, h) }()
	far, err := newDistance(l.Addr().String())
	if err != nil {
		stop()
		return 0, 0, 0, errors.Join(err, <-ended)
	}
	began := time.Now()
	err = w.ask(ctx, far.Addr().String(), n)
	took = time.Since(began)
	stop()
	err = errors.Join(err, <-ended, far.Close())
	return took, far.up.Load(), far.down.Load(), err
}

// plain is a server of net/http, by HTTP/1.1 and HTTP/2 without TLS.
func plain(ctx context.Context, l net.Listener, h http.Handler) error {
	s := &http.Server{Handler: h, Protocols: new(http.Protocols), ReadHeaderTimeout: time.Minute}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetUnencryptedHTTP2(true)
	stop := context.AfterFunc(ctx, func() { _ = s.Close() })
	defer stop()
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// ours is a port of Understudy with the express lane.
func ours(ctx context.Context, l net.Listener, h http.Handler) error {
	limits := config.Limits{}
	limits.SetDefaults()
	s := frontend.NewServer("bench", l, nil, &limits, frontend.PlainRefusal(), slog.New(slog.DiscardHandler))
	s.SetExpress(1 << 20)
	s.SetHandler(h, nil, nil)
	return frontend.Run(ctx, []*frontend.Server{s}, nil)
}

// head is what programs send with a read.
const head = "GET /2010-04-01/Accounts/AC00000000000000000000000000000001/Calls/CA%032d.json HTTP/1.1\r\n" +
	"Host: 127.0.0.1\r\nUser-Agent: twilio-go/1.28.5 (linux amd64) go/go1.26\r\nAccept: application/json\r\nAccept-Charset: utf-8\r\n" +
	"Accept-Encoding: identity\r\nAuthorization: Basic QUMwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMTpzZWNyZXQ=\r\n\r\n"

// serial asks by net/http: over HTTP/1.1 one after the other, over HTTP/2 all at once.
func serial(two bool) func(context.Context, string, int) error {
	return func(ctx context.Context, address string, n int) error {
		t := &http.Transport{MaxConnsPerHost: 1, DisableCompression: true, Protocols: new(http.Protocols)}
		defer t.CloseIdleConnections()
		t.Protocols.SetHTTP1(!two)
		t.Protocols.SetUnencryptedHTTP2(two)
		errs := make(chan error, n)
		for i := range n {
			r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(fmt.Sprintf(head, i))))
			if err != nil {
				return err
			}
			r.RequestURI, r.URL.Scheme, r.URL.Host = "", "http", address
			one := func() { errs <- read(t.RoundTrip(r.WithContext(ctx))) }
			if two {
				go one()
			} else {
				one()
			}
		}
		for range n {
			if err := <-errs; err != nil {
				return err
			}
		}
		return nil
	}
}

// pipelined sends all and then reads all.
func pipelined(ctx context.Context, address string, n int) error {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer c.Close()
	if end, ok := ctx.Deadline(); ok {
		_ = c.SetDeadline(end)
	}
	var all strings.Builder
	for i := range n {
		fmt.Fprintf(&all, head, i)
	}
	if _, err := io.WriteString(c, all.String()); err != nil {
		return err
	}
	in := bufio.NewReader(c)
	for range n {
		if err := read(http.ReadResponse(in, nil)); err != nil {
			return err
		}
	}
	return nil
}

// read reads an answer and wants the body.
func read(resp *http.Response, err error) error {
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err == nil && string(got) != body {
		err = fmt.Errorf("%d %.100s", resp.StatusCode, got)
	}
	return err
}
