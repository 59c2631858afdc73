// The reader of what is packed in a row. Its first fault stays.

package codec

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Reader reads numbers and bytes; after the first fault it returns zeros.
type Reader struct {
	data []byte
	err  error
}

// NewReader reads data, which must not change meanwhile.
func NewReader(data []byte) Reader { return Reader{data: data} }

// place is where a text lies: at at in a body (from 1), or here.
type place struct {
	at, length int
	here       []byte
}

func (r *Reader) fault(what string) {
	if r.err == nil {
		r.err = fmt.Errorf("%s, %d bytes before the end", what, len(r.data))
	}
	r.data = nil
}

// Varint reads a signed number (encoding/binary).
func (r *Reader) Varint() int64 {
	v, n := binary.Varint(r.data)
	if n <= 0 {
		r.fault("broken number")
		return 0
	}
	r.data = r.data[n:]
	return v
}

// Uvarint reads an unsigned number (encoding/binary).
func (r *Reader) Uvarint() uint64 {
	v, n := binary.Uvarint(r.data)
	if n <= 0 {
		r.fault("broken number")
		return 0
	}
	r.data = r.data[n:]
	return v
}

// Count reads a number that may be at most limit.
func (r *Reader) Count(limit int) int {
	v := r.Uvarint()
	if v > uint64(limit) || v > math.MaxInt32 {
		r.fault("number too large")
		return 0
	}
	return int(v)
}

// Byte reads one.
func (r *Reader) Byte() byte {
	if len(r.data) == 0 {
		r.fault("too short")
		return 0
	}
	b := r.data[0]
	r.data = r.data[1:]
	return b
}

// Take reads so many bytes; they are part of the data.
func (r *Reader) Take(n int) []byte {
	if n > len(r.data) {
		r.fault("too short")
		return nil
	}
	b := r.data[:n:n]
	r.data = r.data[n:]
	return b
}

func (r *Reader) place(limit int) place {
	p := place{at: r.Count(limit + 1)}
	p.length = r.Count(limit)
	if p.at == 0 {
		p.here = r.Take(p.length)
	}
	return p
}

func (r *Reader) text(p place, body []byte) string {
	if p.at == 0 {
		return string(p.here)
	}
	if p.at-1+p.length > len(body) {
		r.fault("text outside its body")
		return ""
	}
	return string(body[p.at-1 : p.at-1+p.length])
}

// Rest is how many bytes are not read.
func (r *Reader) Rest() int { return len(r.data) }

// End is the first fault; bytes that are left are one, too.
func (r *Reader) End() error {
	if r.err == nil && len(r.data) > 0 {
		return fmt.Errorf("%d bytes too many", len(r.data))
	}
	return r.err
}
