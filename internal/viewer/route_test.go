// Routes: each is documented.

package viewer_test

import (
	"bytes"
	"os"
	"testing"

	"understudy/internal/viewer/viewertest"
)

// Every route is in docs/reference/viewer.md.
func TestRoutesAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/reference/viewer.md")
	viewertest.Must(t, err)
	routes := viewertest.Open(t).Viewer.Routes()
	if len(routes) < 8 {
		t.Errorf("only %d routes", len(routes))
	}
	for _, r := range routes {
		if !bytes.Contains(text, []byte("`"+r+"`")) {
			t.Errorf("docs/reference/viewer.md does not name `%s`", r)
		}
	}
}
