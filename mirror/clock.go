// Clock: what is waited for ends, however the clock steps.
//
// Times in memory carry a monotonic reading and know nothing of steps. Those
// that went through the store have none, nor have those of a clock that gives
// none; so no end of a pause is believed that lies further off than the pause
// is long.

package mirror

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// env is what all parts of the mirror work with.
type env struct {
	sources map[string]*source
	store   Store
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
