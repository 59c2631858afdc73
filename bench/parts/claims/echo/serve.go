// Package echo has servers that send messages back, one way for each topology of an article, and clients that count
// answers. Messages of ZeroMQ's topologies are frames over TCP: a length of four bytes, and the text.
package echo

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"

	"understudy/bench/parts/claims/wire/wirepb"
	"understudy/bench/rig"
)

// The topologies.
const (
	One     = "one"    // one loop answers all clients, as REP does
	IPC     = "ipc"    // a router and 16 workers behind a Unix socket each, as the article has them
	Inproc  = "inproc" // a router and 16 workers in the same process
	GRPC    = "grpc"   // grpc-go
	workers = 16       // of a router
	maxSize = 64 << 10 // of a frame
	queued  = 1024     // messages that wait for a worker
)

// request is a message that waits for its answer.
type request struct {
	text []byte
	send func([]byte) error
}

// Serve runs a server until the context ends. It prints its address.
func Serve(ctx context.Context, args []string, out io.Writer) error {
	fs := rig.NewFlags("echo", out)
	kind := fs.String("kind", One, "one, ipc, inproc or grpc")
	work := fs.Duration("work", 0, "how long each message waits")
	if err := fs.Parse(args); err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if *kind == GRPC {
		s := grpc.NewServer()
		wirepb.RegisterEchoServer(s, &echoServer{work: *work})
		end := context.AfterFunc(ctx, s.Stop)
		defer end()
		fmt.Fprintf(out, "echo  http://%s\n", l.Addr())
		if err := s.Serve(l); !errors.Is(err, grpc.ErrServerStopped) {
			return err
		}
		return nil
	}
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	queue := make(chan request, queued)
	n := workers
	if *kind == One {
		n = 1
	}
	for range n {
		answer := func(text []byte) ([]byte, error) { wait(*work); return text, nil }
		if *kind == IPC {
			if answer, err = startWorker(ctx, *work); err != nil {
				return err
			}
		}
		go func() {
			for {
				select {
				case r := <-queue:
					if text, err := answer(r.text); err == nil {
						_ = r.send(text) // a client that has left needs no answer
					}
				case <-ctx.Done():
					return
				}
			}
		}()
	}
	fmt.Fprintf(out, "echo  http://%s\n", l.Addr())
	for {
		c, err := l.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		go func() {
			defer c.Close()
			in := bufio.NewReader(c)
			for {
				text, err := readFrame(in)
				if err != nil {
					return
				}
				select {
				case queue <- request{text, func(b []byte) error { return writeFrame(c, b) }}:
				case <-ctx.Done():
					return
				}
			}
		}()
	}
}

// startWorker starts a worker behind a Unix socket, and returns the function that lets it answer.
func startWorker(ctx context.Context, work time.Duration) (func([]byte) ([]byte, error), error) {
	l, err := net.Listen("unix", "") // a name that the kernel chooses
	if err != nil {
		return nil, err
	}
	defer l.Close()
	far, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		return nil, err
	}
	near, err := l.Accept()
	if err != nil {
		return nil, errors.Join(err, far.Close())
	}
	context.AfterFunc(ctx, func() { _, _ = far.Close(), near.Close() })
	go func() {
		in := bufio.NewReader(far)
		for {
			text, err := readFrame(in)
			if err != nil {
				return
			}
			if wait(work); writeFrame(far, text) != nil {
				return
			}
		}
	}()
	in := bufio.NewReader(near)
	return func(text []byte) ([]byte, error) {
		if err := writeFrame(near, text); err != nil {
			return nil, err
		}
		return readFrame(in)
	}, nil
}

func wait(d time.Duration) {
	if d > 0 {
		time.Sleep(d)
	}
}

// frames has buffers for writes.
var frames = sync.Pool{New: func() any { return new([]byte) }}

func writeFrame(w io.Writer, text []byte) error {
	b := frames.Get().(*[]byte)
	defer frames.Put(b)
	*b = append(binary.BigEndian.AppendUint32((*b)[:0], uint32(len(text))), text...)
	_, err := w.Write(*b)
	return err
}

func readFrame(r io.Reader) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > maxSize {
		return nil, fmt.Errorf("a frame of %d bytes", n)
	}
	text := make([]byte, n)
	_, err := io.ReadFull(r, text)
	return text, err
}

type echoServer struct {
	wirepb.UnimplementedEchoServer
	work time.Duration
}

// Send answers with the same message.
func (s *echoServer) Send(_ context.Context, m *wirepb.Record) (*wirepb.Record, error) {
	wait(s.work)
	return m, nil
}
