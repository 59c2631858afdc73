// Names: what the flows of callers are called, for people who administer.

package callers

import (
	"maps"
	"sync"
	"sync/atomic"

	"understudy"
)

// mostNames bounds the names that are remembered.
const mostNames = 4096

// Names remembers the names of callers by their Flow. Its zero value works. Safe for
// concurrent use.
type Names struct {
	mu sync.Mutex // one writes
	of atomic.Pointer[map[uint64]string]
}

// Note remembers a caller. For one that is known it is as cheap as a look into a map.
func (n *Names) Note(c understudy.Caller) {
	if n.Of(c.Flow) != "" || c.Flow == 0 {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	of := map[uint64]string{}
	if known := n.of.Load(); known != nil && len(*known) < mostNames { // else begun anew
		of = maps.Clone(*known)
	}
	of[c.Flow] = c.Name
	n.of.Store(&of)
}

// Of is the name of the caller with a flow; "": none is remembered.
func (n *Names) Of(flow uint64) string {
	if known := n.of.Load(); known != nil {
		return (*known)[flow]
	}
	return ""
}
