// Scale: what a body weighs, told before it is read or as it grows.

package upstream

import (
	"context"
	"io"
	"net/http"
	"time"
)

// light is the length, in bytes, below which nobody is told what a body weighs.
const light = 1 << 20

// scale tells the Weigh of a fetch what its answer's body weighs. A plain body
// whose length upstream gives is told before the first byte is read. Of any
// other body a guess is told when it has grown to light, and a new one whenever
// it outgrows the last: when upstream gave the length of a coded body, from what
// the part read so far has grown to; else twice as much as there is. The guess
// is corrected at the end. A nil scale tells nobody.
type scale struct {
	ctx    context.Context
	weigh  func(context.Context, int64) error
	quiet  *alarm
	stall  time.Duration
	length int64 // as upstream gave it; -1: it did not
	coded  bool
	read   int64 // from the wire
	grown  int64 // decoded
	told   int64 // 0: nothing yet
	most   int64 // no body may be longer
}

// heavyError is that of Weigh: it ends the fetch and is no failure of upstream's.
type heavyError struct{ error }

func newScale(ctx context.Context, weigh func(context.Context, int64) error, resp *http.Response, quiet *alarm, stall time.Duration, most int64) *scale {
	if weigh == nil {
		return nil
	}
	return &scale{ctx: ctx, weigh: weigh, quiet: quiet, stall: stall, length: resp.ContentLength, most: most}
}

// tell tells a weight. Upstream is not blamed for the time that takes.
func (s *scale) tell(bytes int64) error {
	if bytes == s.told {
		return nil
	}
	s.quiet.stop()
	err := s.weigh(s.ctx, bytes)
	s.quiet.reset(s.stall)
	if err != nil {
		return &heavyError{err}
	}
	s.told = bytes
	return nil
}

// announced tells the length of a plain body.
func (s *scale) announced(plain bool) error {
	if s == nil {
		return nil
	}
	if s.coded = !plain; s.coded || s.length < light {
		return nil
	}
	return s.tell(s.length)
}

// trusted is up to which length a body has its room at once: an upstream that
// lies about it must not cost memory that nobody granted.
func (s *scale) trusted() int64 {
	if s == nil {
		return light
	}
	return max(s.told, light)
}

// guess is what a body that has grown to so much will weigh.
func (s *scale) guess() int64 {
	if s.coded && s.length > 0 && s.read > 0 && s.read <= s.length {
		// A decoder reads ahead: the part read is more than what has grown of it.
		return max(int64(float64(s.grown)*float64(s.length)/float64(s.read)*1.1), s.grown+light)
	}
	return 2 * s.grown
}

// grew notes that the body has grown.
func (s *scale) grew(n int) error {
	if s.grown += int64(n); s.grown < light || s.grown <= s.told {
		return nil
	}
	return s.tell(max(min(s.guess(), s.most), s.grown))
}

// done corrects the last guess.
func (s *scale) done(length int64) error {
	if s == nil || s.told == 0 {
		return nil
	}
	return s.tell(length)
}

// wire and body count what goes through them.
func (s *scale) wire(in io.Reader) io.Reader {
	if s == nil {
		return in
	}
	return &counted{in, func(n int) error { s.read += int64(n); return nil }}
}

func (s *scale) body(in io.Reader) io.Reader {
	if s == nil {
		return in
	}
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
