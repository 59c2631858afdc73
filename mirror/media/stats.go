// Statistics: the counters of a cache of audio and images.

package media

import (
	"sync/atomic"

	"understudy/request"
)

// counts are the counters of one source. They never decrease.
type counts struct{ warm, stale, cold, failed, kept, notKept atomic.Int64 }

// add counts one answered request.
func (c *counts) add(medium *request.MediaResponse, err error) {
	switch {
	case err != nil:
		c.failed.Add(1)
	case medium.Outcome == request.Warm:
		c.warm.Add(1)
	case medium.Outcome == request.Stale:
		c.stale.Add(1)
	default:
		c.cold.Add(1)
	}
}

// Stats returns the counters of a source. They are zero for an unknown source.
func (c *Cache) Stats(source string) request.Media {
	s := c.sources[source]
	if s == nil {
		return request.Media{}
	}
	m := request.Media{
		Warm: s.counts.warm.Load(), Stale: s.counts.stale.Load(), Cold: s.counts.cold.Load(), Failed: s.counts.failed.Load(),
		Kept: s.counts.kept.Load(), NotKept: s.counts.notKept.Load(),
	}
	m.Requests = m.Warm + m.Stale + m.Cold + m.Failed
	return m
}
