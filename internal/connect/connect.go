// Connect: an HTTP proxy by the method CONNECT, and what becomes of a request for a host.

// Package connect is a proxy that programs are led to by variables of their environment. In
// tunnels to the hosts of sources it answers itself, under certificates of an authority of
// this machine; other hosts are refused, or tunnelled as they are.
//
//	program -> CONNECT host -> a source's host: TLS ends here -> handler of the source
//	                        -> a host of Tunnel: bytes pass
//	                        -> any other: 403
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

	"understudy/internal/webhook"
	"understudy/kit/accesslog"
	"understudy/kit/jsonhttp"
	"understudy/kit/limiter"
)

// The deadlines of a tunnel's beginning.
const (
	dialTime  = 10 * time.Second
	greetTime = 10 * time.Second // for the client to take our word that there is a tunnel
)

// mostTunnels is how many tunnels to other hosts there are at once by default.
const mostTunnels = 64

// Options are what a Proxy is made of. Authority must be set.
type Options struct {
	Authority *Authority
	Origins   []Origin // where TLS ends here
	Tunnel    []string // other hosts that are tunnelled (CheckTunnel); none: all are refused
	// AllowPrivate permits tunnels to this machine and to private networks.
	AllowPrivate bool
	Tunnels      int           // to other hosts at once; 0 = 64
	Idle         time.Duration // a tunnel in which nothing moves ends after it; 0 = 2 minutes
	Greet        time.Duration // in which a client must have begun TLS; 0 = 10 seconds
	Log          *accesslog.Log
	Now          func() time.Time // nil: time.Now
}

// Proxy answers CONNECT, an http.Handler. Its connections to hosts of sources are accepted
// from Listener, decrypted. It is safe for concurrent use.
type Proxy struct {
	o       Options
	inside  *listener
	tls     *tls.Config
	dialer  *net.Dialer
	limiter *limiter.Limiter
	ports   map[string]string // of origins, by host
	ctx     context.Context   // ends all tunnels
	end     context.CancelFunc
	running sync.WaitGroup
	counts  counts
}

// New makes the proxy. Close ends it.
func New(o Options) *Proxy {
	o.Tunnels = cmp.Or(o.Tunnels, mostTunnels)
	o.Idle = cmp.Or(o.Idle, 2*time.Minute)
	o.Greet = cmp.Or(o.Greet, greetTime)
	if o.Now == nil {
		o.Now = time.Now
	}
	p := &Proxy{
		o: o, inside: &listener{conns: make(chan net.Conn), closed: make(chan struct{})},
		limiter: limiter.New(o.Tunnels, o.Tunnels), ports: map[string]string{},
		dialer: &net.Dialer{Timeout: dialTime, Control: webhook.Guard(o.AllowPrivate)},
	}
	for _, at := range o.Origins {
		p.ports[at.Host] = at.Port
	}
	p.tls = &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, Time: o.Now, GetCertificate: p.certificate}
	p.ctx, p.end = context.WithCancel(context.Background())
	return p
}

// Listener returns the listener of the connections to hosts of sources. Each is a *tls.Conn that
// has made its handshake and has no deadline.
func (p *Proxy) Listener() net.Listener { return p.inside }

// End ends all tunnels to other hosts and all handshakes; none begins after it. It does not wait.
func (p *Proxy) End() { p.end() }

// Close ends what End does and waits for it.
func (p *Proxy) Close() error {
	p.end()
	err := p.inside.Close()
	p.running.Wait()
	return err
}

// certificate is that of the host the tunnel was asked for. TLS for any other ends.
func (p *Proxy) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	c, ok := hello.Conn.(*conn)
	if !ok || !strings.EqualFold(hello.ServerName, c.host) {
		return nil, errors.New("connect: the tunnel is for another host")
	}
	return p.o.Authority.Certificate(c.host)
}

// ServeHTTP answers CONNECT and refuses all else. Only what is not answered inside a tunnel
// is in the access log: a request inside has its own line there.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect {
		w.Header().Set("Allow", http.MethodConnect)
		p.refuse(w, r, http.StatusMethodNotAllowed, "This port is a proxy for https alone, by the method CONNECT.")
		return
	}
	host, port, err := splitAuthority(r.Host)
	if err != nil {
		p.refuse(w, r, http.StatusBadRequest, "Write CONNECT HOST:PORT.")
		return
	}
	switch want, ours := p.ports[host]; {
	case ours && port == want:
		p.enter(w, host)
	case !ours && tunnels(p.o.Tunnel, host, port):
		p.tunnel(w, r, net.JoinHostPort(host, port))
	case ours:
		p.refuse(w, r, http.StatusForbidden, "Of "+host+" only the port "+want+" is answered here.")
	default:
		p.refuse(w, r, http.StatusForbidden, host+" is no host of a source. To tunnel it, name it in the settings: connect: {tunnel: ["+
			net.JoinHostPort(host, port)+"]}")
	}
}

// enter makes the TLS handshake and hands the client's connection to the server inside.
func (p *Proxy) enter(w http.ResponseWriter, host string) {
	nc, err := p.hijack(w)
	if err != nil {
		return
	}
	p.running.Add(1)
	defer p.running.Done()
	c := tls.Server(p.newConn(nc, host), p.tls)
	_ = c.SetDeadline(p.o.Now().Add(p.o.Greet))
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

// refuseHTTP answers a client that speaks HTTP in a tunnel where TLS must begin.
func refuseHTTP(err error) {
	plain := tls.RecordHeaderError{}
	if !errors.As(err, &plain) || plain.Conn == nil {
		return
	}
	switch string(plain.RecordHeader[:]) {
	case "GET /", "HEAD ", "POST ", "PUT /", "OPTIO", "DELET", "PATCH":
		const text = "this tunnel is for https; begin TLS in it"
		_, _ = fmt.Fprintf(plain.Conn, "HTTP/1.1 400 Bad Request\r\n%s: %s\r\nContent-Type: text/plain; charset=utf-8\r\n"+
			"Connection: close\r\nContent-Length: %d\r\n\r\n%s\n", jsonhttp.ErrorHeader, text, len(text)+1, text)
	}
}

// hijack takes a client's connection over and tells the client that there is a tunnel.
func (p *Proxy) hijack(w http.ResponseWriter) (net.Conn, error) {
	nc, buffer, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	_ = nc.SetDeadline(p.o.Now().Add(greetTime))
	if _, err := io.WriteString(nc, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		_ = nc.Close()
		return nil, fmt.Errorf("connect: %w", err)
	}
	_ = nc.SetDeadline(time.Time{})
	if buffer.Reader.Buffered() > 0 {
		return &early{nc, buffer.Reader}, nil
	}
	return nc, nil
}

// refuse answers with a status and a sentence for people.
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
	h.Set("Connection", "close") // what comes next is meant for somebody else
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text+"\n")
	p.log(r, status, 0, p.o.Now())
}

func (p *Proxy) log(r *http.Request, status int, bytes int64, began time.Time) {
	line := accesslog.Line{At: began, Method: r.Method, Target: r.Host, Status: status, Bytes: bytes, Took: p.o.Now().Sub(began)}
	line.Peer = accesslog.PeerOf(r)
	p.o.Log.Add(&line)
}

// early is a connection of which something was read that is still to be read.
type early struct {
	net.Conn
	buffer *bufio.Reader
}

// Read reads what was read first.
func (e *early) Read(b []byte) (int, error) {
	if e.buffer.Buffered() > 0 {
		return e.buffer.Read(b)
	}
	return e.Conn.Read(b)
}

// CloseWrite ends what is sent, where the connection below can.
func (e *early) CloseWrite() error { return closeWrite(e.Conn) }
