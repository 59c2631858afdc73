// This file reserves memory for a body, before the body is read or while it grows.

package body

import (
	"context"
	"fmt"
	"io"
	"time"

	"understudy/kit/semaphore"
)

// light is the size in bytes below which no memory is reserved for a body.
const light = 128 << 10

// ParkTime is how long a body that waits for memory stays in the socket. After that the fetch fails: servers
// and load balancers close a connection after a minute without data.
const ParkTime = 45 * time.Second

// parkAfter is how long a fetch waits for memory before it gives back its slot of the budget. The upstream has already
// answered, so other requests may be sent.
const parkAfter = 10 * time.Millisecond

// packedFactor is the assumed ratio of decoded to compressed length, for a body whose name has no history.
const packedFactor = 4

// Quota reserves the memory of a body with Weigh, before the body is in memory:
//
//	plain, with Content-Length -> that length, before the first byte is read
//	compressed and short       -> the length in the compressed data, once it has been read
//	other                      -> the length of the last body with the same name
//
// If a body becomes longer, Quota estimates its length: from the part that is decoded if a compressed body has
// a Content-Length, else twice the current length. The actual length replaces the estimate at the end.
type Quota struct {
	Ctx    context.Context
	Weigh  func(context.Context, int64) error
	Pause  func() (resume func()) // stops the time limits of the request until resume is called
	Park   func()                 // gives back the slot in the request budget; may be nil
	Length int64                  // the upstream's Content-Length, or -1 if it is unknown
	Max    int64                  // the maximum length of a body, in bytes

	coded         bool
	fullyRead     bool  // whether the whole body was read from the connection
	read          int64 // the number of bytes read from the connection
	grown         int64 // the number of decoded bytes
	reservedBytes int64 // the number of bytes reserved so far
}

// WeighError is an error of Weigh. It ends the fetch and is no failure of upstream.
type WeighError struct{ Err error }

// Error returns the text of the wrapped error.
func (e *WeighError) Error() string { return e.Err.Error() }

// reserve reserves memory and waits until there is enough. The wait does not count against upstream.
func (s *Quota) reserve(bytes int64) error {
	if bytes == s.reservedBytes {
		return nil
	}
	defer s.Pause()()
	ctx := s.Ctx
	if bytes > s.reservedBytes && !s.fullyRead {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, ParkTime, fmt.Errorf("not enough free memory for %d bytes within %v", bytes, ParkTime))
		defer cancel()
	}
	if s.Park != nil {
		defer time.AfterFunc(parkAfter, s.Park).Stop()
	}
	if err := s.Weigh(ctx, bytes); err != nil {
		return err
	}
	s.reservedBytes = bytes
	return nil
}

// reserveExpected reserves the probable length of a body, unless it is light.
func (s *Quota) reserveExpected(bytes int64) error {
	if bytes < light {
		return nil
	}
	return s.reserve(min(bytes, s.Max))
}

// grantedLength returns the length for which a body gets memory at once. A wrong Content-Length therefore allocates no
// memory that was not reserved.
func (s *Quota) grantedLength() int64 {
	return max(s.reservedBytes, light)
}

// guess returns the probable length of a body that is longer than expected.
func (s *Quota) guess() int64 {
	if s.coded && s.Length > 0 && s.read > 0 && s.read < s.Length {
		// A decoder reads ahead, so read also counts bytes that are not decoded yet.
		return max(int64(float64(s.grown)*float64(s.Length)/float64(s.read)*1.1), s.grown+light)
	}
	return 2 * s.grown
}

// addDecoded counts decoded bytes, and reserves more memory if needed.
func (s *Quota) addDecoded(n int) error {
	if s.grown += int64(n); s.grown < light || s.grown <= s.reservedBytes {
		return nil
	}
	return s.reserve(max(min(s.guess(), s.Max), s.grown))
}

// finish replaces the last estimate with the actual length.
func (s *Quota) finish(length int64) error {
	if s.reservedBytes == 0 {
		return nil
	}
	return s.reserve(length)
}

// countWire returns a reader that counts the bytes from the connection.
func (s *Quota) countWire(in io.Reader) io.Reader {
	return &counted{in, func(n int) error { s.read += int64(n); return nil }}
}

// countBody returns a reader that counts the decoded bytes.
func (s *Quota) countBody(in io.Reader) io.Reader {
	return &counted{in, s.addDecoded}
}

// counted reports the number of bytes of each read.
type counted struct {
	in   io.Reader
	tell func(int) error
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	if told := c.tell(n); told != nil {
		return 0, told
	}
	return n, err
}

// Room is the memory of one body within the memory for all bodies. A body that does not fit waits, so that a few
// compressed bodies cannot take all memory at once. It is used by one goroutine, for a fetch without Reserve.
type Room struct {
	All  *semaphore.Weighted
	load *semaphore.Load
}

// Hold waits until the body may have that many bytes in memory.
func (r *Room) Hold(ctx context.Context, bytes int64) (err error) {
	if r.load == nil {
		r.load, err = r.All.Acquire(ctx, bytes)
		return err
	}
	more := bytes - r.load.Weight()
	if more > 0 {
		return r.load.Grow(ctx, more)
	}
	r.load.Shrink(-more)
	return nil
}

// Release frees the memory.
func (r *Room) Release() {
	if r.load != nil {
		r.load.Release()
	}
}
