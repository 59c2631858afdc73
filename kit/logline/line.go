// This file has the lines that are encoded field by field. Common values are written here, eight bytes at a time.

package logline

import (
	"encoding/binary"
	"log/slog"
	"time"
)

// Key is the name of a field, encoded once for all lines. Create it with NewKey.
type Key struct {
	name    string
	encoded [formats]struct {
		text   [maxKey]byte // incomplete if the length is greater
		length int
	}
}

const (
	maxKey = 24 // the maximum length of an encoded key that putKey writes
	room   = 64 // enough for such a key and a number, with the bytes that are written in vain
)

// NewKey returns the key with a name.
func NewKey(name string) *Key {
	k := &Key{name: name}
	for f := range k.encoded {
		b := (&encoder{format: Format(f)}).appendKey(nil, name)
		k.encoded[f].length = len(b)
		copy(k.encoded[f].text[:], b)
	}
	return k
}

// Line is the beginning of a line. Each method that adds a field returns the longer line, which replaces the one before. Values
// appear as those of slog.Attr do. The zero Line is never written.
type Line struct {
	e *encoder
	n int // the length
}

// NewLine returns a line of no handler, which has only its time so far. AppendTo ends it.
func NewLine(f Format, at time.Time) Line {
	e := encoders.Get().(*encoder)
	e.format = f
	return Line{e, e.putHead(at, noLevel)}
}

// AppendTo ends the line and appends it.
func (l Line) AppendTo(dst []byte) []byte {
	b := l.e.appendEnd(l.e.buf[:l.n])
	dst = append(dst, b...)
	l.e.free(b)
	return dst
}

// Text adds a text unless it is empty.
func (l Line) Text(k *Key, s string) Line {
	if s == "" {
		return l
	}
	return l.String(k, s)
}

// String adds a text.
func (l Line) String(k *Key, s string) Line {
	if n, ok := l.putKey(k); ok {
		if end := l.e.putText(n, s, styles[l.e.format]); end > 0 {
			return Line{l.e, end}
		}
		if end := l.e.putText(n, s, quoted); end > 0 {
			return Line{l.e, end}
		}
	}
	return l.Attr(slog.String(k.name, s))
}

// Int64 adds a number.
func (l Line) Int64(k *Key, i int64) Line {
	if n, ok := l.putKey(k); ok && uint64(i) < maxNumber {
		return Line{l.e, l.e.putNumber(n, uint64(i))}
	}
	return l.Attr(slog.Int64(k.name, i))
}

// Bool adds a truth value.
func (l Line) Bool(k *Key, v bool) Line {
	switch n, ok := l.putKey(k); {
	case ok && v:
		return Line{l.e, l.e.putBytes(n, 't'|'r'<<8|'u'<<16|'e'<<24, 4)}
	case ok:
		return Line{l.e, l.e.putBytes(n, 'f'|'a'<<8|'l'<<16|'s'<<24|'e'<<32, 5)}
	}
	return l.Attr(slog.Bool(k.name, v))
}

// Float64 adds a number. No other one with so few decimals is read as x if three are enough.
func (l Line) Float64(k *Key, x float64) Line {
	u := uint64(int64(x*1e3 + 0.5))
	if n, ok := l.putKey(k); ok && x > 0 && u > 0 && u < 1e9 && float64(int64(u))/1e3 == x {
		return Line{l.e, l.e.putDecimal(n, u/1e3, u%1e3, 1e3)}
	}
	return l.Attr(slog.Float64(k.name, x))
}

// Duration adds a duration.
func (l Line) Duration(k *Key, d time.Duration) Line {
	n, ok := l.putKey(k)
	switch e, u := l.e, uint64(d); {
	case ok && e.format == JSON && u < maxNumber:
		return Line{e, e.putNumber(n, u)}
	case ok && e.format != JSON && u >= 1e3 && u < 1e6:
		return Line{e, e.putBytes(e.putDecimal(n, u/1e3, u%1e3, 1e3), 'µ'>>6|0xc0|('µ'&0x3f|0x80)<<8|'s'<<16, 3)}
	case ok && e.format != JSON && u >= 1e6 && u < 1e9:
		return Line{e, e.putBytes(e.putDecimal(n, u/1e6, u%1e6, 1e6), 'm'|'s'<<8, 2)}
	}
	return l.Attr(slog.Duration(k.name, d))
}

// EncodedValue adds a value that the caller has encoded for the format.
func (l Line) EncodedValue(k *Key, value []byte) Line {
	if n, ok := l.putKey(k); ok {
		return l.e.keep(append(l.e.buf[:n], value...))
	}
	return l.e.keep(append(l.e.appendKey(l.e.buf[:l.n], k.name), value...))
}

// Attr adds an attribute with a value of any type.
func (l Line) Attr(a slog.Attr) Line {
	if l.e == nil {
		return l
	}
	return l.e.keep(l.e.appendAttr(l.e.buf[:l.n], &a))
}

// keep makes b the buffer, all of which can be written to, and returns the line in it.
func (e *encoder) keep(b []byte) Line {
	if cap(b) != len(e.buf) {
		e.buf = b[:cap(b)]
	}
	return Line{e, len(b)}
}

// putKey writes a key, unless it or a number after it needs more than that.
func (l Line) putKey(k *Key) (n int, ok bool) {
	e := l.e
	if e == nil || l.n+room > len(e.buf) || len(e.groups) > 0 {
		return 0, false
	}
	key := &k.encoded[e.format]
	*(*[maxKey]byte)(e.buf[l.n : l.n+maxKey]) = key.text
	return l.n + key.length, key.length <= maxKey
}

// putBytes writes the first bytes of a word, the lowest first, and returns the index after them.
func (e *encoder) putBytes(n int, word uint64, count int) int {
	binary.LittleEndian.PutUint64(e.buf[n:n+8], word)
	return n + count
}

// maxNumber is greater than the numbers that putNumber writes.
const maxNumber = 1e8

// putNumber writes a number. It divides a long one into two of four digits, these into numbers of two digits, and these into digits.
func (e *encoder) putNumber(n int, u uint64) int {
	switch {
	case u < 10:
		return e.putBytes(n, '0'+u, 1)
	case u < 100:
		return e.putBytes(n, '0'+u/10|('0'+u%10)<<8, 2)
	case u < 1e3:
		return e.putBytes(n, '0'+u/100|('0'+u/10%10)<<8|('0'+u%10)<<16, 3)
	}
	count := 4
	for power := uint64(1e4); u >= power; power *= 10 {
		count++
	}
	u = u/1e4 | u%1e4<<32
	high := u * 10486 >> 20 & (0x7f<<32 | 0x7f)
	u = high | (u-high*100)<<16
	high = u * 103 >> 10 & 0x000f000f000f000f
	return e.putBytes(n, (high|(u-high*10)<<8|'0'*each)>>(-8*count&63), count)
}

// putDecimal writes a number and the quotient of a smaller one and a power of ten.
func (e *encoder) putDecimal(n int, whole, rest, power uint64) int {
	if n = e.putNumber(n, whole); rest > 0 {
		n = e.putBytes(n, '.', 1)
	}
	for ; rest > 0; rest = rest * 10 % power {
		n = e.putBytes(n, '0'+rest*10/power, 1)
	}
	return n
}

// putText writes a text and returns the index after it. It returns 0 if the text is empty, needs more room, or has a special byte.
func (e *encoder) putText(n int, s string, style *style) (end int) {
	n += style.quotes
	size, last := len(s), uint64(0)
	switch end = n + size; {
	case end+room > len(e.buf) || size == 0:
		return 0
	case size >= 8:
		for i := 0; i < size-8; i += 8 {
			last = load(s[i : i+8])
			if e.putBytes(n+i, last, 8); style.find(last) != 0 {
				return 0
			}
		}
		last = load(s[size-8 : size])
		e.putBytes(end-8, last, 8)
	default:
		if size >= 4 {
			last = load4(s[size-4:])<<((size-4)*8&63) | load4(s)
		} else {
			last = uint64(s[size-1])<<((size-1)*8&63) | uint64(s[size/2])<<(size/2*8&63) | uint64(s[0])
		}
		e.putBytes(n, last, 8)
		last |= each * 'a' << (size * 8 & 63) // not special
	}
	if style.find(last) != 0 {
		return 0
	}
	if style.quotes > 0 {
		e.buf[n-1], e.buf[end] = '"', '"'
	}
	return end + style.quotes
}
