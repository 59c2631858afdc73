// Tests of the order of records.
package world_test

import (
	"testing"
	"time"

	"understudy/internal/slowapi/kinds"
	"understudy/internal/slowapi/slowapitest"
)

func TestTimesNeverFall(t *testing.T) {
	for _, n := range []int{1, 2, 3, 50, 4000, 9_000_000} {
		w := slowapitest.NewWorld(int64(n), 3, time.Unix(2e9, 0))
		s := w.Below[0][kinds.Calls]
		last := s.Created(0)
		for i := int64(1); i < min(s.Base, 3000); i++ {
			at := s.Created(i)
			if at < last {
				t.Fatalf("%d records: %d is older than the one before", n, i)
			}
			if first := s.FirstSince(at); s.Created(first) != at || first > 0 && s.Created(first-1) >= at {
				t.Fatalf("%d records: firstSince(%d) is %d", n, at, first)
			}
			last = at
		}
	}
}
