// Vendor specs: what `understudy spec from` draws from the documents of GitHub and Stripe.

package e2e

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stripe/stripe-mock/embedded"

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
	d, err := infer.FromDocument(doc, name)
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
	const modules = "sdks/node/node_modules/@octokit/"
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
	sp, err := upstream.BuiltIn("stripe")
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
