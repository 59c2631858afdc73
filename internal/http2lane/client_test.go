// What clients send that is unusual or wrong.

package http2lane

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"understudy/internal/checktest"
)

// A request may have its header in several frames, with padding and a priority.
func TestHeadersInManyForms(t *testing.T) {
	w := newWorld(t, forms)
	f := newFrames(t, w.addr)
	for i := range uint32(6) {
		stream, long := 4*i+1, strings.Repeat("x", 3000)
		block := f.encode("/warm?n=1&set-Content-Type=a", "x-long", long)
		cut := int(i%2) * len(block) / 2
		err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block[:cut], EndStream: true, PadLength: uint8(i),
			Priority: http2.PriorityParam{StreamDep: 1000, Weight: uint8(i)}})
		checktest.NoError(t, err, "headers")
		checktest.NoError(t, f.WriteContinuation(stream, false, block[cut:cut+1]), "continuation")
		checktest.NoError(t, f.WriteContinuation(stream, true, block[cut+1:]), "continuation")
		checktest.NoError(t, f.WritePriority(stream, http2.PriorityParam{Weight: 1}), "priority")
		status, n := f.end(stream)
		checktest.Equal(t, status+" "+fmt.Sprint(n), "200 1", "answer %d", i)
	}
	checktest.Equal(t, w.answered.Load(), 5, "answers of the lane")
}

// A client cannot say itself which head its request has.
func TestHeadFieldIsTheLanesOwn(t *testing.T) {
	w := newWorld(t, func(to http.ResponseWriter, r *http.Request) { _, _ = fmt.Fprint(to, r.Header) })
	f := newFrames(t, w.addr)
	f.get(1, "/warm", strings.ToLower(HeadField), "GET /other HTTP/2.0")
	f.end(1)
	f.get(3, "/warm", strings.ToLower(HeadField), "GET /another HTTP/2.0", "x", "tab\there")
	f.end(3)
	checktest.Equal(t, strings.Join(w.heads, "|"), "GET /warm HTTP/2.0\r\n:authority: here\r\n\r\n|", "heads")
	checktest.Equal(t, TakeHead(http.Header{HeadField: {"a", "b"}}) == nil, true, "two heads")
}

// A request with a body is left to net/http, and one whose pseudo-fields are doubled, absent or late.
func TestRequestsOfNetHTTP(t *testing.T) {
	w := newWorld(t, forms)
	f := newFrames(t, w.addr)
	for i, fields := range [][]string{
		{":method", "POST", ":path", "/warm", ":scheme", "http"},
		{":method", "GET", ":path", "/warm", ":scheme", "https"},
		{":method", "GET", ":path", "/warm"},
		{":method", "GET", ":path", "/warm", ":scheme", "http", ":scheme", "http"},
		{":method", "GET", ":path", "/warm", "a", "b", ":scheme", "http"},
		{":method", "GET", ":path", "/a b", ":scheme", "http"},
		{":method", "GET", ":path", "/warm", ":scheme", "http", "A", "b"},
		{":method", "GET", ":path", "/warm", ":scheme", "http", "content-length", "0"},
		{":method", "GET", ":path", "/warm", ":scheme", "http", "a\r\nb", "c"},
		{":method", "GET", ":path", "/warm", ":scheme", "http", "a", "b\r\nc: d"},
		{":method", "GET", ":path", "/warm\r\n", ":scheme", "http"},
	} {
		f.block.Reset()
		for j := 0; j < len(fields); j += 2 {
			_ = f.enc.WriteField(field(fields[j], fields[j+1]))
		}
		stream := uint32(2*i + 1)
		f.send(stream, f.block.Bytes(), true)
		f.end(stream)
	}
	f.block.Reset()
	stream, block := uint32(101), f.encode("/warm")
	f.send(stream, block, false)
	checktest.NoError(t, f.WriteData(stream, false, bytes.Repeat([]byte("x"), 10_000)), "data")
	trailer := append([]byte{0}, appendText(appendText(nil, "x"), "y")...)
	f.send(stream, trailer, true)
	status, _ := f.end(stream)
	checktest.Equal(t, status, "200", "a request with a body and a trailer")
	for _, head := range w.heads {
		checktest.True(t, head == "" || strings.HasPrefix(head, "GET /a b HTTP/2.0\r\n"), "the lane could answer %q", head)
	}
	checktest.Equal(t, w.answered.Load(), 0, "answers of the lane")
}

// What breaks the protocol ends the connection with its code.
func TestErrorsOfClients(t *testing.T) {
	w := newWorld(t, forms)
	large := bytes.Repeat([]byte{0}, 20<<10)
	for _, tc := range []struct {
		what string
		send func(f *frames) error
		code http2.ErrCode
	}{
		{"a block that cannot be decoded", func(f *frames) error {
			return f.WriteRawFrame(1, 5, 1, bytes.Repeat([]byte{0xff}, 6))
		}, http2.ErrCodeCompression},
		{"half a field", func(f *frames) error { return f.WriteRawFrame(1, 5, 1, []byte{0, 5, 'a'}) }, http2.ErrCodeCompression},
		{"a continuation alone", func(f *frames) error { return f.WriteContinuation(1, true, []byte{1}) }, http2.ErrCodeProtocol},
		{"a frame between", func(f *frames) error {
			return firstError(f.WriteRawFrame(1, 1, 1, nil), f.WritePing(false, [8]byte{}))
		}, http2.ErrCodeProtocol},
		{"too much padding", func(f *frames) error { return f.WriteRawFrame(1, 0xd, 1, []byte{9, 1}) }, http2.ErrCodeProtocol},
		{"no padding", func(f *frames) error { return f.WriteRawFrame(1, 0xd, 1, nil) }, http2.ErrCodeProtocol},
		{"half a priority", func(f *frames) error { return f.WriteRawFrame(1, 0x25, 1, []byte{1, 2}) }, http2.ErrCodeProtocol},
		{"a large frame", func(f *frames) error { return f.WriteRawFrame(1, 5, 1, append(large, large...)) }, http2.ErrCodeFrameSize},
		{"many continuations", func(f *frames) error {
			return firstError(f.WriteRawFrame(1, 1, 1, large), f.WriteContinuation(1, false, large))
		}, http2.ErrCodeEnhanceYourCalm},
		{"a large window", func(f *frames) error {
			return firstError(f.WriteWindowUpdate(0, 1<<31-1), f.WriteWindowUpdate(0, 1<<31-1))
		}, http2.ErrCodeFlowControl},
		{"an old stream", func(f *frames) error {
			f.get(1, "/warm")
			f.end(1)
			f.get(3, "/warm")
			f.end(3)
			f.get(3, "/warm")
			return nil
		}, http2.ErrCodeStreamClosed},
	} {
		t.Run(tc.what, func(t *testing.T) {
			f := newFrames(t, w.addr)
			checktest.NoError(t, tc.send(f), "send")
			checktest.Equal(t, next[*http2.GoAwayFrame](f).ErrCode, tc.code, "code")
		})
	}
	c, err := net.Dial("tcp", w.addr)
	checktest.MustNoError(t, err, "dial")
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(waitTime))
	_, err = io.WriteString(c, "GET / HTTP/1.1\r\nHost: here\r\n\r\n")
	checktest.NoError(t, err, "write")
	_, err = io.ReadAll(c)
	checktest.NoError(t, err, "a client with HTTP/1.1 waits")
}

func firstError(all ...error) error {
	for _, err := range all {
		if err != nil {
			return err
		}
	}
	return nil
}

// A request whose fields are larger than the limit is refused, and the next is answered.
func TestLargeHeader(t *testing.T) {
	w := newWorld(t, forms)
	f := newFrames(t, w.addr)
	f.get(1, "/warm?n=1", "x", strings.Repeat("x", 7000), "y", strings.Repeat("y", 7000))
	status, _ := f.end(1)
	checktest.Equal(t, status, "431", "status of a large request")
	f.get(3, "/warm?n=1&set-Content-Type=a")
	status, _ = f.end(3)
	checktest.Equal(t, status, "200", "status of the next")
}

// net/http gets a request from time to time, so that it does not end a connection that is in use.
func TestNetHTTPStaysAwake(t *testing.T) {
	w := newWorld(t, forms)
	f := newFrames(t, w.addr)
	for i, want := range []int64{0, 1, 2, 2, 3} {
		if i == 3 {
			w.now.Add(int64(31 * time.Second))
		}
		f.get(uint32(2*i+1), "/warm?n=1&set-Content-Type=a")
		f.end(uint32(2*i + 1))
		checktest.Equal(t, w.answered.Load(), want, "answers after request %d", i)
	}
}

// The announcement of the end names the last stream that was answered, by whomever. After it, net/http decides about each request.
func TestEndOfAServer(t *testing.T) {
	w := newWorld(t, forms)
	f := newFrames(t, w.addr)
	for i := range uint32(3) {
		f.get(2*i+1, "/warm?n=1&set-Content-Type=a")
		f.end(2*i + 1)
	}
	done := make(chan error, 1)
	go func() { done <- w.server.Shutdown(t.Context()) }()
	away := next[*http2.GoAwayFrame](f)
	checktest.Equal(t, away.ErrCode, http2.ErrCodeNo, "code")
	checktest.Equal(t, away.LastStreamID, 5, "last stream")
	f.get(7, "/warm?n=1&set-Content-Type=a")
	checktest.NoError(t, <-done, "shutdown")
	checktest.Equal(t, w.answered.Load(), 2, "answers of the lane")
}

// What net/http got and ignores when it announces the end is repeated by the client, also before a stream that the lane has answered.
func TestIgnoredRequestsAreRepeated(t *testing.T) {
	near, far := net.Pipe()
	defer near.Close()
	l := New(far, far, nil, Options{Now: time.Now, Count: func(int, func()) func() { return func() {} }, WriteTime: waitTime})
	for _, stream := range []uint32{1, 3, 5, 9} {
		l.noteGiven(stream)
	}
	l.flow.answered = 7
	go func() { _, _ = l.Write(appendGoAway(nil, 3, 0, "")) }()
	_ = near.SetDeadline(time.Now().Add(waitTime))
	f := http2.NewFramer(nil, near)
	for _, stream := range []uint32{5, 9} {
		got, err := f.ReadFrame()
		checktest.MustNoError(t, err, "read")
		reset, ok := got.(*http2.RSTStreamFrame)
		checktest.MustTrue(t, ok, "%v is no reset", got)
		checktest.Equal(t, reset.StreamID, stream, "stream")
		checktest.Equal(t, reset.ErrCode, http2.ErrCodeRefusedStream, "code")
	}
	got, err := f.ReadFrame()
	checktest.MustNoError(t, err, "read")
	away, ok := got.(*http2.GoAwayFrame)
	checktest.MustTrue(t, ok, "%v is no announcement", got)
	checktest.Equal(t, away.LastStreamID, 7, "last stream")
}

// Any bytes are processed to their end, and the connection then ends.
func FuzzLane(f *testing.F) {
	w := newWorldWithout(forms)
	block := appendText(appendText([]byte{0x82, 0x86, 0}, ":path"), "/warm?n=100000")
	get := appendHeaders(nil, 1, flagEndStream, block)
	get = appendHeaders(get, 3, flagEndStream, block)
	f.Add(append(bytes.Clone(get), appendWord(appendWord(nil, kindWindow, 0, 50_000), kindWindow, 3, 90_000)...))
	f.Add(append(appendFrame(nil, 6, kindSettings, 0, 0), 0, 4, 0, 1, 0, 0))
	f.Add(append(appendFrame(nil, 3, kindHeaders, flagPadded|flagPriority, 5), 1, 2, 3))
	f.Add(binary.BigEndian.AppendUint32(appendFrame(get, 4, kindReset, 0, 3), 8))
	f.Fuzz(func(t *testing.T, sent []byte) {
		near, far := net.Pipe()
		l := &once{conns: make(chan net.Conn, 1)}
		l.conns <- w.newConn(far)
		server := &http.Server{Handler: w, MaxHeaderBytes: 8 << 10, Protocols: protocols()}
		served := make(chan error, 1)
		go func() { served <- server.Serve(l) }()
		received := make(chan error, 1)
		go func() {
			_, err := io.Copy(io.Discard, near)
			received <- err
		}()
		_ = near.SetDeadline(time.Now().Add(waitTime))
		_, _ = io.WriteString(near, Preface)
		_, _ = near.Write(appendFrame(nil, 0, kindSettings, 0, 0))
		_, _ = near.Write(sent)
		_ = near.Close()
		<-received
		checktest.NoError(t, server.Close(), "close")
		<-served
	})
}

// once accepts the connections of a channel.
type once struct {
	conns chan net.Conn
	first sync.Once
}

func (l *once) Accept() (net.Conn, error) {
	if c, ok := <-l.conns; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (l *once) Close() error {
	l.first.Do(func() { close(l.conns) })
	return nil
}
func (l *once) Addr() net.Addr { return &net.TCPAddr{} }
