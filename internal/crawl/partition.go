// Partitions: the intervals of time a kind is cut into, always at the same clocks.

package crawl

import (
	"time"
)

// maxPartitions bounds how many there are; with more, each is longer.
const maxPartitions = 400

// floor is the clock before which nothing is asked for: the horizon, what is
// too old to be kept, or what upstream forgets by itself; early when there is
// no such clock.
func (w *Crawler) floor(x *kindCrawl, now int64) int64 {
	far, k := w.o.Horizon, x.kind
	if keep := w.o.Retention[x.source.Name][k.Name]; keep > 0 && (far == 0 || keep < far) {
		far = keep
	}
	if k.Retention.Days > 0 {
		// An hour less, so that what is about to be forgotten is not missed.
		forgets := time.Duration(k.Retention.Days)*24*time.Hour - time.Hour
		if far == 0 || forgets < far {
			far = forgets
		}
	}
	if far == 0 {
		return early
	}
	return now - int64(far/time.Second)
}

// cells are the intervals of a kind, the newest first: together they have no
// gap. The newest has no end; the oldest begins at floor, or nowhere.
func (w *Crawler) partitions(floor, oldest, now int64) []interval {
	size := int64(w.o.Slice / time.Second)
	low := oldest
	if floor != early {
		low = max(low, floor)
	}
	for (now-low)/size >= maxPartitions {
		size *= 2
	}
	edge := now - mod(now, size)
	out := []interval{{From: edge, To: late}}
	for edge > low {
		out = append(out, interval{From: edge - size, To: edge})
		edge -= size
	}
	out[len(out)-1].From = floor
	return out
}

func mod(n, by int64) int64 {
	if n %= by; n < 0 {
		n += by
	}
	return n
}
