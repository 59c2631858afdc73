package echo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"understudy/bench/rig"
)

var servers = map[Kind]func(ctx context.Context, l net.Listener) error{
	Frames: serveFrames, GRPC: serveGRPC, NATS: serveNATS, ZMQ: serveZMQ,
}

// Serve runs a server until the context ends. It prints its address as soon as it accepts connections.
func Serve(ctx context.Context, args []string, out io.Writer) error {
	fs := rig.NewFlags("rpc", out)
	kind := fs.String("kind", string(Frames), "frames, grpc, nats or zmq")
	if err := fs.Parse(args); err != nil {
		return err
	}
	serve := servers[Kind(*kind)]
	if serve == nil {
		return fmt.Errorf("there is no protocol %q", *kind)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	address := l.Addr().String()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, l) }()
	if err := awaitServer(ctx, address, ended); err != nil {
		return err
	}
	fmt.Fprintf(out, "rpc  http://%s\n", address)
	if err := <-ended; ctx.Err() == nil {
		return err
	}
	return nil
}

// awaitServer dials until the server accepts. NATS and ZeroMQ open their ports themselves.
func awaitServer(ctx context.Context, address string, ended <-chan error) error {
	for end := time.Now().Add(rig.Patience); time.Now().Before(end); {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			return conn.Close()
		}
		select {
		case err := <-ended:
			return errors.Join(errors.New("the server ended"), err)
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return errors.New("the server accepts no connection")
}
