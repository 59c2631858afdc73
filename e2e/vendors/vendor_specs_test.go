// Vendor specs: what `understudy spec from` draws from the documents of GitHub and Stripe.

package vendors

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stripe/stripe-mock/embedded"

	"understudy/e2e/rig"
	"understudy/internal/infer"
	"understudy/internal/openapi"
	"understudy/upstream"
)

// drawn is the spec of a document, which has to be read by the strict reader within the
// time that a person waits.
func drawn(t *testing.T, name string, text []byte) *infer.Draft {
	t.Helper()
	began := time.Now()
	doc, err := openapi.Read(text)
	if err != nil {
		t.Fatal(err)
	}
	d, err := infer.DrawFromDocument(doc, name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := upstream.ReadSpec(name+".yaml", d.YAML); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: %d lists and %d doubts in %v", name, len(d.Lists), len(d.Unsure), time.Since(began))
	return d
}

// The paging of GitHub's lists beside the table of octokit's own: nine in ten have it, and
// of every other one the draft says that it is not sure, or that there is no such list.
func TestPagingOfGitHubsDocument(t *testing.T) {
	t.Parallel()
	const modules = "../sdks/node/node_modules/@octokit/"
	text, err := os.ReadFile(modules + "openapi/generated/api.github.com.json")
	if err != nil {
		t.Fatalf("%v (is the package installed? `make setup`)", err)
	}
	table, err := os.ReadFile(modules + "plugin-paginate-rest/dist-src/generated/paginating-endpoints.js")
	if err != nil {
		t.Fatal(err)
	}
	d := drawn(t, "github", text)
	styles := map[string]infer.List{}
	for _, l := range d.Lists {
		styles[shapeOfPath(l.Path)] = l
	}
	paged, right := 0, 0
	for _, m := range regexp.MustCompile(`"GET (/[^"]*)"`).FindAllSubmatch(table, -1) {
		paged++
		path := string(m[1])
		switch l, found := styles[shapeOfPath(path)]; {
		case found && l.Style == "header":
			right++
		case found && l.Sure:
			t.Errorf("%s: the draft is sure of %q", path, l.Style)
		case !found && !strings.Contains(strings.Join(d.Unsure, "\n"), strings.SplitN(path, "{", 2)[0]):
			t.Errorf("%s: the draft says nothing of it", path)
		}
	}
	t.Logf("%d of octokit's %d paged lists have the right paging", right, paged)
	if paged < 250 || right*10 < paged*9 {
		t.Errorf("%d of %d", right, paged)
	}
}

// shapeOfPath is a path without the names of its variables.
func shapeOfPath(path string) string {
	return regexp.MustCompile(`\{[^}]*\}`).ReplaceAllString(path, "{}")
}

// Every list of the built-in spec is drawn from Stripe's document, with the same paging.
func TestPagingOfStripesDocument(t *testing.T) {
	t.Parallel()
	d := drawn(t, "stripe", embedded.OpenAPISpec)
	styles := map[string]string{}
	for _, l := range d.Lists {
		styles[l.Path] = l.Style
	}
	sp, err := upstream.ReadBuiltIn("stripe")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range sp.Kinds {
		for _, l := range k.Lists {
			if want := sp.PagingOf(l).Style; k.Name != "v2_events" && styles[l.Path] != want {
				t.Errorf("%s: %q, want %q", l.Path, styles[l.Path], want)
			}
		}
	}
}

// The drafts of both vendors' documents are tried as a person does it, against slowapi in
// their shape. Of GitHub's the tool names the paths that the document lacks.
func TestSpecsOfVendorsAreTried(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	try := func(name, secret string, draft []byte, args ...string) (string, error) {
		file, token := filepath.Join(dir, name+".yaml"), filepath.Join(dir, name+".token")
		for path, data := range map[string][]byte{file: draft, token: []byte(secret)} {
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		args = append([]string{"spec", "try", file, "--secret", "file:" + token, "--rate", "1000", "--upstream", serveShape(t, name).URL}, args...)
		out, err := exec.CommandContext(t.Context(), rig.Program, args...).CombinedOutput()
		return string(out), err
	}
	out, err := try("stripe", "sk_test_slowapitoken", drawn(t, "stripe", embedded.OpenAPISpec).YAML)
	for _, list := range []string{"charges", "customers", "events", "invoices", "payment_intents", "prices", "products", "refunds", "subscriptions"} {
		if err != nil || !regexp.MustCompile(`(?m) 2 .* newest first +as its row +ok\n  /v1/`+list+`$`).MatchString(out) {
			t.Errorf("%s: %v\n%s", list, err, out)
		}
	}
	document := nodePackage(t, "@octokit", "openapi", "generated", "api.github.com.json")
	text := string(drawn(t, "github", document).YAML)
	vars := []string{"--var", "owner=acme", "--var", "repo=tracker", "--var", "org=acme", "--var", "username=robin"}
	if out, err = try("github", "slowapitoken", []byte(text), vars...); err == nil {
		t.Errorf("links lead nowhere, and that is not said:\n%s", out)
	}
	elsewhere := regexp.MustCompile(`/repos/\{owner\}/\{repo\}/(\S+): .*link "/repositories/.* add its path to the lists of the kind`)
	for _, m := range elsewhere.FindAllStringSubmatch(out, -1) {
		entry := regexp.MustCompile(`( +- path: "/)repos/\{owner\}/\{repo\}(/` + m[1] + `"\n(?: {8}.*\n)*)`)
		text = entry.ReplaceAllString(text, "$0${1}repositories/{repository_id}$2")
	}
	out, err = try("github", "slowapitoken", []byte(text), vars...)
	for _, list := range []string{"issues", "pulls", "issues/comments", "labels", "commits"} {
		if err != nil || !regexp.MustCompile(`(?m) 2 .* ok\n  \S+\{repo\}/`+list+`$`).MatchString(out) {
			t.Errorf("%s: %v\n%s", list, err, out)
		}
	}
}
