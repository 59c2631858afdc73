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

func (c *counts) stats() request.Media {
	s := request.Media{
		Warm: c.warm.Load(), Stale: c.stale.Load(), Cold: c.cold.Load(), Failed: c.failed.Load(),
		Kept: c.kept.Load(), NotKept: c.notKept.Load(),
	}
	s.Requests = s.Warm + s.Stale + s.Cold + s.Failed
	return s
}

// Stats returns the counters of a source. They are zero for an unknown source.
func (c *Cache) Stats(source string) request.Media {
	if s := c.sources[source]; s != nil {
		return s.counts.stats()
	}
	return request.Media{}
}
