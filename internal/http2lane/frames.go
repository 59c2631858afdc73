// This file reads and writes frames (RFC 9113, 4.1 and 6).

package http2lane

import (
	"encoding/binary"

	"golang.org/x/net/http2/hpack"
)

// frame is the head of a frame.
type frame struct {
	length int
	kind   byte
	flags  byte
	stream uint32
}

// The kinds of frames that a lane reads (RFC 9113, 6).
const (
	kindData         = 0x0
	kindHeaders      = 0x1
	kindPriority     = 0x2
	kindReset        = 0x3
	kindSettings     = 0x4
	kindGoAway       = 0x7
	kindWindow       = 0x8
	kindContinuation = 0x9
)

const (
	flagEndStream  = 0x1
	flagAck        = 0x1
	flagEndHeaders = 0x4
	flagPadded     = 0x8
	flagPriority   = 0x20

	frameHead = 9       // the length of a frame's head, in bytes
	minFrame  = 1 << 14 // the length of a frame that everybody accepts, in bytes

	prioritySize = 5 // the length of a priority, in bytes
	wordSize     = 4 // the length of an error code and of an increment of a window, in bytes

	settingWindow = 4 // SETTINGS_INITIAL_WINDOW_SIZE
)

// The codes of errors (RFC 9113, 7).
const (
	codeProtocol    = 0x1
	codeInternal    = 0x2
	codeFlow        = 0x3
	codeClosed      = 0x5
	codeFrameSize   = 0x6
	codeRefused     = 0x7
	codeCompression = 0x9
	codeCalm        = 0xb
)

// parseFrame reads the head of a frame, of which b has all bytes.
func parseFrame(b []byte) frame {
	return frame{int(b[0])<<16 | int(b[1])<<8 | int(b[2]), b[3], b[4], binary.BigEndian.Uint32(b[5:]) &^ (1 << 31)}
}

func appendFrame(dst []byte, length int, kind, flags byte, stream uint32) []byte {
	dst = append(dst, byte(length>>16), byte(length>>8), byte(length), kind, flags)
	return binary.BigEndian.AppendUint32(dst, stream)
}

// trimHeaders removes the padding and the priority of a HEADERS frame.
func trimHeaders(f frame, payload []byte) (priority, block []byte, ok bool) {
	padding := 0
	if f.flags&flagPadded != 0 {
		if len(payload) == 0 {
			return nil, nil, false
		}
		padding, payload = int(payload[0]), payload[1:]
	}
	if f.flags&flagPriority != 0 {
		if len(payload) < prioritySize {
			return nil, nil, false
		}
		priority, payload = payload[:prioritySize], payload[prioritySize:]
	}
	if padding > len(payload) {
		return nil, nil, false
	}
	return priority, payload[:len(payload)-padding], true
}

// appendHeaders appends a header block in as many frames as it needs.
func appendHeaders(dst []byte, stream uint32, flags byte, block []byte) []byte {
	for kind := byte(kindHeaders); ; kind, flags = kindContinuation, 0 {
		part := block[:min(len(block), minFrame)]
		if block = block[len(part):]; len(block) == 0 {
			flags |= flagEndHeaders
		}
		dst = append(appendFrame(dst, len(part), kind, flags, stream), part...)
		if len(block) == 0 {
			return dst
		}
	}
}

// appendGoAway appends a frame that ends the connection.
func appendGoAway(dst []byte, last, code uint32, why string) []byte {
	dst = appendFrame(dst, 8+len(why), kindGoAway, 0, 0)
	return append(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(dst, last), code), why...)
}

func appendWord(dst []byte, kind byte, stream, word uint32) []byte {
	return binary.BigEndian.AppendUint32(appendFrame(dst, wordSize, kind, 0, stream), word)
}

// appendFields appends fields that no decoder stores (RFC 7541, 6.2.2), so that blocks of two encoders can follow each other.
func appendFields(dst []byte, fields []hpack.HeaderField) []byte {
	for _, f := range fields {
		dst = appendText(appendText(append(dst, 0), f.Name), f.Value)
	}
	return dst
}

// appendText appends a text that is not compressed (RFC 7541, 5.1 and 5.2).
func appendText(dst []byte, text string) []byte {
	const most = 1<<7 - 1
	n := len(text)
	if n < most {
		return append(append(dst, byte(n)), text...)
	}
	dst, n = append(dst, most), n-most
	for ; n >= 1<<7; n >>= 7 {
		dst = append(dst, byte(n)|1<<7)
	}
	return append(append(dst, byte(n)), text...)
}
