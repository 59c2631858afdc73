// Tests of our answer times.

package app

import (
	"testing"
	"time"
)

func TestRecentKeepsTheLast(t *testing.T) {
	r := newRecent()
	if n := len(r.last()); n != 0 {
		t.Errorf("%d times before the first", n)
	}
	for i := range recentCount + 5 {
		r.add(time.Duration(i))
	}
	if n := len(r.last()); n != recentCount {
		t.Errorf("%d times kept, want %d", n, recentCount)
	}
	if first := r.last()[0]; first != 5 {
		t.Errorf("the oldest is %d, want 5", first)
	}
}
