// Patches: one body made of another that is much like it.

package codec

import (
	"encoding/binary"
	"errors"
)

const (
	// maxDepth bounds how many versions rest on each other: as many bodies
	// have to be made, one of the other, to read the oldest.
	MaxDepth = 8
	// sameAgain is how many equal bytes show that two bodies go on alike.
	sameAgain = 8
	// maxApart is how many bytes, of both together, are looked at to find them.
	maxApart = 320
)

// appendPatch appends what makes body of base: again and again how many bytes
// are the same, how many of base are left out, how many come instead, and
// those. ok is false when that is more than half of body.
func AppendPatch(dst, base, body []byte) (patch []byte, ok bool) {
	limit := len(dst) + len(body)/2
	for len(dst) <= limit {
		same := commonPrefix(base, body)
		base, body = base[same:], body[same:]
		out, in := apart(base, body)
		dst = binary.AppendUvarint(dst, uint64(same))
		dst = binary.AppendUvarint(dst, uint64(out))
		dst = binary.AppendUvarint(dst, uint64(in))
		dst = append(dst, body[:in]...)
		base, body = base[out:], body[in:]
		if len(base)+len(body) == 0 {
			return dst, len(dst) <= limit
		}
	}
	return dst, false
}

// commonPrefix is how many bytes are the same.
func commonPrefix(a, b []byte) (n int) {
	for len(a)-n >= 8 && len(b)-n >= 8 && binary.LittleEndian.Uint64(a[n:]) == binary.LittleEndian.Uint64(b[n:]) {
		n += 8
	}
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// apart is how many bytes of a and of b to pass until they go on alike: as few
// as can be, and all when that is far. It reads two slices that no other goroutine has;
// the race detector would make it, and every test that saves, many times slower.
//
//go:norace
func apart(a, b []byte) (out, in int) {
	for apart := 1; apart <= min(maxApart, len(a)+len(b)-2*sameAgain); apart++ {
		// As many of one as of the other is the usual case: it is tried first.
		for k := range apart + 1 {
			out := apart/2 - k/2
			if k%2 == 1 {
				out = apart/2 + (k+1)/2
			}
			in := apart - out
			if out+sameAgain <= len(a) && in+sameAgain <= len(b) && binary.LittleEndian.Uint64(a[out:]) == binary.LittleEndian.Uint64(b[in:]) {
				return out, in
			}
		}
	}
	// What is the same at the end is copied next.
	n := 0
	for n < len(a) && n < len(b) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return len(a) - n, len(b) - n
}

var errPatch = errors.New("the patch of a body does not fit its base")

// applyPatch makes the body that patch was made of.
func applyPatch(base, patch []byte) ([]byte, error) {
	r := NewReader(patch)
	body := make([]byte, 0, len(base)+len(patch))
	for len(r.data) > 0 {
		same, out, in := r.Count(len(base)), r.Count(len(base)), r.Count(len(patch))
		if r.err != nil || same+out > len(base) {
			return nil, errPatch
		}
		body = append(append(body, base[:same]...), r.Take(in)...)
		base = base[same+out:]
	}
	if r.err != nil || len(base) > 0 {
		return nil, errPatch
	}
	return body, nil
}
