// The background: one goroutine at a time makes room, and rests after it failed.

package evict

import (
	"context"
	"sync"
	"time"
)

// evictPause is how long nothing is tried again after everything that may go has
// gone, or after an error.
const evictPause = time.Minute

// background is the goroutine that makes room behind the saves.
type background struct {
	running chan struct{} // held while room is made
	mu      sync.Mutex
	ended   bool
	end     context.CancelFunc
	ctx     context.Context
	pause   time.Time // nothing is tried before
	work    sync.WaitGroup
}

func (b *background) begin() {
	b.running = make(chan struct{}, 1)
	b.ctx, b.end = context.WithCancel(context.Background())
}

// stop ends what is under way and refuses more.
func (b *background) stop() {
	b.mu.Lock()
	b.ended = true
	b.mu.Unlock()
	b.end()
}

// due reports whether to begin behind the saves, and then takes the turn.
func (b *background) due(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	waiting := now.Before(b.pause) && b.pause.Sub(now) <= evictPause // a clock set back ends it
	if b.ended || waiting {
		return false
	}
	select {
	case b.running <- struct{}{}:
		return true
	default:
		return false
	}
}

// done gives the turn back. exhausted means that no more room can be made now.
func (b *background) done(now time.Time, exhausted bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	<-b.running
	if exhausted {
		b.pause = now.Add(evictPause)
	}
}
