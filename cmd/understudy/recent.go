// Recent: the last answer times, for the picture on the home page.

package main

import (
	"net/http"
	"sync/atomic"
	"time"
)

// recentCount is how many answer times are kept.
const recentCount = 120

// recent keeps the last answer times of one source without a lock: a time that
// is overwritten while it is read is one wrong dot in a picture.
type recent struct {
	n     atomic.Uint64
	times [recentCount]atomic.Int64
}

// handler times what next answers.
func (r *recent) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		began := time.Now()
		next.ServeHTTP(w, req)
		i := r.n.Add(1) - 1
		r.times[i%recentCount].Store(int64(time.Since(began)))
	})
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
