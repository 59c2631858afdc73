// Environment: what all parts of the mirror share, such as the clock and the store, and whether the store can
// be read and written.
//
// Times in memory have a monotonic reading, so clock steps do not change them. Times read from the store have
// none. Therefore the end of a pause counts only if it is no further away than the pause is long.

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

// env is shared by all parts of the mirror.
type env struct {
	sources     map[string]*source
	store       Store
	intents     writes.Journal // nil if a crash may lose which writes were under way
	agesInForce atomic.Pointer[Ages]
	now         func() time.Time
	log         *slog.Logger
	start       time.Time // the zero of monotonicTime

	unreadable  atomic.Bool  // the last read of the store failed, and this was logged
	nextReadLog atomic.Int64 // when the failure may be logged again, as monotonicTime
	started     atomic.Bool
	closed      atomic.Bool
	ctx         context.Context // ends when the mirror is closed
	work        sync.WaitGroup  // all goroutines of the mirror
}

// remainingPause returns how much is left of a pause that ends at until. It returns 0 if the pause is over.
func remainingPause(now, until time.Time, pause time.Duration) time.Duration {
	left := until.Sub(now)
	if left <= 0 || left > pause {
		return 0
	}
	return left
}

// throttle returns true at most once per pause, also when many goroutines call it at once. next stores when
// it may return true again. A next further away than longest counts as over.
func (v *env) throttle(next *atomic.Int64, now time.Time, pause, longest time.Duration) bool {
	word, until := v.monotonicTime(now), next.Load()
	if word < until && word >= until-int64(longest) {
		return false
	}
	return next.CompareAndSwap(until, word+int64(pause))
}

// readLogInterval is how often a store that cannot be read is logged.
const readLogInterval = time.Minute

// noteStoreRead notes the result of a read of the store. It logs failures at most once a minute, and once
// when reading works again.
func (v *env) noteStoreRead(key string, err error) {
	switch {
	case err == nil:
		if v.unreadable.Load() && v.unreadable.CompareAndSwap(true, false) {
			v.log.Info("mirror: store can be read again")
		}
	case v.throttle(&v.nextReadLog, v.now(), readLogInterval, readLogInterval):
		v.unreadable.Store(true)
		v.log.Warn("mirror: store cannot be read", "key", key, "error", err)
	}
}

// saveState remembers whether the store can save. While it cannot, polls pause.
type saveState struct {
	sync.Mutex
	failingSince time.Time // zero if saving works
	reason       string
	lastTry      time.Time // when a fill last tried to save although saving failed

	// suspended are pages whose save took too long, with the time until they are not saved.
	suspended map[understudy.Key]time.Time
}

// maxSuspendedPages is the maximum number of suspended pages.
const maxSuspendedPages = 256

// pausePage stops saving a page for a while because its save took too long.
func (s *saveState) pausePage(key understudy.Key, now time.Time) {
	s.Lock()
	defer s.Unlock()
	if s.suspended == nil || len(s.suspended) >= maxSuspendedPages {
		s.suspended = map[understudy.Key]time.Time{}
	}
	s.suspended[key] = now.Add(savePause)
}

// isSuspended reports whether saving a page took too long a moment ago.
func (s *saveState) isSuspended(key understudy.Key, now time.Time) bool {
	s.Lock()
	defer s.Unlock()
	until, ok := s.suspended[key]
	if ok && remainingPause(now, until, savePause) == 0 {
		delete(s.suspended, key)
		ok = false
	}
	return ok
}

// noteFailure notes that a save failed, logs the first failure, and returns err.
func (s *saveState) noteFailure(v *env, err error) error {
	s.Lock()
	defer s.Unlock()
	if s.failingSince.IsZero() {
		s.failingSince = v.now()
		v.log.Error("mirror: nothing can be saved, polls pause", "error", err)
	}
	s.reason = shortReason(err)
	return err
}

// noteSuccess notes that a save succeeded. If saves failed before, it makes the polls due again.
func (s *saveState) noteSuccess(v *env) {
	s.Lock()
	defer s.Unlock()
	if !s.failingSince.IsZero() {
		v.log.Info("mirror: saving works again", "after", v.now().Sub(s.failingSince))
		s.failingSince, s.reason = time.Time{}, ""
		for _, source := range v.sources { // polls were paused and start again
			for _, p := range source.polls() {
				p.list.WakeUp()
			}
		}
	}
}

// allowFill lets one fill a minute try to save while saving fails. For all others it returns ErrNotStored
// with the reason.
func (s *saveState) allowFill(now time.Time) error {
	s.Lock()
	defer s.Unlock()
	if s.failingSince.IsZero() || remainingPause(now, s.lastTry.Add(savePause), savePause) == 0 {
		s.lastTry = now
		return nil
	}
	return fmt.Errorf("%w: %s", understudy.ErrNotStored, s.reason)
}

// failureReason returns why nothing can be saved, or "" if saving works.
func (s *saveState) failureReason() string {
	s.Lock()
	defer s.Unlock()
	return s.reason
}
