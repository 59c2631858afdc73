package shadow

import (
	"testing"

	"understudy"
)

// TestWaitingSamplesTakeBoundedMemory: large pages that wait to be compared are few.
func TestWaitingSamplesTakeBoundedMemory(t *testing.T) {
	r := New(Options{})
	for range maxSamples {
		r.Add(Sample{Page: &understudy.Page{Body: make([]byte, 1<<20)}})
	}
	if n := len(r.samples); n != maxBytes>>20+1 {
		t.Errorf("%d samples of 1 MiB wait", n)
	}
}
