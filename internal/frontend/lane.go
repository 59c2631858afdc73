// Lane: a connection on the express lane, and how net/http is given it.

package frontend

import (
	"bytes"
	"errors"
	"hash/maphash"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// lane is one connection's part of the express lane. Its own goroutine uses it, or that of
// net/http which reads.
type lane struct {
	x      *express
	c      *conn
	remote string
	own    atomic.Bool // net/http does not know the connection
	begun  bool        // a request has been answered: less than 4 bytes are none, as net/http has it
	buf    []byte      // has come and is not yet read
	part   int         // bytes of a head that had come when its rest was waited for; 0: none is

	handover
	pipeline

	mu    sync.Mutex // held while an answer goes out
	reply *reply     // nil: nothing is about to go out
	at    time.Time  // when the deadlines were set
}

// writer is what answers are written to.
func (l *lane) writer() *reply {
	if l.reply == nil {
		l.reply = replies.Get().(*reply)
	}
	return l.reply
}

// handover is what net/http is given of a connection.
type handover struct {
	head  []byte        // of its request
	left  int64         // so many bytes of its request are still to be given
	write bool          // its request is not one that reads
	lost  bool          // net/http reads everything from now on
	abort chan struct{} // net/http ends its look whether the client is still there
}

// run answers until there is something for net/http, or the connection ends.
func (l *lane) run() {
	l.own.Store(true)
	_ = l.c.TCPConn.SetReadDeadline(l.x.server.listener.now().Add(l.x.server.server.ReadHeaderTimeout))
	err := l.answer()
	l.own.Store(false)
	if err != nil {
		_ = l.c.Close()
		return
	}
	l.begin()
	l.x.hand(l.c)
}

// answer answers requests until one has come, or a part of one, that is for net/http.
func (l *lane) answer() error {
	for {
		end := bytes.Index(l.buf, crlf2)
		switch {
		case end >= 0 && (l.next() || l.warm(l.buf[:end+4])):
			l.part, l.buf = 0, l.buf[:copy(l.buf, l.buf[end+4:])]
			if l.reply != nil && l.reply.closes {
				_ = l.flush()
				return net.ErrClosed
			}
			continue
		case len(l.buf) >= 4 || len(l.buf) > 0 && !l.begun:
			if err := l.flush(); err != nil || end >= 0 || !l.rest() {
				return err
			}
			continue
		}
		if err := l.flush(); err != nil {
			return err
		}
		if err := l.read(); err != nil {
			return err
		}
	}
}

// rest waits for the rest of a head of which a part has come, as long as net/http would. It
// reports whether there is more: what comes late, or may be no plain head, is for net/http.
func (l *lane) rest() bool {
	begins := func(method string) bool {
		n := min(len(method)+2, len(l.buf))
		return string(l.buf[:n]) == (method + " /")[:n]
	}
	bare := bytes.Count(l.buf, crlf2[1:2]) - bytes.Count(l.buf, crlf2[:2])
	if !slices.ContainsFunc(methods, begins) || bare > 0 || len(l.buf) > maxHead {
		return false
	}
	if l.part == 0 {
		now := l.x.server.listener.now()
		l.at = time.Time{} // the deadlines are set anew with its answer
		_ = l.c.TCPConn.SetReadDeadline(now.Add(l.x.server.server.ReadHeaderTimeout))
	}
	l.part = len(l.buf)
	return l.read() == nil
}

var crlf2 = []byte("\r\n\r\n")

// read waits for bytes.
func (l *lane) read() error {
	switch {
	case len(l.buf) == cap(l.buf):
		l.buf = append(make([]byte, 0, max(firstRead, 2*len(l.buf))), l.buf...)
	case len(l.buf) == 0 && cap(l.buf) > 2*maxHead:
		l.buf = make([]byte, 0, firstRead)
	}
	if l.own.Load() {
		select {
		case <-l.x.ended:
			return net.ErrClosed
		default:
		}
	}
	n, err := l.c.TCPConn.Read(l.buf[len(l.buf):cap(l.buf)])
	l.buf = l.buf[:len(l.buf)+n]
	if n > 0 {
		return nil
	}
	return err
}

// warm answers a request that is known and whose answer is in memory.
func (l *lane) warm(head []byte) bool {
	s, ok := l.x.heads.Load().Get(maphash.Bytes(l.x.seed, head))
	if !ok || s.head != string(head) {
		return false
	}
	h := l.x.server.handler.enter()
	defer h.leave()
	if s.by != h || !s.ready() {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.c.idle.Store(0)
	now := l.x.server.listener.now()
	l.extend(now)
	w := l.writer()
	w.request = *s.request
	w.request.RemoteAddr = l.remote
	w.begin(l.c.TCPConn, now, s.request.Method == http.MethodHead)
	l.x.answered.Add(1)
	w.serve(h, &w.request)
	l.begun = true
	l.c.idle.Store(now.UnixNano())
	return true
}

// extend sets the connection's deadlines anew, once in a while.
func (l *lane) extend(now time.Time) {
	if now.Sub(l.at) < deadlines {
		return
	}
	l.at = now
	_ = l.c.TCPConn.SetWriteDeadline(now.Add(l.x.server.server.WriteTimeout))
	_ = l.c.TCPConn.SetReadDeadline(now.Add(l.x.server.server.IdleTimeout))
}

// flush sends what is written. A connection that waits has no memory for answers.
func (l *lane) flush() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.send()
}

func (l *lane) send() error {
	if l.reply == nil {
		return nil
	}
	err := l.reply.flush()
	l.reply.release()
	l.reply = nil
	return err
}

// begin has net/http take the request at the beginning of buf and no more, if it is one
// that is written plainly and whose length is certain. Else net/http reads all that comes on
// this connection.
func (l *lane) begin() {
	end := bytes.Index(l.buf, crlf2)
	length, ok := int64(0), end >= 0 && end <= maxHead
	if ok {
		length, ok = plain(l.buf[:end+4])
	}
	if !ok {
		l.lost, l.head = true, nil
		return
	}
	l.part, l.left, l.head = 0, int64(end+4)+length, append(l.head[:0], l.buf[:end+4]...)
	if l.write = !reads(l.head); !l.write {
		l.ahead()
	}
}

// reads reports whether a plain head is of a GET or a HEAD.
func reads(head []byte) bool {
	return bytes.HasPrefix(head, []byte("GET ")) || bytes.HasPrefix(head, []byte("HEAD "))
}

// methods are those of requests on the lane, less the space and the beginning of the path.
var methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"}

// plain reports whether a head is of a request in HTTP/1.1 with nothing in it that two
// readers might read differently, and how long the request's body is. One that reads has none.
func plain(head []byte) (length int64, ok bool) {
	line, rest, _ := bytes.Cut(head, crlf2[:2])
	method, _, _ := bytes.Cut(line, []byte(" /"))
	if !bytes.HasSuffix(line, []byte(" HTTP/1.1")) || !slices.Contains(methods, string(method)) {
		return 0, false
	}
	said := false
	for len(rest) > 2 {
		line, rest, _ = bytes.Cut(rest, crlf2[:2])
		name, value, ok := bytes.Cut(line, []byte(":"))
		if !ok || len(name) == 0 || bytes.ContainsAny(name, " \t") {
			return 0, false
		}
		switch text := strings.Trim(string(value), " "); strings.ToLower(string(name)) {
		case "content-length":
			n, err := strconv.ParseUint(text, 10, 40)
			if said || err != nil || reads(head) {
				return 0, false
			}
			said, length = true, int64(n)
		case "connection":
			if !strings.EqualFold(text, "keep-alive") {
				return 0, false
			}
		case "transfer-encoding", "expect", "upgrade", "trailer", "te":
			return 0, false
		}
	}
	odd := func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }
	return length, !bytes.ContainsFunc(bytes.ReplaceAll(head, crlf2[:2], nil), odd)
}

// give is a Read of net/http.
func (l *lane) give(p []byte) (int, error) {
	switch {
	case len(p) == 0:
		return 0, nil
	case l.lost:
		if len(l.buf) > 0 {
			n := copy(p, l.buf)
			l.buf = l.buf[n:]
			return n, nil
		}
		return l.c.TCPConn.Read(p)
	case l.left == 0 && l.c.idle.Load() == 0:
		return 0, l.watch()
	case l.left == 0:
		if err := l.answer(); err != nil {
			return 0, err
		}
		l.begin()
		return l.give(p)
	}
	p = p[:min(int64(len(p)), l.left)]
	if len(l.buf) == 0 {
		n, err := l.c.TCPConn.Read(p)
		l.left -= int64(n)
		return n, err
	}
	n := copy(p, l.buf)
	l.buf = l.buf[:copy(l.buf, l.buf[n:])]
	l.left -= int64(n)
	return n, nil
}

// watch waits until the client is gone, or net/http does not look any more. What comes
// meanwhile is of the next request.
func (l *lane) watch() error {
	for len(l.buf) < maxHead {
		if err := l.read(); err != nil {
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				l.end()
			}
			return err
		}
		if !l.write {
			l.ahead()
		}
	}
	<-l.abort
	return os.ErrDeadlineExceeded
}

// deadline notes what net/http sets.
func (l *lane) deadline(t time.Time) {
	if !t.IsZero() && t.Unix() < 2 { // long ago: the look is to end
		select {
		case l.abort <- struct{}{}:
		default:
		}
		return
	}
	select {
	case <-l.abort:
	default:
	}
}

// close waits for an answer under way. A look that waits is over.
func (l *lane) close() {
	select {
	case l.abort <- struct{}{}:
	default:
	}
	l.end()
	close(l.closed)
	l.mu.Lock()
	defer l.mu.Unlock()
}
