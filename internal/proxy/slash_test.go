// Slash: an escaped slash in a path variable is data (RFC 3986, 2.2).

package proxy_test

import (
	"net/http"
	"slices"
	"testing"
)

const projects = `name: lab
hosts: [{url: "https://lab.example"}]
auth: {style: bearer, callers: [bearer, basic]}
whole_lists: true
kinds:
  - name: projects
    id: [id]
    fields: [{name: id, type: int}, {name: name}]
    lists: [{path: /projects}]
    instances: [{path: "/projects/{id}", id: [id]}]
  - name: issues
    id: [id]
    fields: [{name: id, type: int}, {name: title, class: body}]
    lists: [{path: "/projects/{project}/issues"}]
`

func TestEscapedSlashInAVariableIsData(t *testing.T) {
	c := buildMadeUp(t, projects, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.RequestURI {
		case "/projects/acme%2Fp0":
			_, _ = w.Write([]byte(`{"id":42,"name":"p0"}`))
		case "/projects/acme%2Fp0/issues":
			_, _ = w.Write([]byte(`[{"id":1,"title":"one"}]`))
		default:
			w.WriteHeader(http.StatusTeapot)
		}
	}), map[string]string{"*": "see", "body": "hide"}, nil)
	for target, want := range map[string]string{
		"/projects/acme%2Fp0": `{"id":42,"name":"p0"}`, "/projects/acme%2fp0/issues": `[{"id":1,"title":"one"}]`,
	} {
		answer, body := c.get(target, demo)
		if answer.StatusCode != http.StatusOK {
			t.Errorf("%s: %d", target, answer.StatusCode)
		}
		if body != want {
			t.Errorf("%s: %s", target, body)
		}
	}
	if answer, _ := c.get("/projects/42", demo); answer.Header.Get("Cache-Status")[:15] != "understudy; hit" {
		t.Errorf("the record by its id: %s", answer.Header.Get("Cache-Status"))
	}
	asked := c.journal.take()
	slices.Sort(asked)
	if want := []string{"GET /projects/acme%2Fp0", "GET /projects/acme%2Fp0/issues"}; !slices.Equal(asked, want) {
		t.Errorf("upstream was asked %q, want %q", asked, want)
	}
	for _, refused := range []struct{ method, target, secret string }{
		{"GET", "/projects/42%2Fissues", demo}, {"GET", "/projects/acme%2F..%2Fp0", demo}, {"GET", "/projects/%2Fp0", demo},
		{"GET", "/projects/acme%2F%2Fp0", demo}, {"GET", "/projects/acme%2F.;x", demo}, {"GET", "/projects%2F42", demo},
		{"GET", "/other%2Facme", demo}, {"GET", "/projects/acme%2FIssues", demo}, {"GET", "/projects/acme%2Fp0", masked},
		{"POST", "/projects/acme%2Fp0", demo},
	} {
		if answer, body := c.ask(c.server, refused.method, refused.target, refused.secret, ""); answer.StatusCode != http.StatusNotFound {
			t.Errorf("%s %s: %d %s", refused.method, refused.target, answer.StatusCode, body)
		}
	}
	if asked := c.journal.take(); len(asked) > 0 {
		t.Errorf("upstream was asked %q", asked)
	}
}
