// Find: searches that the specs bring along, and numbers that are typed.

package page_test

import (
	"strings"
	"testing"

	"understudy/internal/checktest"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/plan"
	"understudy/internal/viewer/viewertest"
)

// FuzzDialled: digits alone come out, in order.
func FuzzDialled(f *testing.F) {
	for _, s := range []string{"+1 212", "0049", "(030) 12-3", "++1", "1+2", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		digits, plus, ok := page.ParseDialled(text)
		if !ok {
			return
		}
		checktest.MustEqual(t, strings.Trim(digits, "0123456789"), "", `%q: strings.Trim(digits, "0123456789")`,
			text)
		checktest.MustTrue(t, len(digits) >= 3, "%q: len(digits) is %v, want >= 3", text, len(digits))
		checktest.MustTrue(t, len(digits) <= 41, "%q: len(digits) is %v, want <= 41", text, len(digits))
		if !plus && plan.IsNumber("+"+digits) && !strings.HasSuffix(strings.Map(func(r rune) rune {
			if r < '0' || r > '9' {
				return -1
			}
			return r
		}, text), digits) {
			t.Fatalf("%q: %q", text, digits)
		}
	})
}

// Ready searches stand on the home page and the page of searches, for roles that see what is
// in them.
func TestReadySearches(t *testing.T) {
	const byStatus, unused = "Messages of 30 days, by status", "Numbers unused for 30 days"
	h := viewertest.Open(t, viewertest.WithSearch(t))
	for _, path := range []string{"/", "/search"} {
		if page := h.Page(path, viewertest.All); !strings.Contains(page, byStatus) || !strings.Contains(page, unused) {
			t.Errorf("%s has no ready searches", path)
		}
		if page := h.Page(path, viewertest.Support); !strings.Contains(page, byStatus) || strings.Contains(page, unused) {
			t.Errorf("%s shows a role that sees parts of numbers which are idle", path)
		}
		if page := h.Page(path, viewertest.Clerk); strings.Contains(page, byStatus) || strings.Contains(page, unused) {
			t.Errorf("%s shows a role searches of what it does not see", path)
		}
	}
}
