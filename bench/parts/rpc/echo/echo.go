// Package echo has servers that send each message back, and clients that count answers: frames of kit/frame, gRPC, NATS and
// ZeroMQ. The servers run in a process of their own.
package echo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"understudy/bench/rig"
)

// Kind is a protocol.
type Kind string

// The protocols.
const (
	Frames Kind = "frames"
	GRPC   Kind = "grpc"
	NATS   Kind = "nats"
	ZMQ    Kind = "zmq"
)

// messageBytes is the size of a message.
const messageBytes = 64

// Result is what a load has reached.
type Result struct {
	Answers  int
	Rate     float64 // answers a second
	P50, P99 time.Duration
	Cpu      time.Duration // of the clients
}

// caller sends a message and returns its answer, which is valid until the next call.
type caller func(message []byte) ([]byte, error)

// connection is a connection to a server. newCaller returns the caller of one client; clients of a shared connection have one each.
type connection struct {
	newCaller func() caller
	end       func() error
}

// dial opens a connection. isShared says that several clients will share it.
func dial(ctx context.Context, kind Kind, isShared bool, address string) (connection, error) {
	switch {
	case kind == GRPC:
		return dialGRPC(ctx, address)
	case kind == NATS:
		return dialNATS(address)
	case kind == ZMQ:
		return dialZMQ(ctx, address)
	case isShared:
		return dialSharedFrames(ctx, address)
	}
	return dialFrames(ctx, address)
}

// Ask lets clients send messages for a while, each one at a time, and checks that each answer is that of its message. The clients share one
// connection, or have one each.
func Ask(ctx context.Context, kind Kind, isShared bool, address string, clients int, long time.Duration) (_ Result, err error) {
	address = strings.TrimPrefix(address, "http://")
	var calls []caller
	var last connection
	for len(calls) < clients {
		if len(calls) == 0 || !isShared {
			if last, err = dial(ctx, kind, isShared, address); err != nil {
				return Result{}, err
			}
			end := last.end
			defer func() { err = errors.Join(err, end()) }()
		}
		calls = append(calls, last.newCaller())
	}
	for i, call := range calls { // each connection is open before the time begins
		if _, err := call(newMessage(i, 0)); err != nil {
			return Result{}, err
		}
	}
	times, errs := make([][]time.Duration, clients), make([]error, clients)
	var all sync.WaitGroup
	used, began := rig.Used(), time.Now()
	for i, call := range calls {
		all.Go(func() { times[i], errs[i] = send(ctx, call, i, began.Add(long)) })
	}
	all.Wait()
	took, cpu := time.Since(began), rig.Used()-used
	var flat []time.Duration
	for _, t := range times {
		flat = append(flat, t...)
	}
	return Result{len(flat), float64(len(flat)) / took.Seconds(), rig.Median(flat), rig.Quantile(flat, 0.99), cpu}, errors.Join(append(errs, ctx.Err())...)
}

// send sends messages one after the other until the end, and returns their times.
func send(ctx context.Context, call caller, client int, end time.Time) ([]time.Duration, error) {
	times, message := make([]time.Duration, 0, 1<<16), newMessage(client, 0)
	at := time.Now()
	for n := uint64(1); at.Before(end) && ctx.Err() == nil; n++ {
		putNumber(message[8:], n)
		got, err := call(message)
		if err != nil {
			return nil, err
		}
		if !bytes.Equal(got, message) {
			return nil, fmt.Errorf("%x is answered by %x", message, got)
		}
		now := time.Now()
		times = append(times, now.Sub(at))
		at = now
	}
	return times, nil
}

// newMessage returns a message that no other client sends.
func newMessage(client int, number uint64) []byte {
	m := bytes.Repeat([]byte("x"), messageBytes)
	putNumber(m, uint64(client))
	putNumber(m[8:], number)
	return m
}

// putNumber writes a number as eight letters. Messages are text, as gRPC's are.
func putNumber(m []byte, n uint64) {
	for i := range 8 {
		m[i] = byte('a' + n>>(4*i)&15)
	}
}
