// Package frame cuts a stream of bytes, such as a TCP connection, into messages with a checksum. A frame is:
//
//	4 bytes  the CRC32C (Castagnoli; RFC 3720, appendix B.4) of all bytes that follow in this frame
//	4 bytes  the length of the content
//	n bytes  the content
//
// Both numbers are in big endian. The checksum covers the length, so a stream of zeros is not a stream of empty frames.
package frame

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

const headerBytes = 8

// The errors of a damaged stream. Where the next frame begins is not known, so the stream must be closed.
var (
	ErrShort   = errors.New("frame: the stream ends inside a frame")
	ErrTooLong = errors.New("frame: the frame is too long")
	ErrSum     = errors.New("frame: the checksum is wrong")
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Append appends a frame to b and returns the extended slice. It allocates only if the capacity of b is too small. The content
// must have less than 4 GiB.
func Append(b, content []byte) []byte {
	start := len(b)
	b = binary.BigEndian.AppendUint32(append(b, 0, 0, 0, 0), uint32(len(content)))
	b = append(b, content...)
	binary.BigEndian.PutUint32(b[start:], crc32.Checksum(b[start+4:], castagnoli))
	return b
}

// Reader reads frames from a stream. It reads as many bytes at once as the stream has. One goroutine at a time may use it.
type Reader struct {
	in     io.Reader
	limit  int
	buf    []byte // has room for bytes of the stream; grows only when it is full of them
	unread []byte // the part of buf that was read from the stream and not returned yet
}

// NewReader returns a Reader that accepts contents of at most limit bytes.
func NewReader(in io.Reader, limit int) *Reader { return &Reader{in: in, limit: limit} }

// Next returns the content of the next frame. It is valid until the next call. The error is io.EOF after the last frame,
// ErrShort, ErrSum, an error that wraps ErrTooLong, or the error of the stream.
func (r *Reader) Next() ([]byte, error) {
	for !r.HasNext() {
		if err := r.fill(); err != nil {
			return nil, err
		}
	}
	end, err := r.measure()
	if err != nil {
		return nil, err
	}
	frame := r.unread[:end:end]
	if crc32.Checksum(frame[4:], castagnoli) != binary.BigEndian.Uint32(frame) {
		return nil, ErrSum
	}
	r.unread = r.unread[end:]
	return frame[headerBytes:], nil
}

// HasNext reports whether Next will return without reading from the stream. A server uses it to write the answers to frames
// that arrived together at once.
func (r *Reader) HasNext() bool {
	_, err := r.measure()
	return err != ErrShort
}

// measure returns the size of the first frame in unread. The error is ErrShort if unread ends before the frame.
func (r *Reader) measure() (int, error) {
	if len(r.unread) < headerBytes {
		return 0, ErrShort
	}
	size := int64(binary.BigEndian.Uint32(r.unread[4:]))
	if size > int64(r.limit) {
		return 0, fmt.Errorf("%w: %d bytes, but at most %d are accepted", ErrTooLong, size, r.limit)
	}
	if size > int64(len(r.unread)-headerBytes) {
		return 0, ErrShort
	}
	return headerBytes + int(size), nil
}

// fill reads more bytes from the stream.
func (r *Reader) fill() error {
	had := copy(r.buf, r.unread)
	if had == len(r.buf) {
		r.buf = append(r.buf, make([]byte, max(16<<10, had))...)
	}
	n, err := r.in.Read(r.buf[had:])
	r.unread = r.buf[:had+n]
	switch {
	case n > 0:
		return nil // the next read returns the error again
	case err == io.EOF && had > 0:
		return ErrShort
	}
	return cmp.Or(err, io.ErrNoProgress)
}
