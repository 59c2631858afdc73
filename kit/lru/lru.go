// Cache: keeps recently used values under a limit.

// Package lru keeps recently used values under a limit.
package lru

import "sync"

// Cache keeps values by key as long as the sum of their weights is within a limit. It evicts in two generations: the
// young generation has the values used since the last change of generations, the old one has values used before. Each
// may take half of the limit. So a read costs a short lock and no bookkeeping. (A sync.RWMutex would be several times
// as slow, because its readers all write the same counter.) Weights must not be negative. Cache is safe for concurrent
// use; the zero value keeps nothing.
type Cache[K comparable, V any] struct {
	limit  int64
	onDrop func(V)

	mu         sync.Mutex
	young, old map[K]entry[V]
	weight     [2]int64 // the sum of the weights in the young generation, and in the old one
}

type entry[V any] struct {
	value  V
	weight int64
}

// New returns a cache whose weights may sum up to limit. The caller chooses the unit, such as bytes or the
// number of values.
func New[K comparable, V any](limit int64) *Cache[K, V] {
	return &Cache[K, V]{limit: limit, young: map[K]entry[V]{}}
}

// SetDropFunc makes the cache call f with each value that it evicts or has no room for. Call SetDropFunc before
// the first Put. f must not use the cache.
func (c *Cache[K, V]) SetDropFunc(f func(V)) { c.onDrop = f }

// Get returns the value stored under key.
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

// renew moves the value stored under key to the young generation, if it is still in the old one.
func (c *Cache[K, V]) renew(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.old[key]; ok {
		c.put(key, e)
	}
}

// Put stores value under key. A value that weighs more than half the limit is not stored; the previous value of
// its key is removed all the same.
func (c *Cache[K, V]) Put(key K, value V, weight int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.put(key, entry[V]{value, weight})
}

func (c *Cache[K, V]) put(key K, e entry[V]) {
	c.remove(key)
	if e.weight > c.limit/2 || c.young == nil {
		if c.onDrop != nil {
			c.onDrop(e.value)
		}
		return
	}
	if c.weight[0]+e.weight > c.limit/2 {
		c.notifyDropped(c.old)
		c.old, c.young = c.young, make(map[K]entry[V], len(c.young))
		c.weight[1], c.weight[0] = c.weight[0], 0
	}
	c.young[key] = e
	c.weight[0] += e.weight
}

func (c *Cache[K, V]) notifyDropped(all map[K]entry[V]) {
	if c.onDrop == nil {
		return
	}
	for _, e := range all {
		c.onDrop(e.value)
	}
}

// Clear removes all values.
func (c *Cache[K, V]) Clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.notifyDropped(c.young)
	c.notifyDropped(c.old)
	clear(c.young)
	c.old, c.weight = nil, [2]int64{}
}

// Remove removes the value of key.
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

// Weight returns the sum of the weights of all stored values.
func (c *Cache[K, V]) Weight() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.weight[0] + c.weight[1]
}
