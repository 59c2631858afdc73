// Loop: what the machine can do at most: two threads, each with an epoll loop of its own, that
// answer every request with stored bytes. It reads as far as the blank line, and no more.

package rig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"syscall"
)

// reusePort is SO_REUSEPORT of socket(7).
const reusePort = 15

// Loop serves two files as Bare does, until the context ends.
func Loop(ctx context.Context, args []string, out io.Writer) error {
	fs := NewFlags("loop", out)
	identity := fs.String("identity", "", "file of the body as it is")
	packed := fs.String("gzip", "", "file of the gzipped body")
	if err := fs.Parse(args); err != nil {
		return err
	}
	plain, err1 := os.ReadFile(*identity)
	zipped, err2 := os.ReadFile(*packed)
	at, err3 := freePort()
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	head := func(body []byte, more string) []byte {
		return fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n%s", more, len(body), body)
	}
	l := &loop{addr: netip.MustParseAddrPort(at), plain: head(plain, ""), zipped: head(zipped, "Content-Encoding: gzip\r\n")}
	ended := make(chan error, 2)
	for range cap(ended) {
		go func() { ended <- l.run() }()
	}
	fmt.Fprintf(out, "loop  http://%s\n", at)
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return nil
	}
}

type loop struct {
	addr          netip.AddrPort
	plain, zipped []byte
}

// run runs one thread: it accepts connections and answers their requests.
func (l *loop) run() error {
	runtime.LockOSThread()
	s, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_NONBLOCK, 0)
	if err != nil {
		return err
	}
	poll, err := syscall.EpollCreate1(0)
	if err = errors.Join(err, syscall.SetsockoptInt(s, syscall.SOL_SOCKET, reusePort, 1),
		syscall.Bind(s, &syscall.SockaddrInet4{Port: int(l.addr.Port()), Addr: l.addr.Addr().As4()}), syscall.Listen(s, 1024)); err != nil {
		return err
	}
	add := func(fd int) error {
		return syscall.EpollCtl(poll, syscall.EPOLL_CTL_ADD, fd, &syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: int32(fd)})
	}
	if err := add(s); err != nil {
		return err
	}
	events, rest := make([]syscall.EpollEvent, 64), map[int][]byte{}
	for {
		n, err := syscall.EpollWait(poll, events, -1)
		if err != nil && !errors.Is(err, syscall.EINTR) {
			return err
		}
		for _, e := range events[:max(n, 0)] {
			fd := int(e.Fd)
			if fd != s {
				if rest[fd], err = l.answer(fd, rest[fd]); err != nil {
					_ = syscall.Close(fd)
					delete(rest, fd)
				}
				continue
			}
			if c, _, err := syscall.Accept4(s, syscall.SOCK_NONBLOCK); err == nil {
				_ = syscall.SetsockoptInt(c, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1)
				if err := add(c); err != nil {
					return err
				}
				rest[c] = make([]byte, 0, 4096)
			}
		}
	}
}

// answer reads from a connection and answers all requests that it has read, in one write.
func (l *loop) answer(fd int, buf []byte) ([]byte, error) {
	n, err := syscall.Read(fd, buf[len(buf):cap(buf)])
	switch {
	case errors.Is(err, syscall.EAGAIN):
		return buf, nil
	case err != nil || n == 0:
		return nil, io.EOF
	}
	buf = buf[:len(buf)+n]
	var all []byte
	for {
		end := bytes.Index(buf, []byte("\r\n\r\n"))
		if end < 0 {
			break
		}
		body := l.plain
		if strings.Contains(string(buf[:end]), "gzip") {
			body = l.zipped
		}
		buf = buf[:copy(buf, buf[end+4:])]
		if len(buf) == 0 && all == nil {
			return buf, writeAll(fd, body)
		}
		all = append(all, body...)
	}
	return buf, writeAll(fd, all)
}

// writeAll writes all bytes. It tries again without a pause while the client does not read.
func writeAll(fd int, p []byte) error {
	for len(p) > 0 {
		n, err := syscall.Write(fd, p)
		if err != nil && !errors.Is(err, syscall.EAGAIN) {
			return err
		}
		p = p[max(n, 0):]
	}
	return nil
}
