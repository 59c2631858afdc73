// Zone: the forms of timezones and themes.

package page_test

import (
	"net/http"
	"strings"
	"testing"

	"understudy/internal/checktest"
	"understudy/internal/viewer/viewertest"
)

func TestZoneForm(t *testing.T) {
	h := viewertest.Open(t)
	for _, c := range []struct{ form, location, cookie string }{
		{"zone=Europe/Berlin&back=/twilio/calls%3FStatus%3Dbusy", "/twilio/calls?Status=busy", "Europe/Berlin"},
		{"zone=UTC&back=//evil.example/", "/", "UTC"},
		{"zone=UTC&back=https://evil.example/", "/", "UTC"},
		{"zone=UTC&back=%5C%5Cevil.example", "/", "UTC"},
		{"zone=UTC&back=/%5Cevil.example", "/", "UTC"},
		{"zone=UTC&back=/%0d%0aSet-Cookie:x", "/", "UTC"},
		{"zone=UTC&back=javascript:alert(1)", "/", "UTC"},
		{"zone=UTC", "/", "UTC"},
	} {
		status, _, head := h.Do("POST", "/-/timezone", c.form, viewertest.Browser{Headers: map[string]string{"Sec-Fetch-Site": "same-origin"}})
		cookie, err := http.ParseSetCookie(head.Get("Set-Cookie"))
		viewertest.Must(t, err)
		checktest.Equal(t, status, 303, "%s: status", c.form)
		checktest.Equal(t, head.Get("Location"), c.location, `%s: head.Get("Location")`, c.form)
		checktest.Equal(t, cookie.Value, c.cookie, "%s: cookie.Value", c.form)
		checktest.True(t, cookie.HttpOnly, "%s: cookie.HttpOnly is false", c.form)
		checktest.Equal(t, cookie.SameSite, http.SameSiteLaxMode, "%s: cookie.SameSite", c.form)
		checktest.Equal(t, cookie.Path, "/", "%s: cookie.Path", c.form)
	}
	for _, form := range []string{"zone=Mars/Base", "zone=", "zone=../../etc/passwd", "zone=Local", "zone=" + strings.Repeat("x", 100)} {
		{
			status, body, head := h.Do("POST", "/-/timezone", form, viewertest.All)
			checktest.Equal(t, status, 400, "%s: status", form)
			checktest.Equal(t, head.Get("Set-Cookie"), "", `%s: head.Get("Set-Cookie")`, form)
			checktest.Contains(t, body, "no timezone", "%s: body", form)
		}
	}
	for _, site := range []string{"cross-site", "same-site"} {
		if status, _, head := h.Do("POST", "/-/timezone", "zone=UTC",
			viewertest.Browser{Headers: map[string]string{"Sec-Fetch-Site": site}}); status != 403 ||
			head.Get("Set-Cookie") != "" {
			t.Errorf("%s: %d", site, status)
		}
	}
	if status, _, _ := h.Do("POST", "/-/timezone", "zone=UTC",
		viewertest.Browser{Headers: map[string]string{"Origin": "https://evil.example"}}); status != 403 {
		t.Errorf("from another origin: %d", status)
	}
	if page := h.Page("/", viewertest.All); !strings.Contains(page, `data-zone="unset"`) || strings.Contains(h.Page("/", viewertest.Berlin),
		`data-zone`) {
		t.Error("the page does not know whether the browser has said its zone")
	}
}

func TestThemeForm(t *testing.T) {
	h := viewertest.Open(t)
	for _, c := range []struct{ theme, value, attribute string }{
		{"dark", "dark", ` class="dark"`}, {"light", "light", ` class="light"`}, {"auto", "", ""},
	} {
		status, _, head := h.Do("POST", "/-/theme", "theme="+c.theme+"&back=/twilio/calls%3FStatus%3Dbusy", viewertest.All)
		cookie, err := http.ParseSetCookie(head.Get("Set-Cookie"))
		viewertest.Must(t, err)
		if status != 303 || head.Get("Location") != "/twilio/calls?Status=busy" {
			t.Errorf("%s: %d to %q", c.theme, status, head.Get("Location"))
		}
		checktest.Equal(t, cookie.Value, c.value, "%s: cookie.Value", c.theme)
		checktest.Equal(t, (cookie.MaxAge < 0), (c.value == ""), "%s: (cookie.MaxAge < 0)", c.theme)
		checktest.True(t, cookie.HttpOnly, "%s: cookie.HttpOnly is false", c.theme)
		who := viewertest.All
		who.Headers = map[string]string{"Cookie": "understudy_theme=" + c.theme}
		for _, path := range []string{"/", "/twilio/calls", "/nowhere", "/-/timezone"} { // each theme has kept frames of its own
			_, body, _ := h.Do("GET", path, "", who)
			if !strings.Contains(body, `<html lang="en"`+c.attribute+` data-zone`) {
				t.Errorf("%s: %s begins %.80q", c.theme, path, body)
			}
		}
		if chosen := h.Page("/-/timezone", who); !strings.Contains(chosen, `value="`+c.theme+`" aria-pressed="true"`) {
			t.Errorf("%s is not shown as chosen", c.theme)
		}
	}
	{
		status, body, head := h.Do("POST", "/-/theme", "theme=pink", viewertest.All)
		checktest.Equal(t, status, 400, "an unknown theme: status")
		checktest.Equal(t, head.Get("Set-Cookie"), "", `an unknown theme: head.Get("Set-Cookie")`)
		checktest.Contains(t, body, "no theme pink", "an unknown theme: body")
	}
	cross := viewertest.Browser{Headers: map[string]string{"Sec-Fetch-Site": "cross-site"}}
	if status, _, head := h.Do("POST", "/-/theme", "theme=dark", cross); status != 403 || head.Get("Set-Cookie") != "" {
		t.Errorf("from another site: %d", status)
	}
}
