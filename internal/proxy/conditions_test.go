// Tests of conditions of requests.

package proxy_test

import (
	"net/http"
	"testing"
)

// TestUnchangedIsNoAnswerWithoutACondition: a 304 is passed on to a client that has something alone.
func TestUnchangedIsNoAnswerWithoutACondition(t *testing.T) {
	t.Parallel()
	s := openSite(t)
	for _, method := range []string{"GET", "HEAD", "POST"} {
		for _, fields := range [][]string{nil, {"Range", "bytes=0-1"}, {"If-Range", `"a"`}, {"If-Match", `"a"`}} {
			resp, _ := s.do(method, "/unchanged", "", fields...)
			if resp.StatusCode != http.StatusBadGateway && resp.StatusCode != http.StatusServiceUnavailable {
				t.Errorf("%s with %q: %s", method, fields, resp.Status)
			}
		}
	}
	if resp, _ := s.do("GET", "/unchanged", "", "If-None-Match", `"a"`); resp.StatusCode != http.StatusNotModified {
		t.Errorf("with a condition: %s", resp.Status)
	}
}
