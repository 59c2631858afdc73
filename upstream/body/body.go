// This file reads a body completely or not at all, with no more memory than it needs.

// Package body reads and decodes the bodies of answers, completely or not at all, within a memory quota.
package body

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"

	"understudy"
	"understudy/kit/lockwatch"
)

// Reader reads the bodies of answers. It is safe for concurrent use.
type Reader struct {
	maxBytes int64     // maximum size of a body, in bytes
	tooLarge error     // the error for a body that is larger than maxBytes
	buffers  sync.Pool // reused buffers of type *bytes.Buffer
	lengths  lengths
	codings  codings
}

// NewReader creates a reader for bodies of at most most bytes. Its errors name the source to which the limit belongs.
func NewReader(source string, most int64) *Reader {
	return &Reader{
		maxBytes: most, tooLarge: NewTooLarge(source, "max_body", most),
		buffers: sync.Pool{New: func() any { return new(bytes.Buffer) }},
	}
}

// Read reads the body of resp from body. It never keeps more of it in memory than the limit. like is a name for
// bodies of about the same length, or "".
func (r *Reader) Read(resp *http.Response, body io.Reader, s *Quota, like string) ([]byte, error) {
	if resp.ContentLength > r.maxBytes {
		return nil, r.tooLarge
	}
	wire := &bounded{in: body, left: r.maxBytes, over: r.tooLarge}
	coding := strings.ToLower(strings.TrimSpace(strings.Join(resp.Header.Values("Content-Encoding"), ", ")))
	if coding == "identity" {
		coding = ""
	}
	in, expected, err := s.open(wire, coding, r.lengths.find(like))
	if err != nil {
		return nil, err
	}
	decoded, err := r.codings.newDecoder(coding, in)
	if err != nil {
		return nil, err
	}
	defer decoded.done()
	got, err := r.gather(s.countBody(&bounded{in: decoded, left: r.maxBytes, over: r.tooLarge}), min(expected, s.grantedLength()))
	if err != nil {
		return nil, fmt.Errorf("the %sbody: %w", decoded.coding, ReplaceEOF(err))
	}
	// Data after the end of an encoded stream, and a wrong Content-Length, are found only here.
	if _, err := io.Copy(io.Discard, wire); err != nil {
		return nil, fmt.Errorf("the body: %w", ReplaceEOF(err))
	}
	r.lengths.note(like, int64(len(got)))
	return got, s.finish(int64(len(got)))
}

// open returns the reader from which the body is decoded, and the probable length of the decoded body, or 0 if
// that is unknown. It reports that length to Weigh. It reads a short compressed body at once: such a body is
// light, contains its length, and then needs no connection while it waits for memory.
func (s *Quota) open(wire io.Reader, coding string, last int64) (in io.Reader, expected int64, err error) {
	s.coded = coding != ""
	in = s.countWire(wire)
	switch expected = last; {
	case !s.coded && s.Length > 0:
		expected = s.Length
	case s.coded && s.Length > 0 && s.Length <= light:
		packed, err := readBlock(make([]byte, 0, s.Length), in)
		if said := declaredLength(coding, packed); said > 0 && int64(len(packed)) == s.Length {
			expected = said
		}
		// After the partial data the reader returns the error, and the decoder reports what is missing
		s.fullyRead, in = true, io.MultiReader(bytes.NewReader(packed), broken{err})
	case s.coded && expected == 0 && s.Length > 0:
		expected = packedFactor * s.Length
	}
	expected = min(expected, s.Max)
	return in, expected, s.reserveExpected(expected)
}

// broken is a reader for the end of a body that was received only in part.
type broken struct{ error }

// Read returns the error, or io.EOF if there is none.
func (b broken) Read([]byte) (int, error) {
	if b.error == nil {
		return 0, io.EOF
	}
	return 0, b.error
}

// declaredLength returns the decoded length that a compressed body contains, or 0. gzip has it at the end (RFC
// 1952, section 2.3.1: ISIZE); more than 1,032 times the compressed length cannot be true. zstd has it at the
// beginning (RFC 8878, section 3.1.1.1).
func declaredLength(coding string, packed []byte) int64 {
	switch coding {
	case "gzip", "x-gzip":
		if len(packed) >= 18 {
			return min(int64(binary.LittleEndian.Uint32(packed[len(packed)-4:])), 1032*int64(len(packed)))
		}
	case "zstd":
		var h zstd.Header
		if h.Decode(packed) == nil && h.HasFCS {
			return int64(min(h.FrameContentSize, 1<<40))
		}
	}
	return 0
}

// maxKept is the maximum size in bytes of a buffer that is reused. It is also the size of the first buffer for a body
// of unknown length.
const maxKept = 1 << 20

// maxBlock is the maximum size in bytes of a block for a body of unknown length.
const maxBlock = 8 << 20

// gather reads a complete body. expected is its probable length. If the body is not longer than expected, it is not
// copied.
func (r *Reader) gather(in io.Reader, expected int64) ([]byte, error) {
	if expected > maxKept {
		return readBlocks(nil, in, expected)
	}
	buf := r.buffers.Get().(*bytes.Buffer)
	defer r.keep(buf)
	buf.Reset()
	buf.Grow(int(expected) + bytes.MinRead)
	n, err := buf.ReadFrom(io.LimitReader(in, maxKept))
	if err != nil || n < maxKept {
		return bytes.Clone(buf.Bytes()), err
	}
	return readBlocks(buf.Bytes(), in, 0)
}

// readBlocks reads the rest of a body, of which first was already read, in blocks that are joined at the end. Doubling
// a buffer instead would need three times the memory for a moment.
func readBlocks(first []byte, in io.Reader, expected int64) ([]byte, error) {
	all, total := [][]byte{first}, len(first)
	for {
		size := min(max(total/4, maxKept/4), maxBlock)
		if total == 0 && expected > 0 {
			size = int(expected) + 1 // one more byte, so that the end of the body is detected
		}
		block, err := readBlock(make([]byte, 0, size), in)
		all, total = append(all, block), total+len(block)
		switch {
		case err == io.EOF && total == len(block) && cap(block)-total <= total/4:
			return block[:total:total], nil
		case err == io.EOF:
			return bytes.Join(all, nil), nil
		case err != nil:
			return nil, err
		}
	}
}

// readBlock reads until a block is full. It returns io.EOF if the body has ended.
func readBlock(block []byte, in io.Reader) ([]byte, error) {
	for len(block) < cap(block) {
		n, err := in.Read(block[len(block):cap(block)])
		block = block[:len(block)+n]
		if err != nil {
			return block, err
		}
	}
	return block, nil
}

// keep keeps a buffer for the next body, unless the buffer is large.
func (r *Reader) keep(buf *bytes.Buffer) {
	if buf.Cap() <= maxKept {
		r.buffers.Put(buf)
	}
}

// lengths remembers, for each name, the length of the last body, unless that body was light.
type lengths struct {
	mu lockwatch.Mutex
	of map[string]int64
}

// maxLengths is the number of names that are remembered.
const maxLengths = 1024

// find returns the length of the last body with a name, or 0.
func (l *lengths) find(like string) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.of[like]
}

// note records the length of a body.
func (l *lengths) note(like string, bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if like == "" || bytes < light && l.of[like] == 0 {
		return
	}
	if l.of == nil || len(l.of) >= maxLengths {
		l.of = map[string]int64{}
	}
	if l.of[like] = bytes; bytes < light {
		delete(l.of, like)
	}
}

// ErrTooLarge is the error for a body above the limit, compressed or decoded.
var ErrTooLarge = errors.New("the body is larger than the limit")

// NewTooLarge returns an ErrTooLarge for a source's setting with a limit in bytes.
func NewTooLarge(source, setting string, limit int64) error {
	return fmt.Errorf("%w: %w", ErrTooLarge, &understudy.SizeError{Setting: "sources." + source + "." + setting, Limit: limit})
}

// ReplaceEOF returns ErrCut for an end that came too early, else err.
func ReplaceEOF(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return ErrCut
	}
	return err
}

// ErrCut is the error for a body that ended before it was complete.
var ErrCut = errors.New("it was cut off")

// bounded is a reader that returns the error over if the data has more than left bytes.
type bounded struct {
	in   io.Reader
	left int64
	over error
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, b.over
	}
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.in.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, b.over
	}
	return n, err
}
