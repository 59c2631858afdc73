// Lanes between a client and the server of net/http, over real connections.

package http2lane

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"understudy/internal/checktest"
)

const waitTime = 10 * time.Second

// world is a server that answers the paths below /warm on the lane once it knows their requests.
type world struct {
	http.Handler
	addr     string
	server   *http.Server
	now      atomic.Int64  // what the clock shows, in nanoseconds
	answered atomic.Int64  // the number of answers of lanes
	closed   chan struct{} // receives a value when a connection is closed and nothing of it counts any more
	counted  atomic.Int64  // the number of bytes that are counted as unread

	mu    sync.Mutex
	known map[string]*http.Request
	heads []string // the heads of all requests that net/http has read
}

// laneConn is a connection with a lane.
type laneConn struct {
	net.Conn
	lane       *Lane
	noteClosed func()
}

func (c laneConn) Read(p []byte) (int, error)  { return c.lane.Read(p) }
func (c laneConn) Write(p []byte) (int, error) { return c.lane.Write(p) }

func (c laneConn) Close() error {
	err := c.Conn.Close()
	c.lane.Close()
	c.noteClosed()
	return err
}

// listener accepts connections with lanes.
type listener struct {
	net.Listener
	world *world
}

func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.world.newConn(c), nil
}

func (w *world) newConn(c net.Conn) net.Conn {
	return laneConn{c, New(c, c, nil, w.options()), sync.OnceFunc(w.noteClosed)}
}

func (w *world) noteClosed() {
	select {
	case w.closed <- struct{}{}:
	default: // nobody waits in the fuzzer
	}
}

func (w *world) options() Options {
	return Options{
		Answer: w.answer, Now: func() time.Time { return time.Unix(0, w.now.Load()) },
		MaxHeaders: 8 << 10, WriteTime: 1000 * time.Hour, IdleTime: time.Minute,
		Count: func(n int, _ func()) func() {
			if n < 1000 { // frames that net/http sends at any time
				return func() {}
			}
			w.counted.Add(int64(n))
			return func() { w.counted.Add(int64(-n)) }
		},
	}
}

func (w *world) answer(head []byte, to *Response) bool {
	w.mu.Lock()
	r := w.known[string(head)]
	w.mu.Unlock()
	if r == nil {
		return false
	}
	w.answered.Add(1)
	to.Serve(w.Handler, r, "found")
	return true
}

// ServeHTTP serves a request of net/http.
func (w *world) ServeHTTP(to http.ResponseWriter, r *http.Request) {
	head := TakeHead(r.Header)
	w.Handler.ServeHTTP(to, r)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.heads = append(w.heads, string(head))
	if head != nil && strings.HasPrefix(r.URL.Path, "/warm") {
		w.known[string(head)] = r.Clone(context.Background())
	}
}

func newWorld(t testing.TB, h http.HandlerFunc) *world {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	checktest.MustNoError(t, err, "listen")
	w := newWorldWithout(h)
	w.addr = l.Addr().String()
	done := make(chan error, 1)
	go func() { done <- w.server.Serve(listener{l, w}) }()
	t.Cleanup(func() {
		checktest.NoError(t, w.server.Close(), "close")
		checktest.Equal(t, <-done, http.ErrServerClosed, "serve")
	})
	return w
}

// newWorldWithout returns a world without a port.
func newWorldWithout(h http.HandlerFunc) *world {
	w := &world{Handler: h, known: map[string]*http.Request{}, closed: make(chan struct{}, 1<<10)}
	w.now.Store(time.Now().UnixNano())
	w.server = &http.Server{Handler: w, MaxHeaderBytes: 8 << 10, Protocols: protocols(), ReadHeaderTimeout: waitTime,
		ErrorLog: log.New(io.Discard, "", 0)}
	return w
}

func protocols() *http.Protocols {
	p := new(http.Protocols)
	p.SetUnencryptedHTTP2(true)
	return p
}

// newClient returns a client of net/http, which uses one connection.
func newClient(t testing.TB) *http.Client {
	transport := &http.Transport{Protocols: protocols(), DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: waitTime}
}

// forms answers in all forms: the query says the length, the status and the fields.
func forms(w http.ResponseWriter, r *http.Request) {
	for name := range r.URL.Query() {
		if field, ok := strings.CutPrefix(name, "set-"); ok {
			w.Header().Set(field, r.URL.Query().Get(name))
		}
	}
	n, _ := strconv.Atoi(r.URL.Query().Get("n"))
	if status, err := strconv.Atoi(r.URL.Query().Get("status")); err == nil {
		w.WriteHeader(status)
	}
	if r.URL.Query().Has("panic") {
		panic(http.ErrAbortHandler)
	}
	text := content(r.URL.Path, n)
	for from := 0; from < n; from += 1000 {
		if r.URL.Query().Has("flush") {
			_ = http.NewResponseController(w).Flush()
		}
		_, _ = w.Write(text[from:min(from+1000, n)])
	}
	if v := r.URL.Query().Get("trailer"); v != "" {
		w.Header().Set(http.TrailerPrefix+"X-End", v)
	}
}

func content(of string, n int) []byte {
	return bytes.Repeat([]byte(of+" "), n/(len(of)+1)+1)[:n]
}

// What the lane answers is what net/http has answered, in all forms of answers.
func TestAnswersAreTheSame(t *testing.T) {
	w, client := newWorld(t, forms), newClient(t)
	ask := func(method, path string) string {
		r, err := http.NewRequest(method, "http://"+w.addr+path, nil)
		checktest.MustNoError(t, err, "request")
		r.Header["Cookie"] = []string{"a=1; b=2"}
		resp, err := client.Do(r)
		checktest.MustNoError(t, err, "%s %s", method, path)
		body, err := io.ReadAll(resp.Body)
		checktest.NoError(t, err, "%s %s", method, path)
		checktest.NoError(t, resp.Body.Close(), "close")
		resp.Header.Del("Date")
		checktest.Equal(t, string(body), string(content("/warm", len(body))), "body of %s %s", method, path)
		return fmt.Sprint(resp.Proto, resp.Status, resp.Header, resp.Trailer, len(body))
	}
	for _, path := range []string{
		"/warm?set-Content-Length=0", "/warm?n=10&set-Content-Length=10&set-Content-Type=a",
		"/warm?n=50000&set-Content-Type=a", "/warm?n=3000000&set-Content-Type=a",
		"/warm?n=20000&flush=1&set-Content-Type=a", "/warm?status=304&set-Content-Type=a&set-Etag=b",
		"/warm?status=204", "/warm?status=404&n=70000&set-Content-Type=a",
		"/warm?n=100000&trailer=yes&set-Content-Type=a", "/warm?trailer=yes&n=1&set-Trailer=X-End&set-Content-Type=a",
		"/warm?n=5&set-X-Long=" + strings.Repeat("x", 300) + "&set-Content-Type=a", "/warm?n=5&set-Content-Type=a&set-X=a%20%09b",
	} {
		for _, method := range []string{"GET", "HEAD"} {
			first, before := ask(method, path), w.answered.Load()
			for range 2 {
				checktest.Equal(t, ask(method, path), first, "%s %s", method, path)
			}
			// While a large answer still takes room in the window, net/http answers.
			checktest.True(t, w.answered.Load() > before, "the lane has not answered %s %s", method, path)
		}
	}
	checktest.Equal(t, w.counted.Load(), 0, "bytes that are still counted")
	for _, path := range []string{"/warm?panic=1", "/warm?n=70000&panic=1&status=200"} {
		for range 2 {
			resp, err := client.Get("http://" + w.addr + path)
			if err == nil {
				_, err = io.ReadAll(resp.Body)
				_ = resp.Body.Close()
			}
			checktest.True(t, err != nil, "%s ended without an error", path)
		}
	}
}

// frames is a client that writes and reads single frames.
type frames struct {
	testing.TB
	*http2.Framer
	conn  net.Conn
	block bytes.Buffer
	enc   *hpack.Encoder
}

func newFrames(t testing.TB, addr string, settings ...http2.Setting) *frames {
	c, err := net.Dial("tcp", addr)
	checktest.MustNoError(t, err, "dial")
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(waitTime))
	f := &frames{TB: t, Framer: http2.NewFramer(c, c), conn: c}
	f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	f.enc = hpack.NewEncoder(&f.block)
	_, err = io.WriteString(c, Preface)
	checktest.MustNoError(t, err, "preface")
	checktest.MustNoError(t, f.WriteSettings(settings...), "settings")
	return f
}

// encode returns the header block of a GET request.
func (f *frames) encode(path string, fields ...string) []byte {
	f.block.Reset()
	all := append([]string{":method", "GET", ":path", path, ":scheme", "http", ":authority", "here"}, fields...)
	for i := 0; i < len(all); i += 2 {
		_ = f.enc.WriteField(field(all[i], all[i+1]))
	}
	return bytes.Clone(f.block.Bytes())
}

func field(name, value string) hpack.HeaderField { return hpack.HeaderField{Name: name, Value: value} }

// get sends a GET request.
func (f *frames) get(stream uint32, path string, fields ...string) {
	f.Helper()
	f.send(stream, f.encode(path, fields...), true)
}

// send sends a header block.
func (f *frames) send(stream uint32, block []byte, isEnd bool) {
	f.Helper()
	err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block, EndHeaders: true, EndStream: isEnd})
	checktest.MustNoError(f, err, "headers")
}

// next returns the next frame of a kind.
func next[F http2.Frame](f *frames) F {
	f.Helper()
	for {
		got, err := f.ReadFrame()
		checktest.MustNoError(f, err, "read a %T", *new(F))
		if want, ok := got.(F); ok {
			return want
		}
	}
}

// end reads until a stream has ended, and returns its status and the length of its body.
func (f *frames) end(stream uint32) (status string, n int) {
	f.Helper()
	for {
		got, err := f.ReadFrame()
		checktest.MustNoError(f, err, "read stream %d", stream)
		if got.Header().StreamID != stream {
			continue
		}
		switch got := got.(type) {
		case *http2.MetaHeadersFrame:
			status = got.PseudoValue("status")
		case *http2.DataFrame:
			n += len(got.Data())
		case *http2.RSTStreamFrame:
			return got.ErrCode.String(), n
		}
		if got.Header().Flags.Has(http2.FlagDataEndStream) {
			return status, n
		}
	}
}
