// This file passes the sockets of a process to the program that it becomes at a restart. It also takes those of a service manager.

package frontend

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ErrRestart is the cause with which the context of Run ends before a restart. Run then copies the listening sockets and each connection
// that waits for a request. What arrives at the copies waits in the kernel for the next program.
var ErrRestart = errors.New("the server restarts")

// SocketsVariable is the environment variable with the sockets of a restart. For each port it has NAME=ADDRESS as in the settings, and the
// file descriptors of the listening socket and of connections.
const SocketsVariable = "UNDERSTUDY_SOCKETS"

// Inherited are the sockets that a process got from its starter: by NAME=ADDRESS after a restart, by NAME from a service manager.
type Inherited map[string]*inheritedPort

type inheritedPort struct {
	listener net.Listener
	conns    []net.Conn
}

// OpenInherited takes the sockets that the environment names: those of a restart, or those of a service manager (sd_listen_fds(3)).
func OpenInherited(env func(name string) (value string, ok bool)) (in Inherited, err error) {
	in = Inherited{}
	get := func(name string) string { text, _ := env(name); return text }
	text, again := env(SocketsVariable)
	for fields := strings.Fields(text); len(fields) > 1; fields = fields[2:] {
		for number := range strings.SplitSeq(fields[1], ",") {
			err = errors.Join(err, in.add(fields[0], number))
		}
	}
	if again || get("LISTEN_PID") != strconv.Itoa(os.Getpid()) {
		return in, err
	}
	const first = 3 // the file descriptor of the first socket
	for i, name := range strings.Split(get("LISTEN_FDNAMES"), ":") {
		err = errors.Join(err, in.add(name, strconv.Itoa(first+i)))
	}
	return in, err
}

// add takes one socket. The first socket of a name is the listening one.
func (in Inherited) add(name, number string) error {
	fd, err := strconv.ParseUint(number, 10, 31)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	port := in[name]
	if port == nil {
		l, err := net.FileListener(f) // a copy
		in[name] = &inheritedPort{listener: l}
		return err
	}
	if c, err := net.FileConn(f); err == nil { // otherwise it has failed meanwhile
		port.conns = append(port.conns, c)
	}
	return nil
}

// Take returns the sockets of a port, or nil: the listening one, and the connections that wait for a request.
func (in Inherited) Take(name, addr string) (net.Listener, []net.Conn) {
	for _, key := range []string{name + "=" + addr, name} {
		if port := in[key]; port != nil {
			delete(in, key)
			return port.listener, port.conns
		}
	}
	return nil, nil
}

// Use lets the server begin with connections of the program before a restart. address is that of the settings. Call it before the server
// runs.
func (f *Server) Use(address string, conns []net.Conn) {
	f.address, f.listener.first = address, conns
}

// Close closes the sockets that no port has. It returns an error for a socket of a service manager.
func (in Inherited) Close() (err error) {
	for name, port := range in {
		if !strings.Contains(name, "=") {
			err = fmt.Errorf("the service manager has opened a socket named %q; its name must be viewer, connect, metrics or a source", name)
		}
		_ = port.listener.Close() // nobody uses it
		for _, c := range port.conns {
			_ = c.Close()
		}
		delete(in, name)
	}
	return err
}

// DescribeSockets returns the value of SocketsVariable for servers that have ended before a restart.
func DescribeSockets(servers []*Server) string {
	var out []string
	for _, f := range servers {
		if len(f.listener.copies) > 0 {
			out = append(out, f.Name+"="+f.address, strings.Join(f.listener.copies, ","))
		}
	}
	return strings.Join(out, " ")
}

// copySocket copies a socket for the next program.
func (b *limitListener) copySocket(s syscall.Conn) error {
	raw, err := s.SyscallConn()
	if err != nil {
		return err
	}
	var copied int
	failed := raw.Control(func(fd uintptr) { copied, err = copySocket(fd) })
	if err = errors.Join(err, failed); err == nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.copies = append(b.copies, strconv.Itoa(copied))
	}
	return err
}

// The states of a connection, for a restart.
const (
	isBusy        = iota // nobody reads it, or a part of a request has arrived
	awaitsRequest        // it is being read, and nothing has arrived
	isInterrupted        // awaitsRequest, and its deadline ends the reading
	isCopied             // the next program reads it, or nobody if it has TLS
	isHTTP2              // it is told to open another connection
)

// maxPartialTime is how long a restart waits for a request that has arrived in part, and restartInterval how often it looks.
const (
	maxPartialTime  = time.Second
	restartInterval = 2 * time.Millisecond
)

// copySockets stops accepting and copies the listening socket. As soon as a connection waits for a request, its reader copies it and closes
// the original. The reader only closes it if it has TLS, because the next program could not go on in the middle. copySockets returns when
// all are closed, or when no request has arrived on the others within maxPartialTime.
func (f *Server) copySockets(ctx context.Context) {
	b := f.listener
	l, ok := b.Listener.(*net.TCPListener)
	if !ok || b.copySocket(l) != nil {
		return
	}
	for _, end := range f.onStop {
		end()
	}
	b.restarts.Store(true)
	_ = l.SetDeadline(time.Unix(1, 0)) // ends Accept
	select {
	case <-b.stopped:
	case <-ctx.Done():
	}
	tick := time.NewTicker(restartInterval)
	defer tick.Stop()
	for began := b.now(); ctx.Err() == nil; <-tick.C {
		b.mu.Lock()
		open, busy := len(b.conns), false
		for c := range b.conns {
			if c.state.Load() == isHTTP2 {
				open--
				continue
			}
			busy = busy || c.idle.Load() == 0
			if c.state.CompareAndSwap(awaitsRequest, isInterrupted) {
				_ = c.TCPConn.SetReadDeadline(time.Unix(1, 0))
			}
		}
		b.mu.Unlock()
		if open == 0 || !busy && b.now().Sub(began) > maxPartialTime {
			return
		}
	}
}

// awaitRequest reads the first bytes of a request. Before a restart it reads nothing, copies the connection and returns an error.
func (c *conn) awaitRequest(read func() (int, error)) (n int, err error) {
	b := c.listener
	if c.state.Load() == isCopied { // net/http tries again, in case that it is HTTP/2
		return 0, io.EOF
	}
	if c.isTLS() && !c.awaited { // clients do not repeat a request that fails on a new connection
		c.awaited = true
		return read()
	}
	c.state.Store(awaitsRequest)
	if !b.restarts.Load() {
		n, err = read()
		if c.state.Swap(isBusy) != isInterrupted {
			return n, err
		}
		if n > 0 {
			b.mu.Lock() // copySockets has set its deadline
			defer b.mu.Unlock()
			return n, c.TCPConn.SetReadDeadline(b.now().Add(maxPartialTime))
		}
	}
	c.state.Store(isCopied)
	if !c.isTLS() {
		_ = b.copySocket(c.TCPConn) // if it fails, the connection is closed
	}
	return 0, io.EOF
}

// readStream reads from the connection for net/http.
func (c *conn) readStream(p []byte) (int, error) {
	switch {
	case c.state.Load() == isHTTP2:
		return c.stream.Read(p)
	case len(p) == 1 && c.listener.restarts.Load(): // net/http watches the client; what it reads belongs to the next program
		raw, err := c.TCPConn.SyscallConn()
		if err == nil {
			err = raw.Read(func(uintptr) (done bool) { return false })
		}
		return 0, err
	case c.idle.Load() == 0 || c.begun.Load() || c.handlerAsked.Load():
		return c.stream.Read(p)
	}
	return c.awaitRequest(func() (int, error) { return c.stream.Read(p) })
}
