// This file lists callers, and remembers their names by their Flow, for administrators.

package callers

import (
	"iter"
	"maps"
	"sync/atomic"

	"understudy"
	"understudy/kit/lockwatch"
)

// maxNames is the maximum number of names that are remembered.
const maxNames = 4096

// Names remembers the names of callers by their Flow. The zero value is ready to use. It is safe for concurrent use.
type Names struct {
	mu    lockwatch.Mutex // held by the goroutine that adds a name
	names atomic.Pointer[map[uint64]string]
}

// Note remembers a caller. For a known caller it is as cheap as a map lookup.
func (n *Names) Note(c understudy.Caller) {
	if n.NameOf(c.Flow) != "" || c.Flow == 0 {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	of := map[uint64]string{}
	if known := n.names.Load(); known != nil && len(*known) < maxNames { // if there are too many names, it starts again with an empty map
		of = maps.Clone(*known)
	}
	of[c.Flow] = c.Name
	n.names.Store(&of)
}

// NameOf returns the name of the caller with a Flow, or "" if it is unknown.
func (n *Names) NameOf(flow uint64) string {
	if known := n.names.Load(); known != nil {
		return (*known)[flow]
	}
	return ""
}

// Callers returns the callers of all credentials, in any order. A caller with several secrets is returned for each of them.
func (b *Book) Callers() iter.Seq[understudy.Caller] {
	return func(yield func(understudy.Caller) bool) {
		for _, e := range b.known {
			if !yield(e.caller) {
				return
			}
		}
		for _, at := range b.open {
			if !yield(at.caller) {
				return
			}
		}
	}
}
