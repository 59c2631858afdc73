package documents_test

import (
	"net/http"
	"strings"
	"testing"

	"understudy/internal/viewer/viewertest"
)

func TestPagesOfTheDocumentation(t *testing.T) {
	h := viewertest.Open(t)
	for _, c := range []struct {
		path, want string
		status     int
	}{
		{"/-/docs/", `<a href="/-/docs/reference/settings.html">Settings</a>`, http.StatusOK},
		{"/-/docs/index.html", `<a href="/-/docs/start/install.html">Install</a>`, http.StatusOK},
		{"/-/docs/reference/settings.html", `<h1 id="settings">Settings</h1>`, http.StatusOK},
		{"/-/docs/?q=lease+jobs", `<a href="/-/docs/reference/jobs.html#leases">Leases</a>`, http.StatusOK},
		{"/-/docs/?q=%3Cscript%3E", "0 sections with &lt;script&gt;", http.StatusOK},
		{"/-/docs/buffers.svg", "<svg", http.StatusOK},
		{"/-/docs/nothing.html", "The index lists all pages.", http.StatusNotFound},
		{"/-/docs/other.svg", "The index lists all pages.", http.StatusNotFound},
	} {
		status, body, _ := h.Do(http.MethodGet, c.path, "", viewertest.Browser{Token: "supporttoken"})
		if status != c.status {
			t.Errorf("%s: %d, want %d", c.path, status, c.status)
		}
		if !strings.HasSuffix(c.path, "buffers.svg") {
			viewertest.CheckHTML(t, c.path, body)
		}
		if !strings.Contains(body, c.want) {
			t.Errorf("%s has no %s", c.path, c.want)
		}
	}
	if status, _, _ := h.Do(http.MethodGet, "/-/docs/", "", viewertest.Browser{}); status != http.StatusUnauthorized {
		t.Errorf("without a credential: %d", status)
	}
}
