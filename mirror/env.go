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
	"understudy/kit/lockwatch"
	"understudy/mirror/writes"
)

// env has what all parts of the mirror share.
type env struct {
	sources     map[string]*source
	store       Store
	intents     writes.Journal // the journal of the writes under way; nil if they may be forgotten in a crash
	currentAges atomic.Pointer[Ages]
	now         func() time.Time
	log         *slog.Logger
	others      Others      // the other processes on the same database; nil if there are none
	memory      func() bool // whether memory contains what other processes have changed; nil if there are none
	start       time.Time   // the time of the start, from which monotonicTime counts
	since       time.Time   // Options.Since
	paused      bool        // Options.Paused

	unreadable  atomic.Bool  // whether the last read from the store failed; the failure has then been logged
	nextReadLog atomic.Int64 // when the next failure may be logged, as monotonicTime
	started     atomic.Bool
	closed      atomic.Bool
	ctx         context.Context // a context that ends when the mirror is closed
	work        sync.WaitGroup  // counts all running goroutines of the mirror
}

// isMemoryCurrent reports whether pages in memory may be answered as they are.
func (v *env) isMemoryCurrent() bool { return v.memory == nil || v.memory() }

// remainingPause returns how much is left of a pause that ends at until. It returns 0 if the pause is over, or if
// more would be left than the pause is long, because then the clock has been changed.
func remainingPause(now, until time.Time, pause time.Duration) time.Duration {
	left := until.Sub(now)
	if left <= 0 || left > pause {
		return 0
	}
	return left
}

// throttle returns true at most once per pause, also when many goroutines call it at once. next has the time from
// which it may return true again. A time that is more than longest in the future does not count.
func (v *env) throttle(next *atomic.Int64, now time.Time, pause, longest time.Duration) bool {
	word, until := v.monotonicTime(now), next.Load()
	if word < until && word >= until-int64(longest) {
		return false
	}
	return next.CompareAndSwap(until, word+int64(pause))
}

// readLogInterval is the minimum time between two log messages about a store that cannot be read.
const readLogInterval = time.Minute

// noteStoreRead is called with the result of each read from the store. It logs a failure at most once a minute. It
// also logs when reading works again.
func (v *env) noteStoreRead(key string, err error) {
	switch {
	case err == nil:
		if v.unreadable.Load() && v.unreadable.CompareAndSwap(true, false) {
			v.log.Info("mirror: the store can be read again")
		}
	case v.throttle(&v.nextReadLog, v.now(), readLogInterval, readLogInterval):
		v.unreadable.Store(true)
		v.log.Warn("mirror: the store cannot be read", "key", key, "error", err)
	}
}

// saveState knows whether pages can be saved. While they cannot, polls pause.
type saveState struct {
	lockwatch.Mutex
	failingSince time.Time // since when saving has failed; zero if it works
	reason       string
	lastTry      time.Time // when a fill last tried to save a page, although saving has been failing

	// suspended has the pages that are not saved for some time, because saving them took too long, and the end of that time.
	suspended map[understudy.Key]time.Time
}

// maxSuspendedPages is the maximum number of pages in suspended.
const maxSuspendedPages = 256

// pausePage suspends the saving of one page, because it took too long.
func (s *saveState) pausePage(key understudy.Key, now time.Time) {
	s.Lock()
	defer s.Unlock()
	if s.suspended == nil || len(s.suspended) >= maxSuspendedPages {
		s.suspended = map[understudy.Key]time.Time{}
	}
	s.suspended[key] = now.Add(savePause)
}

// isSuspended reports whether the saving of a page is suspended.
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

// noteFailure notes that saving has failed. It logs the first failure and returns err.
func (s *saveState) noteFailure(v *env, err error) error {
	s.Lock()
	defer s.Unlock()
	if s.failingSince.IsZero() {
		s.failingSince = v.now()
		v.log.Error("mirror: the store cannot be written; polls pause", "error", err)
	}
	s.reason = shortReason(err)
	return err
}

// noteSuccess notes that saving has succeeded. If it had failed before, the polls start again.
func (s *saveState) noteSuccess(v *env) {
	s.Lock()
	defer s.Unlock()
	if !s.failingSince.IsZero() {
		v.log.Info("mirror: saving works again", "after", v.now().Sub(s.failingSince))
		s.failingSince, s.reason = time.Time{}, ""
		for _, source := range v.sources { // the polls have paused while saving failed
			for _, p := range source.polls() {
				p.list.WakeUp()
			}
		}
	}
}

// allowFill returns nil once a minute while saving fails, so that one fill tries to save. To all other fills it
// returns ErrNotStored with the reason.
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
