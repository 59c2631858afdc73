// Clock: what is waited for ends, however the clock steps.
//
// Times in memory carry a monotonic reading and know nothing of steps. Those
// that went through the store have none, nor have those of a clock that gives
// none; so no end of a pause is believed that lies further off than the pause
// is long.

package mirror

import (
	"sync/atomic"
	"time"
)

// remaining is how much is left of a pause that ends then; 0: it is over.
func remaining(now, until time.Time, pause time.Duration) time.Duration {
	left := until.Sub(now)
	if left <= 0 || left > pause {
		return 0
	}
	return left
}

// turn reports whether the time in next has come, and sets it on by pause. Of
// many who ask at once, one is told that it has. longest is how far off next
// may be.
func (m *Mirror) throttle(next *atomic.Int64, now time.Time, pause, longest time.Duration) bool {
	word, until := m.monotonic(now), next.Load()
	if word < until && word >= until-int64(longest) {
		return false
	}
	return next.CompareAndSwap(until, word+int64(pause))
}

// sayAgain is how often the log is told of a store that cannot be read.
const sayAgain = time.Minute

// reads hears of every read of the store. That it cannot be read is logged
// once a minute at most, however many ask, and that it can again once.
func (m *Mirror) reads(key string, err error) {
	switch {
	case err == nil:
		if m.unread.Load() && m.unread.CompareAndSwap(true, false) {
			m.log.Info("mirror: store can be read again")
		}
	case m.throttle(&m.said, m.now(), sayAgain, sayAgain):
		m.unread.Store(true)
		m.log.Warn("mirror: store cannot be read", "key", key, "error", err)
	}
}
