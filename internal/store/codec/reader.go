// The reader of a block's bytes. Its first fault stays.

package codec

import (
	"encoding/binary"
	"fmt"
	"math"
)

// reader reads numbers and bytes; after the first fault it returns zeros.
type reader struct {
	data []byte
	err  error
}

// place is where a text lies: at at in a body (from 1), or here.
type place struct {
	at, length int
	here       []byte
}

func (r *reader) fault(what string) {
	if r.err == nil {
		r.err = fmt.Errorf("%s, %d bytes before the end", what, len(r.data))
	}
	r.data = nil
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.data)
	if n <= 0 {
		r.fault("broken number")
		return 0
	}
	r.data = r.data[n:]
	return v
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.data)
	if n <= 0 {
		r.fault("broken number")
		return 0
	}
	r.data = r.data[n:]
	return v
}

// count reads a number that may be at most limit.
func (r *reader) count(limit int) int {
	v := r.uvarint()
	if v > uint64(limit) || v > math.MaxInt32 {
		r.fault("number too large")
		return 0
	}
	return int(v)
}

func (r *reader) byte() byte {
	if len(r.data) == 0 {
		r.fault("too short")
		return 0
	}
	b := r.data[0]
	r.data = r.data[1:]
	return b
}

func (r *reader) take(n int) []byte {
	if n > len(r.data) {
		r.fault("too short")
		return nil
	}
	b := r.data[:n:n]
	r.data = r.data[n:]
	return b
}

func (r *reader) place(limit int) place {
	p := place{at: r.count(limit + 1)}
	p.length = r.count(limit)
	if p.at == 0 {
		p.here = r.take(p.length)
	}
	return p
}

func (r *reader) text(p place, body []byte) string {
	if p.at == 0 {
		return string(p.here)
	}
	if p.at-1+p.length > len(body) {
		r.fault("text outside its body")
		return ""
	}
	return string(body[p.at-1 : p.at-1+p.length])
}

func (r *reader) end() error {
	if r.err == nil && len(r.data) > 0 {
		return fmt.Errorf("%d bytes too many", len(r.data))
	}
	return r.err
}
