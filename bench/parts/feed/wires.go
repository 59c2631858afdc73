package feed

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"understudy/bench/rig"
	"understudy/follow/feedpb"
	"understudy/kit/frame"
)

// wire is a form of the feed.
type wire struct {
	name   string
	listen func(ctx context.Context, address string) (*listener, error)
}

var wires = []wire{
	{"server-sent events", func(ctx context.Context, address string) (*listener, error) { return listen(ctx, address, "after=now") }},
	{"frames", listenFrames}, {"gRPC", listenGRPC}, {"gRPC, 50 streams on a connection", new(sharedGRPC).listen},
}

// MeasureWires times a change from before the question that brings it to its last event at 1,000 subscribers of one wire. The wires take
// turns on one server.
func MeasureWires(ctx context.Context, r *rig.Run) (err error) {
	subscribers, held := r.Size(1000, 20), r.Size(20_000, 1000)
	s := rig.Fast(held / 50)
	s.Extra = fmt.Sprintf("feed: {subscribers: %d, subscribers_each: %d, stall: 5m}", subscribers+10, subscribers+10)
	g, err := r.Rig(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	w := g.Through()
	defer w.Close()
	if _, err := w.Walk(ctx, rig.Calls+"?PageSize=1000", held, nil); err != nil {
		return err
	}
	// The subscribers run in this process beside the server. Its garbage collection would delay the events, so it waits.
	defer debug.SetGCPercent(debug.SetGCPercent(800))
	const changes = 5
	took, lost := make([][]time.Duration, len(wires)), int64(0)
	for round := range r.Times(9, 1) {
		for k := range wires {
			i := (k + round) % len(wires)
			c, err := gather(ctx, g.Serve.Addresses["viewer"], subscribers, wires[i].listen)
			if err != nil {
				return fmt.Errorf("%s: %w", wires[i].name, err)
			}
			each, _, err := measureRounds(ctx, r, g, w, c, changes*(round*len(wires)+k), changes)
			if took[i] = append(took[i], each...); err != nil {
				return errors.Join(fmt.Errorf("%s: %w", wires[i].name, err), c.close())
			}
			for _, l := range c.quick {
				lost += l.lost.Load()
			}
			if err := c.close(); err != nil {
				return err
			}
		}
	}
	rows := [][]string{append([]string{"wire"}, rig.SpreadHead...)}
	for i, one := range wires {
		rows = append(rows, append([]string{""}, rig.Spread(one.name, took[i])...))
	}
	r.Say("from the question that brings a change to each of %d subscribers of a wire:", subscribers)
	r.Table(rows)
	for i, one := range wires {
		r.AtMost("change to subscribers by "+one.name+", 99 %", rig.Ms(rig.Quantile(took[i], 0.99)), 50, "ms")
	}
	r.Exactly("numbers out of order or missing, of all subscribers", int(lost), 0)
	return nil
}

// listenFrames opens a stream of frames.
func listenFrames(ctx context.Context, address string) (*listener, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", strings.TrimPrefix(address, "http://"))
	if err != nil {
		return nil, err
	}
	if _, err := fmt.Fprintf(conn, "GET /-/feed?after=now HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: understudy-frames\r\n\r\n",
		conn.RemoteAddr()); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &listener{end: conn.Close, follow: func(take func(cursor string)) error {
		in := bufio.NewReader(conn)
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			return err
		}
		if resp.StatusCode != http.StatusSwitchingProtocols {
			return errors.New(resp.Status)
		}
		for frames := frame.NewReader(in, 64<<10); ; {
			event, err := frames.Next()
			if err != nil {
				return err
			}
			if _, rest, hasCursor := bytes.Cut(event, []byte(`"cursor":"`)); hasCursor {
				take(string(rest[:bytes.IndexByte(rest, '"')]))
			}
		}
	}}, nil
}

// dialGRPC returns a connection of grpc-go.
func dialGRPC(address string) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+strings.TrimPrefix(address, "http://"), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithReadBufferSize(4<<10), grpc.WithWriteBufferSize(4<<10))
}

// listenGRPC opens a connection with one stream.
func listenGRPC(ctx context.Context, address string) (*listener, error) {
	conn, err := dialGRPC(address)
	if err != nil {
		return nil, err
	}
	return follow(ctx, conn, conn.Close)
}

// sharedGRPC opens streams, each fifty of them on one connection. One goroutine may use it.
type sharedGRPC struct {
	conn *grpc.ClientConn
	used int
}

func (s *sharedGRPC) listen(ctx context.Context, address string) (l *listener, err error) {
	const each = 50
	if s.used++; s.used%each == 1 {
		if s.conn, err = dialGRPC(address); err != nil {
			return nil, err
		}
		return follow(ctx, s.conn, s.conn.Close)
	}
	return follow(ctx, s.conn, func() error { return nil }) // the first one closes it
}

// follow opens a stream.
func follow(ctx context.Context, conn *grpc.ClientConn, end func() error) (*listener, error) {
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, feedpb.FollowProcedure)
	if err == nil {
		err = errors.Join(stream.SendMsg(&feedpb.FollowRequest{After: "now"}), stream.CloseSend())
	}
	if err != nil {
		return nil, errors.Join(err, end())
	}
	return &listener{end: end, follow: func(take func(cursor string)) error {
		for {
			m := &feedpb.FollowResponse{}
			if err := stream.RecvMsg(m); err != nil {
				return err
			}
			if m.GetCursor() != "" {
				take(m.GetCursor())
			}
		}
	}}, nil
}
