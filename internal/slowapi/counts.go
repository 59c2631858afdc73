// Counts: how many requests came, by path and by whole target.
package slowapi

import (
	"maps"
	"sync"
)

// counts are kept since the start, of every request but those under /-/.
type counts struct {
	mu       sync.Mutex
	requests int64
	byPath   map[string]int64
	byTarget map[string]int64
}

// Bounds of what is kept apart; the rest is counted together as "other".
const (
	maxPaths   = 4096
	maxTargets = 16384
	maxTarget  = 2048 // bytes
)

// stats is what GET /-/stats answers.
type stats struct {
	Requests int64            `json:"requests"`
	ByPath   map[string]int64 `json:"by_path"`
	ByTarget map[string]int64 `json:"by_target"`
}

// add counts one request.
func (c *counts) add(path, target string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byPath == nil {
		c.byPath, c.byTarget = map[string]int64{}, map[string]int64{}
	}
	c.requests++
	count(c.byPath, path, maxPaths)
	count(c.byTarget, target, maxTargets)
}

func count(in map[string]int64, name string, most int) {
	if _, known := in[name]; !known && (len(in) >= most || len(name) > maxTarget) {
		name = "other"
	}
	in[name]++
}

// read copies the counts.
func (c *counts) read() stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := stats{c.requests, map[string]int64{}, map[string]int64{}}
	maps.Copy(all.ByPath, c.byPath)
	maps.Copy(all.ByTarget, c.byTarget)
	return all
}
