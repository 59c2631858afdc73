// Socket: the reader of WebSockets, by the rules of RFC 6455.

package follow

import (
	"bufio"
	"bytes"
	"crypto/sha1"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"understudy/internal/checktest"
)

// acceptKey returns the Sec-WebSocket-Accept for a Sec-WebSocket-Key.
func acceptKey(key string) string {
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// part returns a frame as a server sends it.
func part(first byte, content string) string {
	switch n := len(content); {
	case n < 126:
		return string([]byte{first, byte(n)}) + content
	case n < 1<<16:
		return string(binary.BigEndian.AppendUint16([]byte{first, 126}, uint16(n))) + content
	default:
		return string(binary.BigEndian.AppendUint64([]byte{first, 127}, uint64(n))) + content
	}
}

// text returns a text message of one frame.
func text(content string) string { return part(0x80|opText, content) }

// readSocket returns the messages of a server, the control frames that the client sent, and how the stream ended.
func readSocket(t *testing.T, r io.Reader) (messages []string, sent string, err error) {
	t.Helper()
	var out bytes.Buffer
	s := &socket{in: bufio.NewReader(r), out: &out}
	for {
		message, err := s.readMessage()
		if err != nil {
			return messages, unmask(t, out.Bytes()), err
		}
		checktest.MustTrue(t, len(message) <= maxEvent && utf8.Valid(message), "a message has %d bytes", len(message))
		messages = append(messages, string(message))
	}
}

// unmask returns the control frames of a client as a server without masks would send them.
func unmask(t *testing.T, sent []byte) (frames string) {
	t.Helper()
	for len(sent) > 0 {
		checktest.MustTrue(t, len(sent) >= 6 && sent[0] >= 0x80|opClose && sent[1] >= 0x80 && sent[1] <= 0x80|125, "the client sent %x", sent)
		size := int(sent[1] & 0x7f)
		mask, content := sent[2:6], bytes.Clone(sent[6:6+size])
		for i := range content {
			content[i] ^= mask[i%4]
		}
		frames += part(sent[0], string(content))
		sent = sent[6+size:]
	}
	return frames
}

func TestSocketReadsMessagesAndAnswersControlFrames(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 300)
	for _, c := range []struct{ stream, messages, sent string }{
		{text("a") + text("ä€") + text(""), "a|ä€|", ""},
		{text(long) + text(strings.Repeat(long, 300)), long + "|" + strings.Repeat(long, 300), ""},
		{part(opText, "a") + part(opContinuation, "") + part(0x80|opContinuation, "b") + text("c"), "ab|c", ""},
		{part(opText, "\xe2\x82") + part(0x80|opContinuation, "\xac"), "€", ""},
		{part(0x80|opPing, "hello") + text("a"), "a", part(0x80|opPong, "hello")},
		{part(opText, "a") + part(0x80|opPing, "") + part(0x80|opPong, "new") + part(0x80|opContinuation, "b"), "ab", part(0x80|opPong, "")},
		{part(0x80|opPing, long[:125]) + text("a"), "a", part(0x80|opPong, long[:125])},
		{text("a") + part(0x80|opClose, "") + text("late"), "a", part(0x80|opClose, "")},
		{part(0x80|opClose, "\x03\xe9the reason") + text("late"), "", part(0x80|opClose, "\x03\xe9")},
	} {
		for _, r := range []io.Reader{strings.NewReader(c.stream), iotest.OneByteReader(strings.NewReader(c.stream))} {
			messages, sent, err := readSocket(t, r)
			name := fmt.Sprintf("%.40q", c.stream)
			checktest.Equal(t, strings.Join(messages, "|"), c.messages, "messages of %s", name)
			checktest.Equal(t, sent, c.sent, "what is sent after %s", name)
			checktest.Equal(t, err, io.EOF, "the end of %s", name)
		}
	}
}

func TestSocketRefusesViolations(t *testing.T) {
	t.Parallel()
	const badControl = violation("it sent a control frame that is too long or fragmented")
	for name, c := range map[string]struct {
		stream string
		want   error
	}{
		"masked":                    {"\x81\x81abcd\x00", violation("it masked a frame")},
		"RSV1":                      {"\xc1\x00", violation("it set a reserved bit")},
		"RSV2":                      {"\xa1\x00", violation("it set a reserved bit")},
		"RSV3":                      {"\x91\x00", violation("it set a reserved bit")},
		"binary":                    {part(0x82, "a"), violation("it sent a frame that is neither text nor control")},
		"reserved data":             {part(0x83, "a"), violation("it sent a frame that is neither text nor control")},
		"reserved control":          {part(0x8b, "a"), violation("it sent a frame that is neither text nor control")},
		"long ping":                 {part(0x80|opPing, strings.Repeat("x", 126)), badControl},
		"fragmented ping":           {part(opPing, ""), badControl},
		"fragmented close":          {part(opClose, ""), badControl},
		"close with one byte":       {part(0x80|opClose, "\x03"), violation("it sent half a status")},
		"continuation first":        {part(0x80|opContinuation, "a"), violation("it sent the fragments of a message in a wrong order")},
		"text inside of a message":  {part(opText, "a") + text("b"), violation("it sent the fragments of a message in a wrong order")},
		"125 in two bytes":          {"\x81\x7e\x00\x7d" + strings.Repeat("x", 125), violation("it encoded a length wrongly")},
		"65535 in eight bytes":      {"\x81\x7f\x00\x00\x00\x00\x00\x00\xff\xff", violation("it encoded a length wrongly")},
		"negative length":           {"\x81\x7f\xff\xff\xff\xff\xff\xff\xff\xff", violation("it encoded a length wrongly")},
		"not UTF-8":                 {text("\xff"), violation("it sent a text that is not UTF-8")},
		"cut character":             {part(opText, "\xe2") + part(0x80|opContinuation, "\x82"), violation("it sent a text that is not UTF-8")},
		"a message over the limit":  {"\x81\x7f\x00\x00\x00\x00\x00\x10\x00\x01", errLong},
		"a length of 2^62":          {"\x81\x7f\x40\x00\x00\x00\x00\x00\x00\x00", errLong},
		"fragments over the limit":  {part(opText, strings.Repeat("x", maxEvent)) + part(opContinuation, "x"), errLong},
		"the end inside a header":   {"\x81", io.ErrUnexpectedEOF},
		"the end inside a length":   {"\x81\x7e\x01", io.ErrUnexpectedEOF},
		"the end inside a message":  {text("abc")[:4], io.ErrUnexpectedEOF},
		"the end between fragments": {part(opText, "a"), io.EOF},
	} {
		messages, sent, err := readSocket(t, strings.NewReader(text("first")+c.stream))
		checktest.Equal(t, strings.Join(messages, "|"), "first", "%s: messages", name)
		checktest.Equal(t, sent, "", "%s: what is sent", name)
		checktest.Equal(t, err, c.want, "%s: the end", name)
	}
}

// The client cannot answer a ping: the connection is lost.
func TestFailedPongEndsTheSocket(t *testing.T) {
	t.Parallel()
	for _, op := range []byte{opPing, opClose} {
		in, out := io.Pipe()
		_ = in.CloseWithError(errRefused)
		s := &socket{in: bufio.NewReader(strings.NewReader(part(0x80|op, "") + text("a"))), out: out}
		_, err := s.readMessage()
		checktest.Equal(t, err, errRefused, "the end after opcode %d", op)
	}
}

func TestHandshakeIsChecked(t *testing.T) {
	t.Parallel()
	const key, accept = "dGhlIHNhbXBsZSBub25jZQ==", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" // of section 1.3
	body := &duplex{strings.NewReader(""), &bytes.Buffer{}, nil}
	for _, c := range []struct {
		header http.Header
		body   io.ReadCloser
		want   string
	}{
		{http.Header{"Sec-Websocket-Accept": {accept}}, body, ""},
		{http.Header{}, body, "its Sec-WebSocket-Accept is wrong"},
		{http.Header{"Sec-Websocket-Accept": {accept[1:]}}, body, "its Sec-WebSocket-Accept is wrong"},
		{http.Header{"Sec-Websocket-Accept": {accept}, "Sec-Websocket-Extensions": {"x"}}, body, "an extension or"},
		{http.Header{"Sec-Websocket-Accept": {accept}, "Sec-Websocket-Protocol": {"chat"}}, body, "an extension or a subprotocol"},
		{http.Header{"Sec-Websocket-Accept": {accept}}, http.NoBody, "cannot be written to"},
	} {
		_, err := newSocket(nil, &http.Response{Header: c.header, Body: c.body}, key)
		if c.want == "" {
			checktest.NoError(t, err, "%v", c.header)
			continue
		}
		_, isViolation := errors.AsType[violation](err)
		checktest.MustTrue(t, isViolation, "%v: %v", c.header, err)
		checktest.Contains(t, err.Error(), c.want, "the error of %v", c.header)
	}
}

func FuzzSocket(f *testing.F) {
	for _, seed := range []string{text("a") + part(0x80|opPing, "b") + part(0x80|opClose, "\x03\xe8"),
		part(opText, "a") + part(0x80|opContinuation, "b"), "\x81\x81abcd\x00", "\xc1\x00", "\x81\x7e\x00\x7d",
		"\x81\x7f\x00\x00\x00\x00\x00\x10\x00\x01", part(0x80|opPong, ""), part(0x82, "a"),
		text(strings.Repeat("x", 200))} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		messages, sent, err := readSocket(t, bytes.NewReader(stream))
		bytewise, answered, again := readSocket(t, iotest.OneByteReader(bytes.NewReader(stream)))
		checktest.Equal(t, strings.Join(bytewise, "|"), strings.Join(messages, "|"), "messages of %q, byte by byte", stream)
		checktest.Equal(t, answered, sent, "what is sent after %q, byte by byte", stream)
		checktest.Equal(t, again, err, "the end of %q, byte by byte", stream)
		more, _, _ := readSocket(t, io.MultiReader(strings.NewReader(text("a")), bytes.NewReader(stream)))
		checktest.Equal(t, strings.Join(more, "|"), strings.Join(append([]string{"a"}, messages...), "|"), "a message, then %q", stream)
	})
}
