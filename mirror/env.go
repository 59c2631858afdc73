// Env: what all parts of the mirror work with: the clock, the store, and whether
// the store can be read and can save.
//
// Times in memory carry a monotonic reading and know nothing of steps. Those
// that went through the store have none, nor have those of a clock that gives
// none. So the end of a pause counts only if it lies no further off than the
// pause is long.

package mirror

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"understudy"
	"understudy/mirror/writes"
)

// env is what all parts of the mirror work with.
type env struct {
	sources map[string]*source
	store   Store
	intents writes.Journal // nil: what a crash leaves is forgotten
	aging   atomic.Pointer[Ages]
	now     func() time.Time
	log     *slog.Logger
	start   time.Time // the clock's zero for what is kept in one word

	unread  atomic.Bool  // the store could not be read, and the log knows
	said    atomic.Int64 // until when it is not told again
	started atomic.Bool
	closed  atomic.Bool
	ctx     context.Context // ends when the mirror is closed
	work    sync.WaitGroup  // every goroutine of the mirror
}

// remaining is how much is left of a pause that ends then; 0: it is over.
func remaining(now, until time.Time, pause time.Duration) time.Duration {
	left := until.Sub(now)
	if left <= 0 || left > pause {
		return 0
	}
	return left
}

// throttle reports whether the time in next has come, and sets it on by pause. Of
// many callers at once, one is told that it has. longest is how far off next
// may be.
func (v *env) throttle(next *atomic.Int64, now time.Time, pause, longest time.Duration) bool {
	word, until := v.monotonic(now), next.Load()
	if word < until && word >= until-int64(longest) {
		return false
	}
	return next.CompareAndSwap(until, word+int64(pause))
}

// sayAgain is how often the log is told of a store that cannot be read.
const sayAgain = time.Minute

// reads hears of every read of the store. That it cannot be read is logged
// once a minute at most, however many ask, and that it can again once.
func (v *env) reads(key string, err error) {
	switch {
	case err == nil:
		if v.unread.Load() && v.unread.CompareAndSwap(true, false) {
			v.log.Info("mirror: store can be read again")
		}
	case v.throttle(&v.said, v.now(), sayAgain, sayAgain):
		v.unread.Store(true)
		v.log.Warn("mirror: store cannot be read", "key", key, "error", err)
	}
}

// saving knows whether the store can save. While it cannot, polls pause.
type saving struct {
	sync.Mutex
	since time.Time // zero: it works
	why   string
	tried time.Time // when a walk last tried all the same

	// long are the pages whose saving took too long, until when they are not saved.
	long map[understudy.Key]time.Time
}

// maxLong is how many such pages are remembered.
const maxLong = 256

// tooLong notes that saving a page took too long: it pauses.
func (s *saving) tooLong(key understudy.Key, now time.Time) {
	s.Lock()
	defer s.Unlock()
	if s.long == nil || len(s.long) >= maxLong {
		s.long = map[understudy.Key]time.Time{}
	}
	s.long[key] = now.Add(pause)
}

// pauses reports whether saving a page took too long a moment ago.
func (s *saving) pauses(key understudy.Key, now time.Time) bool {
	s.Lock()
	defer s.Unlock()
	until, ok := s.long[key]
	if ok && remaining(now, until, pause) == 0 {
		delete(s.long, key)
		ok = false
	}
	return ok
}

func (s *saving) failed(v *env, err error) error {
	s.Lock()
	defer s.Unlock()
	if s.since.IsZero() {
		s.since = v.now()
		v.log.Error("mirror: nothing can be saved, polls pause", "error", err)
	}
	s.why = lastWords(err)
	return err
}

func (s *saving) works(v *env) {
	s.Lock()
	defer s.Unlock()
	if !s.since.IsZero() {
		v.log.Info("mirror: saving works again", "after", v.now().Sub(s.since))
		s.since, s.why = time.Time{}, ""
		for _, source := range v.sources { // polls have paused
			for _, p := range source.polls() {
				p.list.Nudge()
			}
		}
	}
}

// may lets one walk a minute try whether saving works again; the others are
// told why not.
func (s *saving) may(now time.Time) error {
	s.Lock()
	defer s.Unlock()
	if s.since.IsZero() || remaining(now, s.tried.Add(pause), pause) == 0 {
		s.tried = now
		return nil
	}
	return fmt.Errorf("%w: %s", understudy.ErrNotStored, s.why)
}

// trouble is why nothing can be saved, "" when it can.
func (s *saving) trouble() string {
	s.Lock()
	defer s.Unlock()
	return s.why
}
