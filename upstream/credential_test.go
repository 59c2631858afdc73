// Credential: how requests to upstream carry it.

package upstream

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"understudy"
	"understudy/internal/checktest"
	"understudy/request"
	"understudy/spec"
)

func TestRequestsCarryTheCredential(t *testing.T) {
	for style, want := range map[string]string{
		"none":                    "",
		"bearer":                  "Authorization: Bearer sk-librarytoken",
		"basic {secret}:":         "Authorization: Basic c2stbGlicmFyeXRva2VuOg==",
		"header apikey + bearer":  "Apikey: sk-librarytoken, Authorization: Bearer sk-librarytoken",
		"query key":               "key=sk-librarytoken",
		"query key + header X-It": "key=sk-librarytoken, X-It: sk-librarytoken",
	} {
		var seen []string
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var got []string
			if key := r.URL.Query()["key"]; len(key) > 0 {
				got = append(got, "key="+strings.Join(key, " and "))
			}
			for _, name := range []string{"Apikey", "Authorization", "X-It"} {
				if value := r.Header.Get(name); value != "" {
					got = append(got, name+": "+value)
				}
			}
			seen = append(seen, strings.Join(got, ", "))
			if r.URL.Path == "/old" { // without the key, as links are
				http.Redirect(w, r, "/things?a=1", http.StatusMovedPermanently)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"things":[{"id":"1","url":"/things/1?key=sk-librarytoken"}]}`))
		}))
		s := &spec.Spec{Name: "x", Hosts: []spec.Host{{URL: srv.URL}}, Auth: spec.Auth{Style: style}, Kinds: []*spec.Kind{{
			Name: "things", ID: []string{"id"}, Fields: []*spec.Field{{Name: "id"}}, Lists: []*spec.List{{Path: "/things", Key: "things"},
				{Path: "/old", Key: "things"}}}}}
		if err := s.Compile(); err != nil {
			t.Fatal(err)
		}
		c, err := New(Options{Source: &spec.Source{Name: "x", Spec: s}, Secret: understudy.NewSecret("sk-librarytoken")})
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"/things", "/old"} {
			target, err := s.Resolve("x", path, "key=another&a=1")
			if err != nil {
				t.Fatal(err)
			}
			page, err := c.Fetch(t.Context(), request.Fetch{Target: target, Reason: request.ReasonWaiting})
			checktest.MustNoError(t, err, "%s; page %+v", style, page)
			checktest.MustEqual(t, len(page.Rows), 1, "%s: len(page.Rows)", style)
			checktest.Lacks(t, string(page.Body), "sk-", "%s: string(page.Body)", style)
			checktest.Lacks(t, page.Key.URI, "sk-", "%s: page.Key.URI", style)
		}
		if strings.HasPrefix(style, "query") == strings.Contains(seen[0], "another") {
			t.Errorf("%s: a caller's own parameter: %q", style, seen[0])
		}
		for i := range seen {
			if got := strings.ReplaceAll(seen[i], "key=another, ", ""); strings.TrimPrefix(got, "key=another") != want {
				t.Errorf("%s, request %d: %q, want %q", style, i, got, want)
			}
		}
		_ = c.Close()
		srv.Close()
	}
}
