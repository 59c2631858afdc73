// How many bytes a list page is.

package list_test

import (
	"testing"

	"understudy/internal/viewer/viewertest"
)

// A warm list of 50 calls, gzipped, is at most 0.12 of the 57,472 bytes that
// bench/parts/html compares it with.
func TestListBytes(t *testing.T) {
	h := viewertest.Open(t, viewertest.WithSearch(t))
	zipped := viewertest.Browser{Token: "alltoken", Headers: map[string]string{"Accept-Encoding": "gzip"}}
	h.Page("/twilio/calls", viewertest.All) // fills the mirror
	for range 2 {
		_, body, _ := h.Get("/twilio/calls", zipped)
		t.Logf("%d bytes", len(body))
		if len(body) > 57472*12/100 {
			t.Errorf("a list of 50 calls is %d bytes", len(body))
		}
	}
}
