// Lane: a connection on the express lane.

package frontend

import (
	"bytes"
	"net"
	"net/http"
	"slices"
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
	cut    func()      // closes the connection below: what is being sent fails, and who reads learns of it
	own    atomic.Bool // net/http does not know the connection
	begun  bool        // a request has been answered: less than 4 bytes are none, as net/http has it

	incoming incoming
	handover handover
	pipeline pipeline

	mu    sync.Mutex // held while an answer goes out
	reply *reply     // nil: nothing is about to go out
	at    time.Time  // when the deadlines were set
}

// writer is what answers are written to.
func (l *lane) writer() *reply {
	if l.reply == nil {
		l.reply = l.newReply()
	}
	return l.reply
}

// newReply returns a reply of this connection.
func (l *lane) newReply() *reply {
	w := replies.Get().(*reply)
	w.lane = l
	return w
}

// count counts bytes that are about to be sent, until the function that it returns is called.
func (l *lane) count(bytes int) (leave func()) { return l.x.server.unread.Enter(bytes, l.cut) }

// incoming is what has come.
type incoming struct {
	socket *socket
	buf    []byte // is not yet read; nil: a connection that waits has none
	part   int    // bytes of a head that had come when its rest was waited for; 0: none is
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
		end := bytes.Index(l.incoming.buf, crlf2)
		switch {
		case end >= 0 && (l.next() || l.warm(l.incoming.buf[:end+4])):
			l.incoming.part, l.incoming.buf = 0, l.incoming.buf[:copy(l.incoming.buf, l.incoming.buf[end+4:])]
			if l.reply != nil && l.reply.closes {
				_ = l.flush()
				return net.ErrClosed
			}
			continue
		case len(l.incoming.buf) >= 4 || len(l.incoming.buf) > 0 && !l.begun:
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
		n := min(len(method)+2, len(l.incoming.buf))
		return string(l.incoming.buf[:n]) == (method + " /")[:n]
	}
	bare := bytes.Count(l.incoming.buf, crlf2[1:2]) - bytes.Count(l.incoming.buf, crlf2[:2])
	if !slices.ContainsFunc(methods, begins) || bare > 0 || len(l.incoming.buf) > maxHead {
		return false
	}
	if l.incoming.part == 0 {
		now := l.x.server.listener.now()
		l.at = time.Time{} // the deadlines are set anew with its answer
		_ = l.c.TCPConn.SetReadDeadline(now.Add(l.x.server.server.ReadHeaderTimeout))
	}
	l.incoming.part = len(l.incoming.buf)
	return l.read() == nil
}

var crlf2 = []byte("\r\n\r\n")

// read waits for bytes.
func (l *lane) read() error {
	if l.own.Load() {
		select {
		case <-l.x.ended:
			return net.ErrClosed
		default:
		}
	}
	n, err := l.incoming.socket.receive()
	l.incoming.buf = l.incoming.buf[:len(l.incoming.buf)+n]
	if n > 0 {
		return nil
	}
	return err
}

// buffers are those that no connection has.
var buffers = sync.Pool{New: func() any { return new([firstRead]byte) }}

// room is where bytes are read to.
func (l *lane) room() []byte {
	switch {
	case l.incoming.buf == nil:
		l.incoming.buf = buffers.Get().(*[firstRead]byte)[:0]
	case len(l.incoming.buf) == cap(l.incoming.buf):
		l.incoming.buf = append(make([]byte, 0, 2*len(l.incoming.buf)), l.incoming.buf...)
	}
	return l.incoming.buf[len(l.incoming.buf):cap(l.incoming.buf)]
}

// noRoom gives the buffer back while a connection waits for a request.
func (l *lane) noRoom() {
	if len(l.incoming.buf) > 0 {
		return
	}
	if cap(l.incoming.buf) == firstRead {
		buffers.Put((*[firstRead]byte)(l.incoming.buf[:firstRead]))
	}
	l.incoming.buf = nil
}

// warm answers a request that is known and whose answer is in memory.
func (l *lane) warm(head []byte) bool {
	s, traces := l.x.find(head)
	if s == nil {
		return false
	}
	h := l.x.server.handler.enter()
	defer h.leave()
	if s.by != h {
		return false
	}
	found, ok := s.ready()
	if !ok {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.c.idle.Store(0)
	now := l.x.server.listener.now()
	l.extend(now)
	w := l.writer()
	w.request = s.request
	w.request.RemoteAddr, w.request.Header = l.remote, with(s.request.Header, traces)
	w.begin(l.incoming.socket, now, s.request.Method == http.MethodHead)
	w.found = found
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
