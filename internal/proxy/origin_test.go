// Tests of answers for callers that ask at upstream's own addresses.

package proxy

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"understudy"
)

const ours = "http://127.0.0.1:4115"

// theirs are two hosts, as the spec has them.
func theirs(path string) string {
	if strings.HasPrefix(path, "/v1/") {
		return "https://monitor.example"
	}
	return "https://api.example"
}

func TestAnswersAtUpstreamsOwnAddresses(t *testing.T) {
	b := newBed(t)
	b.Proxy.o.Source.PublicURL = ours
	there := b.Proxy.UpstreamFrontend(theirs, b.Proxy.o.Callers)
	for body, want := range map[string]string{
		`{"url":"` + ours + `/2010/x?a=1","next":"` + ours + `/v1/y"}`: `{"url":"https://api.example/2010/x?a=1",` +
			`"next":"https://monitor.example/v1/y"}`,
		`{"url":"` + ours + `\/v1\/y"}`:        `{"url":"https://monitor.example\/v1\/y"}`,
		`{"url":"` + ours + `"}`:               `{"url":"https://api.example"}`,
		`{"url":"` + ours + `?a"}`:             `{"url":"https://api.example?a"}`,
		`{"url":"` + ours + `0/x"}`:            `{"url":"` + ours + `0/x"}`,
		`{"body":"see ` + ours + `/x"}`:        `{"body":"see ` + ours + `/x"}`,
		`{"body":"\"` + ours + `/x\""}`:        `{"body":"\"` + ours + `/x\""}`,
		`{"body":"\\","url":"` + ours + `/x"}`: `{"body":"\\","url":"https://api.example/x"}`,
		oneMessage:                             oneMessage,
	} {
		b.answers(page("messages", false, 200, body))
		ask := func(h http.Handler, headers ...string) *httptest.ResponseRecorder {
			r := httptest.NewRequest(http.MethodGet, root+"/Messages/SM1.json", nil)
			r.SetBasicAuth(account, demo)
			for i := 0; i < len(headers); i += 2 {
				r.Header.Set(headers[i], headers[i+1])
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w
		}
		here, w := ask(b), ask(there)
		if w.Body.String() != want || here.Body.String() != body {
			t.Errorf("%s:\n%s\n%s", body, w.Body, want)
		}
		if same := here.Header().Get("Etag") == w.Header().Get("Etag"); same != (body == want) {
			t.Errorf("%s: the version is %s, and %s", body, here.Header().Get("Etag"), w.Header().Get("Etag"))
		}
		if again := ask(there, "If-None-Match", w.Header().Get("Etag")); again.Code != http.StatusNotModified {
			t.Errorf("%s: %d", body, again.Code)
		}
	}
	// A field that is passed back leads where its caller asks.
	b.Proxy.o.Source.Spec.Headers.Back = []string{"X-Next-Link"}
	for value, want := range map[string]string{ours + "/v1/y?a=/b": "https://monitor.example/v1/y?a=/b", "req_1": "req_1"} {
		p := page("messages", false, 200, oneMessage)
		p.Header = understudy.Query{{Name: "X-Next-Link", Value: value}}.String()
		b.answers(p)
		for h, want := range map[http.Handler]string{b: value, there: want} {
			r := httptest.NewRequest(http.MethodGet, root+"/Messages/SM1.json", nil)
			r.SetBasicAuth(account, demo)
			w := httptest.NewRecorder()
			if h.ServeHTTP(w, r); w.Header().Get("X-Next-Link") != want {
				t.Errorf("%s is passed back as %q, want %q", value, w.Header().Get("X-Next-Link"), want)
			}
		}
	}
	// What the mirror has compressed is not sent in its place.
	text := `{"body":"` + long() + `","url":"` + ours + `/x"}`
	a := b.answers(page("messages", false, 200, text))
	a.Gzip = zip(t, text)
	r := httptest.NewRequest(http.MethodGet, root+"/Messages/SM1.json", nil)
	r.SetBasicAuth(account, demo)
	r.Header.Set("Accept-Encoding", "gzip")
	w := httptest.NewRecorder()
	there.ServeHTTP(w, r)
	if got := unzip(t, w.Body.Bytes()); !strings.Contains(got, `"url":"https://api.example/x"`) {
		t.Errorf("compressed: %.100s", got)
	}
}

// FuzzAtOrigin: a body stays JSON of the same shape, and no text but the whole beginning of a
// string changes.
func FuzzAtOrigin(f *testing.F) {
	for _, seed := range []string{`{"a":"` + ours + `/x"}`, `["` + ours + `","\"` + ours + `/"]`, `{"` + ours + `/":"\\` + ours + `"}`,
		`"\\\"` + ours + `/`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p := &Proxy{origin: theirs}
		out := p.replaceOrigins([]byte(text), []byte(`"`+ours))
		back := strings.NewReplacer(`"https://api.example`, `"`+ours, `"https://monitor.example`, `"`+ours).Replace(string(out))
		if !strings.Contains(text, "example") && back != text {
			t.Errorf("%q is %q", text, out)
		}
		if json.Valid([]byte(text)) != json.Valid(out) {
			t.Errorf("%q is %q", text, out)
		}
	})
}
