// Express: requests that were answered before, answered from memory without net/http.

package frontend

import (
	"bytes"
	"context"
	"errors"
	"hash/maphash"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"understudy/kit/lru"
)

// express is the express lane of a server. net/http reads and answers the first request
// with some head; what it has read is remembered by the head's bytes. When a connection
// sends the same bytes again and the answer is in memory, the same handler answers the same
// request at once, through a writer that costs less than net/http's. Whatever is not known,
// not in memory or not plain goes to net/http, with its connection and the bytes that have
// come; that connection is on the lane again once net/http waits for its next request.
//
// So every answer passes the handler, with all that it checks and counts. The lane itself
// reads no more of a request than where its head ends, and answers nothing that net/http
// has not read as one whole request without a body.
type express struct {
	server *Server
	seed   maphash.Seed
	heads  *lru.Cache[uint64, *seen]
	handed chan net.Conn // what net/http is to serve
	ended  chan struct{} // closed when the listener is
	ending sync.Once
	err    error // why, read after ended
	runs   sync.WaitGroup

	answered atomic.Int64
}

// seen is a request that net/http has read.
type seen struct {
	head    string
	request *http.Request // less what belongs to its connection
	by      *served
	ready   func() bool // the answer is in memory
}

// The bounds of one request.
const (
	seenWeight = 1 << 10 // of a request beside three times its head
	maxHead    = 4 << 10 // a longer head is for net/http
	firstRead  = 1 << 10 // what is read at once
	deadlines  = time.Second
)

// newExpress makes the lane of a server; the requests it remembers take so many bytes.
func newExpress(f *Server, bytes int64) *express {
	return &express{server: f, seed: maphash.MakeSeed(), heads: lru.New[uint64, *seen](bytes), handed: make(chan net.Conn),
		ended: make(chan struct{})}
}

// connKey is the context key of a request's connection.
type connKey struct{}

// listen accepts connections and runs them until the listener is closed.
func (x *express) listen() {
	for {
		nc, err := x.server.listener.Accept()
		if err != nil {
			if slices.ContainsFunc(passing, func(one error) bool { return errors.Is(err, one) }) && x.pause() {
				continue
			}
			x.end(err)
			return
		}
		c, ok := nc.(*conn)
		if !ok {
			x.hand(nc)
			continue
		}
		c.lane = &lane{x: x, c: c, remote: c.RemoteAddr().String(), handover: handover{abort: make(chan struct{}, 1)}}
		x.runs.Go(func() { c.lane.run() })
	}
}

// passing are the errors of an accept after which another may succeed.
var passing = []error{syscall.EMFILE, syscall.ENFILE, syscall.ECONNABORTED, syscall.EINTR}

// pause waits a little; false when the listener is closed.
func (x *express) pause() bool {
	select {
	case <-time.After(5 * time.Millisecond):
		return true
	case <-x.ended:
		return false
	}
}

func (x *express) end(err error) {
	x.ending.Do(func() {
		x.err = err
		close(x.ended)
	})
}

// hand gives a connection to net/http.
func (x *express) hand(nc net.Conn) {
	select {
	case x.handed <- nc:
	case <-x.ended:
		_ = nc.Close()
	}
}

// Accept is the next connection for net/http.
func (x *express) Accept() (net.Conn, error) {
	select {
	case c := <-x.handed:
		return c, nil
	case <-x.ended:
		return nil, x.err
	}
}

// Close stops accepting, and has connections that wait for a request end.
func (x *express) Close() error {
	x.end(net.ErrClosed)
	err := x.server.listener.Close()
	b := x.server.listener
	b.mu.Lock()
	defer b.mu.Unlock()
	for c := range b.conns {
		if c.lane != nil && c.lane.own.Load() {
			_ = c.TCPConn.SetReadDeadline(time.Unix(1, 0))
		}
	}
	return err
}

// Addr is where it listens.
func (x *express) Addr() net.Addr { return x.server.listener.Addr() }

// wait waits until no connection is on the lane alone.
func (x *express) wait(ctx context.Context) error {
	done := make(chan struct{})
	go func() { x.runs.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// learn keeps a request that net/http has read and a handler has answered, if its
// answer is in memory now.
func (x *express) learn(r *http.Request, h *served) {
	c, ok := r.Context().Value(connKey{}).(*conn)
	if !ok || c.lane == nil || c.lane.lost || len(c.lane.head) == 0 || h.ready == nil {
		return
	}
	ready := h.ready(r)
	if ready == nil {
		return
	}
	head := string(c.lane.head)
	kept := r.Clone(context.Background())
	kept.Body, kept.GetBody, kept.RemoteAddr = http.NoBody, nil, ""
	x.heads.Put(maphash.String(x.seed, head), &seen{head, kept, h, ready}, int64(3*len(head)+seenWeight))
}

// lane is one connection's part of the express lane. Its own goroutine uses it, or that of
// net/http which reads.
type lane struct {
	x      *express
	c      *conn
	remote string
	own    atomic.Bool // net/http does not know the connection
	begun  bool        // a request has been answered: less than 4 bytes are none, as net/http has it
	buf    []byte      // has come and is not yet read

	handover

	mu      sync.Mutex // held while an answer goes out
	request http.Request
	reply   reply
	at      time.Time // when the deadlines were set
}

// handover is what net/http is given of a connection.
type handover struct {
	head  []byte        // of its request
	left  int           // so much of buf is still to be given
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
		case end >= 0 && l.warm(l.buf[:end+4]):
			l.buf = l.buf[:copy(l.buf, l.buf[end+4:])]
			if l.reply.closes {
				_ = l.flush()
				return net.ErrClosed
			}
			continue
		case len(l.buf) >= 4 || len(l.buf) > 0 && !l.begun:
			return l.flush()
		}
		if err := l.flush(); err != nil {
			return err
		}
		if err := l.read(); err != nil {
			return err
		}
	}
}

var crlf2 = []byte("\r\n\r\n")

// read waits for bytes.
func (l *lane) read() error {
	if len(l.buf) == 0 && (cap(l.buf) == 0 || cap(l.buf) > maxHead) {
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
	s, ok := l.x.heads.Get(maphash.Bytes(l.x.seed, head))
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
	l.request = *s.request
	l.request.RemoteAddr = l.remote
	l.reply.begin(l.c.TCPConn, now, s.request.Method == http.MethodHead)
	defer l.contain()
	h.ServeHTTP(&l.reply, &l.request)
	l.reply.end()
	l.begun = true
	l.x.answered.Add(1)
	l.c.idle.Store(now.UnixNano())
	return true
}

// contain ends the connection of a handler that panics: it has begun an answer.
func (l *lane) contain() {
	if why := recover(); why != nil {
		l.reply.closes, l.reply.out = true, nil
	}
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

// flush sends what is written.
func (l *lane) flush() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reply.flush()
}

// begin has net/http take the request at the beginning of buf: its head and no more, if
// that is a whole one that is written plainly and has no body. Else net/http reads all that
// comes on this connection.
func (l *lane) begin() {
	end := bytes.Index(l.buf, crlf2)
	if end < 0 || end > maxHead || !plain(l.buf[:end+4]) {
		l.lost, l.head = true, nil
		return
	}
	l.left, l.head = end+4, append(l.head[:0], l.buf[:end+4]...)
}

// plain reports whether a head is of a request without a body, in HTTP/1.1, with nothing
// in it that two readers might read differently.
func plain(head []byte) bool {
	line, rest, _ := bytes.Cut(head, crlf2[:2])
	if !bytes.HasSuffix(line, []byte(" HTTP/1.1")) || !bytes.HasPrefix(line, []byte("GET /")) && !bytes.HasPrefix(line, []byte("HEAD /")) {
		return false
	}
	for len(rest) > 2 {
		line, rest, _ = bytes.Cut(rest, crlf2[:2])
		name, _, ok := bytes.Cut(line, []byte(":"))
		if !ok || len(name) == 0 {
			return false
		}
		switch strings.ToLower(string(name)) {
		case "content-length", "transfer-encoding", "expect", "upgrade", "connection", "trailer", "te":
			if !strings.EqualFold(string(line), "connection: keep-alive") {
				return false
			}
		}
	}
	return !bytes.ContainsFunc(bytes.ReplaceAll(head, crlf2[:2], nil), func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
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
	n := copy(p, l.buf[:l.left])
	l.buf = l.buf[:copy(l.buf, l.buf[n:])]
	l.left -= n
	return n, nil
}

// watch waits until the client is gone, or net/http does not look any more. What comes
// meanwhile is of the next request.
func (l *lane) watch() error {
	if len(l.buf) == 0 {
		if err := l.read(); err != nil {
			return err
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
	l.mu.Lock()
	defer l.mu.Unlock()
}
