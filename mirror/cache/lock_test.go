package cache

import (
	"sync"
	"testing"

	"understudy"
)

// BenchmarkRWMutex compares the lookup of a page with one under a Mutex for each shard, if all goroutines want the same page.
func BenchmarkRWMutex(b *testing.B) {
	h, key := New(1<<20), understudy.Key{Source: "twilio", URI: "/calls"}
	b.Run("RWMutex", func(b *testing.B) {
		b.RunParallel(func(p *testing.PB) {
			for p.Next() {
				h.Find(key)
			}
		})
	})
	var mu sync.Mutex
	b.Run("Mutex", func(b *testing.B) {
		b.RunParallel(func(p *testing.PB) {
			for p.Next() {
				hash := h.Hash(key)
				mu.Lock()
				_ = h.shards[hash%shardCount].entries[hash]
				mu.Unlock()
			}
		})
	})
}
