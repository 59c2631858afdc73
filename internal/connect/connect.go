// This file contains an HTTP proxy for the method CONNECT.

// Package connect is an HTTP proxy that clients find by environment variables. For the hosts of sources it serves
// the requests in a tunnel itself, with certificates of this machine's authority. It refuses other hosts, or
// tunnels their bytes unchanged.
//
//	client -> CONNECT host -> a source's host: TLS ends here -> handler of the source
//	                       -> a host of Tunnel: bytes pass
//	                       -> any other: 403
package connect

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"understudy/internal/certificate"
	"understudy/internal/webhook"
	"understudy/kit/accesslog"
	"understudy/kit/jsonhttp"
	"understudy/kit/limiter"
)

// The timeouts at the beginning of a tunnel.
const (
	dialTimeout  = 10 * time.Second
	greetTimeout = 10 * time.Second // how long the client may take to receive the response to CONNECT
)

// maxTunnels is the default of Options.Tunnels.
const maxTunnels = 64

// Options are the options of a Proxy. Authority must be set.
type Options struct {
	Authority *certificate.Authority
	Origins   []Origin // the addresses for which this server ends TLS
	Tunnel    []string // the other hosts that are tunnelled (see CheckTunnel); if empty, all other hosts are refused
	// AllowPrivate permits tunnels to this machine and to private networks.
	AllowPrivate     bool
	Tunnels          int           // the maximum number of concurrent tunnels to other hosts; 0 means 64
	Idle             time.Duration // the time without traffic after which a tunnel ends; 0 means 2 minutes
	HandshakeTimeout time.Duration // how long a client may take for the TLS handshake; 0 means 10 seconds
	Log              *accesslog.Log
	Now              func() time.Time // the clock; nil means time.Now
}

// Proxy is an http.Handler for CONNECT. The server behind it accepts connections to hosts of sources, already
// decrypted, from Listener. Proxy is safe for concurrent use.
type Proxy struct {
	o       Options
	inside  *listener
	tls     *tls.Config
	dialer  *net.Dialer
	limiter *limiter.Limiter
	ports   map[string]string // the ports of origins, by host
	ctx     context.Context   // when it ends, all tunnels close
	end     context.CancelFunc
	running sync.WaitGroup
	counts  counts
}

// New returns a proxy. The caller must call Close.
func New(o Options) *Proxy {
	o.Tunnels = cmp.Or(o.Tunnels, maxTunnels)
	o.Idle = cmp.Or(o.Idle, 2*time.Minute)
	o.HandshakeTimeout = cmp.Or(o.HandshakeTimeout, greetTimeout)
	if o.Now == nil {
		o.Now = time.Now
	}
	p := &Proxy{
		o: o, inside: &listener{conns: make(chan net.Conn), closed: make(chan struct{})},
		limiter: limiter.New(o.Tunnels, o.Tunnels), ports: map[string]string{},
		dialer: &net.Dialer{Timeout: dialTimeout, Control: webhook.Guard(o.AllowPrivate)},
	}
	for _, at := range o.Origins {
		p.ports[at.Host] = at.Port
	}
	p.tls = &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, Time: o.Now, GetCertificate: p.getCertificate}
	p.ctx, p.end = context.WithCancel(context.Background())
	return p
}

// Listener returns the listener for the connections to hosts of sources. Each connection is a *tls.Conn after
// its handshake, without a deadline.
func (p *Proxy) Listener() net.Listener { return p.inside }

// End ends all tunnels to other hosts and all handshakes, and prevents new tunnels. It does not wait.
func (p *Proxy) End() { p.end() }

// Close does what End does, and waits until the tunnels have ended.
func (p *Proxy) Close() error {
	p.end()
	err := p.inside.Close()
	p.running.Wait()
	return err
}

// getCertificate returns the certificate for the tunnel's host. A TLS handshake for any other host fails.
func (p *Proxy) getCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	c, ok := hello.Conn.(*conn)
	if !ok || !strings.EqualFold(hello.ServerName, c.host) {
		return nil, errors.New("connect: the tunnel is for another host")
	}
	return p.o.Authority.IssueCertificate(c.host)
}

// ServeHTTP handles CONNECT and refuses other methods. It writes refusals and tunnels to other hosts to the
// access log. A request inside a tunnel has its own log line.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect {
		w.Header().Set("Allow", http.MethodConnect)
		p.refuse(w, r, http.StatusMethodNotAllowed, "This port is a proxy for https only, with the method CONNECT.")
		return
	}
	host, port, err := splitAuthority(r.Host)
	if err != nil {
		p.refuse(w, r, http.StatusBadRequest, "Write CONNECT HOST:PORT.")
		return
	}
	switch want, ours := p.ports[host]; {
	case ours && port == want:
		p.serveTLS(w, host)
	case !ours && matchTunnel(p.o.Tunnel, host, port):
		p.openTunnel(w, r, net.JoinHostPort(host, port))
	case ours:
		p.refuse(w, r, http.StatusForbidden, "Only port "+want+" of "+host+" can be reached through this proxy.")
	default:
		p.refuse(w, r, http.StatusForbidden, host+" is not the host of a source. To tunnel it, name it in the settings: connect: {tunnel: ["+
			net.JoinHostPort(host, port)+"]}")
	}
}

// serveTLS performs the TLS handshake and passes the client's connection to the server behind Listener.
func (p *Proxy) serveTLS(w http.ResponseWriter, host string) {
	nc, err := p.takeConnection(w)
	if err != nil {
		return
	}
	p.running.Add(1)
	defer p.running.Done()
	p.counts.made.Add(1)
	p.counts.open.Add(1)
	c := tls.Server(&conn{nc, host, sync.OnceFunc(func() { p.counts.open.Add(-1) })}, p.tls)
	_ = c.SetDeadline(p.o.Now().Add(p.o.HandshakeTimeout))
	if err := c.HandshakeContext(p.ctx); err != nil {
		refuseHTTP(err)
		_ = c.Close()
		return
	}
	_ = c.SetDeadline(time.Time{})
	select {
	case p.inside.conns <- c:
	case <-p.inside.closed:
		_ = c.Close()
	}
}

// refuseHTTP sends an error to a client that speaks plain HTTP in a tunnel where TLS must begin.
func refuseHTTP(err error) {
	plain := tls.RecordHeaderError{}
	if !errors.As(err, &plain) || plain.Conn == nil {
		return
	}
	switch string(plain.RecordHeader[:]) {
	case "GET /", "HEAD ", "POST ", "PUT /", "OPTIO", "DELET", "PATCH":
		const text = "this tunnel is for https; start TLS in it"
		_, _ = fmt.Fprintf(plain.Conn, "HTTP/1.1 400 Bad Request\r\n%s: %s\r\nContent-Type: text/plain; charset=utf-8\r\n"+
			"Connection: close\r\nContent-Length: %d\r\n\r\n%s\n", jsonhttp.ErrorHeader, text, len(text)+1, text)
	}
}

// takeConnection takes over a client's connection from net/http and confirms the tunnel to the client.
func (p *Proxy) takeConnection(w http.ResponseWriter) (net.Conn, error) {
	nc, buffer, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	_ = nc.SetDeadline(p.o.Now().Add(greetTimeout))
	if _, err := io.WriteString(nc, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		_ = nc.Close()
		return nil, fmt.Errorf("connect: %w", err)
	}
	_ = nc.SetDeadline(time.Time{})
	if buffer.Reader.Buffered() > 0 {
		return &bufferedConn{nc, buffer.Reader}, nil
	}
	return nc, nil
}

// refuse responds with a status and a sentence for people.
func (p *Proxy) refuse(w http.ResponseWriter, r *http.Request, status int, text string) {
	if status == http.StatusBadGateway {
		p.counts.failed.Add(1)
	} else {
		p.counts.refused.Add(1)
	}
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	jsonhttp.SignError(h, status, text)
	h.Set("Connection", "close") // later bytes on this connection are meant for another host
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text+"\n")
	p.log(r, status, 0, p.o.Now())
}

func (p *Proxy) log(r *http.Request, status int, bytes int64, began time.Time) {
	line := accesslog.Line{At: began, Method: r.Method, Target: r.Host, Status: status, Bytes: bytes, Took: p.o.Now().Sub(began)}
	line.Peer, line.Client = accesslog.PeerOf(r), accesslog.ClientOf(r)
	p.o.Log.Add(&line)
}

// bufferedConn is a connection from which some bytes were already read into a buffer.
type bufferedConn struct {
	net.Conn
	buffer *bufio.Reader
}

// Read returns the buffered bytes first, then bytes of the connection.
func (e *bufferedConn) Read(b []byte) (int, error) {
	if e.buffer.Buffered() > 0 {
		return e.buffer.Read(b)
	}
	return e.Conn.Read(b)
}

// CloseWrite closes the sending direction, if the wrapped connection supports this.
func (e *bufferedConn) CloseWrite() error { return closeWrite(e.Conn) }
