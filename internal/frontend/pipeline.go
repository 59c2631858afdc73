// Pipeline: requests that came together are worked on together.

package frontend

import (
	"bufio"
	"bytes"
	"context"
	"net"
	"net/http"
	"strings"
	"time"
)

// mostAhead is how many requests of a connection are worked on before their turn, beside
// the one whose turn it is.
const mostAhead = 15

// pipeline are requests that a connection has sent before the one under way was answered:
// each is begun at once and answered in its turn (RFC 9112, 9.3.2). They are reads alone: a
// request with a body, or one that is not plain, waits until all before it are answered, and
// those behind it wait for it.
type pipeline struct {
	queue  []*early
	gone   context.Context // of their requests: it ends when the client sends no more
	end    context.CancelFunc
	closed chan struct{} // with the connection
}

// early is a request that is worked on before its turn.
type early struct {
	length int  // of its head
	ready  bool // it is not begun: it is answered from memory in its turn
	reply  *reply
	due    chan struct{} // closed when it is its turn
	done   chan struct{} // closed when it is answered
	hold   *hold
}

// hold lets nothing out before its turn.
type hold struct {
	to          net.Conn
	due, closed <-chan struct{}
}

// Write waits for the turn.
func (h *hold) Write(p []byte) (int, error) {
	select {
	case <-h.due:
		return h.to.Write(p)
	case <-h.closed:
		return 0, net.ErrClosed
	}
}

// SetWriteDeadline is the connection's, once it is the answer's turn. Before that nothing of it
// is sent.
func (h *hold) SetWriteDeadline(t time.Time) error {
	select {
	case <-h.due:
		return h.to.SetWriteDeadline(t)
	default:
		return nil
	}
}

// ahead begins the reads that have come behind the request net/http is given.
func (l *lane) ahead() {
	at := int(l.handover.left)
	for _, e := range l.pipeline.queue {
		at += e.length
	}
	for len(l.pipeline.queue) < mostAhead && !l.x.server.unread.Crowded() && at <= len(l.incoming.buf) {
		n := bytes.Index(l.incoming.buf[at:], crlf2) + 4
		if n < 4 || n > maxHead {
			return
		}
		e := l.early(l.incoming.buf[at : at+n])
		if e == nil {
			return
		}
		l.pipeline.queue = append(l.pipeline.queue, e)
		at += n
	}
}

// early begins one request; nil when it is none that may.
func (l *lane) early(head []byte) *early {
	if _, ok := plain(head); !ok || !reads(head) {
		return nil
	}
	h := l.x.server.handler.enter()
	var r *http.Request
	switch s, traces := l.x.find(head); {
	case s != nil && s.by == h && s.isReady():
		h.leave()
		return &early{length: len(head), ready: true}
	case s != nil:
		again := s.request
		again.Header = with(again.Header, traces)
		r = &again
	default:
		read, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(head)))
		if err != nil || !sound(read) || bytes.Count(bytes.ToLower(head), []byte("\r\nhost:")) != 1 {
			h.leave()
			return nil // net/http says what is wrong with it
		}
		r = read
	}
	r = r.WithContext(l.pipeline.gone)
	r.RemoteAddr = l.remote
	e := &early{length: len(head), reply: l.newReply(), due: make(chan struct{}), done: make(chan struct{})}
	leave := l.count(maxReply) // what it keeps; larger bodies are counted when they are written
	e.hold = &hold{l.c.TCPConn, e.due, l.pipeline.closed}
	e.reply.begin(e.hold, l.x.server.listener.now(), r.Method == http.MethodHead)
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

// sound reports whether a request has a host, and names of fields that are tokens: a server of
// net/http looks at these after it has read a request.
func sound(r *http.Request) bool {
	odd := func(more string) func(rune) bool {
		return func(c rune) bool {
			return (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && !strings.ContainsRune(more, c)
		}
	}
	for name := range r.Header {
		if strings.ContainsFunc(name, odd("!#$%&'*+-.^_`|~")) {
			return false
		}
	}
	return r.Host != "" && !strings.ContainsFunc(r.Host, odd("-._:[]"))
}

// next sends the answer of the request at the beginning of buf, if it has been begun.
func (l *lane) next() bool {
	if len(l.pipeline.queue) == 0 {
		return false
	}
	e := l.pipeline.queue[0]
	if l.pipeline.queue = l.pipeline.queue[1:]; e.ready {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.c.idle.Store(0)
	if l.send() != nil {
		l.writer().closes = true
		return true
	}
	l.extend(l.x.server.listener.now())
	l.x.answered.Add(1)
	close(e.due)
	<-e.done
	w := l.writer()
	w.to, w.out = l.incoming.socket, append(w.out, e.reply.out...)
	w.closes, w.broken = e.reply.closes, e.reply.broken
	e.reply.release()
	l.begun = true
	l.c.idle.Store(l.x.server.listener.now().UnixNano())
	return true
}
