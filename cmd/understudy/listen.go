// Listen: ports are bound before anything is announced.

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"syscall"
	"time"
)

// face is one listening server.
type face struct {
	name     string
	listener net.Listener
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

// Limits of every face. A slow reader of a large page has WriteTimeout.
const (
	headerTimeout  = 10 * time.Second
	readTimeout    = 60 * time.Second
	writeTimeout   = 120 * time.Second
	idleTimeout    = 120 * time.Second
	maxHeaderBytes = 32 << 10
)

// newFace makes a server with every timeout set.
func newFace(name string, l net.Listener, h http.Handler, log *slog.Logger) *face {
	return &face{name: name, listener: l, server: &http.Server{
		Handler:           h,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(log.With("face", name).Handler(), slog.LevelDebug),
	}}
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
