// Body: read whole or not at all, into as much memory as it takes and no more.

// Package body reads the bodies of answers: decoded, whole or not at all, within a memory quota.
package body

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/klauspost/compress/zstd"

	"understudy"
)

// Reader reads the bodies of answers. It is safe for concurrent use.
type Reader struct {
	most     int64     // bytes of a body
	tooLarge error     // of a longer one
	buffers  sync.Pool // *bytes.Buffer
	lengths  lengths
	codings  codings
}

// NewReader makes a reader of bodies of at most so many bytes. Its errors name the source whose limit that is.
func NewReader(source string, most int64) *Reader {
	return &Reader{
		most: most, tooLarge: TooLarge(source, "max_body", most),
		buffers: sync.Pool{New: func() any { return new(bytes.Buffer) }},
	}
}

// Read reads the body of resp from in. It never holds more of it than the limit. like names bodies that are about as
// long; "" when there are none.
func (r *Reader) Read(resp *http.Response, body io.Reader, s *Quota, like string) ([]byte, error) {
	if resp.ContentLength > r.most {
		return nil, r.tooLarge
	}
	wire := &bounded{in: body, left: r.most, over: r.tooLarge}
	coding := codingOf(resp.Header)
	in, expected, err := s.open(wire, coding, r.lengths.last(like))
	if err != nil {
		return nil, err
	}
	decoded, err := r.codings.decoded(coding, in)
	if err != nil {
		return nil, err
	}
	defer decoded.done()
	got, err := r.gather(s.body(&bounded{in: decoded, left: r.most, over: r.tooLarge}), min(expected, s.trusted()))
	if err != nil {
		return nil, fmt.Errorf("the %sbody: %w", decoded.coding, AsCut(err))
	}
	// What follows a coded stream, and a length that lied, shows only here.
	if _, err := io.Copy(io.Discard, wire); err != nil {
		return nil, fmt.Errorf("the body: %w", AsCut(err))
	}
	r.lengths.note(like, int64(len(got)))
	return got, s.done(int64(len(got)))
}

// open is what the body is decoded from, and how long the decoded body probably is, which it has told; 0 when that is
// unknown. A short packed body is taken off the wire at once. It is light, says how long it is, and holds no connection
// while there is no room for it.
func (s *Quota) open(wire io.Reader, coding string, last int64) (in io.Reader, expected int64, err error) {
	s.coded = coding != ""
	in = s.wire(wire)
	switch expected = last; {
	case !s.coded && s.Length > 0:
		expected = s.Length
	case s.coded && s.Length > 0 && s.Length <= light:
		packed, err := readBlock(make([]byte, 0, s.Length), in)
		if said := saidLength(coding, packed); said > 0 && int64(len(packed)) == s.Length {
			expected = said
		}
		s.inHand, in = true, io.MultiReader(bytes.NewReader(packed), broken{err}) // the decoder says what is missing
	case s.coded && expected == 0 && s.Length > 0:
		expected = packedFactor * s.Length
	}
	expected = min(expected, s.Most)
	return in, expected, s.expect(expected)
}

// broken is what follows the part of a body that came.
type broken struct{ error }

// Read gives the error, or the end when there is no error.
func (b broken) Read([]byte) (int, error) {
	if b.error == nil {
		return 0, io.EOF
	}
	return 0, b.error
}

// saidLength is the length that a packed body tells of itself; 0 when it tells none. gzip tells it at the end (RFC
// 1952, section 2.3.1: ISIZE); more than 1,032 times the packed length cannot be true. zstd tells it at the beginning
// (RFC 8878, section 3.1.1.1).
func saidLength(coding string, packed []byte) int64 {
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

// maxKept is the largest buffer that is used again, and the first room of a body of unknown length, in bytes.
const maxKept = 1 << 20

// maxBlock is the largest block in which a body of unknown length is gathered.
const maxBlock = 8 << 20

// gather reads in whole. expected is its probable length. A body that is no longer is read into its place and not
// copied.
func (r *Reader) gather(in io.Reader, expected int64) ([]byte, error) {
	if expected > maxKept {
		return blocks(nil, in, expected)
	}
	buf := r.buffers.Get().(*bytes.Buffer)
	defer r.keep(buf)
	buf.Reset()
	buf.Grow(int(expected) + bytes.MinRead)
	n, err := buf.ReadFrom(io.LimitReader(in, maxKept))
	if err != nil || n < maxKept {
		return bytes.Clone(buf.Bytes()), err
	}
	return blocks(buf.Bytes(), in, 0)
}

// blocks reads what follows first, in blocks that are joined at the end. A buffer that doubles would take three times
// as much meanwhile.
func blocks(first []byte, in io.Reader, expected int64) ([]byte, error) {
	all, total := [][]byte{first}, len(first)
	for {
		size := min(max(total/4, maxKept/4), maxBlock)
		if total == 0 && expected > 0 {
			size = int(expected) + 1 // the end shows in the room for one more
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

// readBlock reads until a block is full. io.EOF: nothing follows.
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

// keep puts a buffer back for the next body, unless the buffer is large.
func (r *Reader) keep(buf *bytes.Buffer) {
	if buf.Cap() <= maxKept {
		r.buffers.Put(buf)
	}
}

// lengths remembers the length of the last body of each name, when that body was not light.
type lengths struct {
	mu sync.Mutex
	of map[string]int64
}

// maxLengths is how many names are remembered.
const maxLengths = 1024

func (l *lengths) last(like string) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.of[like]
}

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

// ErrTooLarge is a body above the limit, on the wire or decoded.
var ErrTooLarge = errors.New("the body is larger than the limit")

// TooLarge returns the ErrTooLarge of a limit that a setting of a source has, in bytes.
func TooLarge(source, setting string, limit int64) error {
	return fmt.Errorf("%w: %w", ErrTooLarge, &understudy.SizeError{Setting: "sources." + source + "." + setting, Limit: limit})
}

// AsCut is ErrCut for an end that came too early, else err.
func AsCut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return ErrCut
	}
	return err
}

// ErrCut is a body that ended before it was whole.
var ErrCut = errors.New("it was cut")

// bounded gives the error over instead of more than left bytes.
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
