// Cache: what was used recently, under one limit.

// Package lru keeps what was used recently, under a limit.
package lru

import "sync"

// Cache keeps values by key until their weights together pass its limit; what
// was not used for longest goes first, in whole generations: half the limit is
// for what was used since the last turn, half for what was used before it.
// That costs a reader one short lock and no bookkeeping. (A sync.RWMutex would
// cost several times as much: its readers all write the same counter.) It is
// safe for concurrent use; the zero value keeps nothing. Weights are not
// negative.
type Cache[K comparable, V any] struct {
	limit   int64
	dropped func(V)

	mu         sync.Mutex
	young, old map[K]entry[V]
	weight     [2]int64 // of young and of old
}

type entry[V any] struct {
	value  V
	weight int64
}

// New makes a cache for weights up to limit in all. The unit is the caller's:
// bytes, or 1 a value.
func New[K comparable, V any](limit int64) *Cache[K, V] {
	return &Cache[K, V]{limit: limit, young: map[K]entry[V]{}}
}

// OnDrop has f called with each value for which there is no room any more. Call it before the first Put. f must not
// use the cache.
func (c *Cache[K, V]) OnDrop(f func(V)) { c.dropped = f }

// Get is the value kept under key.
func (c *Cache[K, V]) Get(key K) (value V, ok bool) {
	c.mu.Lock()
	e, ok := c.young[key]
	if ok {
		c.mu.Unlock()
		return e.value, true
	}
	e, ok = c.old[key]
	c.mu.Unlock()
	if ok {
		c.renew(key)
	}
	return e.value, ok
}

// renew moves what is still kept under key among the young.
func (c *Cache[K, V]) renew(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.old[key]; ok {
		c.put(key, e)
	}
}

// Put keeps value under key. One that weighs more than half the limit is not
// kept, and takes what was kept under its key with it.
func (c *Cache[K, V]) Put(key K, value V, weight int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.put(key, entry[V]{value, weight})
}

func (c *Cache[K, V]) put(key K, e entry[V]) {
	c.remove(key)
	if e.weight > c.limit/2 || c.young == nil {
		if c.dropped != nil {
			c.dropped(e.value)
		}
		return
	}
	if c.weight[0]+e.weight > c.limit/2 {
		c.drop(c.old)
		c.old, c.young = c.young, make(map[K]entry[V], len(c.young))
		c.weight[1], c.weight[0] = c.weight[0], 0
	}
	c.young[key] = e
	c.weight[0] += e.weight
}

func (c *Cache[K, V]) drop(all map[K]entry[V]) {
	if c.dropped == nil {
		return
	}
	for _, e := range all {
		c.dropped(e.value)
	}
}

// Clear drops everything.
func (c *Cache[K, V]) Clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(c.young)
	c.drop(c.old)
	clear(c.young)
	c.old, c.weight = nil, [2]int64{}
}

// Remove forgets key.
func (c *Cache[K, V]) Remove(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(key)
}

func (c *Cache[K, V]) remove(key K) {
	if e, ok := c.young[key]; ok {
		delete(c.young, key)
		c.weight[0] -= e.weight
	}
	if e, ok := c.old[key]; ok {
		delete(c.old, key)
		c.weight[1] -= e.weight
	}
}

// Weight is what the kept values weigh together.
func (c *Cache[K, V]) Weight() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.weight[0] + c.weight[1]
}
