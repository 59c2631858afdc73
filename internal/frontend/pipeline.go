// This file processes pipelined requests, which arrive together on one connection, at the same time.

package frontend

import (
	"bufio"
	"bytes"
	"context"
	"net"
	"net/http"
	"time"

	"golang.org/x/net/http/httpguts"
)

// maxAhead is the maximum number of a connection's requests that are processed before their turn.
const maxAhead = 15

// pipeline contains the requests that a connection has sent before the current request was answered. Each starts at
// once and is answered in its turn (RFC 9112, 9.3.2). Only GET and HEAD requests start early. A request with a body, or
// without a plain head, waits until all requests before it are answered, and the requests behind it wait for it.
type pipeline struct {
	queue  []*earlyRequest
	gone   context.Context // the context of the early requests, which ends when the client disconnects
	end    context.CancelFunc
	closed chan struct{} // closed together with the connection
}

// earlyRequest is a request that is processed before its turn.
type earlyRequest struct {
	headLength int  // the length of the request's head, in bytes
	inMemory   bool // whether the request has not started, because it will be answered from memory in its turn
	reply      *reply
	due        chan struct{} // closed when it is the turn of the request
	done       chan struct{} // closed when the request is answered
	hold       *heldWriter
}

// heldWriter is a response writer that writes nothing to the connection before the request's turn.
type heldWriter struct {
	to          net.Conn
	due, closed <-chan struct{}
}

// Write waits for the request's turn and then writes.
func (h *heldWriter) Write(p []byte) (int, error) {
	select {
	case <-h.due:
		return h.to.Write(p)
	case <-h.closed:
		return 0, net.ErrClosed
	}
}

// SetWriteDeadline sets the write deadline of the connection if it is the request's turn. Otherwise it does
// nothing, because nothing is sent.
func (h *heldWriter) SetWriteDeadline(t time.Time) error {
	select {
	case <-h.due:
		return h.to.SetWriteDeadline(t)
	default:
		return nil
	}
}

// startAhead starts the requests that have arrived behind the current request.
func (l *lane) startAhead() {
	at := int(l.handover.remaining)
	for _, e := range l.pipeline.queue {
		at += e.headLength
	}
	for len(l.pipeline.queue) < maxAhead && !l.express.server.unread.IsCrowded() && at <= len(l.incoming.buf) {
		n := bytes.Index(l.incoming.buf[at:], headEnd) + 4
		if n < 4 || n > maxHead {
			return
		}
		e := l.startEarly(l.incoming.buf[at : at+n])
		if e == nil {
			return
		}
		l.pipeline.queue = append(l.pipeline.queue, e)
		at += n
	}
}

// startEarly starts processing one request. It returns nil if the request may not start early.
func (l *lane) startEarly(head []byte) *earlyRequest {
	if _, ok := parsePlainHead(head); !ok || !isRead(head) {
		return nil
	}
	h := l.express.server.handler.enter()
	var r *http.Request
	switch s, traces := l.finder.find(head); {
	case s != nil && s.handler == h && s.isReady():
		h.leave()
		return &earlyRequest{headLength: len(head), inMemory: true}
	case s != nil:
		again := s.request
		again.Header = new(tracedHeader).set(s.fields, traces)
		r = &again
	default:
		read, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(head)))
		if err != nil || read.Host == "" || !httpguts.ValidHostHeader(read.Host) || bytes.Count(bytes.ToLower(head), []byte("\r\nhost:")) != 1 {
			h.leave()
			return nil // net/http will report the error in the request
		}
		r = read
	}
	r = r.WithContext(l.pipeline.gone)
	l.c.markTLS(r)
	r.RemoteAddr = l.remote
	e := &earlyRequest{headLength: len(head), reply: l.newReply(), due: make(chan struct{}), done: make(chan struct{})}
	leave := l.countUnread(maxReply) // the memory of the reply; larger bodies are counted when they are written
	e.hold = &heldWriter{l.c.stream, e.due, l.pipeline.closed}
	e.reply.begin(e.hold, l.express.server.listener.now(), r.Method == http.MethodHead)
	go func() {
		e.reply.serve(h, r)
		h.leave()
		close(e.done)
		select {
		case <-e.due:
		case <-l.pipeline.closed:
		}
		leave()
	}()
	return e
}

// sendNext sends the answer of the request at the beginning of buf, if that request has started early.
func (l *lane) sendNext() bool {
	if len(l.pipeline.queue) == 0 {
		return false
	}
	e := l.pipeline.queue[0]
	if l.pipeline.queue = l.pipeline.queue[1:]; e.inMemory {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.c.idle.Store(0)
	if l.send() != nil {
		l.writer().closes = true
		return true
	}
	l.extendDeadlines(l.express.server.listener.now())
	l.express.answered.Add(1)
	close(e.due)
	<-e.done
	w := l.writer()
	w.to, w.out = l.incoming.socket, append(w.out, e.reply.out...)
	w.closes, w.broken = e.reply.closes, e.reply.broken
	e.reply.release()
	l.begun = true
	l.c.idle.Store(l.express.server.listener.now().UnixNano())
	return true
}
