// Listen: ports are bound before anything is announced.

package main

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

// face is one listening server.
type face struct {
	name     string
	listener *bound
	handler  *swap
	server   *http.Server
}

// listen binds an address; a taken port is one sentence that names the flag.
func listen(ctx context.Context, addr, flag string) (net.Listener, error) {
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

// newFace makes a server with every limit set. refusal is the whole answer to
// a connection there is no room for.
func newFace(name string, l net.Listener, h http.Handler, limits *config.Limits, refusal []byte, log *slog.Logger) *face {
	f := &face{name: name, listener: newBound(l, limits.Connections, refusal), handler: &swap{}}
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

// refusalOf is a 503 as it goes over the wire.
func refusalOf(body []byte, contentType string) []byte {
	return fmt.Appendf(nil, "HTTP/1.1 503 Service Unavailable\r\nContent-Type: %s\r\nContent-Length: %d\r\nRetry-After: 1\r\nConnection: close\r\n\r\n%s",
		contentType, len(body), body)
}

// plainRefusal is the same for people and for ports without a spec.
func plainRefusal() []byte {
	return refusalOf([]byte("Too many connections are open here. Try again in a moment.\n"), "text/plain; charset=utf-8")
}

// url is where the face is reached.
func (f *face) url() string { return "http://" + f.listener.Addr().String() }

// serve runs until shutdown is called.
func (f *face) serve() error {
	if err := f.server.Serve(f.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("%s: %w", f.name, err)
	}
	return nil
}

// shutdown stops accepting and waits for running answers; when ctx ends first
// it cuts them off.
func (f *face) shutdown(ctx context.Context) error {
	if err := f.server.Shutdown(ctx); err != nil {
		return errors.Join(fmt.Errorf("%s: answers were cut off: %w", f.name, err), f.server.Close())
	}
	return nil
}

// closeListener closes a listener that was never served; one that was is
// closed by its server.
func closeListener(l net.Listener) func() error {
	return func() error {
		if err := l.Close(); !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil
	}
}
