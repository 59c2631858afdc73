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
)

// Server is one listening server.
type Server struct {
	Name     string
	listener *limitListener
	handler  *swapHandler
	server   *http.Server
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
		f.handler.set(h, nil)
	}
	f.server = &http.Server{
		Handler: f.handler,
		// OPTIONS * is for the handler to refuse as it does every other.
		DisableGeneralOptionsHandler: true,
		ConnState:                    f.listener.state,
		ReadHeaderTimeout:            limits.HeadTime.Std(),
		ReadTimeout:                  limits.ReadTime.Std(),
		WriteTimeout:                 limits.WriteTime.Std(),
		IdleTimeout:                  limits.IdleTime.Std(),
		MaxHeaderBytes:               int(limits.Headers),
		ErrorLog:                     stdlog.New(serverLog{log.With("face", name)}, "", 0),
	}
	return f
}

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
	return fmt.Appendf(nil, "HTTP/1.1 503 Service Unavailable\r\nContent-Type: %s\r\nContent-Length: %d\r\nRetry-After: 1\r\nConnection: "+
		"close\r\n\r\n%s",
		contentType, len(body), body)
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
}

// Load counts connections and heads of requests.
func (f *Server) Load() Load {
	l := f.listener
	return Load{
		Limit: l.limit.Load(), Now: l.count(), Refused: l.refused.Load(), Dropped: l.dropped.Load(),
		LargeHeads: l.heads.Load(), SlowHeads: l.slow.Load(),
	}
}

// SetLimit bounds the connections from now on.
func (f *Server) SetLimit(connections int) { f.listener.limit.Store(int64(connections)) }

// SetHandler replaces the handler. end is called once the last request of this
// one has ended after it was replaced; nil: nothing is.
func (f *Server) SetHandler(h http.Handler, end func()) { f.handler.set(h, end) }

// ServeHTTP answers by the handler set last.
func (f *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { f.handler.ServeHTTP(w, r) }

// OnShutdown has a function called when shutdown begins.
func (f *Server) OnShutdown(end func()) { f.server.RegisterOnShutdown(end) }

// Addr is where it listens.
func (f *Server) Addr() net.Addr { return f.listener.Addr() }

// serve runs until shutdown is called.
func (f *Server) serve() error {
	if err := f.server.Serve(f.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("%s: %w", f.Name, err)
	}
	return nil
}

// shutdown stops accepting and waits for running answers; when ctx ends first
// it cuts them off.
func (f *Server) shutdown(ctx context.Context) error {
	if err := f.server.Shutdown(ctx); err != nil {
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
