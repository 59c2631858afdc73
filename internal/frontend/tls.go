// This file begins TLS on the connections of a port.

package frontend

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"understudy"
)

// belowTLS is the TCP connection below a TLS connection. If TLS closes it, it makes room for another connection.
type belowTLS struct {
	*net.TCPConn
	conn *conn
}

// Close closes the connection and makes room for another.
func (b *belowTLS) Close() error { return b.conn.cut() }

// beginTLS completes the handshake of a connection. It returns true if the client then speaks HTTP/1.1 on it. It passes connections with
// HTTP/2 on, and closes the others.
func (x *express) beginTLS(c *conn) bool {
	b := x.server.listener
	over := tls.Server(&belowTLS{c.TCPConn, c}, b.tls)
	_ = c.TCPConn.SetDeadline(b.now().Add(x.server.server.ReadHeaderTimeout))
	c.isInHandshake.Store(true)
	err := net.ErrClosed
	if !understudy.IsClosed(x.closed) { // Close does not wait for the client
		err = over.Handshake()
	}
	c.isInHandshake.Store(false)
	if err != nil {
		// A method of HTTP begins with one of these letters, and TLS does not (RFC 8446, 5.1).
		if bad, ok := errors.AsType[tls.RecordHeaderError](err); ok && bad.Conn != nil && bytes.ContainsAny(bad.RecordHeader[:1], "DGHOPT") {
			_, _ = io.WriteString(c.TCPConn, noTLS)
		}
		x.server.server.ErrorLog.Printf("TLS handshake with %s: %v", c.RemoteAddr(), err)
		if b.clients.allowed.Load().Authorities != nil {
			b.clients.refused.Add(1)
		}
		_ = c.cut()
		return false
	}
	_ = c.TCPConn.SetDeadline(time.Time{})
	switch isHTTP2 := over.ConnectionState().NegotiatedProtocol == http2; {
	case isHTTP2 && x.bytes == 0:
		x.giveToNetHTTP(over) // which needs a connection of this type
		return false
	case isHTTP2:
		c.stream = over
		x.serveHTTP2(c, nil)
		return false
	}
	c.stream = over
	return true
}

// selectConfig returns the configuration of a handshake if clients need a certificate, and otherwise nil. Sessions are never resumed
// then, because the certificate may have expired since, or its authority may have been removed.
func (b *limitListener) selectConfig(*tls.ClientHelloInfo) (*tls.Config, error) {
	strict := b.tls.Clone()
	if strict.ClientCAs = b.clients.allowed.Load().Authorities; strict.ClientCAs == nil {
		return nil, nil
	}
	strict.ClientAuth, strict.SessionTicketsDisabled = tls.RequireAndVerifyClientCert, true
	return strict, nil
}

// noTLS is the response to a request without TLS on a port that serves TLS.
const noTLS = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n" +
	"This port serves https only. Write https:// in place of http:// in the address.\n"

// encrypted is the TLS state of requests over HTTP/1.1. It says only that there is TLS, because stored requests share it.
var encrypted = &tls.ConnectionState{HandshakeComplete: true}

// markTLS says in a request whether its connection has TLS.
func (c *conn) markTLS(r *http.Request) {
	if c.isTLS() {
		r.TLS = encrypted
	}
}

// socket reads and writes a connection on the express lane.
type socket interface {
	io.Writer
	receive() (int, error)
	writeBoth(first, second []byte) (int64, error)
}

// streamSocket is a socket that uses the methods of the connection.
type streamSocket struct{ lane *lane }

func (s streamSocket) receive() (int, error) { return s.lane.c.stream.Read(s.lane.makeRoom()) }

// Write writes all of p.
func (s streamSocket) Write(p []byte) (int, error) { return s.lane.c.stream.Write(p) }

func (s streamSocket) writeBoth(first, second []byte) (int64, error) {
	return (&net.Buffers{first, second}).WriteTo(s.lane.c.stream)
}
