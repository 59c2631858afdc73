// Blobs: byte strings in two pieces, to waste little memory in the allocator.

package cache

import "math/bits"

// blob is a byte string in two pieces. The memory allocator rounds a size up by as much as an eighth, unless it is a
// power of two. The size of the first piece is a power of two, so only the small second piece wastes memory.
type blob struct{ head, tail []byte }

const minSplit = 1 << 10

func makeBlob(b []byte) blob {
	if len(b) < minSplit {
		return blob{head: cloneExact(b)}
	}
	n := 1 << (bits.Len(uint(len(b))) - 1)
	return blob{head: cloneExact(b[:n]), tail: cloneExact(b[n:])}
}

// cloneExact returns a copy of b whose capacity is the size that the allocator has reserved.
func cloneExact(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return append([]byte(nil), b...)
}

func (b blob) cost() int64 { return int64(cap(b.head) + cap(b.tail)) }
