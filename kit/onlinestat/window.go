// Window: the newest numbers of a stream.

package onlinestat

// Window summarises the newest numbers of a stream: the last Size of them at
// least, and fewer than twice as many. It is not safe for concurrent use.
type Window struct {
	Size int64 // 0 = 256

	now, before Stat
}

// Add takes one number.
func (w *Window) Add(x float64) {
	size := w.Size
	if size <= 0 {
		size = 256
	}
	if w.now.Count() >= size {
		w.now, w.before = w.before, w.now
		w.now.Reset()
	}
	w.now.Add(x)
}

// Count is how many numbers are in the window.
func (w *Window) Count() int64 { return w.now.Count() + w.before.Count() }

// Quantile is Quantile of the numbers in the window.
func (w *Window) Quantile(p float64) float64 { return Quantile(p, &w.now, &w.before) }
