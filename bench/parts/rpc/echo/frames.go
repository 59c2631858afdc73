package echo

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"runtime"
	"sync"
	"time"

	"understudy/bench/rig"
	"understudy/kit/frame"
)

// maxFrame is the maximum size of a content: the id of a request in 8 bytes, and the message.
const maxFrame = 64 << 10

// serveFrames sends each frame back. It writes the answers to frames that arrived together at once.
func serveFrames(_ context.Context, l net.Listener) error {
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer conn.Close()
			in := frame.NewReader(conn, maxFrame)
			var out []byte
			for {
				content, err := in.Next()
				if err != nil {
					return
				}
				if out = frame.Append(out, content); in.HasNext() && len(out) < maxFrame {
					continue
				}
				if _, err := conn.Write(out); err != nil {
					return
				}
				out = out[:0]
			}
		}()
	}
}

// dialTCP opens a connection.
func dialTCP(ctx context.Context, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return conn, conn.SetDeadline(time.Now().Add(rig.Patience))
}

// dialFrames opens a connection for one client, who reads the answer himself: no goroutine hands it over.
func dialFrames(ctx context.Context, address string) (connection, error) {
	conn, err := dialTCP(ctx, address)
	if err != nil {
		return connection{}, err
	}
	in := frame.NewReader(conn, maxFrame)
	var id uint64
	var content, out []byte
	call := func(message []byte) ([]byte, error) {
		id++
		content = append(binary.BigEndian.AppendUint64(content[:0], id), message...)
		out = frame.Append(out[:0], content)
		if _, err := conn.Write(out); err != nil {
			return nil, err
		}
		answer, err := in.Next()
		if err != nil {
			return nil, err
		}
		if len(answer) < 8 || binary.BigEndian.Uint64(answer) != id {
			return nil, fmt.Errorf("an answer to another request: %x", answer)
		}
		return answer[8:], nil
	}
	return connection{func() caller { return call }, conn.Close}, nil
}

// shared is a connection of several clients. Their requests are under way at once and are told apart by their ids.
type shared struct {
	conn net.Conn

	mu        sync.Mutex
	content   []byte
	out       []byte              // the frames that are not written yet
	spare     []byte              // a buffer for the next frames
	isWriting bool                // whether a client is writing the frames of all
	waiting   map[uint64]*pending // by the id of the request
	last      uint64              // the last id
	err       error               // why the connection ended
}

// pending is where a client waits for its answer.
type pending struct {
	done   chan error
	answer []byte
}

// dialSharedFrames opens a connection for several clients.
func dialSharedFrames(ctx context.Context, address string) (connection, error) {
	conn, err := dialTCP(ctx, address)
	if err != nil {
		return connection{}, err
	}
	s := &shared{conn: conn, waiting: map[uint64]*pending{}}
	done := make(chan struct{})
	go func() { defer close(done); s.read() }()
	newCaller := func() caller {
		p := &pending{done: make(chan error, 1)}
		return func(message []byte) ([]byte, error) { return s.call(p, message) }
	}
	return connection{newCaller, func() error { err := conn.Close(); <-done; return err }}, nil
}

// call sends a message and waits for its answer. The first client that finds no other one writing writes the frames of all. It lets
// the other clients that can run add theirs before, so that a write carries many.
func (s *shared) call(p *pending, message []byte) ([]byte, error) {
	s.mu.Lock()
	if s.err != nil {
		s.mu.Unlock()
		return nil, s.err
	}
	s.last++
	s.waiting[s.last] = p
	s.content = append(binary.BigEndian.AppendUint64(s.content[:0], s.last), message...)
	s.out = frame.Append(s.out, s.content)
	if !s.isWriting {
		s.isWriting = true
		for len(s.out) > 0 {
			s.mu.Unlock()
			runtime.Gosched()
			s.mu.Lock()
			b := s.out
			s.out = s.spare[:0]
			s.mu.Unlock()
			_, err := s.conn.Write(b)
			s.mu.Lock()
			if s.spare = b; err != nil {
				s.fail(err)
			}
		}
		s.isWriting = false
	}
	s.mu.Unlock()
	err := <-p.done
	return p.answer, err
}

// read hands over answers until the connection ends. It hands over those that arrived together under one lock.
func (s *shared) read() {
	in := frame.NewReader(s.conn, maxFrame)
	for {
		answer, err := in.Next()
		s.mu.Lock()
		for err == nil {
			if err = s.handOver(answer); err != nil || !in.HasNext() {
				break
			}
			answer, err = in.Next()
		}
		if err != nil {
			s.fail(err)
		}
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// handOver gives an answer to the client that waits for it. The caller holds mu.
func (s *shared) handOver(answer []byte) error {
	if len(answer) < 8 {
		return fmt.Errorf("an answer without an id: %x", answer)
	}
	id := binary.BigEndian.Uint64(answer)
	p := s.waiting[id]
	if p == nil {
		return fmt.Errorf("an answer to no request: %x", answer)
	}
	delete(s.waiting, id)
	p.answer = append(p.answer[:0], answer[8:]...)
	p.done <- nil
	return nil
}

// fail ends all calls. The caller holds mu.
func (s *shared) fail(err error) {
	s.err, s.out = err, nil
	for id, p := range s.waiting {
		delete(s.waiting, id)
		p.done <- err
	}
}
