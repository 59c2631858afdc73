// The gate: nothing a role does not see is in any byte of any page.

package page_test

import (
	"fmt"
	"html/template"
	"regexp"
	"strings"
	"testing"

	"understudy/internal/checktest"
	"understudy/internal/viewer/plan"
	"understudy/internal/viewer/viewertest"
)

func TestSupportSeesNoNumberAndNoBody(t *testing.T) {
	h := viewertest.Open(t)
	var secrets []string
	secrets = append(secrets, h.Values("/twilio/calls.json?PageSize=100", "calls", "from", "to", "from_formatted", "to_formatted")...)
	secrets = append(secrets, h.Values("/twilio/messages.json?PageSize=100", "messages", "from", "to", "body")...)
	for _, s := range secrets {
		if grouped := plan.GroupPhone(s); grouped != s {
			secrets = append(secrets, grouped)
		}
	}
	paths := []string{"/", "/index.json", "/twilio/calls?PageSize=100", "/twilio/calls.json?PageSize=100", "/twilio/messages?PageSize=100",
		"/twilio/messages.json?PageSize=100", "/twilio/incoming_phone_numbers"}
	ids := regexp.MustCompile(`"sid": ?"((?:CA|SM|MM)[0-9a-f]{32})"`)
	for _, p := range []string{"/twilio/calls.json?PageSize=100", "/twilio/messages.json?PageSize=100"} {
		_, body, _ := h.Get(p, viewertest.All)
		for i, m := range ids.FindAllStringSubmatch(body, -1) {
			if i%10 == 0 {
				kind := strings.TrimPrefix(strings.TrimSuffix(strings.Split(p, "?")[0], ".json"), "/twilio/")
				paths = append(paths, "/twilio/"+kind+"/"+m[1], "/twilio/"+kind+"/"+m[1]+".json")
			}
		}
	}
	if len(paths) < 30 {
		t.Fatalf("only %d paths", len(paths))
	}
	for _, p := range paths {
		status, body, head := h.Get(p, viewertest.Support)
		if status != 200 {
			t.Errorf("%s: %d", p, status)
		}
		everything := strings.ToLower(body + fmt.Sprint(head))
		for _, s := range secrets {
			for _, form := range []string{s, htmlOf(s)} {
				if strings.Contains(everything, strings.ToLower(form)) {
					t.Fatalf("%s holds %q", p, s)
				}
			}
		}
	}
	page := h.Page("/twilio/messages", viewertest.Support)
	checktest.Lacks(t, page, ">Body<",
		"a masked list: the column of bodies, or the filter by number, is there, or the mask is not: page")
	checktest.Lacks(t, page, `name="From"`,
		"a masked list: the column of bodies, or the filter by number, is there, or the mask is not: page")
	checktest.Contains(t, page, `name="DateSent"`,
		"a masked list: the column of bodies, or the filter by number, is there, or the mask is not: page")
	checktest.Contains(t, page, "••••",
		"a masked list: the column of bodies, or the filter by number, is there, or the mask is not: page")
	if strings.Contains(page, `class="own"`) || strings.Contains(page, "?From=") {
		t.Error("a masked number is marked or leads on")
	}
}

func htmlOf(s string) string {
	return template.HTMLEscapeString(s)
}

func TestRefusals(t *testing.T) {
	h := viewertest.Open(t)
	for _, c := range []struct {
		token, path string
		status      int
		says        []string
	}{
		{"", "/", 401, []string{"Sign in"}},
		{"wrong", "/twilio/calls", 401, []string{"Sign in"}},
		{"nobodytoken", "/", 403, []string{"has no role"}},
		{"supporttoken", "/twilio/calls?From=%2B15551234567", 403, []string{"can&#39;t use the parameter From",
			"roles: {support: {twilio: {calls.from: see}}}"}},
		{"clerktoken", "/twilio/messages", 403, []string{"can&#39;t see messages", "roles: {clerk: {twilio: {messages: see}}}"}},
		{"clerktoken", "/twilio/messages/SM1", 403, []string{"can&#39;t see messages"}},
		{"clerktoken", "/twilio/messages.json", 403, []string{"can't see messages"}},
		{"countertoken", "/twilio/calls", 403, []string{"can&#39;t see calls"}},
	} {
		before := h.Mirror.Count()
		status, body, head := h.Get(c.path, viewertest.Browser{Token: c.token})
		if status != c.status {
			t.Errorf("%s as %q: %d", c.path, c.token, status)
		}
		for _, s := range c.says {
			if !strings.Contains(body, s) {
				t.Errorf("%s as %q does not say %q: %s", c.path, c.token, s, body)
			}
		}
		if (head.Get("WWW-Authenticate") != "") != (c.status == 401) {
			t.Errorf("%s: WWW-Authenticate %q", c.path, head.Get("WWW-Authenticate"))
		}
		if h.Mirror.Count() != before {
			t.Errorf("%s as %q was asked of the mirror", c.path, c.token)
		}
		if c.status == 401 && strings.Contains(body, `href="/twilio/calls"`) {
			t.Errorf("%s shows a stranger the kinds", c.path)
		}
	}
}

// A kind that is hidden is not named, counted or linked; ids that are hidden
// are not in the links that turn pages.
func TestHiddenKindsAndIDs(t *testing.T) {
	h := viewertest.Open(t)
	clerk := viewertest.Clerk
	for _, p := range []string{"/", "/index.json", "/twilio/calls", "/twilio/accounts/" + viewertest.Account, "/twilio/cals",
		"/twilio/message"} {
		_, body, _ := h.Get(p, clerk)
		checktest.Lacks(t, body, "/twilio/messages", "body")
		checktest.Lacks(t, body, "10,000", "body")
		checktest.Lacks(t, body, "10000", "body")
		checktest.Lacks(t, body, `"messages"`, "body")
	}
	page := h.Page("/twilio/calls?PageSize=20", clerk)
	checktest.Lacks(t, page, "PageToken", "hidden ids are in the page, or nothing says why there is no way on: page")
	checktest.True(t, !regexp.MustCompile(`CA[0-9a-f]{32}`).MatchString(page),
		"hidden ids are in the page, or nothing says why there is no way on: regexp.MustCompile(`CA[0-9a-f]{32}`).MatchString(page) is true")
	checktest.Contains(t, page, "contain ids",
		"hidden ids are in the page, or nothing says why there is no way on: page")
	if strings.Contains(page, ">Price<") || strings.Contains(page, "USD") {
		t.Error("hidden prices show")
	}
	home := h.Page("/", viewertest.Counter)
	if strings.Contains(home, "Calls") || !strings.Contains(home, "Phone numbers") {
		t.Error("home of a role with one kind")
	}
}

func TestRoleAllSeesWhatTheSpecDoesNotName(t *testing.T) {
	h := viewertest.Open(t)
	id := h.FirstID("/twilio/calls?Status=completed", `CA[0-9a-f]{32}`)
	h.Rewrite(func(body string) string {
		return strings.Replace(body, `{"`, `{"mood":"sunny","deep":{"er":"down"},"`, 1)
	})
	page := h.Page("/twilio/calls/"+id, viewertest.All)
	checktest.Contains(t, page, "Other fields", "an unknown field does not show: page")
	checktest.Contains(t, page, "sunny", "an unknown field does not show: page")
	checktest.Contains(t, page, "<dt>Deep er</dt>", "an unknown field does not show: page")
	if page := h.Page("/twilio/calls/"+id, viewertest.Support); strings.Contains(page, "sunny") ||
		strings.Contains(page, "Other fields") {
		t.Error("an unknown field shows to support")
	}
}

// HTML in every text of every record stays text.
func TestNothingInARecordIsHTML(t *testing.T) {
	h := viewertest.Open(t)
	const payload = `\"'><script>alert(1)</script><img src=x onerror=alert(2)>&lt;javascript:alert(3)`
	texts := regexp.MustCompile(`("(?:[a-z_]+)": ?)"((?:[^"\\]|\\.)*)"`)
	paths := []string{"/twilio/calls", "/twilio/messages", "/twilio/incoming_phone_numbers", "/twilio/accounts"}
	paths = append(paths, "/twilio/calls/"+h.FirstID("/twilio/calls", `CA[0-9a-f]{32}`),
		"/twilio/messages/"+h.FirstID("/twilio/messages", `SM[0-9a-f]{32}`),
		"/twilio/incoming_phone_numbers/"+h.FirstID("/twilio/incoming_phone_numbers", `PN[0-9a-f]{32}`), "/twilio/accounts/"+viewertest.Account)
	number := h.OwnNumber()
	paths = append(paths, "/twilio/alerts", "/twilio/usage_records", "/twilio/conferences/"+h.FirstID("/twilio/conferences", `CF[0-9a-f]{32}`))
	h.Rewrite(func(body string) string { return texts.ReplaceAllString(body, `$1"`+payload+`"`) })
	for _, token := range []string{"alltoken", "supporttoken"} {
		for _, p := range paths {
			page := h.Page(p, viewertest.Browser{Token: token})
			checktest.Lacks(t, page, "<script>", "page")
			checktest.Lacks(t, page, "<img src=x", "page")
			checktest.Lacks(t, page, `href="javascript`, "page")
			if token == "alltoken" && !strings.Contains(page, "&lt;script&gt;alert(1)") {
				t.Errorf("%s does not show what the record says", p)
			}
			viewertest.CheckHTML(t, p, page)
		}
	}
	for _, p := range []string{"/twilio/number/" + number, "/twilio/number/" + number + "/+15550001111"} {
		page := h.Page(p, viewertest.All)
		checktest.Lacks(t, page, "<script>", "page")
		checktest.Lacks(t, page, "<img src=x", "page")
		checktest.Lacks(t, page, `href="javascript`, "page")
		viewertest.CheckHTML(t, p, page)
	}
	h.Rewrite(func(body string) string { return body })
	for _, p := range []string{"/twilio/calls?From=%22%3E%3Cscript%3E", "/twilio/calls?%3Cscript%3E=1", "/twilio/%3Cscript%3E",
		"/%3Cscript%3E/x", "/twilio/calls/%3Cscript%3E", "/%3Cscript%3E"} {
		_, body, _ := h.Get(p, viewertest.All)
		if strings.Contains(body, "<script>") {
			t.Errorf("%s runs what the address says", p)
		}
		viewertest.CheckHTML(t, p, body)
	}
}
