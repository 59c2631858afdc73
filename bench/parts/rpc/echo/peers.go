package echo

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/go-zeromq/zmq4"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"understudy/bench/parts/claims/wire/wirepb"
	"understudy/bench/rig"
)

// echoServer answers with the same message.
type echoServer struct{ wirepb.UnimplementedEchoServer }

func (echoServer) Send(_ context.Context, m *wirepb.Record) (*wirepb.Record, error) { return m, nil }

func serveGRPC(ctx context.Context, l net.Listener) error {
	s := grpc.NewServer()
	wirepb.RegisterEchoServer(s, echoServer{})
	defer context.AfterFunc(ctx, s.Stop)()
	return s.Serve(l)
}

func dialGRPC(ctx context.Context, address string) (connection, error) {
	c, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return connection{}, err
	}
	echo := wirepb.NewEchoClient(c)
	call := func(message []byte) ([]byte, error) {
		m, err := echo.Send(ctx, &wirepb.Record{Value: string(message)})
		return []byte(m.GetValue()), err
	}
	return connection{func() caller { return call }, c.Close}, nil
}

// subject is where the responder of NATS listens.
const subject = "echo"

// serveNATS runs a broker and a responder in one process. The responder needs no socket.
func serveNATS(ctx context.Context, l net.Listener) error {
	at := l.Addr().(*net.TCPAddr)
	if err := l.Close(); err != nil { // the broker opens the same port
		return err
	}
	s, err := server.NewServer(&server.Options{Host: at.IP.String(), Port: at.Port, NoSigs: true, NoLog: true})
	if err != nil {
		return err
	}
	s.Start()
	defer s.WaitForShutdown()
	defer s.Shutdown()
	if !s.ReadyForConnections(rig.Patience) {
		return errors.New("the broker did not start")
	}
	c, err := nats.Connect("", nats.InProcessServer(s))
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.Subscribe(subject, func(m *nats.Msg) { _ = m.Respond(m.Data) }); err != nil {
		return err
	}
	if err := c.Flush(); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

func dialNATS(address string) (connection, error) {
	c, err := nats.Connect("nats://" + address)
	if err != nil {
		return connection{}, err
	}
	call := func(message []byte) ([]byte, error) {
		m, err := c.Request(subject, message, rig.Patience)
		if err != nil {
			return nil, err
		}
		return m.Data, nil
	}
	return connection{func() caller { return call }, func() error { c.Close(); return nil }}, nil
}

// serveZMQ answers by a ROUTER, which may have many clients.
func serveZMQ(ctx context.Context, l net.Listener) error {
	if err := l.Close(); err != nil {
		return err
	}
	s := zmq4.NewRouter(ctx)
	defer s.Close()
	if err := s.Listen("tcp://" + l.Addr().String()); err != nil {
		return err
	}
	for {
		m, err := s.Recv()
		if ctx.Err() != nil {
			return nil
		}
		if err == nil {
			err = s.SendMulti(m) // its first frame names the client
		}
		if err != nil {
			return err
		}
	}
}

func dialZMQ(ctx context.Context, address string) (connection, error) {
	s := zmq4.NewReq(ctx)
	if err := s.Dial("tcp://" + address); err != nil {
		return connection{}, err
	}
	call := func(message []byte) ([]byte, error) {
		if err := s.Send(zmq4.NewMsg(message)); err != nil {
			return nil, err
		}
		m, err := s.Recv()
		if err != nil {
			return nil, err
		}
		if len(m.Frames) == 0 {
			return nil, fmt.Errorf("an answer without frames")
		}
		return m.Frames[len(m.Frames)-1], nil
	}
	return connection{func() caller { return call }, s.Close}, nil
}
