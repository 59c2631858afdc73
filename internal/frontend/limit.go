// Limit: a listener that holds no more connections than it may.

package frontend

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"understudy/kit/jsonhttp"
)

// limitListener is a listener with a limit on its connections. Beyond it the one that
// has been idle longest makes room; when all are at work a new one is answered
// 503 and closed. Connections whose first request has not come whole count as
// idle, so that connections which send nothing, or a byte now and then, go first.
type limitListener struct {
	net.Listener
	limit   atomic.Int64
	now     func() time.Time
	refusal []byte // what one that is refused is sent, whole

	mu    sync.Mutex
	conns map[*conn]struct{}

	parting  sync.WaitGroup // refused ones that still read
	partings chan struct{}  // a place for each

	refused, dropped atomic.Int64
	slow             atomic.Int64 // requests that did not come in time
	heads            atomic.Int64 // requests whose head was too large
}

// Refused connections are given so long to read their answer, so many at once;
// more are closed at once.
const (
	partingTime = 500 * time.Millisecond
	maxPartings = 64
	justCame    = 100 * time.Millisecond // so long a connection may take to bring its request, though descriptors are short
	maxParting  = 64 << 10               // bytes of a request that are not read
)

func newLimitListener(l net.Listener, limit int, refusal []byte) *limitListener {
	b := &limitListener{Listener: l, now: time.Now, refusal: refusal, conns: map[*conn]struct{}{}, partings: make(chan struct{}, maxPartings)}
	b.limit.Store(int64(limit))
	return b
}

// http2 is the name of HTTP/2 in TLS (RFC 9113, 3.2).
const http2 = "h2"

// Accept waits for a connection there is room for. A TLS connection has made its handshake.
func (b *limitListener) Accept() (net.Conn, error) {
	for {
		nc, err := b.Listener.Accept()
		if err != nil {
			if (errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)) && b.dropIdle(justCame) {
				continue
			}
			return nil, err
		}
		switch nc := nc.(type) {
		case *net.TCPConn:
			if c := b.admit(nc); c != nil {
				return c, nil
			}
			b.refuse(nc)
		case *tls.Conn:
			if nc.ConnectionState().NegotiatedProtocol == http2 {
				return nc, nil // net/http looks for this type
			}
			return &tlsConn{Conn: nc, b: b}, nil
		default:
			return nc, nil
		}
	}
}

// Close stops accepting and waits for connections that still read their refusal.
func (b *limitListener) Close() error {
	err := b.Listener.Close()
	b.parting.Wait()
	return err
}

// admit counts a connection in; nil when there is no room.
func (b *limitListener) admit(tcp *net.TCPConn) *conn {
	for {
		b.mu.Lock()
		if int64(len(b.conns)) < b.limit.Load() {
			c := &conn{TCPConn: tcp, b: b}
			c.idle.Store(b.now().UnixNano())
			b.conns[c] = struct{}{}
			b.mu.Unlock()
			return c
		}
		b.mu.Unlock()
		if !b.dropIdle(0) {
			return nil
		}
	}
}

// dropIdle closes the connection that has been idle longest, and for so long at least; false
// when there is none.
func (b *limitListener) dropIdle(least time.Duration) bool {
	var oldest *conn
	var since int64
	b.mu.Lock()
	for c := range b.conns {
		if at := c.idle.Load(); at != 0 && (oldest == nil || at < since) {
			oldest, since = c, at
		}
	}
	b.mu.Unlock()
	if oldest == nil {
		return false
	}
	if idle := b.now().UnixNano() - since; idle >= 0 && idle < int64(least) { // less than 0: the clock was set back
		return false
	}
	b.dropped.Add(1)
	_ = oldest.Close() // its server notices
	return true
}

// refuse answers a connection there is no room for.
func (b *limitListener) refuse(tcp *net.TCPConn) {
	b.refused.Add(1)
	_ = tcp.SetDeadline(b.now().Add(partingTime))
	_, err := tcp.Write(b.refusal)
	select {
	case b.partings <- struct{}{}:
	default:
		err = syscall.EAGAIN
	}
	if err != nil {
		_ = tcp.Close()
		return
	}
	// Closed with its request unread, it would be reset, and the answer lost.
	_ = tcp.CloseWrite()
	b.parting.Go(func() {
		_, _ = io.Copy(io.Discard, io.LimitReader(tcp, maxParting))
		_ = tcp.Close()
		<-b.partings
	})
}

func (b *limitListener) count() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return int64(len(b.conns))
}

// state follows what net/http does with a connection.
func (b *limitListener) state(nc net.Conn, s http.ConnState) {
	if c, ok := nc.(signer); ok && s == http.StateIdle {
		c.setAsked(false)
	}
	c, ok := nc.(*conn)
	if !ok {
		return
	}
	switch s {
	case http.StateActive:
		c.idle.Store(0)
	case http.StateIdle:
		c.begun.Store(false)
		c.idle.Store(b.now().UnixNano())
	}
}

// conn is one connection of a bound listener. The TCP connection is embedded,
// so that files still go out by sendfile.
type conn struct {
	*net.TCPConn
	b        *limitListener
	idle     atomic.Int64 // since when, in nanoseconds; 0: at work
	begun    atomic.Bool  // part of a request has come
	asked    atomic.Bool  // a handler is asked for the answer
	deadline atomic.Int64 // of reading
	closed   atomic.Bool
	lane     *lane // nil: net/http alone reads
}

// Read notes when a request did not come in time.
func (c *conn) Read(p []byte) (int, error) {
	read := c.TCPConn.Read
	if c.lane != nil {
		read = c.lane.give
	}
	n, err := read(p)
	if n > 0 && !c.begun.Load() {
		c.begun.Store(true)
	}
	// net/http ends its own reading ahead by a deadline long ago.
	if err != nil && errors.Is(err, os.ErrDeadlineExceeded) && c.begun.Load() && c.deadline.Load() > int64(time.Hour) {
		c.b.slow.Add(1)
	}
	return n, err
}

// SetReadDeadline remembers what it sets.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.deadline.Store(t.UnixNano())
	if c.lane != nil {
		c.lane.deadline(t)
	}
	return c.TCPConn.SetReadDeadline(t)
}

// SetDeadline remembers what it sets.
func (c *conn) SetDeadline(t time.Time) error {
	c.deadline.Store(t.UnixNano())
	return c.TCPConn.SetDeadline(t)
}

// Write signs errors until a handler is asked.
func (c *conn) Write(p []byte) (int, error) {
	if c.asked.Load() {
		return c.TCPConn.Write(p)
	}
	return c.b.writeSigned(c.TCPConn, p)
}

func (c *conn) setAsked(asked bool) { c.asked.Store(asked) }

// Close closes it and gives its place back.
func (c *conn) Close() error {
	if !c.closed.Swap(true) {
		if c.lane != nil {
			c.lane.close()
		}
		c.b.mu.Lock()
		delete(c.b.conns, c)
		c.b.mu.Unlock()
	}
	return c.TCPConn.Close()
}

// signer is a connection that signs the errors that net/http answers before a handler is asked.
type signer interface{ setAsked(asked bool) }

// tlsConn is a TLS connection in which HTTP/1.1 is spoken. net/http reads its TLS state.
type tlsConn struct {
	*tls.Conn
	b     *limitListener
	asked atomic.Bool
}

// Write signs errors until a handler is asked.
func (c *tlsConn) Write(p []byte) (int, error) {
	if c.asked.Load() {
		return c.Conn.Write(p)
	}
	return c.b.writeSigned(c.Conn, p)
}

func (c *tlsConn) setAsked(asked bool) { c.asked.Store(asked) }

// writeSigned writes what net/http itself answers. It signs an error, and counts requests whose
// head is too large.
func (b *limitListener) writeSigned(w io.Writer, p []byte) (int, error) {
	line, rest, _ := bytes.Cut(p, crlf2[:2])
	status, answers := bytes.CutPrefix(line, []byte("HTTP/1.1 "))
	if !answers || string(status) < "4" {
		return w.Write(p)
	}
	code, text, _ := bytes.Cut(status, []byte(" "))
	if string(code) == "431" {
		b.heads.Add(1)
	}
	signed := fmt.Appendf(nil, "%s\r\n%s: %s\r\n%s", line, jsonhttp.ErrorHeader, bytes.ToLower(text), rest)
	n, err := w.Write(signed)
	return max(0, n-len(signed)+len(p)), err
}
