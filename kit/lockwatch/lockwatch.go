// Package lockwatch has a Mutex and an RWMutex with the methods of package sync. After Start, they record who holds them and who waits.
//
// Before Start they cost what the locks of sync cost: each method reads one switch. After Start, Read returns for each lock its holders
// and waiters (function, line, and for how long), for how long it was held and waited for, and findings (see Finding).
package lockwatch

import "sync"

// Mutex is a sync.Mutex that can be watched. Its zero value is an unlocked mutex. It must not be copied after its first use.
type Mutex struct {
	mu    sync.Mutex
	state state
}

// Lock locks m. It waits while m is locked.
func (m *Mutex) Lock() {
	if !on.Load() || !m.state.acquire(writes, m.mu.TryLock, m.mu.Lock) {
		m.mu.Lock()
	}
}

// TryLock locks m if it is unlocked, and reports whether it did.
func (m *Mutex) TryLock() bool {
	if on.Load() {
		return m.state.acquire(writes, m.mu.TryLock, nil)
	}
	return m.mu.TryLock()
}

// Unlock unlocks m, which must be locked. Another goroutine than the one that locked m may unlock it.
func (m *Mutex) Unlock() {
	if m.state.isWatched {
		m.state.release(writes)
	}
	m.mu.Unlock()
}

// RWMutex is a sync.RWMutex that can be watched. Its zero value is an unlocked mutex. It must not be copied after its first use.
type RWMutex struct {
	mu    sync.RWMutex
	state state
}

// Lock locks rw for writing. It waits while rw is locked for reading or writing.
func (rw *RWMutex) Lock() {
	if !on.Load() || !rw.state.acquire(writes, rw.mu.TryLock, rw.mu.Lock) {
		rw.mu.Lock()
	}
}

// TryLock locks rw for writing if it is unlocked, and reports whether it did.
func (rw *RWMutex) TryLock() bool {
	if on.Load() {
		return rw.state.acquire(writes, rw.mu.TryLock, nil)
	}
	return rw.mu.TryLock()
}

// Unlock unlocks rw, which must be locked for writing.
func (rw *RWMutex) Unlock() {
	if rw.state.isWatched {
		rw.state.release(writes)
	}
	rw.mu.Unlock()
}

// RLock locks rw for reading. It waits while rw is locked for writing, and while a writer waits. So a goroutine that holds the read
// lock must not call RLock again: if a writer arrives between the two calls, both goroutines wait forever.
func (rw *RWMutex) RLock() {
	if !on.Load() || !rw.state.acquire(reads, rw.mu.TryRLock, rw.mu.RLock) {
		rw.mu.RLock()
	}
}

// TryRLock locks rw for reading if RLock would not wait, and reports whether it did.
func (rw *RWMutex) TryRLock() bool {
	if on.Load() {
		return rw.state.acquire(reads, rw.mu.TryRLock, nil)
	}
	return rw.mu.TryRLock()
}

// RUnlock undoes one call of RLock.
func (rw *RWMutex) RUnlock() {
	if rw.state.readers.Load() > 0 {
		rw.state.release(reads)
	}
	rw.mu.RUnlock()
}

// RLocker returns a sync.Locker that calls RLock and RUnlock. The place where it is used is not recorded.
func (rw *RWMutex) RLocker() sync.Locker { return (*reader)(rw) }

type reader RWMutex

func (r *reader) Lock()   { (*RWMutex)(r).RLock() }
func (r *reader) Unlock() { (*RWMutex)(r).RUnlock() }
