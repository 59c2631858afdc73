// Wire: the connection between the server and the simulated API, which a test can cut.

package faults

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"syscall"
	"testing"

	"understudy/e2e/rig"
)

// wire forwards connections to an address, until a test changes that.
type wire struct {
	t    testing.TB
	port string // of our end, the same through every change
	to   string

	mu       sync.Mutex
	listener net.Listener
	conns    map[net.Conn]bool
	forged   func(target string) []byte // a whole answer in place of upstream's
	blocked  []func()
	serving  sync.WaitGroup
}

// newWire opens a wire to a server.
func newWire(t testing.TB, server string) *wire {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{t: t, port: "127.0.0.1:0", to: u.Host, conns: map[net.Conn]bool{}}
	w.heal()
	t.Cleanup(w.refuse)
	return w
}

func (w *wire) url() string { return "http://" + w.port }

// inUse is why a port cannot be had yet: a process that is being started has what
// this one holds open, until it runs its own program.
func inUse(err error) string {
	if err != nil {
		return err.Error()
	}
	return ""
}

// heal passes everything on again.
func (w *wire) heal() {
	w.t.Helper()
	w.refuse()
	var l net.Listener
	rig.Await(w.t, func() string {
		var err error
		l, err = net.Listen("tcp", w.port)
		return inUse(err)
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.listener, w.port, w.forged = l, l.Addr().String(), nil
	w.serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			w.serving.Go(func() { w.serve(c) })
		}
	})
}

// refuse closes the port and every connection.
func (w *wire) refuse() {
	w.mu.Lock()
	if w.listener != nil {
		_ = w.listener.Close()
		w.listener = nil
	}
	for c := range w.conns {
		_ = c.Close()
	}
	for _, undo := range w.blocked {
		undo()
	}
	w.blocked = nil
	w.mu.Unlock()
	w.serving.Wait()
}

// silence lets no connection come about: the port listens, its queue is full.
func (w *wire) silence() {
	w.t.Helper()
	w.refuse()
	addr, err := net.ResolveTCPAddr("tcp4", w.port)
	if err != nil {
		w.t.Fatal(err)
	}
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.blocked = append(w.blocked, func() { _ = syscall.Close(fd) })
	_ = syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1)
	at := &syscall.SockaddrInet4{Port: addr.Port, Addr: [4]byte{127, 0, 0, 1}}
	rig.Await(w.t, func() string { return inUse(syscall.Bind(fd, at)) })
	if err := syscall.Listen(fd, 0); err != nil {
		w.t.Fatal(err)
	}
	for range 4 { // more than the queue holds; those after it only knock
		c, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC, 0)
		if err != nil {
			w.t.Fatal(err)
		}
		w.blocked = append(w.blocked, func() { _ = syscall.Close(c) })
		if err := syscall.Connect(c, at); err != nil && err != syscall.EINPROGRESS {
			w.t.Fatal(err)
		}
	}
}

// forge answers in upstream's place.
func (w *wire) forge(answer func(target string) []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forged = answer
	for c := range w.conns {
		_ = c.Close() // what is open would be passed on
	}
}

func (w *wire) serve(c net.Conn) {
	defer w.keep(c)()
	w.mu.Lock()
	forged := w.forged
	w.mu.Unlock()
	if forged != nil {
		if req, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
			_, _ = c.Write(forged(req.RequestURI))
		}
		return
	}
	up, err := net.Dial("tcp", w.to)
	if err != nil {
		return
	}
	defer w.keep(up)()
	var both sync.WaitGroup
	both.Go(func() { _, _ = io.Copy(up, c); _ = up.Close(); _ = c.Close() })
	_, err = io.Copy(c, up)
	if err != nil { // a reset goes on as one
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
	}
	_ = c.Close()
	both.Wait()
}

// keep remembers a connection until the function it returns is called.
func (w *wire) keep(c net.Conn) func() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conns[c] = true
	return func() {
		_ = c.Close()
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.conns, c)
	}
}
