// Socket: reads a WebSocket as its client (RFC 6455).

package follow

import (
	"bufio"
	"cmp"
	"crypto/rand"
	"crypto/sha1"
	"encoding/base64"
	"encoding/binary"
	"io"
	"net/http"
	"unicode/utf8"
)

// The opcodes of frames (section 5.2). Those from opClose on are of control frames.
const (
	opContinuation = 0x0
	opText         = 0x1
	opClose        = 0x8
	opPing         = 0x9
	opPong         = 0xa
)

// violation is an error of a server that breaks the protocol. Another connection may work.
type violation string

func (v violation) Error() string { return "the server broke the rules of WebSockets: " + string(v) }

// socket reads the messages of a WebSocket and answers its control frames.
type socket struct {
	in  *bufio.Reader
	out io.Writer
}

// newSocket checks the response of the opening handshake (section 4.1). in reads its body, and key is the request's
// Sec-WebSocket-Key.
func newSocket(in *bufio.Reader, resp *http.Response, key string) (*socket, error) {
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	out, isDuplex := resp.Body.(io.Writer)
	switch h := resp.Header; {
	case h.Get("Sec-WebSocket-Accept") != base64.StdEncoding.EncodeToString(sum[:]):
		return nil, violation("its Sec-WebSocket-Accept is wrong")
	case h.Get("Sec-WebSocket-Extensions")+h.Get("Sec-WebSocket-Protocol") != "":
		return nil, violation("it chose an extension or a subprotocol that was not requested")
	case !isDuplex:
		return nil, violation("its connection cannot be written to")
	}
	return &socket{in: in, out: out}, nil
}

// readMessage returns the next text message (section 5.4). After a close frame the error is io.EOF.
func (s *socket) readMessage() (message []byte, err error) {
	for isOpen := false; ; {
		op, isFinal, content, err := s.readFrame(maxEvent - len(message))
		switch {
		case err != nil:
			return nil, err
		case op == opClose:
			return nil, cmp.Or(s.write(opClose, content[:min(2, len(content))]), io.EOF)
		case op == opPing:
			if err := s.write(opPong, content); err != nil {
				return nil, err
			}
			continue
		case op == opPong:
			continue
		case (op == opContinuation) != isOpen:
			return nil, violation("it sent the fragments of a message in a wrong order")
		}
		isOpen, message = true, append(message, content...)
		switch {
		case isFinal && !utf8.Valid(message):
			return nil, violation("it sent a text that is not UTF-8")
		case isFinal:
			return message, nil
		}
	}
}

// readFrame reads a frame whose content has at most limit bytes (section 5.2).
func (s *socket) readFrame(limit int) (op byte, isFinal bool, content []byte, err error) {
	var head [2]byte
	if _, err = io.ReadFull(s.in, head[:]); err != nil {
		return 0, false, nil, err
	}
	op, isFinal = head[0]&0x0f, head[0]&0x80 != 0
	size := uint64(head[1] & 0x7f)
	switch {
	case head[0]&0x70 != 0:
		err = violation("it set a reserved bit")
	case head[1]&0x80 != 0:
		err = violation("it masked a frame")
	case op > opText && op < opClose || op > opPong:
		err = violation("it sent a frame that is neither text nor control")
	case op >= opClose && (size > 125 || !isFinal):
		err = violation("it sent a control frame that is too long or fragmented")
	case op == opClose && size == 1:
		err = violation("it sent half a status")
	case size > 125:
		size, err = s.readSize(size == 126)
	}
	if err == nil {
		content, err = readContent(s.in, size, limit)
	}
	return op, isFinal, content, err
}

// readSize reads the size of a frame from the 2 or 8 bytes that contain it. They must be as few as possible.
func (s *socket) readSize(isShort bool) (uint64, error) {
	var b [8]byte
	first, least := 0, uint64(1<<16)
	if isShort {
		first, least = 6, 126
	}
	if _, err := io.ReadFull(s.in, b[first:]); err != nil {
		return 0, err
	}
	size := binary.BigEndian.Uint64(b[:])
	if size < least || size>>63 != 0 {
		return 0, violation("it encoded a length wrongly")
	}
	return size, nil
}

// readContent reads the bytes of a frame or an envelope. If they are more than limit, the error is errLong.
func readContent(in io.Reader, size uint64, limit int) ([]byte, error) {
	if size > uint64(limit) {
		return nil, errLong
	}
	content := make([]byte, size)
	_, err := io.ReadFull(in, content)
	return content, err
}

// write sends a control frame, masked as a client must (section 5.3).
func (s *socket) write(op byte, content []byte) error {
	out := []byte{0x80 | op, 0x80 | byte(len(content)), 0, 0, 0, 0}
	_, _ = rand.Read(out[2:6]) // cannot fail
	for i, b := range content {
		out = append(out, b^out[2+i%4])
	}
	_, err := s.out.Write(out)
	return err
}
