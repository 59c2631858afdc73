// Package http2lane answers requests over HTTP/2 from memory, on a connection whose other requests net/http answers.
//
// A Lane stands between a connection and the HTTP/2 server of net/http. It reads the frames of the client, answers the requests that
// its Answer function knows, and passes all others on. Both write to one connection, so the lane also keeps the parts of the protocol
// that belong to a whole connection (RFC 9113): the compression of headers, by one decoder for all requests (4.3), and the flow-control
// window for the whole connection (6.9). Everything else is left to net/http.
package http2lane

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http2/hpack"
)

// Options are what a Lane needs of its server.
type Options struct {
	// Answer answers a request whose head is known, and returns false for any other request. The head has the form of HTTP/1.1:
	// a request line, a line for each field, and an empty line. Fields of the protocol keep their colon, such as :authority.
	Answer func(head []byte, w *Response) bool
	// Count counts bytes that the client has not read, until the caller calls leave. It may call end to close the connection.
	Count      func(bytes int, end func()) (leave func())
	Now        func() time.Time
	MaxHeaders int           // the maximum number of bytes in the fields of a request
	WriteTime  time.Duration // how long one write may take
	IdleTime   time.Duration // after how much time without a request net/http closes the connection
	IsTLS      bool
}

// Lane is the state of one connection. Read and Write may run at the same time.
type Lane struct {
	options Options
	stream  net.Conn // carries the frames
	tcp     net.Conn // the connection below TLS, which has the deadlines

	// The state of Read.
	buf     []byte // bytes of the client that are not processed yet
	passed  []byte // bytes for net/http
	rest    int    // the number of bytes of the current frame that net/http receives unchanged
	decoder *hpack.Decoder
	request request
	highest uint32    // the highest number of a stream that the client has used
	given   uint32    // the highest number of a stream that net/http knows
	givenAt time.Time // when net/http received its last request
	reply   Response
	began   bool // whether the client's preface has been received

	mu       sync.Mutex
	out      []byte // frames that are not sent yet
	server   []byte // the beginning of a frame of net/http
	flow     flow
	extended time.Time // when the write deadline was set
	started  bool      // whether net/http has sent its settings, which must be the first frame
	leaving  bool      // whether net/http has announced the end of the connection
}

// Preface is the beginning of a connection with HTTP/2 (RFC 9113, 3.4).
const Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// HeadField is the field in which a request that a lane has passed to net/http has its head. A lane removes it from what clients send.
const HeadField = "Understudy-Head"

// The limits of a connection.
const (
	firstRead = 4 << 10  // the size of the first read buffer, in bytes
	maxOut    = 64 << 10 // the maximum number of bytes that are collected before they are sent
	maxHead   = 4 << 10  // the maximum length of a head in bytes; a request with a longer one is left to net/http
	// minWindow is the room in the windows that a request needs so that the lane answers it, in bytes.
	minWindow        = 32 << 10
	deadlineInterval = time.Second
	tableSize        = 4 << 10 // the size of the decoder's table, in bytes, which net/http announces
)

// New returns a lane for a connection. tcp is the connection below TLS, or stream itself. received are the bytes that have been read.
func New(stream, tcp net.Conn, received []byte, o Options) *Lane {
	l := &Lane{options: o, stream: stream, tcp: tcp, buf: slices.Clone(received), givenAt: o.Now()}
	l.flow.connection, l.flow.initial = defaultWindow, defaultWindow
	l.decoder = hpack.NewDecoder(tableSize, l.request.add)
	l.request.limit = o.MaxHeaders + 10*32 // as net/http: ten fields are not counted in HTTP/1.1
	l.decoder.SetMaxStringLength(l.request.limit)
	l.reply.header = http.Header{}
	return l
}

// TakeHead removes the head from the header of a request that net/http has read from a lane, and returns it. It returns nil if the lane
// cannot answer such a request.
func TakeHead(h http.Header) []byte {
	values := h[HeadField]
	delete(h, HeadField)
	if len(values) != 1 {
		return nil
	}
	return []byte(strings.ReplaceAll(values[0], "\t", "\r\n"))
}

// request is a request while its header block is decoded (RFC 9113, 8.3).
type request struct {
	fields []hpack.HeaderField
	size   int // as net/http counts
	limit  int
	head   []byte
}

func (r *request) add(f hpack.HeaderField) {
	if r.size <= r.limit && !strings.EqualFold(f.Name, HeadField) { // net/http refuses the request because of the last field
		r.fields = append(r.fields, f)
	}
	r.size += int(f.Size())
}

// makeHead writes the head of the request. It returns false if the lane cannot answer the request.
func (r *request) makeHead(scheme string) bool {
	r.head = r.head[:0]
	var method, path, used string
	first := 0 // the first field that does not belong to the protocol
	for i, f := range r.fields {
		switch f.Name {
		case ":method":
			method += f.Value
		case ":path":
			path += f.Value
		case ":scheme":
			used += f.Value
		case "content-length", "expect":
			return false
		}
		if !strings.HasPrefix(f.Name, ":") {
			continue
		}
		if i > first {
			return false
		}
		first++
	}
	isRead := method == http.MethodGet || method == http.MethodHead
	if !isRead || used != scheme || !strings.HasPrefix(path, "/") || !isPlain(path) || r.size > maxHead {
		return false
	}
	// Some clients, such as that of Go, send their fields in another order each time.
	slices.SortStableFunc(r.fields[first:], func(a, b hpack.HeaderField) int { return strings.Compare(a.Name, b.Name) })
	r.head = append(append(append(append(r.head, method...), ' '), path...), " HTTP/2.0\r\n"...)
	for _, f := range r.fields {
		switch {
		case f.Name == ":method" || f.Name == ":path" || f.Name == ":scheme":
			continue
		case !isPlain(f.Value) || !isPlain(f.Name) || f.Name == "" || strings.IndexByte(f.Name[1:], ':') >= 0:
			return false
		}
		r.head = append(append(append(append(r.head, f.Name...), ": "...), f.Value...), "\r\n"...)
	}
	r.head = append(r.head, "\r\n"...)
	return true
}

// isPlain reports whether a text has no control characters, so that it can stand in a head.
func isPlain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] == 0x7f {
			return false
		}
	}
	return true
}

// Read returns what the client has sent, without the requests that the lane has answered. Only one goroutine may call it.
func (l *Lane) Read(p []byte) (int, error) {
	for {
		switch {
		case len(p) == 0:
			return 0, nil
		case len(l.passed) > 0:
			n := copy(p, l.passed)
			l.passed = l.passed[n:]
			return n, nil
		case l.rest > 0 && len(l.buf) > 0:
			n := copy(p[:min(len(p), l.rest)], l.buf)
			l.rest -= n
			l.skip(n)
			return n, nil
		case l.rest > 0:
			if err := l.flush(); err != nil {
				return 0, err
			}
			n, err := l.stream.Read(p[:min(len(p), l.rest)])
			l.rest -= n
			return n, err
		}
		if err := l.readNext(); err != nil {
			return 0, err
		}
	}
}

// skip removes processed bytes from the beginning of the buffer.
func (l *Lane) skip(n int) { l.buf = l.buf[:copy(l.buf, l.buf[n:])] }

// fill waits until n bytes of the client are in the buffer. Before it waits, it sends what has been collected.
func (l *Lane) fill(n int) error {
	for len(l.buf) < n {
		if err := l.flush(); err != nil {
			return err
		}
		if cap(l.buf) < max(n, firstRead) || len(l.buf) == 0 && cap(l.buf) > maxOut { // a large header is rare
			l.buf = append(make([]byte, 0, max(2*n, firstRead)), l.buf...)
		}
		m, err := l.stream.Read(l.buf[len(l.buf):cap(l.buf)])
		if l.buf = l.buf[:len(l.buf)+m]; m == 0 && err != nil {
			return err
		}
	}
	return nil
}

// readNext processes one frame of the client, or the preface.
func (l *Lane) readNext() error {
	if !l.began {
		if err := l.fill(len(Preface)); err != nil {
			return err
		}
		if string(l.buf[:len(Preface)]) != Preface {
			return l.fail(codeProtocol, "the connection does not begin as HTTP/2 does")
		}
		l.began, l.rest = true, len(Preface)
		return nil
	}
	if err := l.fill(frameHead); err != nil {
		return err
	}
	f := parseFrame(l.buf)
	switch f.kind {
	case kindHeaders, kindSettings, kindWindow, kindReset, kindPriority, kindContinuation:
	default:
		l.rest = frameHead + f.length
		return nil
	}
	if f.length > l.maxBlock() {
		return l.fail(codeFrameSize, fmt.Sprintf("a frame has %d bytes", f.length))
	}
	if err := l.fill(frameHead + f.length); err != nil {
		return err
	}
	payload := l.buf[frameHead : frameHead+f.length]
	if f.kind == kindHeaders {
		return l.readHeaders(f, payload)
	}
	keep := true
	switch {
	case f.kind == kindContinuation:
		return l.fail(codeProtocol, "a continuation follows no header")
	case f.kind == kindSettings && f.flags&flagAck == 0:
		l.noteSettings(payload)
	case f.kind == kindWindow && len(payload) == wordSize && f.stream == 0:
		return l.noteWindow(f, payload)
	case f.stream > l.given && f.stream <= l.highest || l.isHeld(f.stream): // a stream that net/http does not know
		keep = !l.noteStream(f, payload)
	case f.kind == kindReset:
		l.forget(f.stream)
	}
	if keep {
		l.passed = append(l.passed[:0], l.buf[:frameHead+f.length]...)
	}
	l.skip(frameHead + f.length)
	return nil
}

// readHeaders processes a header block, which may go on in further frames (RFC 9113, 6.2 and 6.10).
func (l *Lane) readHeaders(f frame, payload []byte) error {
	priority, block, ok := trimHeaders(f, payload)
	if !ok {
		return l.fail(codeProtocol, "the padding of a header is longer than the header")
	}
	end, last := frameHead+f.length, f
	if last.flags&flagEndHeaders == 0 {
		block = slices.Clone(block) // it must not grow into the buffer
	}
	for last.flags&flagEndHeaders == 0 {
		if err := l.fill(end + frameHead); err != nil {
			return err
		}
		if last = parseFrame(l.buf[end:]); last.kind != kindContinuation || last.stream != f.stream {
			return l.fail(codeProtocol, "another frame interrupts a header")
		}
		if end += frameHead + last.length; end > l.maxBlock() {
			return l.fail(codeCalm, "the header of a request is too large")
		}
		if err := l.fill(end); err != nil {
			return err
		}
		block = append(block, l.buf[end-last.length:end]...)
	}
	l.request.fields, l.request.size = l.request.fields[:0], 0
	if _, err := l.decoder.Write(block); err != nil {
		return l.fail(codeCompression, err.Error())
	}
	if err := l.decoder.Close(); err != nil {
		return l.fail(codeCompression, err.Error())
	}
	defer l.skip(end)
	isNew := f.stream > l.highest
	if !isNew && f.stream > l.given {
		return l.fail(codeClosed, "a header follows the end of a stream")
	}
	l.highest = max(l.highest, f.stream)
	isOwn := priority != nil && binary.BigEndian.Uint32(priority)&^(1<<31) == f.stream // net/http refuses it
	if isNew && !isOwn && f.stream%2 == 1 && f.flags&flagEndStream != 0 && l.request.makeHead(l.scheme()) {
		if former, ok := l.take(f.stream); ok && (l.answer(f.stream) || !l.giveBack(f.stream, former)) {
			return nil
		}
		// A tab is no part of a plain head, so it can stand for the end of a line.
		if l.request.size+len(HeadField)+len(l.request.head)+32 <= l.request.limit {
			text := strings.ReplaceAll(string(l.request.head), "\r\n", "\t")
			l.request.fields = append(l.request.fields, hpack.HeaderField{Name: strings.ToLower(HeadField), Value: text})
		}
	}
	l.given, l.givenAt = max(l.given, f.stream), l.options.Now()
	l.noteGiven(f.stream)
	block = appendFields(slices.Clone(priority), l.request.fields)
	l.passed = appendHeaders(l.passed[:0], f.stream, f.flags&(flagEndStream|flagPriority), block)
	return nil
}

// maxBlock returns the maximum length of a header in bytes, with the heads of its frames.
func (l *Lane) maxBlock() int { return 2*l.options.MaxHeaders + minFrame }

func (l *Lane) scheme() string {
	if l.options.IsTLS {
		return "https"
	}
	return "http"
}

// take reports whether the lane may answer a request, whose stream then counts as answered, and returns the last one before. It leaves one
// to net/http from time to time, which otherwise believes that the connection is idle.
func (l *Lane) take(stream uint32) (former uint32, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	former = l.flow.answered
	ok = l.started && !l.leaving && len(l.flow.held) == 0 && min(l.flow.connection, l.flow.initial) >= minWindow &&
		l.options.Now().Sub(l.givenAt) < l.options.IdleTime/2
	if ok {
		l.flow.answered = stream
	}
	return former, ok
}

// giveBack reports whether net/http can answer a request that the lane has taken and does not know. If the end of the connection has been
// announced meanwhile, net/http ignores the request, and giveBack tells the client to repeat it.
func (l *Lane) giveBack(stream, former uint32) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.leaving {
		l.out = appendWord(l.out, kindReset, stream, codeRefused)
		return false
	}
	l.flow.answered = former
	return true
}

// noteGiven notes that net/http gets a request.
func (l *Lane) noteGiven(stream uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flow.given[stream/2%uint32(len(l.flow.given))] = stream
}

// noteEnd returns the announcement of the end of the connection with the last stream that anybody answers. net/http ignores requests behind
// its own last stream, so noteEnd tells the client to repeat them.
func (l *Lane) noteEnd(whole []byte) []byte {
	l.leaving = true
	last := binary.BigEndian.Uint32(whole[frameHead:])
	for _, stream := range l.flow.given {
		if stream > last {
			l.out = appendWord(l.out, kindReset, stream, codeRefused)
		}
	}
	whole = slices.Clone(whole)
	binary.BigEndian.PutUint32(whole[frameHead:], max(l.flow.answered, last))
	return whole
}

// answer answers the request if it is known.
func (l *Lane) answer(stream uint32) bool {
	w := &l.reply
	w.begin(l, stream, l.request.head[0] == 'H')
	return l.options.Answer(l.request.head, w)
}

// errEnded is the error of a connection that the lane has ended.
var errEnded = errors.New("http2lane: the client broke the protocol")

// fail ends the connection because of an error of the client (RFC 9113, 5.4.1).
func (l *Lane) fail(code uint32, why string) error {
	l.mu.Lock()
	l.out = appendGoAway(l.out, l.highest, code, why)
	l.leaving = true
	l.mu.Unlock()
	_ = l.flush()
	return fmt.Errorf("%w: %s", errEnded, why)
}
