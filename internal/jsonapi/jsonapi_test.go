package jsonapi_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/jsonapi"
	"understudy/kit/jsonhttp"
)

// order is the body of the requests here.
type order struct {
	Name string `json:"name"`
}

// serve answers orders of the command and of people with the role "desk", as long as nothing fails.
func serve(fail error) http.Handler {
	forms, _ := jsonhttp.NewFormProtection("https://calls.example.com/")
	person := func(r *http.Request) (understudy.Caller, error) {
		name := r.Header.Get("X-Name")
		if name == "" {
			return understudy.Caller{}, fmt.Errorf("callers: %w: no credential", understudy.ErrUnauthorized)
		}
		return understudy.Caller{Name: name, Grant: &understudy.Grant{Role: strings.TrimPrefix(name, "nobody")}}, nil
	}
	o := &jsonapi.Options{
		Identify: func(r *http.Request) (understudy.Caller, error) { return jsonapi.IdentifyPerson(r, "sesame", person) },
		Forms:    forms, ForeignError: "another site", Vary: "Authorization", MaxBody: 50, RequireJSON: true, BodyError: "want an order: ",
		Methods: []string{http.MethodPost, http.MethodPut},
		Explain: func(_ *http.Request, err error, a *jsonapi.Refusal) {
			if a.Status == http.StatusServiceUnavailable {
				a.Error, a.RetryAfter = "busy", "5"
			}
		},
	}
	return jsonapi.HandleBody(o, func(_ context.Context, c understudy.Caller, _ *http.Request, in *order) (any, error) {
		switch in.Name {
		case "nothing":
			return nil, fail
		case "later":
			return jsonapi.Response{Status: http.StatusAccepted, Value: in}, fail
		}
		return map[string]string{c.Name: in.Name}, fail
	})
}

func TestOrdersAreAnsweredOrRefused(t *testing.T) {
	for _, c := range []struct {
		method, body string
		headers      []string
		fail         error
		status       int
		says         string
	}{
		{"POST", `{"name":"tea"}`, []string{"Authorization", "Bearer sesame"}, nil, 200, `{"run.json":"tea"}`},
		{"POST", `{"name":"tea"}`, []string{"X-Name", "desk"}, nil, 200, `{"desk":"tea"}`},
		{"PUT", `{"name":"later"}`, []string{"X-Name", "desk"}, nil, 202, `{"name":"later"}`},
		{"POST", `{"name":"nothing"}`, []string{"X-Name", "desk"}, nil, 204, ""},
		{"POST", `{"name":"tea"}`, nil, nil, 401, `{"error":"no credential"}`},
		{"POST", `{"name":"tea"}`, []string{"X-Name", "nobody"}, nil, 403, `{"error":"nobody has no role"}`},
		{"DELETE", ``, []string{"X-Name", "desk"}, nil, 405, `{"error":"/orders takes POST and PUT"}`},
		{"POST", `{"name":"tea"}`, []string{"X-Name", "desk", "Sec-Fetch-Site", "cross-site"}, nil, 403, `{"error":"another site"}`},
		{"POST", `{"name":"tea"}`, []string{"X-Name", "desk", "Sec-Fetch-Site", "same-site", "Origin", "https://calls.example.com"}, nil,
			200, `{"desk":"tea"}`},
		{"POST", `{"name":"tea"}`, []string{"X-Name", "desk", "Content-Type", "text/plain"}, nil, 400, "must be application/json"},
		{"POST", `{"nane":"tea"}`, []string{"X-Name", "desk"}, nil, 400, `{"error":"want an order: body: unknown field \"nane\""}`},
		{"POST", `{"name":"` + strings.Repeat("x", 50) + `"}`, []string{"X-Name", "desk"}, nil, 400, "too large"},
		{"POST", `{"name":"tea"}`, []string{"X-Name", "desk"}, errors.New("locked"), 503, `{"error":"busy"}`},
	} {
		r := httptest.NewRequest(c.method, "/orders", strings.NewReader(c.body))
		r.RemoteAddr = "127.0.0.1:9"
		r.Header.Set("Content-Type", "application/json")
		for i := 0; i < len(c.headers); i += 2 {
			r.Header.Set(c.headers[i], c.headers[i+1])
		}
		w := httptest.NewRecorder()
		serve(c.fail).ServeHTTP(w, r)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.says) {
			t.Errorf("%s %s %v: %d %s; want %d %s", c.method, c.body, c.headers, w.Code, w.Body, c.status, c.says)
		}
		h := w.Header()
		checktest.Equal(t, (h.Get("WWW-Authenticate") != ""), (c.status == 401), `(h.Get("WWW-Authenticate") != "")`)
		checktest.Equal(t, (h.Get("Retry-After") == "5"), (c.status == 503), `(h.Get("Retry-After") == "5")`)
		checktest.Equal(t, (h.Get("Allow") == "POST, PUT"), (c.status == 405), `(h.Get("Allow") == "POST, PUT")`)
		checktest.Equal(t, (h.Get(jsonhttp.ErrorHeader) != ""), (c.status >= 400),
			`(h.Get(jsonhttp.ErrorHeader) != "")`)
	}
}

func TestCommandsComeFromThisMachineWithTheToken(t *testing.T) {
	o := &jsonapi.Options{Identify: jsonapi.AuthorizeCommand("sesame")}
	h := jsonapi.Handle(o, func(_ context.Context, c understudy.Caller, _ *http.Request) (any, error) { return c.Name, nil })
	for _, c := range []struct {
		from, token string
		status      int
		challenge   string
	}{
		{"127.0.0.1:9", "sesame", 200, ""}, {"127.0.0.1:9", "other", 401, `Bearer realm="run.json"`}, {"10.0.0.6:9", "sesame", 403, ""},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = c.from
		r.Header.Set("Authorization", "Bearer "+c.token)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != c.status || w.Header().Get("WWW-Authenticate") != c.challenge {
			t.Errorf("%s with %q: %d %v", c.from, c.token, w.Code, w.Header())
		}
	}
}

func TestQuestionsOfOtherSitesAndWithBodiesAreRefused(t *testing.T) {
	for want, change := range map[string]func(*http.Request){
		"a search has no body":                 func(r *http.Request) { r.ContentLength = 1 },
		"this request comes from another site": func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
		"":                                     func(*http.Request) {},
		"no error, as a link was used": func(r *http.Request) {
			r.Header.Set("Sec-Fetch-Site", "cross-site")
			r.Header.Set("Sec-Fetch-Dest", "document")
		},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		change(r)
		err := jsonapi.CheckGet(httptest.NewRecorder(), r, "search")
		if wrong := want != "" && !strings.HasPrefix(want, "no "); wrong != (err != nil) || wrong && understudy.PlainText(err) != want {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
