// Said: a form's page says what was done, to the one who did it, and once.

package page_test

import (
	"net/http"
	"strings"
	"testing"

	"understudy/internal/checktest"
	"understudy/internal/viewer/viewertest"
)

func TestSaid(t *testing.T) {
	h := viewertest.Open(t, viewertest.WithSearch(t))
	said := `<p class="notice good">The search “Busy &amp; &lt;b&gt;” is saved.</p>`
	_, _, head := h.Do("POST", "/search/save", "q=status%3Abusy&name=Busy+%26+%3Cb%3E", viewertest.All)
	cookie, err := http.ParseSetCookie(head.Get("Set-Cookie"))
	checktest.MustNoError(t, err, "the cookie is")
	checktest.MustTrue(t, cookie.Secure, "the cookie is: cookie.Secure is false")
	checktest.MustTrue(t, cookie.HttpOnly, "the cookie is: cookie.HttpOnly is false")
	checktest.MustEqual(t, cookie.SameSite, http.SameSiteLaxMode, "the cookie is: cookie.SameSite")
	checktest.MustEqual(t, cookie.MaxAge, 60, "the cookie is: cookie.MaxAge")
	with := func(token, value string) viewertest.Browser {
		return viewertest.Browser{Token: token, Headers: map[string]string{"Cookie": cookie.Name + "=" + value}}
	}
	for _, c := range []struct {
		what, method, path string
		who                viewertest.Browser
		said, gone         bool
	}{
		{"who did it", "GET", "/search", with("alltoken", cookie.Value), true, true},
		{"a page that is sent in pieces", "GET", "/", with("alltoken", cookie.Value), true, true},
		{"somebody else at the browser", "GET", "/search", with("watchertoken", cookie.Value), false, true},
		{"an altered cookie", "GET", "/search", with("alltoken", altered(cookie.Value)), false, true},
		{"data", "GET", "/index.json", with("alltoken", cookie.Value), false, false},
		{"a head", "HEAD", "/search", with("alltoken", cookie.Value), false, false},
		{"nothing was done", "GET", "/search", viewertest.All, false, false},
	} {
		status, body, head := h.Do(c.method, c.path, "", c.who)
		checktest.Equal(t, strings.Contains(body, said), c.said, "%s: strings.Contains(body, said)", c.what)
		checktest.Equal(t, strings.Contains(head.Get("Set-Cookie"), "Max-Age=0"), c.gone,
			`%s: strings.Contains(head.Get("Set-Cookie"), "Max-Age=0")`, c.what)
		checktest.Equal(t, status, 200, "%s: status", c.what)
	}
}

// altered returns the text with another letter in front.
func altered(text string) string {
	if text[0] == 'A' {
		return "B" + text[1:]
	}
	return "A" + text[1:]
}
