// Roles: who may come to the pages of roles, and what they show.

package roles_test

import (
	"net/http"
	"strings"
	"testing"

	"understudy/internal/viewer/page"
	"understudy/internal/viewer/viewertest"
)

// Pages that tell of roles and credentials are for who sees everything; others are refused
// in the same words whatever they ask for.
func TestAdministrationIsForTheRoleAll(t *testing.T) {
	h := viewertest.Open(t, viewertest.WithPrograms)
	for _, route := range h.Viewer.Routes() {
		method, path, _ := strings.Cut(route, " ")
		if !strings.HasPrefix(path, "/-/connect") && !strings.HasPrefix(path, "/-/roles") && path != page.ViewAsPath {
			continue
		}
		at := strings.NewReplacer("{name}", "demo", "{role}", "support", "{source}", "twilio", "{kind}", "calls").Replace(path)
		for _, token := range []string{"supporttoken", "clerktoken", "watchertoken"} {
			status, body, _ := h.Do(method, at, "role=watcher&sure=1&overlap=1h&secret=x", viewertest.Browser{Token: token})
			if status != http.StatusForbidden || strings.Contains(body, "YOUR_SECRET") || strings.Contains(body, viewertest.Account) {
				t.Errorf("%s %s as %s: %d", method, at, token, status)
			}
		}
		if status, _, _ := h.Do(method, at, "", viewertest.Browser{}); status != http.StatusUnauthorized {
			t.Errorf("%s %s as nobody: %d", method, at, status)
		}
		if method == "GET" {
			h.Page(at, viewertest.All)
		}
	}
}
