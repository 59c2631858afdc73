// Body: read whole or not at all, into as much memory as it takes and no more.

package upstream

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// bodyReader reads the bodies of answers.
type bodyReader struct {
	most     int64     // bytes of a body
	tooLarge error     // of a longer one
	buffers  sync.Pool // *bytes.Buffer
	lengths  lengths
	codings  codings
}

func newBodyReader(o *Options) *bodyReader {
	return &bodyReader{
		most: o.MaxBody, tooLarge: tooLargeFor(o.Source.Name, o.MaxBody),
		buffers: sync.Pool{New: func() any { return new(bytes.Buffer) }},
	}
}

// read reads a body whole. It never holds more than MaxBody of it. like names
// bodies that are about as long.
func (r *bodyReader) read(resp *http.Response, body *deadlineReader, s *quota, like string) ([]byte, error) {
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
		return nil, fmt.Errorf("the %sbody: %w", decoded.coding, whole(err))
	}
	// What follows a coded stream, and a length that lied, shows only here.
	if _, err := io.Copy(io.Discard, wire); err != nil {
		return nil, fmt.Errorf("the body: %w", whole(err))
	}
	r.lengths.note(like, int64(len(got)))
	return got, s.done(int64(len(got)))
}

// open is what the body is decoded from, and how long it will probably be decoded,
// which has been told; 0: nobody knows. A short packed body is taken off the wire
// at once: it is light, says how long it will be, and holds no connection while
// there is no room for it.
func (s *quota) open(wire io.Reader, coding string, last int64) (in io.Reader, expected int64, err error) {
	s.coded = coding != ""
	in = s.wire(wire)
	switch expected = last; {
	case !s.coded && s.length > 0:
		expected = s.length
	case s.coded && s.length > 0 && s.length <= light:
		packed, err := readBlock(make([]byte, 0, s.length), in)
		if said := saidLength(coding, packed); said > 0 && int64(len(packed)) == s.length {
			expected = said
		}
		s.inHand, in = true, io.MultiReader(bytes.NewReader(packed), broken{err}) // the decoder says what is missing
	case s.coded && expected == 0 && s.length > 0:
		expected = packedFactor * s.length
	}
	expected = min(expected, s.most)
	return in, expected, s.expect(expected)
}

// broken is what follows the part of a body that came.
type broken struct{ error }

// Read gives the error, or the end when there is none.
func (b broken) Read([]byte) (int, error) {
	if b.error == nil {
		return 0, io.EOF
	}
	return 0, b.error
}

// saidLength is how long a packed body says it is; 0: it does not. gzip says so at
// its end (RFC 1952, section 2.3.1: ISIZE), less what a decoder could never make of
// it (1,032 times its length); zstd at its beginning (RFC 8878, section 3.1.1.1).
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

// maxKept is the largest buffer that is used again, and the room a body of which
// nothing is known has at first, in bytes.
const maxKept = 1 << 20

// maxBlock is the largest block a body of unknown length is gathered in.
const maxBlock = 8 << 20

// gather reads in whole. expected is how long it will probably be: when it is no
// longer, it is read into its place and not copied.
func (r *bodyReader) gather(in io.Reader, expected int64) ([]byte, error) {
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

// blocks reads what follows first, in blocks that are joined at the end. A buffer
// that doubles would take three times as much on its way.
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

// readBlock reads until a block is full; io.EOF: nothing follows.
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

// keep puts a buffer back for the next body, unless it has grown large.
func (r *bodyReader) keep(buf *bytes.Buffer) {
	if buf.Cap() <= maxKept {
		r.buffers.Put(buf)
	}
}

// lengths remembers how long the last body of a sort was, when it was not light.
type lengths struct {
	mu sync.Mutex
	of map[string]int64
}

// maxLengths is how many sorts are remembered.
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
