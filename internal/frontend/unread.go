// Unread: the memory that answers take which clients have not read yet.

package frontend

import (
	"container/list"
	"net/http"
	"sync"
	"time"
)

// Unread bounds the bytes of answers that are made and that their clients have not read yet, of all servers
// that share it. Beyond the bound the answer that has waited longest is cut off: its connection or its
// HTTP/2 stream ends. A nil Unread bounds nothing.
type Unread struct {
	limit int64

	mu      sync.Mutex
	bytes   int64
	waiting list.List // of *unread, the oldest first
	dropped int64     // answers that were cut off
}

// unread is one answer, or a part of one, that is being sent.
type unread struct {
	bytes int64
	end   func()
}

// leastUnread is the least part of an answer that is counted, in bytes.
const leastUnread = 16 << 10

// NewUnread returns a bound in bytes; nil for 0.
func NewUnread(limit int64) *Unread {
	if limit == 0 {
		return nil
	}
	return &Unread{limit: limit}
}

// Enter counts bytes of an answer until the function that it returns is called, which may be called again.
// end has their sending fail at once. It is not called after that, and must not wait for it.
func (u *Unread) Enter(bytes int, end func()) (leave func()) {
	if u == nil || bytes < leastUnread {
		return func() {}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	own := u.waiting.PushBack(&unread{int64(bytes), end})
	u.bytes += int64(bytes)
	for first := u.waiting.Front(); u.bytes > u.limit && first != own; first = u.waiting.Front() {
		u.remove(first)
		first.Value.(*unread).end()
		u.dropped++
	}
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.remove(own)
	}
}

// remove takes an answer out, unless it was. u.mu is held.
func (u *Unread) remove(e *list.Element) {
	if a := e.Value.(*unread); a.bytes > 0 {
		u.waiting.Remove(e)
		u.bytes -= a.bytes
		a.bytes = 0
	}
}

// Crowded reports whether half of the bound is taken: nothing is to be made before its turn then.
func (u *Unread) Crowded() bool {
	if u == nil {
		return false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.bytes > u.limit/2
}

// Load returns the bound, what is counted now, both in bytes, and how many answers were cut off.
func (u *Unread) Load() (limit, now, dropped int64) {
	if u == nil {
		return 0, 0, 0
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.limit, u.bytes, u.dropped
}

// countedWriter counts what a handler sends through net/http.
type countedWriter struct {
	http.ResponseWriter
	unread *Unread
}

// Unwrap lets http.ResponseController reach the writer below.
func (w *countedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Flush sends what is written (http.Flusher).
func (w *countedWriter) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

// Write sends a part of the body.
func (w *countedWriter) Write(p []byte) (int, error) {
	defer w.unread.Enter(len(p), w.end)()
	return w.ResponseWriter.Write(p)
}

// end has a Write under way fail.
func (w *countedWriter) end() {
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Unix(1, 0))
}
