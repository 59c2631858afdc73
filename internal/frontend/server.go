// Package frontend serves HTTP on a port. It limits connections, can replace its handler while it serves, and shuts
// down in order.
package frontend

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	stdlog "log"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"

	"understudy/internal/config"
	"understudy/kit/jsonhttp"
)

// Server is a server that listens on one port.
type Server struct {
	Name     string
	address  string   // the address of the settings
	onStop   []func() // the functions that are called when the shutdown begins
	listener *limitListener
	handler  *swapHandler
	server   *http.Server
	express  *express // the express lane; nil if net/http answers all requests
	unread   *Unread
}

// Listen listens on an address. If the port is in use, the error names the flag that changes the port.
func Listen(ctx context.Context, addr, flag string) (net.Listener, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%s is in use by another program; choose another address with %s", addr, flag)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("%s may not be opened by this user; choose a port above 1023 with %s", addr, flag)
	case err != nil:
		return nil, fmt.Errorf("%s: %w; choose another address with %s", addr, err, flag)
	}
	return l, nil
}

// NewServer returns a server with all limits set. refusal is the complete response for a connection beyond the limit.
func NewServer(name string, l net.Listener, h http.Handler, limits *config.Limits, refusal []byte, log *slog.Logger) *Server {
	f := &Server{Name: name, listener: newLimitListener(l, limits.Connections, refusal), handler: &swapHandler{}}
	if h != nil {
		f.handler.set(h, nil, nil)
	}
	f.server = &http.Server{
		Handler: f,
		// The handler must refuse OPTIONS * as it refuses other paths, so net/http must not answer it.
		DisableGeneralOptionsHandler: true,
		ConnState:                    f.listener.noteState,
		ReadHeaderTimeout:            limits.HeadTime.Std(),
		ReadTimeout:                  limits.ReadTime.Std(),
		WriteTimeout:                 limits.WriteTime.Std(),
		IdleTimeout:                  limits.IdleTime.Std(),
		MaxHeaderBytes:               int(limits.Headers),
		ConnContext:                  func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
		ErrorLog:                     stdlog.New(serverLog{log.With("face", name)}, "", 0),
		Protocols:                    new(http.Protocols),
	}
	f.listener.clients.log = f.server.ErrorLog
	f.server.Protocols.SetHTTP1(true)
	f.server.Protocols.SetHTTP2(true)
	f.server.Protocols.SetUnencryptedHTTP2(true)
	return f
}

// SetExpress makes the server answer repeated requests without net/http if the handler knows that their answers are
// in memory (see SetHandler). bytes is the memory for stored requests. Call it before the server runs.
func (f *Server) SetExpress(bytes int64) {
	f.express = newExpress(f, bytes)
}

// SetTLS makes the server serve TLS only, with the certificates of a configuration. Call it after SetExpress, before the server runs.
func (f *Server) SetTLS(certificates *tls.Config) {
	f.listener.tls = certificates.Clone()
	f.listener.tls.NextProtos = append([]string{http2, "http/1.1"}, certificates.NextProtos...)
	f.listener.tls.GetConfigForClient = f.listener.selectConfig
	if f.express == nil {
		f.express = newExpress(f, 0) // it waits for handshakes
	}
}

// SetUnread limits the bytes of answers that clients have not read yet. Call it before the server runs.
func (f *Server) SetUnread(u *Unread) { f.unread = u }

// serverLog receives the log lines of net/http. The panic of a handler is an error of this server. All other lines
// are about clients.
type serverLog struct{ *slog.Logger }

// Write logs one line, or a panic with its stack.
func (l serverLog) Write(p []byte) (int, error) {
	level, text := slog.LevelDebug, strings.TrimSpace(string(p))
	if strings.HasPrefix(text, "http: panic") {
		level = slog.LevelError
	}
	l.Log(context.Background(), level, text)
	return len(p), nil
}

// Refusal returns a complete 503 response in the form of HTTP/1.1.
func Refusal(body []byte, contentType string) []byte {
	return fmt.Appendf(nil, "HTTP/1.1 503 Service Unavailable\r\n%s: too many connections are open\r\nContent-Type: %s\r\n"+
		"Content-Length: %d\r\nRetry-After: 1\r\nConnection: close\r\n\r\n%s", jsonhttp.ErrorHeader, contentType, len(body), body)
}

// PlainRefusal returns a refusal in plain text, for people and for ports without a spec.
func PlainRefusal() []byte {
	return Refusal([]byte("Too many connections are open here. Try again in a moment.\n"), "text/plain; charset=utf-8")
}

// URL returns the URL of the server.
func (f *Server) URL() string {
	if f.listener.tls != nil {
		return "https://" + f.listener.Addr().String()
	}
	return "http://" + f.listener.Addr().String()
}

// Load contains the numbers of a server's connections and refusals.
type Load struct {
	Limit, Now, Refused, Dropped int64 // numbers of connections: the maximum, open now, refused, and closed to make room
	LargeHeads, SlowHeads        int64 // numbers of requests with too large and with too slow heads
	RefusedClients               int64 // the number of connections and requests of clients that may not use the port
	Express                      int64 // the number of answers made without net/http
}

// Load returns the current connections and the counters.
func (f *Server) Load() Load {
	l := f.listener
	load := Load{
		Limit: l.limit.Load(), Now: l.count(), Refused: l.refused.Load(), Dropped: l.dropped.Load(),
		LargeHeads: l.largeHeads.Load(), SlowHeads: l.slowRequests.Load(), RefusedClients: l.clients.refused.Load(),
	}
	if f.express != nil {
		load.Express = f.express.answered.Load()
	}
	return load
}

// SetLimit sets the maximum number of connections.
func (f *Server) SetLimit(connections int) { f.listener.limit.Store(int64(connections)) }

// Known tells for which requests a handler has the answers in memory.
type Known interface {
	// PrepareRepeat returns a function that reports whether the answer to a request with the same head is in
	// memory. It returns nil if the answer never is. Such a request is passed to the handler with the context ctx.
	// found is the answer, which the handler gets from the writer's method StoredAnswer.
	PrepareRepeat(*http.Request) (ctx context.Context, ready func() (found any, ok bool))
	// CanIgnore reports whether a header field has no effect on the answer. Requests that differ only in this field
	// then have the same answer.
	CanIgnore(name string) bool
}

// SetHandler replaces the handler. known may be nil. end is called when the handler has been replaced in turn and
// its last request has ended. It may be nil.
func (f *Server) SetHandler(h http.Handler, known Known, end func()) {
	f.handler.set(h, known, end)
	if f.express != nil {
		f.express.forget()
	}
}

// ServeHTTP calls the current handler.
func (f *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if c, ok := r.Context().Value(connKey{}).(signer); ok {
		c.setAsked(true)
		if c, ok := c.(*conn); ok {
			c.markTLS(r)
		}
	}
	head := headOf(r)
	h := f.handler.enter()
	defer h.leave()
	h.ServeHTTP(&countedWriter{w, f.unread}, r)
	if f.express != nil {
		f.express.learn(r, head, h)
	}
}

// SetClients sets which clients may use the port. Open connections stay open.
func (f *Server) SetClients(c *config.Clients) { f.listener.clients.allowed.Store(c) }

// GuardRequests returns a handler that refuses requests of strangers behind a reverse proxy or on connections older than the setting.
func (f *Server) GuardRequests(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f.listener.clients.isStranger(r.RemoteAddr, nil) {
			jsonhttp.Error(w, http.StatusForbidden, "forbidden")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// AddShutdownHook registers a function that is called when the shutdown begins.
func (f *Server) AddShutdownHook(end func()) {
	end = sync.OnceFunc(end)
	f.onStop = append(f.onStop, end)
	f.server.RegisterOnShutdown(end)
}

// Addr returns the address of the server.
func (f *Server) Addr() net.Addr { return f.listener.Addr() }

// serve runs until stop is called.
func (f *Server) serve() error {
	l := net.Listener(f.listener)
	if f.express != nil {
		l = f.express
		go f.express.listen()
	}
	if err := f.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("%s: %w", f.Name, err)
	}
	return nil
}

// stop stops accepting connections and waits for running answers. If ctx ends first, it closes their connections.
func (f *Server) stop(ctx context.Context) error {
	err := f.server.Shutdown(ctx)
	if f.express != nil {
		err = errors.Join(err, f.express.wait(ctx))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("%s: answers were cut off: %w", f.Name, err), f.server.Close())
	}
	return nil
}

// CloseListener returns a function that closes a listener. If the server has already closed the listener, the
// function returns no error.
func CloseListener(l net.Listener) func() error {
	return func() error {
		if err := l.Close(); !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil
	}
}
