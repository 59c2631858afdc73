// This file counts the actions of clients that are not listed one by one.

package audit

import (
	"sync"
	"sync/atomic"

	"understudy"
)

// countKey identifies the actions that are counted together.
type countKey struct {
	caller, role, source, kind string
	action                     understudy.Action
}

// maxCounted is the maximum number of different keys between two checkpoints. Actions with further keys are counted
// by action only.
const maxCounted = 10_000

type counts struct {
	total atomic.Int64
	mu    sync.Mutex // not watched, because each answer from memory takes it
	byKey map[countKey]*count
}

type count struct{ answers, rows int64 }

// put adds n to the count of key. If there are too many keys, it adds n to the count of the action.
func (c *counts) put(key countKey, n count) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byKey == nil {
		c.byKey = map[countKey]*count{}
	}
	one := c.byKey[key]
	if one == nil && len(c.byKey) >= maxCounted {
		key = countKey{action: key.action}
		one = c.byKey[key]
	}
	if one == nil {
		one = &count{}
		c.byKey[key] = one
	}
	one.answers += n.answers
	one.rows += n.rows
}

// take returns the counts since the last call as entries, and sets the counts to zero.
func (c *counts) take() (all []Entry) {
	c.mu.Lock()
	of := c.byKey
	c.byKey = nil
	c.mu.Unlock()
	for key, n := range of {
		all = append(all, Entry{Caller: key.caller, Role: key.role, Action: key.action, Source: key.source, Kind: key.kind,
			Rows: n.rows, Count: n.answers})
	}
	return all
}
