// This file serves one connection on the express lane.

package frontend

import (
	"bytes"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"understudy/internal/http2lane"
)

// lane is the state of one connection on the express lane. Only one goroutine at a time uses it: its own goroutine,
// or the goroutine of net/http that reads the connection.
type lane struct {
	express    *express
	finder     finder
	c          *conn
	remote     string
	closeConn  func()      // closes the TCP connection, so that a running write fails and the reader notices
	isUnshared atomic.Bool // whether net/http does not know the connection
	begun      bool        // whether a request has been answered; fewer than 4 bytes after it are ignored, as net/http does

	incoming incoming
	handover handover
	pipeline pipeline

	mu             sync.Mutex // held while an answer is sent
	reply          *reply     // the answer that is being written; nil if nothing waits to be sent
	deadlinesSetAt time.Time  // when the deadlines of the connection were set
}

// writer returns the reply to which answers are written.
func (l *lane) writer() *reply {
	if l.reply == nil {
		l.reply = l.newReply()
	}
	return l.reply
}

// newReply returns a new reply for this connection.
func (l *lane) newReply() *reply {
	w := replies.Get().(*reply)
	w.lane = l
	return w
}

// countUnread counts bytes as unread by the client until the caller calls leave.
func (l *lane) countUnread(bytes int) (leave func()) {
	return l.express.server.unread.Count(bytes, l.closeConn)
}

// incoming contains the bytes that a connection has received.
type incoming struct {
	socket      socket
	buf         []byte // the bytes that are not processed yet; nil while an idle connection has none
	partialHead int    // the length of an incomplete head for whose rest the lane waits; 0 if it waits for none
}

// run answers requests until a request must be passed to net/http, or until the connection ends.
func (l *lane) run() {
	l.isUnshared.Store(true)
	_ = l.c.TCPConn.SetReadDeadline(l.express.server.listener.now().Add(l.express.server.server.ReadHeaderTimeout))
	err := l.answer()
	l.isUnshared.Store(false)
	if err != nil {
		_ = l.c.Close()
		return
	}
	if bytes.HasPrefix(l.incoming.buf, []byte(http2lane.Preface[:len("PRI * HTTP/2.0\r\n\r\n")])) {
		l.express.serveHTTP2(l.c, l.incoming.buf)
		return
	}
	l.beginHandover()
	l.express.giveToNetHTTP(l.c)
}

// answer answers requests until net/http must read a complete or incomplete request.
func (l *lane) answer() error {
	for {
		end := bytes.Index(l.incoming.buf, headEnd)
		switch {
		case end >= 0 && (l.sendNext() || l.answerKnown(l.incoming.buf[:end+4])):
			l.incoming.partialHead, l.incoming.buf = 0, l.incoming.buf[:copy(l.incoming.buf, l.incoming.buf[end+4:])]
			if l.reply != nil && l.reply.closes {
				_ = l.flush()
				return net.ErrClosed
			}
			continue
		case len(l.incoming.buf) >= 4 || len(l.incoming.buf) > 0 && !l.begun:
			if err := l.flush(); err != nil || end >= 0 || !l.readRestOfHead() {
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

// readRestOfHead waits for the rest of an incomplete head, for as long as net/http would. It reports whether more
// bytes arrived. It leaves a late head to net/http, and a head that may not be plain.
func (l *lane) readRestOfHead() bool {
	begins := func(method string) bool {
		n := min(len(method)+2, len(l.incoming.buf))
		return string(l.incoming.buf[:n]) == (method + " /")[:n]
	}
	bare := bytes.Count(l.incoming.buf, headEnd[1:2]) - bytes.Count(l.incoming.buf, headEnd[:2])
	if !slices.ContainsFunc(methods, begins) || bare > 0 || len(l.incoming.buf) > maxHead {
		return false
	}
	if l.incoming.partialHead == 0 {
		now := l.express.server.listener.now()
		l.deadlinesSetAt = time.Time{} // the next answer sets the deadlines again
		_ = l.c.TCPConn.SetReadDeadline(now.Add(l.express.server.server.ReadHeaderTimeout))
	}
	l.incoming.partialHead = len(l.incoming.buf)
	return l.read() == nil
}

var headEnd = []byte("\r\n\r\n")

// read waits for bytes of the client and adds them to the buffer.
func (l *lane) read() error {
	if l.isUnshared.Load() {
		select {
		case <-l.express.closed:
			return net.ErrClosed
		default:
		}
	}
	receive := l.incoming.socket.receive
	if len(l.incoming.buf) == 0 && l.c.idle.Load() != 0 {
		receive = l.receiveNext
	}
	n, err := receive()
	l.incoming.buf = l.incoming.buf[:len(l.incoming.buf)+n]
	if n > 0 {
		return nil
	}
	return err
}

// receiveNext receives the first bytes of a request.
func (l *lane) receiveNext() (int, error) { return l.c.awaitRequest(l.incoming.socket.receive) }

// buffers is a pool of read buffers.
var buffers = sync.Pool{New: func() any { return new([firstRead]byte) }}

// makeRoom returns the free part of the buffer, into which bytes are read.
func (l *lane) makeRoom() []byte {
	switch {
	case l.incoming.buf == nil:
		l.incoming.buf = buffers.Get().(*[firstRead]byte)[:0]
	case len(l.incoming.buf) == cap(l.incoming.buf):
		l.incoming.buf = append(make([]byte, 0, 2*len(l.incoming.buf)), l.incoming.buf...)
	}
	return l.incoming.buf[len(l.incoming.buf):cap(l.incoming.buf)]
}

// releaseRoom releases the buffer of a connection that waits for a request.
func (l *lane) releaseRoom() {
	if len(l.incoming.buf) > 0 {
		return
	}
	if cap(l.incoming.buf) == firstRead {
		buffers.Put((*[firstRead]byte)(l.incoming.buf[:firstRead]))
	}
	l.incoming.buf = nil
}

// answerKnown answers a stored request whose answer is in memory. It returns false for any other request.
func (l *lane) answerKnown(head []byte) bool {
	k, ok := l.finder.recall(head)
	if !ok {
		return false
	}
	defer k.known.handler.leave()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.c.idle.Store(0)
	now := l.express.server.listener.now()
	l.extendDeadlines(now)
	w := l.writer()
	k.copyTo(&w.request, l.remote, &w.traced)
	w.begin(l.incoming.socket, now, w.request.Method == http.MethodHead)
	w.found = k.found
	w.serve(k.known.handler, &w.request)
	l.begun = true
	l.c.idle.Store(now.UnixNano())
	return true
}

// extendDeadlines sets the connection's deadlines, at most once every deadlineInterval.
func (l *lane) extendDeadlines(now time.Time) {
	if now.Sub(l.deadlinesSetAt) < deadlineInterval {
		return
	}
	l.deadlinesSetAt = now
	_ = l.c.TCPConn.SetWriteDeadline(now.Add(l.express.server.server.WriteTimeout))
	_ = l.c.TCPConn.SetReadDeadline(now.Add(l.express.server.server.IdleTimeout))
}

// flush sends the collected bytes and releases the reply, so that an idle connection takes no memory for answers.
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
