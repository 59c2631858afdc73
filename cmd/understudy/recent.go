// Recent: our answer times: the last ones for the picture on the home page, all
// of them summarised.

package main

import (
	"sync/atomic"
	"time"

	"understudy/kit/onlinestat"
)

// recentCount is how many answer times are kept.
const recentCount = 120

// recent keeps the last answer times of one source without a lock: a time that
// is overwritten while it is read is one wrong dot in a picture.
type recent struct {
	n     atomic.Uint64
	times [recentCount]atomic.Int64
	stat  *onlinestat.Sharded // seconds
}

func newRecent() *recent { return &recent{stat: onlinestat.NewSharded()} }

// add keeps one more time.
func (r *recent) add(took time.Duration) {
	i := r.n.Add(1) - 1
	r.times[i%recentCount].Store(int64(took))
	r.stat.Add(took.Seconds())
}

// last are the kept times, oldest first.
func (r *recent) last() []time.Duration {
	n := r.n.Load()
	out := make([]time.Duration, 0, recentCount)
	for i := n - min(n, recentCount); i < n; i++ {
		out = append(out, time.Duration(r.times[i%recentCount].Load()))
	}
	return out
}
