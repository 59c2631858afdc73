// Blobs: bytes kept in two pieces so that little of what is allocated is lost.

package cache

import "math/bits"

// blob is a byte string in two pieces. The allocator rounds a piece up by as
// much as an eighth; a power of two is not rounded, so only the second, small
// piece loses anything.
type blob struct{ head, tail []byte }

const minSplit = 1 << 10

func makeBlob(b []byte) blob {
	if len(b) < minSplit {
		return blob{head: exact(b)}
	}
	n := 1 << (bits.Len(uint(len(b))) - 1)
	return blob{head: exact(b[:n]), tail: exact(b[n:])}
}

// exact copies b; its capacity is what the allocator really took.
func exact(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return append([]byte(nil), b...)
}

func (b blob) cost() int64 { return int64(cap(b.head) + cap(b.tail)) }

// appendTo gives the bytes in one piece.
func (b blob) appendTo(dst []byte) []byte {
	return append(append(dst, b.head...), b.tail...)
}
