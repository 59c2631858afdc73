// Package frontend serves HTTP on a port: a bounded number of connections, handlers
// that can be replaced while they serve, and an end in order.
package frontend

import (
	"context"
	"errors"
	"fmt"
	stdlog "log"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"syscall"

	"understudy/internal/config"
	"understudy/kit/jsonhttp"
)

// Server is one listening server.
type Server struct {
	Name     string
	listener *limitListener
	handler  *swapHandler
	server   *http.Server
	express  *express // nil: net/http answers all
	unread   *Unread
}

// Listen binds an address; a taken port is one sentence that names the flag.
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

// NewServer makes a server with every limit set. refusal is the whole answer to
// a connection there is no room for.
func NewServer(name string, l net.Listener, h http.Handler, limits *config.Limits, refusal []byte, log *slog.Logger) *Server {
	f := &Server{Name: name, listener: newLimitListener(l, limits.Connections, refusal), handler: &swapHandler{}}
	if h != nil {
		f.handler.set(h, nil, nil)
	}
	f.server = &http.Server{
		Handler: f,
		// OPTIONS * is for the handler to refuse as it does every other.
		DisableGeneralOptionsHandler: true,
		ConnState:                    f.listener.state,
		ReadHeaderTimeout:            limits.HeadTime.Std(),
		ReadTimeout:                  limits.ReadTime.Std(),
		WriteTimeout:                 limits.WriteTime.Std(),
		IdleTimeout:                  limits.IdleTime.Std(),
		MaxHeaderBytes:               int(limits.Headers),
		ConnContext:                  func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
		ErrorLog:                     stdlog.New(serverLog{log.With("face", name)}, "", 0),
	}
	return f
}

// Express has requests that were answered before answered without net/http, where the
// handler says that they are ready (SetHandler). What is remembered of them takes up to so
// many bytes. It is called before the server runs.
func (f *Server) Express(bytes int64) {
	f.express = newExpress(f, bytes)
}

// Bound bounds what clients have not read of answers. It is called before the server runs.
func (f *Server) Bound(u *Unread) { f.unread = u }

// serverLog takes what net/http says of connections: a panic of a handler is an
// error of ours, the rest is what clients do.
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

// Refusal is a 503 as it goes over the wire.
func Refusal(body []byte, contentType string) []byte {
	return fmt.Appendf(nil, "HTTP/1.1 503 Service Unavailable\r\n%s: too many connections are open\r\nContent-Type: %s\r\n"+
		"Content-Length: %d\r\nRetry-After: 1\r\nConnection: close\r\n\r\n%s", jsonhttp.ErrorHeader, contentType, len(body), body)
}

// PlainRefusal is the same for people and for ports without a spec.
func PlainRefusal() []byte {
	return Refusal([]byte("Too many connections are open here. Try again in a moment.\n"), "text/plain; charset=utf-8")
}

// URL is where the server is reached.
func (f *Server) URL() string { return "http://" + f.listener.Addr().String() }

// Load is how full a server is, and what it refused.
type Load struct {
	Limit, Now, Refused, Dropped int64 // connections
	LargeHeads, SlowHeads        int64 // requests
	Express                      int64 // answers without net/http
}

// Load counts connections and heads of requests.
func (f *Server) Load() Load {
	l := f.listener
	load := Load{
		Limit: l.limit.Load(), Now: l.count(), Refused: l.refused.Load(), Dropped: l.dropped.Load(),
		LargeHeads: l.heads.Load(), SlowHeads: l.slow.Load(),
	}
	if f.express != nil {
		load.Express = f.express.answered.Load()
	}
	return load
}

// SetLimit bounds the connections from now on.
func (f *Server) SetLimit(connections int) { f.listener.limit.Store(int64(connections)) }

// Known is what a handler knows of the requests it has answered.
type Known interface {
	// Known tells whether a request with the same head would be answered from memory at once; nil: never.
	// Such a request is then given to the handler with the context, and with what was found as Found of its writer.
	Known(*http.Request) (ctx context.Context, ready func() (found any, ok bool))
	// Traces reports whether requests that differ in the field of this name alone are one request to Known.
	Traces(name string) bool
}

// SetHandler replaces the handler. known is what it knows; nil: nothing. end is called once the last request of this
// handler has ended after it was replaced; nil: nothing is.
func (f *Server) SetHandler(h http.Handler, known Known, end func()) {
	f.handler.set(h, known, end)
	if f.express != nil {
		f.express.forget()
	}
}

// ServeHTTP answers by the handler set last.
func (f *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if c, ok := r.Context().Value(connKey{}).(signer); ok {
		c.setAsked(true)
	}
	h := f.handler.enter()
	defer h.leave()
	h.ServeHTTP(&countedWriter{w, f.unread}, r)
	if f.express != nil {
		f.express.learn(r, h)
	}
}

// OnShutdown has a function called when shutdown begins.
func (f *Server) OnShutdown(end func()) { f.server.RegisterOnShutdown(end) }

// Addr is where it listens.
func (f *Server) Addr() net.Addr { return f.listener.Addr() }

// serve runs until shutdown is called.
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

// shutdown stops accepting and waits for running answers; when ctx ends first
// it cuts them off.
func (f *Server) shutdown(ctx context.Context) error {
	err := f.server.Shutdown(ctx)
	if f.express != nil {
		err = errors.Join(err, f.express.wait(ctx))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("%s: answers were cut off: %w", f.Name, err), f.server.Close())
	}
	return nil
}

// closeListener closes a listener that was never served; one that was is
// closed by its server.
func CloseListener(l net.Listener) func() error {
	return func() error {
		if err := l.Close(); !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil
	}
}
