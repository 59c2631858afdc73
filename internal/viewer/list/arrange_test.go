// Arrange: columns as chosen, in the address and remembered.

package list_test

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/viewer/viewertest"
)

// headings are those of a page's first table.
func headings(page string) []string {
	var all []string
	head, _, _ := strings.Cut(page, "</thead>")
	for _, m := range regexp.MustCompile(`(?s)<th scope="col"[^>]*>(.*?)</th>`).FindAllStringSubmatch(head, -1) {
		all = append(all, regexp.MustCompile(`<[^>]*>`).ReplaceAllString(m[1], ""))
	}
	return all
}

func TestColumns(t *testing.T) {
	h := viewertest.Open(t)
	page := h.Page("/twilio/calls?understudy.columns=to%2Cstart_time%2Cforwarded_from", viewertest.All)
	if got := headings(page); !slices.Equal(got, []string{"To", "Started", "Forwarded from"}) {
		t.Errorf("headings %q", got)
	}
	if next := viewertest.Href(page, "Older"); !strings.Contains(next, "understudy.columns=to%2Cstart_time%2Cforwarded_from") {
		t.Errorf("the older page has other columns: %s", next)
	}
	viewertest.CheckHTML(t, "columns", page)
	for path, moved := range map[string]string{
		"/twilio/calls?understudy.columns=to&understudy.columns=from":        "/twilio/calls?understudy.columns=to%2Cfrom",
		"/twilio/calls?understudy.columns=to%2Cto%2C%2Cfrom&Status=busy":     "/twilio/calls?Status=busy&understudy.columns=to%2Cfrom",
		"/twilio/calls?understudy.columns=":                                  "/twilio/calls",
		"/twilio/calls?understudy.columns=to%2Cfrom&PageSize=50&Status=busy": "/twilio/calls?Status=busy&understudy.columns=to%2Cfrom",
	} {
		if status, _, head := h.Get(path, viewertest.All); status != http.StatusSeeOther || head.Get("Location") != moved {
			t.Errorf("%s: %d, moved to %q, want %q", path, status, head.Get("Location"), moved)
		}
	}
	// A program need not follow: data is answered at once, and says where it stands.
	for path, canonical := range map[string]string{
		"/twilio/calls.json?PageSize=50":                                  "/twilio/calls.json",
		"/twilio/calls.csv?understudy.columns=to&understudy.columns=from": "/twilio/calls.csv?understudy.columns=to%2Cfrom",
	} {
		status, body, head := h.Get(path, viewertest.All)
		if head.Get("Link") != "<"+canonical+`>; rel="canonical"` {
			t.Errorf("%s: Link %q", path, head.Get("Link"))
		}
		if _, want, _ := h.Get(canonical, viewertest.All); status != 200 || body != want {
			t.Errorf("%s: %d %.200s, want %.200s", path, status, body, want)
		}
	}
	if status, body, _ := h.Get("/twilio/calls?understudy.columns=form", viewertest.All); status != 400 ||
		!strings.Contains(body, "Did you mean “from”?") {
		t.Errorf("an unknown column: %d %s", status, body)
	}
	// What a role does not show is no column of it, and not offered as one.
	clerk := h.Page("/twilio/calls?understudy.columns=price%2Cto", viewertest.Clerk)
	if got := headings(clerk); !slices.Equal(got, []string{"To"}) || strings.Contains(clerk, `value="price"`) {
		t.Errorf("a hidden column: %q", got)
	}
}

// The columns of the form come back in the address and in every list of the
// kind that names none; other sites cannot send it.
func TestColumnsAreRemembered(t *testing.T) {
	h := viewertest.Open(t)
	form := func(more string) string {
		return "source=twilio&kind=calls&column=to&column=from&column=status&back=" +
			url.QueryEscape("/twilio/calls?Status=busy&understudy.columns=sid") + more
	}
	for more, want := range map[string]string{"": "to%2Cfrom%2Cstatus", "&later=to": "from%2Cto%2Cstatus",
		"&earlier=status": "to%2Cstatus%2Cfrom", "&earlier=to": "to%2Cfrom%2Cstatus", "&reset=1": ""} {
		status, _, head := h.Do("POST", "/-/columns", form(more), viewertest.All)
		to := "/twilio/calls?Status=busy&understudy.columns=" + want
		if want == "" {
			to = "/twilio/calls?Status=busy"
		}
		checktest.Equal(t, status, 303, "%q: status", more)
		checktest.Equal(t, head.Get("Location"), to, `%q: head.Get("Location")`, more)
		checktest.True(t, head.Get("Set-Cookie") != "", `%q: head.Get("Set-Cookie") is empty`, more)
	}
	_, _, head := h.Do("POST", "/-/columns", form(""), viewertest.All)
	cookie, _, _ := strings.Cut(head.Get("Set-Cookie"), ";")
	mine := viewertest.Browser{Token: "alltoken", Headers: map[string]string{"Cookie": cookie}}
	for path, want := range map[string]string{
		"/twilio/calls": "/twilio/calls?understudy.columns=to%2Cfrom%2Cstatus", "/twilio/messages": "",
		"/twilio/calls?understudy.columns=sid": "", "/twilio/calls.json": "",
	} {
		if _, _, head := h.Get(path, mine); head.Get("Location") != want {
			t.Errorf("%s leads to %q, want %q", path, head.Get("Location"), want)
		}
	}
	for _, wrong := range []string{"source=x&kind=calls", "source=twilio&kind=x", "source=twilio&kind=calls&column=nothing", ""} {
		if status, _, head := h.Do("POST", "/-/columns", wrong, viewertest.All); status != 400 || head.Get("Set-Cookie") != "" {
			t.Errorf("%q: %d", wrong, status)
		}
	}
	if _, _, head := h.Do("POST", "/-/columns", "source=twilio&kind=calls&column=to&back=//elsewhere.example/",
		viewertest.All); !strings.HasPrefix(head.Get("Location"), "/?") {
		t.Errorf("leads elsewhere: %s", head.Get("Location"))
	}
	foreign := viewertest.Browser{Token: "alltoken", Headers: map[string]string{"Sec-Fetch-Site": "cross-site"}}
	if status, _, head := h.Do("POST", "/-/columns", form(""), foreign); status != 403 || head.Get("Set-Cookie") != "" {
		t.Errorf("from another site: %d", status)
	}
	for _, junk := range []string{"understudy_columns" + "=%zz", "understudy_columns" + "=twilio%2Fcalls=nothing", "understudy_columns" + "=" +
		strings.Repeat("a", 5000)} {
		if status, _, head := h.Get("/twilio/calls", viewertest.Browser{Token: "alltoken",
			Headers: map[string]string{"Cookie": junk}}); status != 200 {
			t.Errorf("%.60s: %d %s", junk, status, head.Get("Location"))
		}
	}
}

// The cookie stays below what browsers keep; the choice made longest ago goes.
func TestCookieIsBounded(t *testing.T) {
	h := viewertest.Open(t)
	cookie := ""
	for _, k := range h.Viewer.Visitor.Planned[0].Kinds {
		if len(k.AllColumns) < 2 {
			continue
		}
		form := understudy.Query{{Name: "source", Value: "twilio"}, {Name: "kind", Value: k.Spec.Name}}
		for _, c := range k.AllColumns[:min(len(k.AllColumns), 60)] {
			form = append(form, understudy.Param{Name: "column", Value: c.Spec.Name})
		}
		who := viewertest.Browser{Token: "alltoken", Headers: map[string]string{"Cookie": cookie}}
		_, _, head := h.Do("POST", "/-/columns", form.String(), who)
		cookie, _, _ = strings.Cut(head.Get("Set-Cookie"), ";")
		if len(cookie) > 4000 {
			t.Fatalf("%s: the cookie has %d bytes", k.Spec.Name, len(cookie))
		}
		if _, _, head := h.Get(k.Href, viewertest.Browser{Token: "alltoken", Headers: map[string]string{"Cookie": cookie}}); k.IsBrowsable() &&
			!strings.Contains(head.Get("Location"), "understudy.columns") {
			t.Errorf("%s: what was just chosen is forgotten", k.Spec.Name)
		}
	}
	if strings.Contains(cookie, "twilio%2Faccounts=") {
		t.Error("the first choice is still there: the bound was not met")
	}
}
