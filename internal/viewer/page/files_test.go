// Files: which browsers take gzip.

package page_test

import (
	"net/http/httptest"
	"testing"

	"understudy/internal/viewer/page"
)

func TestAcceptsGzip(t *testing.T) {
	for value, want := range map[string]bool{
		"": false, "gzip": true, "br, gzip;q=0.5": true, "gzip;q=0": false, "GZIP": true, "identity": false, "*": true, "*;q=0": false,
		"gzip; q=0.0": false, "deflate, *": true, "gzip;q=x": false, "br": false,
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Accept-Encoding", value)
		if page.IsGzipAccepted(r) != want {
			t.Errorf("Accept-Encoding %q: %v", value, !want)
		}
	}
}
