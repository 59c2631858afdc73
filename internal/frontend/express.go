// This file contains the express lane, which answers repeated requests from memory without net/http.

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

	"understudy/internal/http2lane"
	"understudy/kit/lru"
)

// express is the express lane of a server. net/http reads and answers the first request with a given head. The lane
// stores the parsed request under the bytes of that head. If a connection sends the same bytes again and the answer
// is in memory, the lane calls the same handler with the same request. The lane's response writer is faster than
// that of net/http. All other requests are passed to net/http, together with the connection and the received bytes.
// The connection returns to the lane when net/http waits for its next request.
//
// So the handler produces every answer, with all its checks and counters. The lane itself only finds the end of a
// request's head. It answers no request that net/http has not read before as one complete request without a body.
type express struct {
	server       *Server
	seed         maphash.Seed
	bytes        int64 // the memory for stored requests, in bytes
	known        atomic.Pointer[knownRequests]
	netHTTPConns chan net.Conn // the connections that net/http must serve
	closed       chan struct{} // closed when the listener is closed
	closeOnce    sync.Once
	err          error // why the listener was closed; valid after closed is closed
	lanes        sync.WaitGroup

	answered atomic.Int64
}

// knownRequests contains the stored requests by a hash of their heads without traces, and the header fields by their text. All
// requests of one client usually have the same header fields.
type knownRequests struct {
	requests *lru.Cache[uint64, *knownRequest]
	fields   *lru.Cache[string, *fields]
}

// knownRequest is a request that net/http has read and that the lane stores.
type knownRequest struct {
	request    http.Request // the request without the values that belong to its connection
	fields     *fields      // the header of the request, without traces
	handler    *servedHandler
	findAnswer func() (found any, ok bool) // returns the answer to the request if the answer is in memory
}

// fields are the fields of a request header, as received and as net/http has parsed them.
type fields struct {
	text   string
	hash   uint64 // the hash of text
	header http.Header
}

// matchLine reports whether the bytes of a request line are those of the request.
func (s *knownRequest) matchLine(line []byte) bool {
	r := &s.request
	m, u := len(r.Method), len(r.Method)+1+len(r.RequestURI)
	return len(line) == u+1+len(r.Proto) && line[m] == ' ' && line[u] == ' ' && string(line[:m]) == r.Method &&
		string(line[m+1:u]) == r.RequestURI && string(line[u+1:]) == r.Proto
}

// isReady reports whether the answer to the request is in memory.
func (s *knownRequest) isReady() bool {
	_, ok := s.findAnswer()
	return ok
}

// The limits of the lane for one request.
const (
	// requestWeight is the assumed size of a stored request in bytes. The length of its line is added, and three
	// times the length of its fields if no other request has the same fields.
	requestWeight    = 1 << 10
	maxSharedFields  = 256     // the maximum number of different headers that are stored
	maxHead          = 4 << 10 // the maximum length of a head in bytes; a request with a longer head is left to net/http
	firstRead        = 1 << 10 // the size of the first read buffer, in bytes
	deadlineInterval = time.Second
)

// newExpress returns the express lane of a server. bytes is the memory for stored requests.
func newExpress(f *Server, bytes int64) *express {
	x := &express{server: f, seed: maphash.MakeSeed(), bytes: bytes, netHTTPConns: make(chan net.Conn), closed: make(chan struct{})}
	x.forget()
	return x
}

// forget deletes all stored requests. They refer to a former handler and would keep it in memory.
func (x *express) forget() {
	x.known.Store(&knownRequests{lru.New[uint64, *knownRequest](x.bytes), lru.New[string, *fields](maxSharedFields)})
}

// connKey is the context key under which a request has its connection.
type connKey struct{}

// listen accepts connections and starts a lane for each, until the listener is closed.
func (x *express) listen() {
	for {
		nc, err := x.server.listener.Accept()
		if err != nil {
			if slices.ContainsFunc(temporaryErrors, func(one error) bool { return errors.Is(err, one) }) && x.pause() {
				continue
			}
			x.end(err)
			return
		}
		c, ok := nc.(*conn)
		if !ok {
			x.giveToNetHTTP(nc)
			continue
		}
		x.lanes.Go(func() {
			if x.server.listener.tls == nil || x.beginTLS(c) {
				x.serve(c)
			}
		})
	}
}

// serve serves a connection on a lane. Without memory for requests it passes the connection to net/http.
func (x *express) serve(c *conn) {
	if x.bytes == 0 {
		x.giveToNetHTTP(c)
		return
	}
	l := &lane{express: x, finder: finder{express: x}, c: c, remote: c.RemoteAddr().String()}
	l.handover.stopWatching = make(chan struct{}, 1)
	l.closeConn = func() { _ = c.TCPConn.Close() }
	var err error
	if l.incoming.socket, err = newSocket(l); err != nil {
		_ = c.Close()
		return
	}
	l.pipeline.closed = make(chan struct{})
	l.pipeline.gone, l.pipeline.end = context.WithCancel(context.Background())
	x.server.listener.mu.Lock()
	c.lane = l
	x.server.listener.mu.Unlock()
	l.run()
}

// temporaryErrors are the errors of Accept after which another Accept may succeed.
var temporaryErrors = []error{syscall.EMFILE, syscall.ENFILE, syscall.ECONNABORTED, syscall.EINTR}

// pause waits a short time before the next Accept. It returns false if the listener is closed.
func (x *express) pause() bool {
	select {
	case <-time.After(5 * time.Millisecond):
		return true
	case <-x.closed:
		return false
	}
}

func (x *express) end(err error) {
	x.closeOnce.Do(func() {
		x.err = err
		close(x.closed)
	})
}

// giveToNetHTTP passes a connection to net/http.
func (x *express) giveToNetHTTP(nc net.Conn) {
	select {
	case x.netHTTPConns <- nc:
	case <-x.closed:
		_ = nc.Close()
	}
}

// Accept returns the next connection for net/http.
func (x *express) Accept() (net.Conn, error) {
	select {
	case c := <-x.netHTTPConns:
		return c, nil
	case <-x.closed:
		return nil, x.err
	}
}

// Close stops accepting, and ends the connections that wait for a request.
func (x *express) Close() error {
	x.end(net.ErrClosed)
	err := x.server.listener.Close()
	b := x.server.listener
	b.mu.Lock()
	defer b.mu.Unlock()
	for c := range b.conns {
		if c.isInHandshake.Load() || c.lane != nil && c.lane.isUnshared.Load() {
			_ = c.TCPConn.SetReadDeadline(time.Unix(1, 0))
		}
	}
	return err
}

// Addr returns the address of the listener.
func (x *express) Addr() net.Addr { return x.server.listener.Addr() }

// wait waits until no connection is served by the lane alone.
func (x *express) wait(ctx context.Context) error {
	done := make(chan struct{})
	go func() { x.lanes.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// recalled is a stored request whose answer is in memory. Its handler must be left.
type recalled struct {
	known  *knownRequest
	found  any
	traces []trace
}

// recall finds the stored request with the given head, if its answer is in memory. It counts the answer.
func (f *finder) recall(head []byte) (k recalled, ok bool) {
	s, traces := f.find(head)
	if s == nil {
		return k, false
	}
	h := f.express.server.handler.enter()
	if s.handler == h {
		if found, ok := s.findAnswer(); ok {
			f.express.answered.Add(1)
			return recalled{s, found, traces}, true
		}
	}
	h.leave()
	return k, false
}

// copyTo copies the request for a client at an address. The header is valid until the next call with the same traced.
func (k *recalled) copyTo(r *http.Request, remote string, traced *tracedHeader) {
	*r = k.known.request
	r.RemoteAddr = remote
	if k.found == nil { // the handler may keep the header longer, to look for the answer
		traced = new(tracedHeader)
	}
	r.Header = traced.set(k.known.fields, k.traces)
}

// headOf returns the head of a request that net/http has read. It returns nil if the lane cannot answer such a request.
func headOf(r *http.Request) []byte {
	c, ok := r.Context().Value(connKey{}).(*conn)
	switch {
	case ok && c.http2 != nil:
		return http2lane.TakeHead(r.Header)
	case ok && c.lane != nil && !c.lane.handover.readsAll && !c.lane.handover.hasWrite:
		return c.lane.handover.head
	}
	return nil
}

// learn stores a request with the given head that a handler has answered, if the answer is in memory now.
func (x *express) learn(r *http.Request, head []byte, h *servedHandler) {
	if len(head) == 0 || h.known == nil {
		return
	}
	ctx, ready := h.known.PrepareRepeat(r)
	if ready == nil {
		return
	}
	line, text, _ := bytes.Cut(head, headEnd[:2])
	text, traces := splitTraces(text, h.known.CanIgnore)
	header := r.Header.Clone()
	for _, t := range traces {
		delete(header, t.name)
	}
	s := &knownRequest{request: *r.WithContext(ctx), handler: h, findAnswer: ready}
	s.request.Body, s.request.GetBody, s.request.RemoteAddr = http.NoBody, nil, ""
	weight, kept := requestWeight+len(line), x.known.Load()
	shared, ok := kept.fields.Get(string(text))
	if !ok {
		shared, weight = &fields{string(text), maphash.Bytes(x.seed, text), header}, weight+3*len(text)
		kept.fields.Put(shared.text, shared, 1)
	}
	s.fields, s.request.Header = shared, shared.header
	kept.requests.Put(maphash.Bytes(x.seed, line)^shared.hash, s, int64(weight))
}
