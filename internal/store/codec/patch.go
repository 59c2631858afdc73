// This file makes patches, which describe one body by its differences from another.

package codec

import (
	"encoding/binary"
	"errors"
)

const (
	// MaxDepth is the maximum length of a chain of deltas. Reading the oldest version of a chain builds as many bodies.
	MaxDepth = 8
	// minMatch is the number of consecutive equal bytes that end a difference between two bodies.
	minMatch = 8
	// maxDifference is the maximum number of bytes of both bodies together that are searched for the end of a difference.
	maxDifference = 320
)

// AppendPatch appends a patch that builds body from base. It repeats: how many bytes are equal, how many bytes of base
// to skip, how many new bytes follow, and those bytes. ok is false if the patch is longer than half of body.
func AppendPatch(dst, base, body []byte) (patch []byte, ok bool) {
	limit := len(dst) + len(body)/2
	for len(dst) <= limit {
		same := commonPrefix(base, body)
		base, body = base[same:], body[same:]
		out, in := nextMatch(base, body)
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

// commonPrefix returns how many leading bytes a and b share.
func commonPrefix(a, b []byte) (n int) {
	for len(a)-n >= 8 && len(b)-n >= 8 && binary.LittleEndian.Uint64(a[n:]) == binary.LittleEndian.Uint64(b[n:]) {
		n += 8
	}
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// nextMatch returns how many bytes of a and of b to skip until they are the same again. It finds the smallest
// total, or skips everything if that is too far. Only this goroutine has the two slices. Under the race
// detector this function would make every test that saves many times slower.
//
//go:norace
func nextMatch(a, b []byte) (out, in int) {
	for apart := 1; apart <= min(maxDifference, len(a)+len(b)-2*minMatch); apart++ {
		// Skipping equally many bytes of both is the usual case, so it is tried first.
		for k := range apart + 1 {
			out := apart/2 - k/2
			if k%2 == 1 {
				out = apart/2 + (k+1)/2
			}
			in := apart - out
			if out+minMatch <= len(a) && in+minMatch <= len(b) && binary.LittleEndian.Uint64(a[out:]) == binary.LittleEndian.Uint64(b[in:]) {
				return out, in
			}
		}
	}
	// Equal bytes before the match belong to the match, so the next step of the patch copies them.
	n := 0
	for n < len(a) && n < len(b) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return len(a) - n, len(b) - n
}

var errPatch = errors.New("the patch of a body does not fit its base")

// applyPatch builds the body from base and patch.
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
