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
		s := w.Sequences[0][kinds.Calls]
		last := s.CreationTime(0)
		for i := int64(1); i < min(s.SeededCount, 3000); i++ {
			at := s.CreationTime(i)
			if at < last {
				t.Fatalf("%d records: %d is older than the one before", n, i)
			}
			if first := s.FirstSince(at); s.CreationTime(first) != at || first > 0 && s.CreationTime(first-1) >= at {
				t.Fatalf("%d records: firstSince(%d) is %d", n, at, first)
			}
			last = at
		}
	}
}
