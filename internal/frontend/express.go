// Express: requests that were answered before, answered from memory without net/http.

package frontend

import (
	"bytes"
	"context"
	"errors"
	"hash/maphash"
	"net"
	"net/http"
	"slices"
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
	bytes  int64 // for requests
	kept   atomic.Pointer[remembered]
	handed chan net.Conn // what net/http is to serve
	ended  chan struct{} // closed when the listener is
	ending sync.Once
	err    error // why, read after ended
	runs   sync.WaitGroup

	answered atomic.Int64
}

// remembered are requests by their heads, and the fields of requests by their text: those of
// one client have the same.
type remembered struct {
	requests *lru.Cache[uint64, *seen]
	fields   *lru.Cache[string, *fields]
}

// seen is a request that net/http has read.
type seen struct {
	request http.Request // less what belongs to its connection
	fields  *fields      // its header, less traces
	traces  []trace
	by      *served
	ready   func() (found any, ok bool) // the answer is in memory
}

// fields are a header, as it came and as net/http has read it.
type fields struct {
	text   string
	header http.Header
}

// is reports whether a head is that of the request.
func (s *seen) is(head []byte) bool {
	r := &s.request
	line, fields, _ := bytes.Cut(head, crlf2[:2])
	m, u := len(r.Method), len(r.Method)+1+len(r.RequestURI)
	return len(line) == u+1+len(r.Proto) && line[m] == ' ' && line[u] == ' ' && string(line[:m]) == r.Method &&
		string(line[m+1:u]) == r.RequestURI && string(line[u+1:]) == r.Proto && string(fields) == s.fields.text
}

// isReady reports whether the answer is in memory.
func (s *seen) isReady() bool {
	_, ok := s.ready()
	return ok
}

// The bounds of one request.
const (
	seenWeight = 1 << 10 // of a request beside its line, and three times the fields that no other has
	mostFields = 256     // are shared
	maxHead    = 4 << 10 // a longer head is for net/http
	firstRead  = 1 << 10 // what is read at once
	deadlines  = time.Second
)

// newExpress makes the lane of a server; the requests it remembers take so many bytes.
func newExpress(f *Server, bytes int64) *express {
	x := &express{server: f, seed: maphash.MakeSeed(), bytes: bytes, handed: make(chan net.Conn), ended: make(chan struct{})}
	x.forget()
	return x
}

// forget forgets all requests: what is known of them is a former handler's, which they would
// keep in memory.
func (x *express) forget() {
	x.kept.Store(&remembered{lru.New[uint64, *seen](x.bytes), lru.New[string, *fields](mostFields)})
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
		l := &lane{x: x, c: c, remote: c.RemoteAddr().String(), handover: handover{abort: make(chan struct{}, 1)}}
		l.cut = func() { _ = c.TCPConn.Close() }
		if l.incoming.socket, err = newSocket(l); err != nil {
			_ = c.Close()
			continue
		}
		l.pipeline.closed = make(chan struct{})
		l.pipeline.gone, l.pipeline.end = context.WithCancel(context.Background())
		c.lane = l
		x.runs.Go(l.run)
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
	if !ok || c.lane == nil || c.lane.handover.lost || c.lane.handover.write || len(c.lane.handover.head) == 0 || h.known == nil {
		return
	}
	ctx, ready := h.known.Known(r)
	if ready == nil {
		return
	}
	head, traces := split(c.lane.handover.head, h.known.Traces)
	header := r.Header.Clone()
	for _, t := range traces {
		delete(header, t.name)
	}
	s := &seen{request: *r.WithContext(ctx), by: h, ready: ready, traces: traces}
	s.request.Body, s.request.GetBody, s.request.RemoteAddr = http.NoBody, nil, ""
	x.keep(head, header, s)
}

// keep keeps a request by its head.
func (x *express) keep(head []byte, header http.Header, s *seen) {
	line, text, _ := bytes.Cut(head, crlf2[:2])
	weight, kept := seenWeight+len(line), x.kept.Load()
	shared, ok := kept.fields.Get(string(text))
	if !ok {
		shared, weight = &fields{string(text), header}, weight+3*len(text)
		kept.fields.Put(shared.text, shared, 1)
	}
	s.fields, s.request.Header = shared, shared.header
	kept.requests.Put(maphash.Bytes(x.seed, head), s, int64(weight))
}
