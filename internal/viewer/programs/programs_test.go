// Programs: the lines to paste are those of the documents, and who may come to their pages.

package programs_test

import (
	"html"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"understudy/internal/checktest"
	"understudy/internal/credentials"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/viewertest"
	"understudy/spec"
)

// docs/reference/proxy.md and the page of a credential show the same lines, filled in; the document has
// no block that the spec has not.
func TestLinesToPaste(t *testing.T) {
	text, err := os.ReadFile("../../../docs/reference/proxy.md")
	viewertest.Must(t, err)
	_, part, _ := strings.Cut(string(text), "\n## Point an SDK at it\n")
	part, _, _ = strings.Cut(part, "\n## ")
	h := viewertest.Open(t, viewertest.WithPrograms)
	at := spec.Connection{Address: "http://127.0.0.1:4115", User: viewertest.Account, Secret: "understudydemotoken",
		Account: viewertest.Account}
	shown := html.UnescapeString(h.Page("/-/connect/demo", viewertest.All))
	for _, s := range h.Spec.Snippets {
		if block := "```" + s.Language + "\n" + at.Fill(s) + "```"; !strings.Contains(part, block) {
			t.Errorf("docs/reference/proxy.md does not show %s as the spec has it:\n%s", s.Title, block)
		}
		with := at
		with.Secret = "YOUR_SECRET"
		if code := strings.TrimSuffix(with.Fill(s), "\n"); !strings.Contains(shown, code) {
			t.Errorf("the page does not show the lines for %s:\n%s", s.Title, code)
		}
	}
	if blocks := strings.Count(part, "\n```") / 2; blocks != len(h.Spec.Snippets) || blocks < 4 {
		t.Errorf("docs/reference/proxy.md has %d blocks, the spec %d", blocks, len(h.Spec.Snippets))
	}
}

// The form of a credential begins with the role that sees least, and refuses an end in the past with a sentence.
func TestFormOfACredential(t *testing.T) {
	form := func(string) (user, secret string) { return "SK", "" }
	book, err := credentials.Open(t.Context(), storetest.Open(t, store.Options{}).KV, form, func() time.Time { return viewertest.Noon })
	viewertest.Must(t, err)
	h := viewertest.Open(t, func(o *page.Options) { o.Programs = &page.Programs{Credentials: book} })
	_, roles, _ := strings.Cut(h.Page("/-/connect", viewertest.All), `<select id="role"`)
	roles, _, _ = strings.Cut(roles, "</select>")
	var order []string
	for _, m := range regexp.MustCompile(`<option>([a-z]+)</option>`).FindAllStringSubmatch(roles, -1) {
		order = append(order, m[1])
	}
	checktest.MustEqual(t, len(order), len(viewertest.Roles)+1, "the roles are offered as: len(order)")
	checktest.Equal(t, order[0], "counter", "the roles are offered as: order[0]")
	checktest.Equal(t, order[len(order)-1], "all", "the roles are offered as: order[len(order)-1]")
	status, body, _ := h.Do("POST", "/-/connect", "name=late&source=twilio&role=support&expires=2020-01-01", viewertest.All)
	checktest.Equal(t, status, 400, "an end in the past: status; body %s", body)
	checktest.Contains(t, body, "is not in the future", "an end in the past: body")
	checktest.Contains(t, body, `value="2020-01-01"`, "an end in the past: body")
	if made := book.All(); len(made) != 0 {
		t.Errorf("made all the same: %v", made)
	}
}

// What would end a credential's secret asks once more, and one of the settings is left to them.
func TestCredentialOfTheSettingsIsNotChanged(t *testing.T) {
	form := func(string) (user, secret string) { return "SK", "" }
	book, err := credentials.Open(t.Context(), storetest.Open(t, store.Options{}).KV, form, func() time.Time { return viewertest.Noon })
	viewertest.Must(t, err)
	log := &viewertest.AuditLog{}
	h := viewertest.Open(t, viewertest.WithPrograms, func(o *page.Options) { o.Programs.Credentials, o.Audit = book, log })
	for _, c := range []struct {
		path, form string
		status     int
		says       string
	}{
		{"/-/connect/demo/revoke", "a=b", 400, "Tick the box"}, {"/-/connect/demo/rotate", "overlap=soon", 400, "Write a duration"},
		{"/-/connect/demo/revoke", "sure=1", 404, "No credential was created here with the name demo"},
		{"/-/connect/demo/rotate", "overlap=1h", 404, "No credential was created here with the name demo"},
	} {
		status, body, _ := h.Do("POST", c.path, c.form, viewertest.All)
		if status != c.status || !strings.Contains(body, c.says) {
			t.Errorf("%s with %s: %d, want %d and %q", c.path, c.form, status, c.status, c.says)
		}
	}
	if got := strings.Join(log.Lines(), "; "); got != "administer credentials revoke demo; administer credentials rotate demo" {
		t.Errorf("listed: %s", got)
	}
	for path, want := range map[string]int{"/-/connect?x=1": 400, "/-/connect/nobody": 404} {
		if status, _, _ := h.Get(path, viewertest.All); status != want {
			t.Errorf("%s: %d, want %d", path, status, want)
		}
	}
}
