// Tests of the permission to see how far the indexes are, and to make them anew.

package diagnostics

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"understudy"
)

func TestIndex(t *testing.T) {
	const token = "0123456789abcdef"
	var asked []bool
	var fail error
	limited := false
	h := New(Options{Token: token, Index: func(ctx context.Context, anew bool) (Indexed, error) {
		asked = append(asked, anew)
		_, limited = ctx.Deadline()
		return Indexed{Done: 12000, Total: 30000}, fail
	}}).Handler()
	for name, c := range map[string]struct {
		method, from, token string
		fail                error
		status              int
		want                string
	}{
		"seen":                {"GET", "127.0.0.1:9", token, nil, 200, `{"done":12000,"total":30000}`},
		"made anew":           {"POST", "127.0.0.1:9", token, nil, 200, `{"done":12000,"total":30000}`},
		"over IPv6":           {"POST", "[::1]:9", token, nil, 200, `"done"`},
		"another machine":     {"POST", "10.0.0.6:9", token, nil, 403, "only from the machine"},
		"seen from another":   {"GET", "10.0.0.6:9", token, nil, 403, "only from the machine"},
		"no token":            {"GET", "127.0.0.1:9", "", nil, 401, "token"},
		"another token":       {"POST", "127.0.0.1:9", "0123456789abcdeF", nil, 401, "token"},
		"another method":      {"PUT", "127.0.0.1:9", token, nil, 405, ""},
		"to take it away":     {"DELETE", "127.0.0.1:9", token, nil, 405, ""},
		"a store that is not": {"POST", "127.0.0.1:9", token, errors.New("locked"), 503, `"locked"`},
	} {
		t.Run(name, func(t *testing.T) {
			asked, fail, limited = nil, c.fail, false
			r := httptest.NewRequest(c.method, "/-/index", nil)
			r.RemoteAddr = c.from
			if c.token != "" {
				r.Header.Set("Authorization", "Bearer "+c.token)
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != c.status || !strings.Contains(w.Body.String(), c.want) {
				t.Errorf("%d %s, want %d %s", w.Code, w.Body, c.status, c.want)
			}
			if allow := w.Header().Get("Allow"); c.status == 405 && allow != "GET, HEAD, POST" {
				t.Errorf("allowed are %q", allow)
			}
			var want []bool
			if c.status == 200 || c.fail != nil {
				want = []bool{c.method == "POST"}
				if is := w.Header().Get("Content-Type"); !strings.HasPrefix(is, "application/json") || !limited {
					t.Errorf("%s, bounded: %v", is, limited)
				}
			}
			if !slices.Equal(asked, want) {
				t.Errorf("asked %v, want %v", asked, want)
			}
		})
	}
}

// A server without indexes says so; one without a token admits no request.
func TestNoIndex(t *testing.T) {
	for token, want := range map[string]int{"0123456789abcdef": 404, "": 401} {
		h := New(Options{Token: token, Person: func(_ *http.Request) (understudy.Caller, error) { return understudy.Caller{}, nil }}).Handler()
		r := httptest.NewRequest("GET", "/-/index", nil)
		r.RemoteAddr = "127.0.0.1:9"
		r.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("token %q: %d %s", token, w.Code, w.Body)
		}
	}
}
