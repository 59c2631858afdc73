// This file limits eviction to one goroutine at a time, and pauses it after a failure.

package evict

import (
	"context"
	"sync"
	"time"
)

// evictPause is how long the evictor waits after it has evicted all it may, or after an error.
const evictPause = time.Minute

// background is the state of eviction behind the saves.
type background struct {
	running chan struct{} // full while a goroutine evicts
	mu      sync.Mutex
	ended   bool
	end     context.CancelFunc
	ctx     context.Context
	pause   time.Time // no eviction is tried before this time
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

// takeTurn reports whether to begin evicting behind the saves. If so, it takes the turn.
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

// endTurn gives the turn back. exhausted means that no more space can be freed now.
func (b *background) endTurn(now time.Time, exhausted bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	<-b.running
	if exhausted {
		b.pause = now.Add(evictPause)
	}
}
