// Programs: the lines to paste are those of the documents, and who may come to their pages.

package viewer

import (
	"context"
	"html"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"understudy/internal/credentials"
	"understudy/internal/viewer/page"
	"understudy/spec"
)

// withPrograms gives a viewer credentials of the settings.
func withPrograms(o *page.Options) {
	o.Programs = &page.Programs{Configured: []credentials.Credential{
		{Name: "demo", Scope: credentials.Scope{Source: "twilio", Role: "support"}, Secrets: []credentials.Secret{{User: account}}},
	}, Credentials: noneMade{}}
	o.Holders = []page.Holder{{Role: "support", Name: "demo", How: "a program, by the settings"}}
}

// noneMade are no credentials.
type noneMade struct{ page.Credentials }

func (noneMade) All() []credentials.Credential { return nil }

// docs/proxy.md and the page of a credential show the same lines, filled in; the document has
// no block that the spec has not.
func TestLinesToPaste(t *testing.T) {
	text, err := os.ReadFile("../../docs/proxy.md")
	must(t, err)
	_, part, _ := strings.Cut(string(text), "\n## Point an SDK at it\n")
	part, _, _ = strings.Cut(part, "\n## ")
	h := open(t, withPrograms)
	at := spec.Connection{Address: "http://127.0.0.1:4115", User: account, Secret: "understudydemotoken", Account: account}
	shown := html.UnescapeString(h.page("/-/connect/demo", all))
	for _, s := range h.spec.Connect {
		if block := "```" + s.Language + "\n" + at.Fill(s) + "```"; !strings.Contains(part, block) {
			t.Errorf("docs/proxy.md does not show %s as the spec has it:\n%s", s.Title, block)
		}
		with := at
		with.Secret = "YOUR_SECRET"
		if code := strings.TrimSuffix(with.Fill(s), "\n"); !strings.Contains(shown, code) {
			t.Errorf("the page does not show the lines for %s:\n%s", s.Title, code)
		}
	}
	if blocks := strings.Count(part, "\n```") / 2; blocks != len(h.spec.Connect) || blocks < 4 {
		t.Errorf("docs/proxy.md has %d blocks, the spec %d", blocks, len(h.spec.Connect))
	}
}

// Pages that tell of roles and credentials are for who sees everything; others are refused
// in the same words whatever they ask for.
func TestAdministrationIsForTheRoleAll(t *testing.T) {
	h := open(t, withPrograms)
	for _, route := range h.viewer.Routes() {
		method, path, _ := strings.Cut(route, " ")
		if !strings.HasPrefix(path, "/-/connect") && !strings.HasPrefix(path, "/-/roles") && path != page.ViewAsPath {
			continue
		}
		at := strings.NewReplacer("{name}", "demo", "{role}", "support", "{source}", "twilio", "{kind}", "calls").Replace(path)
		for _, token := range []string{"supporttoken", "clerktoken", "watchertoken"} {
			status, body, _ := h.do(method, at, "role=watcher&sure=1&overlap=1h&secret=x", as{token: token})
			if status != http.StatusForbidden || strings.Contains(body, "YOUR_SECRET") || strings.Contains(body, account) {
				t.Errorf("%s %s as %s: %d", method, at, token, status)
			}
		}
		if status, _, _ := h.do(method, at, "", as{}); status != http.StatusUnauthorized {
			t.Errorf("%s %s as nobody: %d", method, at, status)
		}
		if method == "GET" {
			h.page(at, all)
		}
	}
}

// noValues keeps nothing.
type noValues struct{}

func (noValues) Values(context.Context, string) (map[string][]byte, error) { return nil, nil }
func (noValues) SetValueDurably(context.Context, string, []byte) error     { return nil }

// The form of a credential begins with the role that sees least, and refuses an end in the past with a sentence.
func TestFormOfACredential(t *testing.T) {
	form := func(string) (user, secret string) { return "SK", "" }
	book, err := credentials.Open(t.Context(), noValues{}, form, func() time.Time { return noon })
	must(t, err)
	h := open(t, func(o *page.Options) { o.Programs = &page.Programs{Credentials: book} })
	_, roles, _ := strings.Cut(h.page("/-/connect", all), `<select id="role"`)
	roles, _, _ = strings.Cut(roles, "</select>")
	var order []string
	for _, m := range regexp.MustCompile(`<option>([a-z]+)</option>`).FindAllStringSubmatch(roles, -1) {
		order = append(order, m[1])
	}
	if len(order) != len(testRoles)+1 || order[0] != "counter" || order[len(order)-1] != "all" {
		t.Errorf("the roles are offered as %q", order)
	}
	status, body, _ := h.do("POST", "/-/connect", "name=late&source=twilio&role=support&expires=2020-01-01", all)
	if status != 400 || !strings.Contains(body, "is not in the future") || !strings.Contains(body, `value="2020-01-01"`) {
		t.Errorf("an end in the past: %d %s", status, body)
	}
	if made := book.All(); len(made) != 0 {
		t.Errorf("made all the same: %v", made)
	}
}
