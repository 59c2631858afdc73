// Tests of the routes and the settings of webhooks.

package feed

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"understudy"
	"understudy/internal/checktest"
)

func TestHookRoutes(t *testing.T) {
	t.Parallel()
	o := Options{Token: "tokentoken"}
	o.Policy.Hooks = []Hook{{Name: "crm", URL: "https://crm.example/hook", Source: "twilio", Role: "all",
		Secret: understudy.NewSecret(hookSecret)}}
	r := open(t, some(), o)
	post := func(role, path, body string, headers ...string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.server.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		if role != "" {
			req.SetBasicAuth(role, "")
		}
		for i := 0; i < len(headers); i += 2 {
			req.Header.Set(headers[i], headers[i+1])
		}
		resp, err := r.server.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		answer, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(answer)
	}
	for _, c := range []struct {
		role, path, body string
		headers          []string
		status           int
		text             string
	}{
		{"all", "crm", `{"after":3}`, nil, 200, `"after":3,"behind":5`},
		{"", "crm", `{}`, []string{"Authorization", "Bearer tokentoken"}, 200, `"after":3`},
		{"", "crm", `{}`, []string{"Authorization", "Bearer wrong"}, 401, ""},
		{"all", "crm", `{"pause":true,"after":3}`, nil, 400, "write only one of pause, after"},
		{"all", "crm", `{"test":true,"after":3}`, nil, 400, "and test"},
		{"all", "crm", `{"test":true,"pause":true}`, nil, 400, "and test"},
		{"support", "crm", `{"test":true}`, nil, 403, "role all"},
		{"all", "nobody", `{"test":true}`, nil, 404, "no webhook"},
		{"support", "crm", `{"pause":true}`, nil, 403, "role all"},
		{"", "crm", `{"pause":true}`, nil, 401, ""},
		{"all", "nobody", `{"pause":true}`, nil, 404, "no webhook"},
		{"all", "crm", `{"pause":true}`, nil, 200, `"state":"paused","why":"paused by hand by all"`},
		{"all", "crm", `{"after":3}`, nil, 200, `"state":"ok","after":3`},
		{"support", "crm", `{"after":0}`, nil, 403, "role all"},
		{"open", "crm", `{"after":0}`, nil, 403, "role all"},
		{"", "crm", `{}`, nil, 401, ""},
		{"all", "nobody", `{}`, nil, 404, "no webhook"},
		{"all", "crm", `{"after":9}`, nil, 400, "write a number from 0 to 8"},
		{"all", "crm", `{"after":-1}`, nil, 400, "write a number from 0 to 8"},
		{"all", "crm", `{"befor":1}`, nil, 400, "the request body is not valid"},
		{"all", "crm", ``, nil, 400, "the request body is not valid"},
		{"all", "crm", `{}`, []string{"Content-Type", "text/plain"}, 400, "application/json"},
		{"all", "crm", `{}`, []string{"Sec-Fetch-Site", "cross-site"}, 403, ""},
	} {
		status, text := post(c.role, "/-/webhooks/"+c.path, c.body, c.headers...)
		if status != c.status || !strings.Contains(text, c.text) {
			t.Errorf("%s %s %s: %d %s; want %d with %q", c.role, c.path, c.body, status, text, c.status, c.text)
		}
	}
	if _, body := r.get(t, "all", "/-/webhooks"); !strings.Contains(body,
		`{"webhooks":[{"name":"crm","source":"twilio","state":"ok","after":3`) {
		t.Errorf("the list is %s", body)
	}
}

func TestHookSettings(t *testing.T) {
	t.Parallel()
	good := Hook{Name: "crm", URL: "https://crm.example/hook", Source: "twilio", Role: "all", Secret: understudy.NewSecret(hookSecret)}
	r := open(t, some(), Options{Policy: Policy{Hooks: []Hook{good}}})
	p := r.feed.o.Policy
	for want, change := range map[string]func(*Hook){
		"write https://HOST/PATH":     func(h *Hook) { h.URL = "ftp://crm.example" },
		"use https":                   func(h *Hook) { h.URL = "http://crm.example" },
		"can't contain credentials":   func(h *Hook) { h.URL = "https://me:secret@crm.example" },
		"the address is loopback":     func(h *Hook) { h.URL = "https://127.0.0.1:9/" },
		"the address is private":      func(h *Hook) { h.URL = "https://[fd00::1]/" },
		"write whsec_":                func(h *Hook) { h.Secret = understudy.NewSecret("whsec_!!!") },
		"write whsec_ and the base64": func(h *Hook) { h.Secret = understudy.Secret{} },
		"at least 24":                 func(h *Hook) { h.Secret = understudy.NewSecret("whsec_c2hvcnQ=") },
		"random bytes":                func(h *Hook) { h.Secret = understudy.NewSecret("whsec_") },
		`did you mean "calls"`:        func(h *Hook) { h.Kinds = []string{"cals"} },
		"can't see alerts":            func(h *Hook) { h.Role, h.Kinds = "desk", []string{"alerts"} },
		"can't see body":              func(h *Hook) { h.Role, h.Fields = "support", []string{"body"} },
		"can't see anything":          func(h *Hook) { h.Role = "other" },
		`no role "dask"`:              func(h *Hook) { h.Role = "dask" },
		`no source is called "x"`:     func(h *Hook) { h.Source = "x" },
		"two webhooks":                func(*Hook) {},
	} {
		bad := good
		change(&bad)
		p.Hooks = []Hook{good, bad}
		err := r.feed.SetPolicy(t.Context(), p)
		checktest.MustTrue(t, err != nil, "err is nil")
		checktest.Contains(t, err.Error(), want, "err.Error()")
		checktest.Lacks(t, err.Error(), "!!!", "err.Error()")
	}
	if len(r.feed.Webhooks()) != 1 {
		t.Error("wrong settings changed what is in force")
	}
}
