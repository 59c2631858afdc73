// Tests of the permission to purge, and of the answers.

package diagnostics

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"understudy"
)

func TestPurge(t *testing.T) {
	const token, body = "0123456789abcdef", `{"source":"web","what":"calls/CA1"}`
	var asked []Purge
	var fail error
	h := New(Options{
		Snapshot: func(context.Context) (Snapshot, error) { return Snapshot{}, nil },
		Readable: func(context.Context) error { return nil },
		IsEnding: func() bool { return false },
		Person:   func(*http.Request) (understudy.Caller, error) { return understudy.Caller{}, nil },
		Token:    token,
		Purge: func(_ context.Context, p Purge) (Purged, error) {
			asked = append(asked, p)
			return Purged{Pages: 2, Versions: 1}, fail
		},
	}).Handler()
	for name, c := range map[string]struct {
		from, own, token, body string
		fail                   error
		status                 int
		want                   string
	}{
		"done":                   {"127.0.0.1:9", "", token, body, nil, 200, `{"pages":2,"versions":1,"files":0,"samples":0}`},
		"over IPv6":              {"[::1]:9", "", token, body, nil, 200, `{"pages":2`},
		"its own address":        {"10.0.0.5:9", "10.0.0.5", token, body, nil, 200, `{"pages":2`},
		"another machine":        {"10.0.0.6:9", "10.0.0.5", token, body, nil, 403, "only from the machine"},
		"no address":             {"@", "", token, body, nil, 403, "only from the machine"},
		"no token":               {"127.0.0.1:9", "", "", body, nil, 401, "token"},
		"another token":          {"127.0.0.1:9", "", "0123456789abcdeF", body, nil, 401, "token"},
		"the beginning of it":    {"127.0.0.1:9", "", "0123", body, nil, 401, "token"},
		"no body":                {"127.0.0.1:9", "", token, "", nil, 400, "body"},
		"a name nobody knows":    {"127.0.0.1:9", "", token, `{"sorce":"web"}`, nil, 400, "sorce"},
		"a large body":           {"127.0.0.1:9", "", token, `{"source":"` + strings.Repeat("x", maxPurge) + `"}`, nil, 400, "too large"},
		"what names nothing":     {"127.0.0.1:9", "", token, body, fmt.Errorf("%w: no kind cals", understudy.ErrInvalid), 400, "no kind cals"},
		"a store that is locked": {"127.0.0.1:9", "", token, body, errors.New("locked"), 503, "locked"},
	} {
		t.Run(name, func(t *testing.T) {
			asked, fail = nil, c.fail
			r := httptest.NewRequest("POST", "/-/purge", strings.NewReader(c.body))
			r.RemoteAddr = c.from
			if c.own != "" {
				r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, &net.TCPAddr{IP: net.ParseIP(c.own)}))
			}
			if c.token != "" {
				r.Header.Set("Authorization", "Bearer "+c.token)
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != c.status || !strings.Contains(w.Body.String(), c.want) {
				t.Errorf("%d %s, want %d %s", w.Code, w.Body, c.status, c.want)
			}
			if reached := c.status == 200 || c.fail != nil; reached != (len(asked) == 1) || reached && asked[0] != (Purge{"web", "calls/CA1"}) {
				t.Errorf("asked for %+v", asked)
			}
		})
	}
}

// Without a token no request may purge, not even one with an empty token.
func TestPurgeWithoutAToken(t *testing.T) {
	h := New(Options{}).Handler()
	r := httptest.NewRequest("POST", "/-/purge", strings.NewReader("{}"))
	r.RemoteAddr = "127.0.0.1:9"
	r.Header.Set("Authorization", "Bearer ")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != 401 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
