// This file limits the memory of answers that clients have not read yet.

package frontend

import (
	"container/list"
	"net/http"
	"time"

	"understudy/kit/lockwatch"
)

// Unread limits the bytes of answers that clients have not read yet, for all servers that share it. Beyond the limit it
// ends the connection or the HTTP/2 stream of the answer that has waited longest. A nil Unread has no limit.
type Unread struct {
	limit int64

	mu      lockwatch.Mutex
	bytes   int64
	waiting list.List // elements of type *unreadAnswer, oldest first
	dropped int64     // the number of answers that were cut off
}

// unreadAnswer is an answer, or a part of an answer, that is being sent.
type unreadAnswer struct {
	bytes int64
	end   func()
}

// minUnread is the minimum size of a part of an answer that is counted, in bytes.
const minUnread = 16 << 10

// NewUnread returns an Unread with a limit in bytes, or nil if the limit is 0.
func NewUnread(limit int64) *Unread {
	if limit == 0 {
		return nil
	}
	return &Unread{limit: limit}
}

// Count counts bytes of an answer until the caller calls leave, which may be called several times. The function end
// must make their sending fail at once. It is not called after leave, and it must not wait for leave.
func (u *Unread) Count(bytes int, end func()) (leave func()) {
	if u == nil || bytes < minUnread {
		return func() {}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	own := u.waiting.PushBack(&unreadAnswer{int64(bytes), end})
	u.bytes += int64(bytes)
	for first := u.waiting.Front(); u.bytes > u.limit && first != own; first = u.waiting.Front() {
		u.remove(first)
		first.Value.(*unreadAnswer).end()
		u.dropped++
	}
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.remove(own)
	}
}

// remove removes an answer if it is not already removed. The caller must hold u.mu.
func (u *Unread) remove(e *list.Element) {
	if a := e.Value.(*unreadAnswer); a.bytes > 0 {
		u.waiting.Remove(e)
		u.bytes -= a.bytes
		a.bytes = 0
	}
}

// IsCrowded reports whether more than half of the limit is in use. Then no answer should be made before its turn.
func (u *Unread) IsCrowded() bool {
	if u == nil {
		return false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.bytes > u.limit/2
}

// Load returns the limit and the current number of unread bytes, and the number of answers that were cut off.
func (u *Unread) Load() (limit, now, dropped int64) {
	if u == nil {
		return 0, 0, 0
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.limit, u.bytes, u.dropped
}

// countedWriter is a response writer that counts what a handler sends through net/http.
type countedWriter struct {
	http.ResponseWriter
	unread *Unread
}

// Unwrap returns the wrapped writer for http.ResponseController.
func (w *countedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Flush sends the bytes that have been written (http.Flusher).
func (w *countedWriter) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

// Write sends a part of the body.
func (w *countedWriter) Write(p []byte) (int, error) {
	defer w.unread.Count(len(p), w.cancelWrite)()
	return w.ResponseWriter.Write(p)
}

// cancelWrite makes a running Write fail.
func (w *countedWriter) cancelWrite() {
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Unix(1, 0))
}
