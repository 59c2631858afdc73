// This file limits eviction to one goroutine at a time, and pauses it after a failure.

package evict

import (
	"context"
	"sync"
	"time"

	"understudy/kit/lockwatch"
)

// evictPause is how long the evictor waits after an error, or after it has evicted all that it may evict.
const evictPause = time.Minute

// background is the state of the eviction that runs in the background after saves.
type background struct {
	running chan struct{} // a channel of one element, which is full while a goroutine evicts
	mu      lockwatch.Mutex
	ended   bool
	end     context.CancelFunc
	ctx     context.Context
	pause   time.Time // until when no eviction is tried, after an error or an eviction without effect
	work    sync.WaitGroup
}

func (b *background) begin() {
	b.running = make(chan struct{}, 1)
	b.ctx, b.end = context.WithCancel(context.Background())
}

// stop cancels the current work and refuses further work.
func (b *background) stop() {
	b.mu.Lock()
	b.ended = true
	b.mu.Unlock()
	b.end()
}

// takeTurn reports whether the caller may begin to evict in the background. If so, the caller must call endTurn later.
func (b *background) takeTurn(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	waiting := now.Before(b.pause) && b.pause.Sub(now) <= evictPause // the second condition ends the pause if the clock was set back
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

// endTurn ends the turn that takeTurn began. If exhausted is set, no more space can be freed now, so eviction pauses.
func (b *background) endTurn(now time.Time, exhausted bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	<-b.running
	if exhausted {
		b.pause = now.Add(evictPause)
	}
}
