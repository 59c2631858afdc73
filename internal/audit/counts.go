// Counts: what programs do and is not listed one by one.

package audit

import (
	"sync"
	"sync/atomic"

	"understudy"
)

// counted is what is counted together.
type counted struct {
	caller, role, source, kind string
	action                     understudy.Action
}

// mostCounted bounds how many of them are told apart between two checkpoints.
const mostCounted = 10_000

type counts struct {
	total atomic.Int64
	mu    sync.Mutex
	of    map[counted]*count
}

type count struct{ answers, rows int64 }

func (c *counts) add(e understudy.AuditEntry) {
	c.total.Add(1)
	c.put(counted{e.Caller.Name, e.Caller.Role(), e.Source, e.Kind, e.Action}, count{1, int64(e.Rows)})
}

func (c *counts) put(key counted, n count) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = map[counted]*count{}
	}
	one := c.of[key]
	if one == nil && len(c.of) >= mostCounted {
		key = counted{action: key.action}
		one = c.of[key]
	}
	if one == nil {
		one = &count{}
		c.of[key] = one
	}
	one.answers += n.answers
	one.rows += n.rows
}

// take are the counts since the last time, as entries.
func (c *counts) take() (all []Entry) {
	c.mu.Lock()
	of := c.of
	c.of = nil
	c.mu.Unlock()
	for key, n := range of {
		all = append(all, Entry{Caller: key.caller, Role: key.role, Action: key.action, Source: key.source, Kind: key.kind,
			Rows: n.rows, Count: n.answers})
	}
	return all
}

// restore takes back what could not be written.
func (c *counts) restore(e Entry) {
	c.put(counted{e.Caller, e.Role, e.Source, e.Kind, e.Action}, count{e.Count, e.Rows})
}
