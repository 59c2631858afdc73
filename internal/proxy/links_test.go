// Links of upstream that lead here.

package proxy

import (
	"net/http"
	"strings"
	"testing"

	"understudy/spec"
)

func TestLinksToUpstreamLeadHere(t *testing.T) {
	for public, ours := range map[string]string{"": "", "https://front.example": "", "https://front.example/api": "/api"} {
		sp, err := spec.NewGeneric("http://up.example:8080", "none")
		if err != nil {
			t.Fatal(err)
		}
		src := &spec.Source{Name: "site", Spec: sp, PublicURL: public}
		stored := []string{`<http://up.example:8080/items?page=2>; rel="next", <https://other.example/>; rel=up`, `</style.css>; rel=preload`}
		h := http.Header{"Location": {"http://UP.example:8080/a b?x=1#y"}, "Content-Location": {"//up.example:8080"}, "Link": stored}
		rewriteLinks(h, src)
		for name, want := range map[string]string{
			"Location": ours + "/a b?x=1#y", "Content-Location": ours + "/",
			"Link": `<` + ours + `/items?page=2>; rel="next", <https://other.example/>; rel=up`,
		} {
			if got := h.Get(name); got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
		if !strings.HasPrefix(stored[0], "<http://up.example:8080/") {
			t.Error("the stored header was changed")
		}
		h = http.Header{"Location": {"http://up.example:8080//evil.example/x"}}
		if rewriteLinks(h, src); h.Get("Location") != ours+"/evil.example/x" {
			t.Errorf("two slashes became %q", h.Get("Location"))
		}
		for _, other := range []string{"http://up.example/a", "https://up.example:8080/a", "/a",
			"http://up.example:8080.evil.example/", "", "http://[::1"} {
			h := http.Header{"Location": {other}}
			if rewriteLinks(h, src); h.Get("Location") != other {
				t.Errorf("%q became %q", other, h.Get("Location"))
			}
		}
	}
}

func TestLinksWithTheUsualPortLeadHere(t *testing.T) {
	for base, others := range map[string][]string{
		"https://up.example":    {"https://up.example:443/a", "HTTPS://UP.example/a", "//up.example:443/a"},
		"http://up.example:80":  {"http://up.example/a", "http://up.example:80/a"},
		"https://up.example:80": {"https://up.example:80/a"},
	} {
		sp, err := spec.NewGeneric(base, "none")
		if err != nil {
			t.Fatal(err)
		}
		for _, other := range others {
			h := http.Header{"Location": {other}}
			if rewriteLinks(h, &spec.Source{Name: "site", Spec: sp}); h.Get("Location") != "/a" {
				t.Errorf("%s: %q became %q", base, other, h.Get("Location"))
			}
		}
	}
}

func FuzzRewriteLinks(f *testing.F) {
	f.Add(`<http://up.example/a>; rel="next", <b>`)
	sp, err := spec.NewGeneric("http://up.example", "none")
	if err != nil {
		f.Fatal(err)
	}
	src := &spec.Source{Name: "site", Spec: sp}
	f.Fuzz(func(t *testing.T, line string) {
		h := http.Header{"Link": {line}, "Location": {line}}
		rewriteLinks(h, src)
		if !strings.Contains(line, "//") && h.Get("Link") != line {
			t.Errorf("%q became %q", line, h.Get("Link"))
		}
	})
}
