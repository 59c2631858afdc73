// The gate: nothing a role does not see is in any byte of any page.

package viewer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"understudy/internal/viewer/page"
	"understudy/internal/viewer/plan"
	"understudy/request"
)

// hiddenFrom gathers what a role must not meet: values of the fields picked,
// as upstream has them.
func (h *fixture) hiddenFrom(path, list string, fields ...string) []string {
	h.Helper()
	_, body, _ := h.get(path, all)
	var page map[string]any
	must(h, json.Unmarshal([]byte(body), &page))
	var values []string
	for _, row := range page[list].([]any) {
		for _, f := range fields {
			if s, ok := row.(map[string]any)[f].(string); ok && len(s) > 6 {
				values = append(values, s)
			}
		}
	}
	if len(values) < 10 {
		h.Fatalf("%s: only %d values", path, len(values))
	}
	return values
}

func TestSupportSeesNoNumberAndNoBody(t *testing.T) {
	h := open(t)
	var secrets []string
	secrets = append(secrets, h.hiddenFrom("/twilio/calls.json?PageSize=100", "calls", "from", "to", "from_formatted", "to_formatted")...)
	secrets = append(secrets, h.hiddenFrom("/twilio/messages.json?PageSize=100", "messages", "from", "to", "body")...)
	for _, s := range secrets {
		if grouped := plan.GroupPhone(s); grouped != s {
			secrets = append(secrets, grouped)
		}
	}
	paths := []string{"/", "/index.json", "/twilio/calls?PageSize=100", "/twilio/calls.json?PageSize=100", "/twilio/messages?PageSize=100",
		"/twilio/messages.json?PageSize=100", "/twilio/incoming_phone_numbers"}
	ids := regexp.MustCompile(`"sid": ?"((?:CA|SM|MM)[0-9a-f]{32})"`)
	for _, p := range []string{"/twilio/calls.json?PageSize=100", "/twilio/messages.json?PageSize=100"} {
		_, body, _ := h.get(p, all)
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
		status, body, head := h.get(p, as{token: "supporttoken"})
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
	page := h.page("/twilio/messages", as{token: "supporttoken"})
	if strings.Contains(page, ">Body<") || strings.Contains(page, `name="From"`) || !strings.Contains(page, `name="DateSent"`) ||
		!strings.Contains(page, "••••") {
		t.Error("a masked list: the column of bodies, or the filter by number, is there, or the mask is not")
	}
	if strings.Contains(page, `class="own"`) || strings.Contains(page, "?From=") {
		t.Error("a masked number is marked or leads on")
	}
}

func htmlOf(s string) string {
	return template.HTMLEscapeString(s)
}

func TestRefusals(t *testing.T) {
	h := open(t)
	for _, c := range []struct {
		token, path string
		status      int
		says        []string
	}{
		{"", "/", 401, []string{"Sign in"}},
		{"wrong", "/twilio/calls", 401, []string{"Sign in"}},
		{"nobodytoken", "/", 403, []string{"has no role"}},
		{"supporttoken", "/twilio/calls?From=%2B15551234567", 403, []string{"may not use the parameter From",
			"roles: {support: {twilio: {calls.from: see}}}"}},
		{"clerktoken", "/twilio/messages", 403, []string{"may not see messages", "roles: {clerk: {twilio: {messages: see}}}"}},
		{"clerktoken", "/twilio/messages/SM1", 403, []string{"may not see messages"}},
		{"clerktoken", "/twilio/messages.json", 403, []string{"may not see messages"}},
		{"countertoken", "/twilio/calls", 403, []string{"may not see calls"}},
	} {
		before := h.mirror.count()
		status, body, head := h.get(c.path, as{token: c.token})
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
		if h.mirror.count() != before {
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
	h := open(t)
	clerk := as{token: "clerktoken"}
	for _, p := range []string{"/", "/index.json", "/twilio/calls", "/twilio/accounts/" + account, "/twilio/cals", "/twilio/message"} {
		_, body, _ := h.get(p, clerk)
		if strings.Contains(body, "/twilio/messages") || strings.Contains(body, "10,000") || strings.Contains(body, "10000") ||
			strings.Contains(body, `"messages"`) {
			t.Errorf("%s tells of messages", p)
		}
	}
	page := h.page("/twilio/calls?PageSize=20", clerk)
	if strings.Contains(page, "PageToken") || regexp.MustCompile(`CA[0-9a-f]{32}`).MatchString(page) ||
		!strings.Contains(page, "named by ids") {
		t.Error("hidden ids are in the page, or nothing says why there is no way on")
	}
	if strings.Contains(page, ">Price<") || strings.Contains(page, "USD") {
		t.Error("hidden prices show")
	}
	home := h.page("/", as{token: "countertoken"})
	if strings.Contains(home, "Calls") || !strings.Contains(home, "Phone numbers") {
		t.Error("home of a role with one kind")
	}
}

func TestRoleAllSeesWhatTheSpecDoesNotName(t *testing.T) {
	h := open(t)
	id := h.firstID("/twilio/calls?Status=completed", `CA[0-9a-f]{32}`)
	h.rewrite(func(body string) string {
		return strings.Replace(body, `{"`, `{"mood":"sunny","deep":{"er":"down"},"`, 1)
	})
	page := h.page("/twilio/calls/"+id, all)
	if !strings.Contains(page, "Other fields") || !strings.Contains(page, "sunny") || !strings.Contains(page, "<dt>Deep er</dt>") {
		t.Error("an unknown field does not show")
	}
	if page := h.page("/twilio/calls/"+id, as{token: "supporttoken"}); strings.Contains(page, "sunny") ||
		strings.Contains(page, "Other fields") {
		t.Error("an unknown field shows to support")
	}
}

// rewrite changes every body the mirror answers with.
func (h *fixture) rewrite(change func(string) string) {
	h.mirror.mu.Lock()
	defer h.mirror.mu.Unlock()
	h.mirror.change = func(_ request.Request, a *request.Response) (*request.Response, error) {
		page, answer := *a.Page, *a
		page.Body = []byte(change(string(page.Body)))
		page.Sum = [16]byte{}
		answer.Page = &page
		return &answer, nil
	}
}

// HTML in every text of every record stays text.
func TestNothingInARecordIsHTML(t *testing.T) {
	h := open(t)
	const payload = `\"'><script>alert(1)</script><img src=x onerror=alert(2)>&lt;javascript:alert(3)`
	texts := regexp.MustCompile(`("(?:[a-z_]+)": ?)"((?:[^"\\]|\\.)*)"`)
	paths := []string{"/twilio/calls", "/twilio/messages", "/twilio/incoming_phone_numbers", "/twilio/accounts"}
	paths = append(paths, "/twilio/calls/"+h.firstID("/twilio/calls", `CA[0-9a-f]{32}`),
		"/twilio/messages/"+h.firstID("/twilio/messages", `SM[0-9a-f]{32}`),
		"/twilio/incoming_phone_numbers/"+h.firstID("/twilio/incoming_phone_numbers", `PN[0-9a-f]{32}`), "/twilio/accounts/"+account)
	number := h.ownNumber()
	paths = append(paths, "/twilio/alerts", "/twilio/usage_records", "/twilio/conferences/"+h.firstID("/twilio/conferences", `CF[0-9a-f]{32}`))
	h.rewrite(func(body string) string { return texts.ReplaceAllString(body, `$1"`+payload+`"`) })
	for _, token := range []string{"alltoken", "supporttoken"} {
		for _, p := range paths {
			page := h.page(p, as{token: token})
			if strings.Contains(page, "<script>") || strings.Contains(page, "<img src=x") || strings.Contains(page, `href="javascript`) {
				t.Errorf("%s as %s runs what a record says", p, token)
			}
			if token == "alltoken" && !strings.Contains(page, "&lt;script&gt;alert(1)") {
				t.Errorf("%s does not show what the record says", p)
			}
			wellFormed(t, p, page)
		}
	}
	for _, p := range []string{"/twilio/number/" + number, "/twilio/number/" + number + "/+15550001111"} {
		page := h.page(p, all)
		if strings.Contains(page, "<script>") || strings.Contains(page, "<img src=x") || strings.Contains(page, `href="javascript`) {
			t.Errorf("%s runs what a record says", p)
		}
		wellFormed(t, p, page)
	}
	h.rewrite(func(body string) string { return body })
	for _, p := range []string{"/twilio/calls?From=%22%3E%3Cscript%3E", "/twilio/calls?%3Cscript%3E=1", "/twilio/%3Cscript%3E",
		"/%3Cscript%3E/x", "/twilio/calls/%3Cscript%3E", "/%3Cscript%3E"} {
		_, body, _ := h.get(p, all)
		if strings.Contains(body, "<script>") {
			t.Errorf("%s runs what the address says", p)
		}
		wellFormed(t, p, body)
	}
}

func TestOutage(t *testing.T) {
	h := open(t, func(o *page.Options) { o.Snapshot = outOfReach })
	h.down()
	for _, path := range []string{"/twilio/messages", "/twilio/calls/CA1", "/twilio/messages.json"} {
		status, body, head := h.get(path, berlin)
		if status != 503 || head.Get("Retry-After") != "21" || !strings.Contains(body, "Twilio is not answering") {
			t.Errorf("%s: %d, Retry-After %q: %s", path, status, head.Get("Retry-After"), body)
		}
		if strings.HasSuffix(path, ".json") {
			continue
		}
		for _, want := range []string{"Upstream is down", "status 503", "14:03:00", "14:05:21", "5,000 held", `href="/twilio/calls"`} {
			if !strings.Contains(body, want) {
				t.Errorf("%s does not say %q", path, want)
			}
		}
	}
	h.mirror.mu.Lock()
	h.mirror.change = func(_ request.Request, a *request.Response) (*request.Response, error) {
		b := *a
		b.Outcome, b.Detail, b.Age = request.Stale, "stale: upstream 503", 3*60*1e9
		return &b, nil
	}
	h.mirror.mu.Unlock()
	page := h.page("/twilio/calls", all)
	if !strings.Contains(page, "Upstream has not answered (upstream 503). This is what was held 3 min ago.") ||
		!strings.Contains(page, "held, 3 min old, being refreshed") {
		t.Error("a page from before the outage does not say so")
	}
	h.mirror.mu.Lock()
	h.mirror.change = func(request.Request, *request.Response) (*request.Response, error) {
		return nil, errors.New("mirror: secret=abc: broken")
	}
	h.mirror.mu.Unlock()
	status, body, _ := h.get("/twilio/calls", all)
	if status != http.StatusInternalServerError || strings.Contains(body, "secret") {
		t.Errorf("a fault of ours: %d %s", status, body)
	}
}

// A handler that panics is a failure with a page, and a line in the log; what
// panics behind a page leaves it whole.
func TestPanicIsAPage(t *testing.T) {
	for name, broken := range map[string]func(*page.Options){
		"mirror":   func(o *page.Options) { o.Mirror = (*keeper)(nil) },
		"snapshot": func(o *page.Options) { o.Snapshot = func(context.Context, string) page.Snapshot { panic("it broke") } },
	} {
		want := map[string]int{"mirror": http.StatusInternalServerError, "snapshot": http.StatusOK}[name]
		var log bytes.Buffer
		h := open(t, broken, func(o *page.Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
		status, body, _ := h.get("/twilio/calls", all)
		if status != want || body == "" || strings.Contains(body, "broke") || strings.Contains(body, "goroutine") {
			t.Errorf("%s: %d %s", name, status, body)
		}
		if !strings.Contains(log.String(), "panic") || !strings.Contains(log.String(), "goroutine") {
			t.Errorf("%s: the log says %q", name, log.String())
		}
	}
}
