// Bodies: what all bodies that are being read weigh together.

package upstream

import (
	"context"

	"understudy/kit/semaphore"
)

// room is what one body that nobody else weighs holds of what all such bodies may,
// so that a few packed ones do not take all memory at once. Whose body does not fit
// waits. It is for one goroutine.
type room struct {
	of   *semaphore.Weighted
	load *semaphore.Load
}

// hold waits until the body may weigh so many bytes.
func (r *room) hold(ctx context.Context, bytes int64) (err error) {
	if r.load == nil {
		r.load, err = r.of.Acquire(ctx, bytes)
		return err
	}
	more := bytes - r.load.Weight()
	if more > 0 {
		return r.load.Grow(ctx, more)
	}
	r.load.Shrink(-more)
	return nil
}

// leave gives it back.
func (r *room) release() {
	if r.load != nil {
		r.load.Release()
	}
}
