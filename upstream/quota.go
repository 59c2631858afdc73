// Memory quota: what a body weighs, told before it is read or as it grows.

package upstream

import (
	"context"
	"fmt"
	"io"
	"time"

	"understudy/kit/semaphore"
)

// light is the length, in bytes, below which nobody is told what a body weighs.
const light = 1 << 20

// A body for which there is no room stays in the socket meanwhile. After parkTime
// the fetch gives up: a server or a balancer closes a connection on which nothing
// has moved for a minute, and then all of it would have been in vain.
const parkTime = 45 * time.Second

// parkAfter is how long a fetch may wait for room before it gives its place in the
// budget back: upstream has answered it, and others may ask.
const parkAfter = 10 * time.Millisecond

// packedFactor is how many times its packed length a body is thought to have when
// none like it has come yet.
const packedFactor = 4

// quota tells the Weigh of a fetch what its answer's body weighs, before it is in
// memory. A plain body whose length upstream gives is told before the first byte
// is read, and a short packed one when it is in hand and says how long it will be.
// Of any other body the length of the last one like it is told, and a guess when
// it outgrows that: when upstream gave the length of a coded body, from what the
// part read so far has grown to; else twice as much as there is. The guess is
// corrected at the end.
type quota struct {
	ctx    context.Context
	weigh  func(context.Context, int64) error
	pause  func() (resume func()) // stops the clocks of the request
	park   func()                 // gives its place back; nil: it has none
	length int64                  // as upstream gave it; -1: it did not
	coded  bool
	inHand bool  // all of it is off the wire
	read   int64 // from the wire
	grown  int64 // decoded
	told   int64 // 0: nothing yet
	most   int64 // no body may be longer
}

// heavyError is that of Weigh: it ends the fetch and is no failure of upstream's.
type heavyError struct{ error }

// tell tells a weight, and waits for it. Upstream is not blamed for the time that
// takes.
func (s *quota) tell(bytes int64) error {
	if bytes == s.told {
		return nil
	}
	defer s.pause()()
	ctx := s.ctx
	if bytes > s.told && !s.inHand {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, parkTime, fmt.Errorf("no room for %d bytes within %v", bytes, parkTime))
		defer cancel()
	}
	if s.park != nil {
		defer time.AfterFunc(parkAfter, s.park).Stop()
	}
	if err := s.weigh(ctx, bytes); err != nil {
		return err
	}
	s.told = bytes
	return nil
}

// expect tells how long a body will be, unless it is light.
func (s *quota) expect(bytes int64) error {
	if bytes < light {
		return nil
	}
	return s.tell(min(bytes, s.most))
}

// trusted is up to which length a body has its room at once: an upstream that
// lies about it must not cost memory that nobody granted.
func (s *quota) trusted() int64 {
	return max(s.told, light)
}

// guess is what a body that has grown to so much will weigh.
func (s *quota) guess() int64 {
	if s.coded && s.length > 0 && s.read > 0 && s.read < s.length {
		// A decoder reads ahead: the part read is more than what has grown of it.
		return max(int64(float64(s.grown)*float64(s.length)/float64(s.read)*1.1), s.grown+light)
	}
	return 2 * s.grown
}

// grew notes that the body has grown.
func (s *quota) grew(n int) error {
	if s.grown += int64(n); s.grown < light || s.grown <= s.told {
		return nil
	}
	return s.tell(max(min(s.guess(), s.most), s.grown))
}

// done corrects the last guess.
func (s *quota) done(length int64) error {
	if s.told == 0 {
		return nil
	}
	return s.tell(length)
}

// wire and body count what goes through them.
func (s *quota) wire(in io.Reader) io.Reader {
	return &counted{in, func(n int) error { s.read += int64(n); return nil }}
}

func (s *quota) body(in io.Reader) io.Reader {
	return &counted{in, s.grew}
}

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

// room is what one body that nobody else weighs holds of what all such bodies may,
// so that a few packed ones do not take all memory at once. Whose body does not fit
// waits. It is for one goroutine.
type room struct {
	of   *semaphore.Weighted
	load *semaphore.Load
}

// hold waits until the body may weigh so many bytes.
func (r *room) hold(ctx context.Context, bytes int64) (err error) {
	if r.load == nil {
		r.load, err = r.of.Acquire(ctx, bytes)
		return err
	}
	more := bytes - r.load.Weight()
	if more > 0 {
		return r.load.Grow(ctx, more)
	}
	r.load.Shrink(-more)
	return nil
}

// leave gives it back.
func (r *room) release() {
	if r.load != nil {
		r.load.Release()
	}
}
