// Tests: a body in is one value and no more, a body out is unchanged, and no request
// from elsewhere counts as this machine's.

package jsonhttp

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"understudy/internal/checktest"
)

func TestJSON(t *testing.T) {
	w := httptest.NewRecorder()
	Write(w, 202, map[string]string{"a": "<b> & ü"})
	if want := `{"a":"<b> & ü"}` + "\n"; w.Code != 202 || w.Body.String() != want {
		t.Errorf("%d %q", w.Code, w.Body)
	}
	for name, want := range map[string]string{"Content-Type": "application/json", "Content-Length": "17", "X-Content-Type-Options": "nosniff",
		"Cache-Control": "no-store"} {
		if got := w.Header().Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	w = httptest.NewRecorder()
	w.Header().Set("Cache-Control", "private")
	Error(w, 400, `no "x"`)
	checktest.Equal(t, w.Code, 400, "w.Code; w.Body %q", w.Body)
	checktest.Equal(t, w.Body.String(), `{"error":"no \"x\""}`+"\n", "w.Body.String()")
	checktest.Equal(t, w.Header().Get("Cache-Control"), "private", `w.Header().Get("Cache-Control"); w.Body %q`,
		w.Body)
	w = httptest.NewRecorder()
	Write(w, 200, func() {})
	if w.Code != 500 || strings.Contains(w.Body.String(), "func") {
		t.Errorf("what cannot be written: %d %q", w.Code, w.Body)
	}
}

func TestRead(t *testing.T) {
	for body, want := range map[string]string{
		`{"n":1}`: "", " {\"n\":1}\n ": "", `{}`: "", `{"n":1,"N":1}`: "",
		`{"n":1,"m":2}`:                          `unknown field "m"`,
		`{"n":1}{"n":2}`:                         "other data follows",
		`{"n":1} x`:                              "invalid character",
		`{"n":"1"}`:                              "N must be a whole number, not string",
		`{"n":1`:                                 "ends too soon",
		``:                                       "ends too soon",
		`{"n":` + strings.Repeat("1", 100) + `}`: "too large",
		`{"n":1}` + strings.Repeat(" ", 100):     "too large",
		`{"n":1}` + strings.Repeat(" ", 100) + `{"n":2}`: "too large",
	} {
		var v struct{ N int }
		err := Read(httptest.NewRecorder(), httptest.NewRequest("POST", "/", strings.NewReader(body)), 50, &v)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%.40s: %v, want %q", body, err, want)
		}
	}
}

func TestLocal(t *testing.T) {
	for _, c := range []struct {
		from, to string
		want     bool
	}{
		{"127.0.0.1:1", "", true}, {"127.9.9.9:1", "10.0.0.1", true}, {"[::1]:1", "", true}, {"[::ffff:127.0.0.1]:1", "", true},
		{"10.0.0.1:1", "10.0.0.1", true}, {"[::ffff:10.0.0.1]:1", "10.0.0.1", true}, {"[2001:db8::1]:1", "2001:db8::1", true},
		{"10.0.0.1:1", "", false}, {"10.0.0.1:1", "10.0.0.2", false}, {"[2001:db8::1]:1", "2001:db8::2", false},
		{"", "", false}, {"127.0.0.1", "", false}, {"localhost:1", "", false}, {"@", "", false},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = c.from
		if c.to != "" {
			r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(&net.TCPAddr{IP: net.ParseIP(c.to), Port: 80})))
		}
		if got := IsLocal(r); got != c.want {
			t.Errorf("from %q to %q: %v", c.from, c.to, got)
		}
	}
	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr = "10.0.0.1:1"
	r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(&net.UnixAddr{Name: "x"})))
	if IsLocal(r) {
		t.Error("a socket that has no address")
	}
}

func TestBears(t *testing.T) {
	for _, c := range []struct {
		header, token string
		want          bool
	}{
		{"Bearer abc", "abc", true}, {"Bearer abd", "abc", false}, {"Bearer ab", "abc", false}, {"Bearer abcd", "abc", false},
		{"Basic abc", "abc", false}, {"bearer abc", "abc", false}, {"abc", "abc", false}, {"", "abc", false}, {"Bearer ", "", false},
		{"", "", false},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		if c.header != "" {
			r.Header.Set("Authorization", c.header)
		}
		if got := HasToken(r, c.token); got != c.want {
			t.Errorf("%q, %q: %v", c.header, c.token, got)
		}
	}
}

// A script's request is not asked for a credential by Basic: the browser would ask its reader.
func TestChallenge(t *testing.T) {
	for mode, want := range map[string]string{
		"": `Basic realm="ours", charset="UTF-8"`, "navigate": `Basic realm="ours", charset="UTF-8"`,
		"cors": `Session realm="ours", charset="UTF-8"`, "same-origin": `Session realm="ours", charset="UTF-8"`,
	} {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Sec-Fetch-Mode", mode)
		RequestCredential(w, r, "ours")
		if got := w.Header().Get("WWW-Authenticate"); got != want {
			t.Errorf("mode %q: %s", mode, got)
		}
	}
}
