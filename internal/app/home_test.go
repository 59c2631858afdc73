// Tests of our answer times.

package app

import (
	"testing"
	"time"

	"understudy/internal/checktest"
	"understudy/request"
)

func TestRecentKeepsTheLast(t *testing.T) {
	r := newRecent()
	if n := len(r.storedTimes()); n != 0 {
		t.Errorf("%d times before the first", n)
	}
	for i := range recentCount + 5 {
		r.add(request.Warm.String(), time.Duration(i))
	}
	r.add(request.Cold.String(), time.Hour)
	r.add("", time.Hour)
	if n := len(r.storedTimes()); n != recentCount {
		t.Errorf("%d times kept, want %d", n, recentCount)
	}
	if first := r.storedTimes()[0]; first != 5 {
		t.Errorf("the oldest is %d, want 5", first)
	}
	held, asked := r.fromStore.Stat().Summary(), r.fromUpstream.Stat().Summary()
	checktest.Equal(t, held.Count, recentCount+5, "held.Count")
	checktest.True(t, held.Max <= 1, "held.Max is %v, want <= 1", held.Max)
	checktest.Equal(t, asked.Count, 1, "asked.Count")
}
