// Auth: where requests carry credentials, and that they do not stay there.

package auth

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"understudy/internal/checktest"
)

func TestAuthStyles(t *testing.T) {
	for _, c := range []struct {
		style, header, value, query, user string // user is what Read gives
	}{
		{"basic", "Authorization", "Basic bWU6c2stMTIz", "", "me"},
		{"basic {secret}:", "Authorization", "Basic c2stMTIzOg==", "", ""},
		{"basic {secret}:api_token", "Authorization", "Basic c2stMTIzOmFwaV90b2tlbg==", "", ""},
		{"basic api:{secret}", "Authorization", "Basic YXBpOnNrLTEyMw==", "", ""},
		{"bearer", "Authorization", "Bearer sk-123", "", ""},
		{"token", "Authorization", "token sk-123", "", ""},
		{"header Authorization", "Authorization", "sk-123", "", ""},
		{"header authorization GenieKey", "Authorization", "GenieKey sk-123", "", ""},
		{"header Authorization Token token={secret}", "Authorization", "Token token=sk-123", "", ""},
		{`header Authorization Token token="{secret}", v=2`, "Authorization", `Token token="sk-123", v=2`, "", ""},
		{"header x-api-key", "X-Api-Key", "sk-123", "", ""},
		{"query api_key", "", "", "api_key=sk-123", ""},
	} {
		a := Auth{Style: c.style}
		sent, err := a.ParseSent()
		if err != nil || len(sent) != 1 {
			t.Fatalf("%s: %v, %v", c.style, sent, err)
		}
		r := httptest.NewRequest("GET", "/x", nil)
		sent[0].Sign(r, "me", "sk-123")
		sent[0].Sign(r, "me", "sk-123") // in place of the first
		value := c.value
		if got := r.Header.Get(c.header); got != c.value || r.URL.RawQuery != c.query {
			t.Errorf("%s: header %q, query %q", c.style, got, r.URL.RawQuery)
		}
		if c.query != "" {
			value = sent[0].Values(r.URL.RawQuery)[0]
		}
		user, secret, ok := sent[0].Read(make([]byte, MaxCredential), value)
		checktest.MustTrue(t, ok, "%s: ok is false", c.style)
		checktest.Equal(t, string(user), c.user, "%s: string(user)", c.style)
		checktest.Equal(t, string(secret), "sk-123", "%s: string(secret)", c.style)
	}
	for style, want := range map[string]string{
		"":                           "auth.style is missing; write basic",
		"baerer":                     `did you mean "bearer"?`,
		"bearer x":                   "write basic",
		"basic x":                    "after basic, write",
		"basic {secret}:{secret}":    "after basic, write",
		"header":                     "is not the name of a header",
		"header a:b":                 "is not the name of a header",
		"header Authorization Basic": "cannot stand before the secret",

		"header Authorization Basic {secret}":       "cannot stand before the secret",
		"header Authorization Token {secret}{user}": "write {secret} exactly once",
		"query":                  "write basic",
		"query a b":              "write basic",
		"query understudy.since": "write basic",
		"bearer + magic":         "write basic",
	} {
		a := Auth{Style: style}
		if _, err := a.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", style, err)
		}
	}
	a := Auth{Style: "header apikey + bearer"}
	{
		sent, err := a.ParseSent()
		checktest.MustNoError(t, err, "two at once")
		checktest.MustEqual(t, len(sent), 2, "two at once: len(sent)")
		checktest.Equal(t, sent[0].Header, "Apikey", "two at once: sent[0].Header")
		checktest.Equal(t, sent[1].Header, "Authorization", "two at once: sent[1].Header")
	}
}

// A parameter with the secret may be quoted or not (RFC 9110, 11.4), whichever the form has.
func TestFormsOfASecretInAHeader(t *testing.T) {
	for _, form := range []string{"Token token={secret}", `Token token="{secret}"`} {
		s, err := readScheme("header Authorization " + form)
		if err != nil {
			t.Fatal(err)
		}
		for value, want := range map[string]string{
			"Token token=sk-123": "sk-123", `token token="sk-123"`: "sk-123", "Token token=": "", "Bearer sk-123": "", "Token sk-123": "",
		} {
			_, secret, ok := s.Read(make([]byte, MaxCredential), value)
			if string(secret) != want {
				t.Errorf("%s reads %s as %q", form, value, secret)
			}
			if ok != (want != "") {
				t.Errorf("%s takes %s: %v", form, value, ok)
			}
		}
		if got := s.Challenge("Town"); got != `Token realm="Town"` {
			t.Errorf("%s: the challenge is %s", form, got)
		}
	}
}

func TestChallenges(t *testing.T) {
	a := Auth{Style: "bearer", Callers: []string{"bearer", "basic {secret}:", "token", "header X-Api-Key", "query key"}}
	taken, err := a.ParseAccepted()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range taken {
		got = append(got, s.Challenge("Town"))
	}
	want := []string{`Bearer realm="Town"`, `Basic realm="Town"`, `token realm="Town"`, `ApiKey realm="Town", in="header", name="X-Api-Key"`,
		`ApiKey realm="Town", in="query", name="key"`}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestRequestsWithoutCarriers(t *testing.T) {
	c := Carriers{Headers: []string{"X-Api-Key"}, Params: []string{"api_key"}}
	for uri, want := range map[string]string{
		"/a":                                  "/a",
		"/a?b=1&c":                            "/a?b=1&c",
		"/a?api_key=k":                        "/a",
		"/a?b=%41&api%5Fkey=k&c=+&api_key=l&": "/a?b=%41&c=+&",
		"/a?API_KEY=k&b=1":                    "/a?b=1",
		"/a?api_key=%zz":                      "/a",
		"/a?api_keys=k":                       "/a?api_keys=k",
	} {
		r := httptest.NewRequest("GET", "/", nil)
		path, raw, _ := strings.Cut(uri, "?")
		r.RequestURI, r.URL = uri, &url.URL{Path: path, RawQuery: raw}
		out := c.Strip(r)
		if out.RequestURI != want || out.URL.RequestURI() != strings.TrimSuffix(want, "?") {
			t.Errorf("%s: %s, %s; want %s", uri, out.RequestURI, out.URL.RequestURI(), want)
		}
		if (out == r) != (uri == want) {
			t.Errorf("%s: a copy without need, or none", uri)
		}
	}
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("X-Api-Key", "k")
	if out := c.Strip(r); out.Header.Get("X-Api-Key") != "" || r.Header.Get("X-Api-Key") != "k" {
		t.Error("the header stays, or is taken from the request itself")
	}
}

// FuzzWithout: no parameter that could be read as a key stays, and no other goes.
func FuzzWithout(f *testing.F) {
	for _, seed := range []string{"", "key=1", "a=1&key=2&b", "%6bey=x&&=", "key", "k%65y=%zz&;key=1", "KEY=1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		c := Carriers{Params: []string{"key"}}
		out := c.Strip(&http.Request{URL: &url.URL{Path: "/", RawQuery: raw}, RequestURI: "/?" + raw})
		if s := (Scheme{Query: "key"}); len(s.Values(out.URL.RawQuery)) > 0 {
			t.Fatalf("%q leaves %q", raw, out.URL.RawQuery)
		}
		for piece := range strings.SplitSeq(raw, "&") {
			if !strings.EqualFold(paramName(piece), "key") && !strings.Contains("&"+out.URL.RawQuery+"&", "&"+piece+"&") {
				t.Fatalf("%q loses %q: %q", raw, piece, out.URL.RawQuery)
			}
		}
	})
}
