package upstream

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"understudy/internal/checktest"
)

// A fetch that loses one connection after another, while the source answers others, sends again
// after the usual time: three in a row cost about two seconds.
func TestConnectionsLostInARowAreReplacedSoon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var lost atomic.Int64
		c, s := paced(t, 100*time.Millisecond, func(n int, r *http.Request) (*http.Response, error) {
			if strings.HasSuffix(r.URL.RawQuery, "Page=99") && lost.Add(1) <= 3 {
				return quietly(n, r)
			}
			return slow(100*time.Millisecond, well)(n, r)
		})
		ctx, cancel := context.WithCancel(t.Context())
		var others sync.WaitGroup
		others.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				_, _ = reads(ctx, t, c, i%50)
			}
		})
		took, err := reads(t.Context(), t, c, 99)
		cancel()
		others.Wait()
		checktest.MustNoError(t, err, "")
		checktest.True(t, took <= 2100*time.Millisecond, "took is %v, requests at %v", took, s.at)
		checktest.Equal(t, lost.Load(), 4, "lost.Load()")
	})
}
