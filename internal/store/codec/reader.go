// This file reads packed rows. It remembers the first error.

package codec

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Reader reads numbers and bytes. After the first error it returns zeros.
type Reader struct {
	data []byte
	err  error
}

// NewReader returns a Reader for data. The caller must not change data while the Reader is in use.
func NewReader(data []byte) Reader { return Reader{data: data} }

// textPlace is the place of a text. If at is not 0, the text begins at position at of a body, counted from 1.
// Otherwise the field text contains it.
type textPlace struct {
	at, length int
	text       []byte // the text itself, used if at is 0
}

// fail stores the first error and ends the data.
func (r *Reader) fail(what string) {
	if r.err == nil {
		r.err = fmt.Errorf("%s, %d bytes before the end", what, len(r.data))
	}
	r.data = nil
}

// Varint reads a signed number (encoding/binary).
func (r *Reader) Varint() int64 {
	v, n := binary.Varint(r.data)
	if n <= 0 {
		r.fail("broken number")
		return 0
	}
	r.data = r.data[n:]
	return v
}

// Uvarint reads an unsigned number (encoding/binary).
func (r *Reader) Uvarint() uint64 {
	v, n := binary.Uvarint(r.data)
	if n <= 0 {
		r.fail("broken number")
		return 0
	}
	r.data = r.data[n:]
	return v
}

// Count reads an unsigned number that must not exceed limit.
func (r *Reader) Count(limit int) int {
	v := r.Uvarint()
	if v > uint64(limit) || v > math.MaxInt32 {
		r.fail("number too large")
		return 0
	}
	return int(v)
}

// Byte reads one byte.
func (r *Reader) Byte() byte {
	if len(r.data) == 0 {
		r.fail("too short")
		return 0
	}
	b := r.data[0]
	r.data = r.data[1:]
	return b
}

// Take reads n bytes. They are a part of the data.
func (r *Reader) Take(n int) []byte {
	if n > len(r.data) {
		r.fail("too short")
		return nil
	}
	b := r.data[:n:n]
	r.data = r.data[n:]
	return b
}

func (r *Reader) place(limit int) textPlace {
	p := textPlace{at: r.Count(limit + 1)}
	p.length = r.Count(limit)
	if p.at == 0 {
		p.text = r.Take(p.length)
	}
	return p
}

func (r *Reader) text(p textPlace, body []byte) string {
	if p.at == 0 {
		return string(p.text)
	}
	if p.at-1+p.length > len(body) {
		r.fail("text outside its body")
		return ""
	}
	return string(body[p.at-1 : p.at-1+p.length])
}

// Len returns the number of unread bytes.
func (r *Reader) Len() int { return len(r.data) }

// End returns the first error. Unread bytes are also an error.
func (r *Reader) End() error {
	if r.err == nil && len(r.data) > 0 {
		return fmt.Errorf("%d bytes too many", len(r.data))
	}
	return r.err
}
