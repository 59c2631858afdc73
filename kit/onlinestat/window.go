// Window: summarises the newest numbers of a stream.

package onlinestat

import "cmp"

// Window summarises the newest numbers of a stream: at least the last Size numbers, and fewer than twice as
// many. It is not safe for concurrent use.
type Window struct {
	Size int64 // the minimum count of numbers in a full window; 0 means 256

	now, before Stat
}

// Add adds one number.
func (w *Window) Add(x float64) {
	if w.now.Count() >= cmp.Or(max(w.Size, 0), 256) {
		w.now, w.before = w.before, w.now
		w.now.Reset()
	}
	w.now.Add(x)
}

// Count returns how many numbers are in the window.
func (w *Window) Count() int64 { return w.now.Count() + w.before.Count() }

// Quantile returns the number that a share p (0 to 1) of the window's numbers does not exceed.
func (w *Window) Quantile(p float64) float64 { return Quantile(p, &w.now, &w.before) }
