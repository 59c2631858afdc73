// Roles: who may come to the pages of roles, and what they show.

package roles_test

import (
	"net/http"
	"strings"
	"testing"

	"understudy"
	"understudy/internal/callers"
	"understudy/internal/checktest"
	"understudy/internal/signin"
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
			checktest.Equal(t, status, http.StatusForbidden, "%s %s as %s: status", method, at, token)
			checktest.Lacks(t, body, "YOUR_SECRET", "%s %s as %s: body", method, at, token)
			checktest.Lacks(t, body, viewertest.Account, "%s %s as %s: body", method, at, token)
		}
		if status, _, _ := h.Do(method, at, "", viewertest.Browser{}); status != http.StatusUnauthorized {
			t.Errorf("%s %s as nobody: %d", method, at, status)
		}
		if method == "GET" {
			h.Page(at, viewertest.All)
		}
	}
}

// The table and the page of a role say in few words what the pages of kinds say field by field.
func TestPagesOfRolesSayWhatIsSeen(t *testing.T) {
	h := viewertest.Open(t, viewertest.WithPrograms)
	for path, wants := range map[string][]string{
		"/-/roles": {`<a href="/-/roles/support">support</a>`, `<td class="none"><a href="/-/roles/clerk/twilio/messages">nothing</a>`,
			`<td class="all"><a href="/-/roles/all/twilio/calls">every field</a>`},
		"/-/roles/support":               {"<dt>a program, by the settings</dt><dd>demo</dd>", "View as support", `<dd class="some"><a href=`},
		"/-/roles/all":                   {"The built-in role", "Nobody in the settings"},
		"/-/roles/support/twilio/calls":  {"Calls as support", `<span class="pill dot busy">last four</span>`, "View as support"},
		"/-/roles/all/twilio/calls":      {"Calls as all", `<span class="pill dot good">visible</span>`},
		"/-/roles/clerk/twilio/messages": {"Messages as clerk", `<span class="pill dot bad">hidden</span>`},
	} {
		shown := h.Page(path, viewertest.All)
		if strings.Count(path, "/") < 4 { // the form of a kind's page leads to the page itself
			viewertest.CheckHTML(t, path, shown)
		}
		for _, want := range wants {
			if !strings.Contains(shown, want) {
				t.Errorf("%s does not say %s", path, want)
			}
		}
	}
	if strings.Contains(h.Page("/-/roles/all", viewertest.All), "View as") {
		t.Error("the role all is offered to be looked through")
	}
	for path, want := range map[string]int{"/-/roles?x=1": 400, "/-/roles/suport": 404, "/-/roles/support/twilio/cals": 404} {
		if status, _, _ := h.Get(path, viewertest.All); status != want {
			t.Errorf("%s: %d, want %d", path, status, want)
		}
	}
	if _, body, _ := h.Get("/-/roles/suport", viewertest.All); !strings.Contains(body, "Did you mean support?") {
		t.Error("a role that is misspelt leads to none")
	}
}

func TestViewAsShowsPagesOfTheRole(t *testing.T) {
	log := &viewertest.AuditLog{}
	h := viewertest.Open(t, func(o *page.Options) {
		var err error
		o.Cookies, err = signin.NewCookies(o.Now)
		viewertest.Must(t, err)
		o.Audit = log
		o.Callers, err = callers.New(callers.Options{Sources: o.Sources, Now: o.Now, ViewAs: signin.ViewAs{Cookies: o.Cookies},
			Credentials: []callers.Credential{viewertest.Credential("everything", viewertest.All.Token, understudy.RoleAll)}})
		viewertest.Must(t, err)
	})
	for role, want := range map[string]int{understudy.RoleAll: 400, "suport": 404, "": 404} {
		if status, _, head := h.Do("POST", page.ViewAsPath, "role="+role, viewertest.All); status != want || head.Get("Set-Cookie") != "" {
			t.Errorf("as %q: %d", role, status)
		}
	}
	if n := len(log.Entries()); n != 0 {
		t.Errorf("%d entries for what was refused", n)
	}
	status, _, head := h.Do("POST", page.ViewAsPath, "role=clerk&back=/twilio/calls", viewertest.All)
	if status != http.StatusSeeOther || head.Get("Location") != "/twilio/calls" {
		t.Fatalf("as clerk: %d to %s", status, head.Get("Location"))
	}
	if last := log.Last(); last.What != "view as clerk" || last.Caller.Name != "everything" {
		t.Errorf("listed %+v", last)
	}
	cookie, _, _ := strings.Cut(head.Get("Set-Cookie"), ";")
	clerk := viewertest.All.WithCookie(cookie)
	if status, _, _ := h.Get("/twilio/messages", clerk); status != http.StatusForbidden {
		t.Errorf("messages, which a clerk does not see: %d", status)
	}
	if status, _, _ := h.Get("/twilio/messages", viewertest.All); status != http.StatusOK {
		t.Errorf("messages without the cookie: %d", status)
	}
	_, _, head = h.Do("POST", page.ViewAsEndPath, "back=/", clerk)
	if ended := strings.Join(head["Set-Cookie"], " "); !strings.Contains(ended, "Max-Age=0") || log.Last().What != "view as ended" {
		t.Errorf("the end: cookies %q, listed %+v", ended, log.Last())
	}
}
