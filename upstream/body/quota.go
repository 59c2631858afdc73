// Memory quota: what a body weighs, told before it is read or as it grows.

package body

import (
	"context"
	"fmt"
	"io"
	"time"

	"understudy/kit/semaphore"
)

// light is the length, in bytes, below which the weight of a body is not told.
const light = 128 << 10

// ParkTime is how long a body without room stays in the socket. Then the fetch gives up: servers and balancers close a
// connection on which nothing has moved for a minute.
const ParkTime = 45 * time.Second

// parkAfter is how long a fetch waits for room before it gives its slot of the budget back: upstream has answered it,
// and other requests may go.
const parkAfter = 10 * time.Millisecond

// packedFactor is how many times its packed length a body probably has, when no body like it has come yet.
const packedFactor = 4

// Quota tells Weigh what a body weighs, before the body is in memory:
//
//	plain, upstream gave the length  -> that, before the first byte is read
//	packed and short                 -> what it says of itself, once it is off the wire
//	other                            -> the length of the last body like it
//
// A body that outgrows that gets a guess: from the part that is decoded when upstream gave the length of a packed body,
// else twice what there is. The end corrects the guess.
type Quota struct {
	Ctx    context.Context
	Weigh  func(context.Context, int64) error
	Pause  func() (resume func()) // stops the clocks of the request
	Park   func()                 // gives the slot of the budget back; nil: there is none
	Length int64                  // as upstream gave it; -1: it did not
	Most   int64                  // no body may be longer

	coded  bool
	inHand bool  // all of it is off the wire
	read   int64 // from the wire
	grown  int64 // decoded
	told   int64 // 0: nothing yet
}

// WeighError is an error of Weigh. It ends the fetch and is no failure of upstream's.
type WeighError struct{ Err error }

// Error is the text of the error itself.
func (e *WeighError) Error() string { return e.Err.Error() }

// tell tells a weight, and waits for room. That time does not count against upstream.
func (s *Quota) tell(bytes int64) error {
	if bytes == s.told {
		return nil
	}
	defer s.Pause()()
	ctx := s.Ctx
	if bytes > s.told && !s.inHand {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, ParkTime, fmt.Errorf("no room for %d bytes within %v", bytes, ParkTime))
		defer cancel()
	}
	if s.Park != nil {
		defer time.AfterFunc(parkAfter, s.Park).Stop()
	}
	if err := s.Weigh(ctx, bytes); err != nil {
		return err
	}
	s.told = bytes
	return nil
}

// expect tells how long a body will be, unless it is light.
func (s *Quota) expect(bytes int64) error {
	if bytes < light {
		return nil
	}
	return s.tell(min(bytes, s.Most))
}

// trusted is the length up to which a body gets its room at once. So a wrong length from upstream costs no memory that
// was not granted.
func (s *Quota) trusted() int64 {
	return max(s.told, light)
}

// guess is what a body that has grown to so much will weigh.
func (s *Quota) guess() int64 {
	if s.coded && s.Length > 0 && s.read > 0 && s.read < s.Length {
		// A decoder reads ahead: the part read is more than what has grown of it.
		return max(int64(float64(s.grown)*float64(s.Length)/float64(s.read)*1.1), s.grown+light)
	}
	return 2 * s.grown
}

// grew notes that the body has grown.
func (s *Quota) grew(n int) error {
	if s.grown += int64(n); s.grown < light || s.grown <= s.told {
		return nil
	}
	return s.tell(max(min(s.guess(), s.Most), s.grown))
}

// done corrects the last guess.
func (s *Quota) done(length int64) error {
	if s.told == 0 {
		return nil
	}
	return s.tell(length)
}

// wire counts the bytes from the wire.
func (s *Quota) wire(in io.Reader) io.Reader {
	return &counted{in, func(n int) error { s.read += int64(n); return nil }}
}

// body counts the decoded bytes.
func (s *Quota) body(in io.Reader) io.Reader {
	return &counted{in, s.grew}
}

// counted tells how many bytes each read gave.
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

// Room is the part that one body has of the memory for all bodies. A body that does not fit waits, so that a few packed
// bodies do not take all memory at once. It is for one goroutine, and for fetches that no Weigh bounds.
type Room struct {
	All  *semaphore.Weighted
	load *semaphore.Load
}

// Hold waits until the body may weigh so many bytes.
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

// Release gives the room back.
func (r *Room) Release() {
	if r.load != nil {
		r.load.Release()
	}
}
