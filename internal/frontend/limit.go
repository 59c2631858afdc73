// This file contains a listener that limits the number of its connections.

package frontend

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"understudy/internal/config"
	"understudy/internal/http2lane"
	"understudy/kit/header"
	"understudy/kit/jsonhttp"
	"understudy/kit/lockwatch"
)

// limitListener is a listener that limits the number of its connections. At the limit it closes the connection that has
// been idle longest. If all connections are busy, a new connection receives a 503 and is closed. A connection without a
// complete first request counts as idle. So connections that send nothing, or one byte at a time, are closed first.
type limitListener struct {
	net.Listener
	limit   atomic.Int64
	now     func() time.Time
	refusal []byte      // the complete response for a refused connection
	tls     *tls.Config // nil if the listener does not serve TLS
	clients clients

	mu     lockwatch.Mutex
	conns  map[*conn]struct{}
	first  []net.Conn // the connections of the process before a restart, which Accept returns first
	copies []string   // the file descriptors for the next program, first that of the listening socket

	restarts   atomic.Bool   // whether connections are copied for the next program
	stopped    chan struct{} // closed when a restart has ended Accept
	closed     chan struct{} // closed together with the listener
	closeFirst sync.Once

	lingering   sync.WaitGroup // waits for the refused connections that are still reading
	lingerSlots chan struct{}  // limits the refused connections that are still reading

	refused, dropped atomic.Int64
	slowRequests     atomic.Int64 // the number of requests that did not arrive in time
	largeHeads       atomic.Int64 // the number of requests whose head was too large
}

// clients decides which clients may use a port.
type clients struct {
	allowed atomic.Pointer[config.Clients]
	refused atomic.Int64
	log     *stdlog.Logger
}

// isStranger reports whether an address is neither one of clients nor in other blocks. It counts and logs strangers.
func (c *clients) isStranger(remote string, other header.Proxies) bool {
	at, _ := netip.ParseAddrPort(remote) // after an error in no block
	if from := c.allowed.Load().From; len(from) == 0 || from.Contains(at.Addr()) || other.Contains(at.Addr()) {
		return false
	}
	c.refused.Add(1)
	c.log.Printf("client at %s refused, because clients.addresses does not name it", remote)
	return true
}

// Limits of refused connections. Up to maxLingering of them have lingerTime to read their response. Other refused
// connections are closed at once.
const (
	lingerTime   = 500 * time.Millisecond
	maxLingering = 64
	// minIdle is how long a new connection may take to send its request before it can be closed because file
	// descriptors are scarce.
	minIdle        = 100 * time.Millisecond
	maxLingerBytes = 64 << 10 // the maximum number of bytes of a refused request that are read and discarded
)

func newLimitListener(l net.Listener, limit int, refusal []byte) *limitListener {
	b := &limitListener{Listener: l, now: time.Now, refusal: refusal, conns: map[*conn]struct{}{},
		lingerSlots: make(chan struct{}, maxLingering), stopped: make(chan struct{}), closed: make(chan struct{})}
	b.clients.allowed.Store(&config.Clients{})
	b.limit.Store(int64(limit))
	return b
}

// http2 is the name of HTTP/2 in TLS (RFC 9113, 3.2).
const http2 = "h2"

// Accept waits for a connection within the limit. A TLS connection has completed its handshake.
func (b *limitListener) Accept() (net.Conn, error) {
	for {
		nc, err := b.acceptNext()
		if err != nil {
			if b.restarts.Load() {
				close(b.stopped)
				<-b.closed
				return nil, net.ErrClosed
			}
			if (errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)) && b.dropIdle(minIdle) {
				continue
			}
			return nil, err
		}
		switch nc := nc.(type) {
		case *net.TCPConn:
			if b.clients.isStranger(nc.RemoteAddr().String(), b.clients.allowed.Load().Proxies) {
				_ = nc.Close()
				continue
			}
			if c := b.admit(nc); c != nil {
				return c, nil
			}
			b.refuse(nc)
		case *tls.Conn:
			if nc.ConnectionState().NegotiatedProtocol == http2 {
				return nc, nil // net/http needs a connection of this type
			}
			return &tlsConn{Conn: nc, listener: b}, nil
		default:
			return nc, nil
		}
	}
}

// acceptNext returns the connections of the process before a restart, and then new ones.
func (b *limitListener) acceptNext() (net.Conn, error) {
	if len(b.first) == 0 {
		return b.Listener.Accept()
	}
	nc := b.first[0]
	b.first = b.first[1:]
	return nc, nil
}

// Close stops accepting, and waits for the refused connections that are still reading.
func (b *limitListener) Close() error {
	b.closeFirst.Do(func() { close(b.closed) })
	err := b.Listener.Close()
	b.lingering.Wait()
	return err
}

// admit counts a connection. It returns nil if the limit is reached and no connection is idle.
func (b *limitListener) admit(tcp *net.TCPConn) *conn {
	for {
		b.mu.Lock()
		if int64(len(b.conns)) < b.limit.Load() {
			c := &conn{TCPConn: tcp, stream: tcp, listener: b}
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

// dropIdle closes the connection that has been idle longest, if it has been idle for at least the given time. It
// returns false if there is no such connection.
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
	// A negative idle time means that the clock was set back.
	if idle := b.now().UnixNano() - since; idle >= 0 && idle < int64(least) {
		return false
	}
	b.dropped.Add(1)
	_ = oldest.cut() // the server of the connection notices that it is closed
	return true
}

// refuse sends the refusal response to a connection and closes the connection.
func (b *limitListener) refuse(tcp *net.TCPConn) {
	b.refused.Add(1)
	_ = tcp.SetDeadline(b.now().Add(lingerTime))
	to := net.Conn(tcp)
	if b.tls != nil {
		config := b.tls.Clone()
		config.NextProtos, config.GetConfigForClient = nil, nil // the response has the form of HTTP/1.1, and is the same for all clients
		to = tls.Server(tcp, config)
	}
	select {
	case b.lingerSlots <- struct{}{}:
	default:
		if to == tcp {
			_, _ = tcp.Write(b.refusal)
		}
		_ = tcp.Close()
		return
	}
	// A connection that is closed with an unread request is reset by TCP, and the response would be lost. So the
	// request is read first.
	b.lingering.Go(func() {
		_, _ = to.Write(b.refusal)
		_ = tcp.CloseWrite()
		_, _ = io.Copy(io.Discard, io.LimitReader(tcp, maxLingerBytes))
		_ = tcp.Close()
		<-b.lingerSlots
	})
}

func (b *limitListener) count() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return int64(len(b.conns))
}

// noteState notes that net/http has made a connection busy or idle.
func (b *limitListener) noteState(nc net.Conn, s http.ConnState) {
	over, isHTTP2Only := nc.(*tls.Conn)
	if isHTTP2Only {
		if below, ok := over.NetConn().(*belowTLS); ok {
			nc = below.conn
		}
	}
	if c, ok := nc.(signer); ok && s == http.StateIdle {
		c.setAsked(false)
	}
	c, ok := nc.(*conn)
	if !ok {
		return
	}
	switch s {
	case http.StateActive:
		if isHTTP2Only || c.http2 != nil { // from here on, net/http can tell the client to open another connection
			c.state.Store(isHTTP2)
		}
		c.idle.Store(0)
	case http.StateIdle:
		c.begun.Store(c.hasAhead.Load())
		c.idle.Store(b.now().UnixNano())
	}
}

// conn is a connection of a limitListener. It embeds the TCP connection, so that net/http can send files by sendfile.
type conn struct {
	*net.TCPConn
	stream        net.Conn // carries the requests and responses: TCPConn, or the TLS connection over it
	listener      *limitListener
	idle          atomic.Int64 // the start of the connection's idle time in nanoseconds; 0 while it is busy
	begun         atomic.Bool  // whether a part of a request has arrived
	hasAhead      atomic.Bool  // whether the last read was that of one byte, by which net/http watches the client during an answer
	handlerAsked  atomic.Bool  // whether a handler has been called for the request
	state         atomic.Int32 // such as awaitsRequest
	deadline      atomic.Int64 // the read deadline in nanoseconds
	closed        atomic.Bool
	awaited       bool            // whether the first request over TLS was awaited; only the reader uses it
	isInHandshake atomic.Bool     // whether the TLS handshake has begun and has not ended
	lane          *lane           // the express lane of the connection; nil if only net/http reads the connection
	http2         *http2lane.Lane // the express lane of a connection with HTTP/2, or nil
}

// Read reads from the connection. It counts requests that do not arrive before their deadline.
func (c *conn) Read(p []byte) (int, error) {
	if c.http2 != nil {
		return c.http2.Read(p)
	}
	read := c.readStream
	if c.lane != nil {
		read = c.lane.readForNetHTTP
	}
	n, err := read(p)
	if n > 0 && !c.begun.Load() {
		c.begun.Store(true)
	}
	if bytes.HasPrefix(p[:n], []byte("PRI ")) { // the beginning of HTTP/2 (RFC 9113, 3.4)
		c.state.Store(isHTTP2)
	}
	if n > 0 && (len(p) == 1) != c.hasAhead.Load() {
		c.hasAhead.Store(len(p) == 1)
	}
	// net/http stops its own background read with a deadline in the past, which is no slow request.
	if err != nil && errors.Is(err, os.ErrDeadlineExceeded) && c.begun.Load() && c.deadline.Load() > int64(time.Hour) {
		c.listener.slowRequests.Add(1)
	}
	return n, err
}

// SetReadDeadline sets the read deadline and stores it.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.deadline.Store(t.UnixNano())
	if c.lane != nil {
		c.lane.noteDeadline(t)
	}
	return c.TCPConn.SetReadDeadline(t)
}

// SetDeadline sets the read and write deadlines and stores the read deadline.
func (c *conn) SetDeadline(t time.Time) error {
	c.deadline.Store(t.UnixNano())
	return c.TCPConn.SetDeadline(t)
}

// Write writes to the connection. If no handler was called for the request, it adds the error header to an error response.
func (c *conn) Write(p []byte) (int, error) {
	if c.http2 != nil {
		return c.http2.Write(p)
	}
	if c.handlerAsked.Load() {
		return c.stream.Write(p)
	}
	return c.listener.writeSigned(c.stream, p)
}

// ReadFrom writes everything that it reads from r (io.ReaderFrom).
func (c *conn) ReadFrom(r io.Reader) (int64, error) {
	if c.isTLS() {
		return io.Copy(struct{ io.Writer }{c.stream}, r)
	}
	return c.TCPConn.ReadFrom(r)
}

// isTLS reports whether the connection has completed a TLS handshake.
func (c *conn) isTLS() bool { return c.stream != c.TCPConn }

func (c *conn) setAsked(asked bool) { c.handlerAsked.Store(asked) }

// Close closes the connection and makes room for another. The client of a TLS connection is told that it is complete.
func (c *conn) Close() error {
	if c.isTLS() {
		_ = c.stream.Close() // calls cut
	}
	return c.cut()
}

// cut closes the connection without waiting for the client.
func (c *conn) cut() error {
	if c.closed.Swap(true) {
		return c.TCPConn.Close()
	}
	c.listener.mu.Lock()
	delete(c.listener.conns, c)
	l, two := c.lane, c.http2 // another goroutine may have just set them
	c.listener.mu.Unlock()
	if l != nil {
		l.close()
	}
	err := c.TCPConn.Close()
	if two != nil {
		two.Close() // a running write has failed now
	}
	return err
}

// signer is a connection that adds the error header to responses that net/http itself writes before a handler is called.
type signer interface{ setAsked(asked bool) }

// tlsConn is a TLS connection with HTTP/1.1. net/http can read the state of its TLS.
type tlsConn struct {
	*tls.Conn
	listener     *limitListener
	handlerAsked atomic.Bool
}

// Write writes to the connection. If no handler was called for the request, it adds the error header to an error response.
func (c *tlsConn) Write(p []byte) (int, error) {
	if c.handlerAsked.Load() {
		return c.Conn.Write(p)
	}
	return c.listener.writeSigned(c.Conn, p)
}

func (c *tlsConn) setAsked(asked bool) { c.handlerAsked.Store(asked) }

// writeSigned writes a response that net/http itself has made. It adds the error header to an error, and counts
// requests whose head is too large.
func (b *limitListener) writeSigned(w io.Writer, p []byte) (int, error) {
	line, rest, _ := bytes.Cut(p, headEnd[:2])
	status, answers := bytes.CutPrefix(line, []byte("HTTP/1.1 "))
	if !answers || string(status) < "4" {
		return w.Write(p)
	}
	code, text, _ := bytes.Cut(status, []byte(" "))
	if string(code) == "431" {
		b.largeHeads.Add(1)
	}
	signed := fmt.Appendf(nil, "%s\r\n%s: %s\r\n%s", line, jsonhttp.ErrorHeader, bytes.ToLower(text), rest)
	n, err := w.Write(signed)
	return max(0, n-len(signed)+len(p)), err
}
