package echo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"understudy/bench/parts/claims/wire/wirepb"
	"understudy/bench/rig"
)

// Result is what a load has reached.
type Result struct {
	Rate     float64 // answers a second
	P50, P99 time.Duration
}

// Ask lets clients send messages for a while, each one at a time, and checks that each answer is that of its message.
func Ask(ctx context.Context, kind, address string, clients int, long time.Duration) (Result, error) {
	address = strings.TrimPrefix(address, "http://")
	sends, ends, err := make([]func(string) (string, error), clients), []func() error{}, error(nil)
	defer func() {
		for _, end := range ends {
			_ = end()
		}
	}()
	for i := range sends {
		var end func() error
		if sends[i], end, err = dial(ctx, kind, address); err != nil {
			return Result{}, err
		}
		ends = append(ends, end)
	}
	for i, send := range sends { // each connection is open before the time begins
		if _, err := send(fmt.Sprint(i)); err != nil {
			return Result{}, err
		}
	}
	var all sync.WaitGroup
	times, errs := make([][]time.Duration, clients), make([]error, clients)
	began := time.Now()
	for i, send := range sends {
		all.Go(func() {
			for n := 0; ctx.Err() == nil && time.Since(began) < long; n++ {
				text, at := fmt.Sprintf("message %d of client %d", n, i), time.Now()
				got, err := send(text)
				if err == nil && got != text {
					err = fmt.Errorf("%q is answered by %q", text, got)
				}
				if err != nil {
					errs[i] = err
					return
				}
				times[i] = append(times[i], time.Since(at))
			}
		})
	}
	all.Wait()
	took := time.Since(began)
	var flat []time.Duration
	for _, t := range times {
		flat = append(flat, t...)
	}
	return Result{float64(len(flat)) / took.Seconds(), rig.Median(flat), rig.Quantile(flat, 0.99)}, errors.Join(append(errs, ctx.Err())...)
}

// dial opens a connection of one client. send sends a text and returns its answer.
func dial(ctx context.Context, kind, address string) (send func(string) (string, error), end func() error, err error) {
	if kind == GRPC {
		c, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return nil, nil, err
		}
		echo := wirepb.NewEchoClient(c)
		return func(text string) (string, error) {
			m, err := echo.Send(ctx, &wirepb.Record{Value: text})
			return m.GetValue(), err
		}, c.Close, nil
	}
	c, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, nil, err
	}
	in := bufio.NewReader(c)
	return func(text string) (string, error) {
		if err := errors.Join(c.SetDeadline(time.Now().Add(rig.Patience)), writeFrame(c, []byte(text))); err != nil {
			return "", err
		}
		b, err := readFrame(in)
		return string(b), err
	}, c.Close, nil
}
