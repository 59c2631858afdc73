// Tests of our answer times.

package app

import (
	"testing"
	"time"

	"understudy/request"
)

func TestRecentKeepsTheLast(t *testing.T) {
	r := newRecent()
	if n := len(r.heldTimes()); n != 0 {
		t.Errorf("%d times before the first", n)
	}
	for i := range recentCount + 5 {
		r.add(request.Warm.String(), time.Duration(i))
	}
	r.add(request.Cold.String(), time.Hour)
	r.add("", time.Hour)
	if n := len(r.heldTimes()); n != recentCount {
		t.Errorf("%d times kept, want %d", n, recentCount)
	}
	if first := r.heldTimes()[0]; first != 5 {
		t.Errorf("the oldest is %d, want 5", first)
	}
	if held, asked := r.held.Stat().Summary(), r.asked.Stat().Summary(); held.Count != recentCount+5 || held.Max > 1 || asked.Count != 1 {
		t.Errorf("%d answers from what is held, of up to %v s, and %d that upstream was asked for", held.Count, held.Max, asked.Count)
	}
}
