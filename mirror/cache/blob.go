// Blobs: byte strings in two pieces, to waste little memory in the allocator.

package cache

import "math/bits"

// blob is a byte string in two pieces. The allocator rounds sizes up by as much as an eighth, but not powers
// of two. So only the second, small piece wastes memory.
type blob struct{ head, tail []byte }

const minSplit = 1 << 10

func makeBlob(b []byte) blob {
	if len(b) < minSplit {
		return blob{head: cloneExact(b)}
	}
	n := 1 << (bits.Len(uint(len(b))) - 1)
	return blob{head: cloneExact(b[:n]), tail: cloneExact(b[n:])}
}

// cloneExact copies b. The capacity of the copy is what the allocator really used.
func cloneExact(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return append([]byte(nil), b...)
}

func (b blob) cost() int64 { return int64(cap(b.head) + cap(b.tail)) }

// appendTo appends all bytes to dst.
func (b blob) appendTo(dst []byte) []byte {
	return append(append(dst, b.head...), b.tail...)
}
