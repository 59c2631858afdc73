// Tests of the permission to erase and to see receipts.

package diagnostics

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/store/erase"
)

func TestErase(t *testing.T) {
	const token, body = "0123456789abcdef", `{"source":"web","what":"+14155550100"}`
	receipt := Receipt{Number: 7, Source: "web", Cause: "asked", Hash: "ab", Begun: time.Unix(1, 0).UTC()}
	var asked []Erase
	var fail error
	var found Erasing
	known, role := true, understudy.RoleAll
	h := New(Options{
		Snapshot: func(context.Context) (Snapshot, error) { return Snapshot{}, nil },
		Readable: func(context.Context) error { return nil },
		IsEnding: func() bool { return false },
		Person: func(*http.Request) (understudy.Caller, error) {
			if !known {
				return understudy.Caller{}, understudy.ErrUnauthorized
			}
			return understudy.Caller{Grant: &understudy.Grant{Role: role}}, nil
		},
		Token: token,
		Erase: func(_ context.Context, e Erase) (Erasing, error) { asked = append(asked, e); return found, fail },
		Receipts: func(_ context.Context, before int64, limit int) (Receipts, error) {
			return Receipts{Erasures: []Receipt{receipt}[:min(limit, 1)], Waiting: erase.Waiting{Records: before}}, fail
		},
	}).Handler()
	role = "support"
	if w := get(h, "/-/erasures"); w.Code != http.StatusForbidden || strings.Contains(w.Body.String(), "ab") {
		t.Errorf("receipts, as a role that does not see all: %d %s", w.Code, w.Body)
	}
	role = understudy.RoleAll
	for name, c := range map[string]struct {
		method, target, from, token, body string
		found                             Erasing
		fail                              error
		stranger                          bool
		status                            int
		want                              string
	}{
		"listed": {"POST", "/-/erase", "127.0.0.1:9", token, body, Erasing{Found: map[string]int{"calls": 2}, Receipt: &receipt},
			nil, false, 202, `"receipt":{"number":7`},
		"only asked": {"POST", "/-/erase", "127.0.0.1:9", token, `{"source":"web","what":"1","dry":true}`,
			Erasing{Found: map[string]int{"calls": 2}}, nil, false, 200, `{"found":{"calls":2}}`},
		"another machine":     {"POST", "/-/erase", "10.0.0.6:9", token, body, Erasing{}, nil, false, 403, "only from the machine"},
		"no token":            {"POST", "/-/erase", "127.0.0.1:9", "", body, Erasing{}, nil, false, 401, "token"},
		"another token":       {"POST", "/-/erase", "127.0.0.1:9", "0123456789abcdeF", body, Erasing{}, nil, false, 401, "token"},
		"a word nobody knows": {"POST", "/-/erase", "127.0.0.1:9", token, `{"sorce":"web"}`, Erasing{}, nil, false, 400, "sorce"},
		"what names nothing": {"POST", "/-/erase", "127.0.0.1:9", token, body, Erasing{}, fmt.Errorf("%w: no source", understudy.ErrInvalid),
			false, 400, "no source"},
		"a store locked": {"POST", "/-/erase", "127.0.0.1:9", token, body, Erasing{}, errors.New("locked"), false, 503, "locked"},
		"read by a GET":  {"GET", "/-/erase", "127.0.0.1:9", token, "", Erasing{}, nil, false, 405, ""},
		"receipts": {"GET", "/-/erasures", "10.0.0.6:9", "", "", Erasing{}, nil, false, 200,
			`{"waiting":{"records":0},"erasures":[{"number":7,"source":"web","cause":"asked","hash":"ab"`},
		"receipts by token":     {"GET", "/-/erasures?before=9&limit=1", "127.0.0.1:9", token, "", Erasing{}, nil, true, 200, `"records":9`},
		"receipts, a stranger":  {"GET", "/-/erasures", "127.0.0.1:9", "", "", Erasing{}, nil, true, 401, ""},
		"receipts, a bad token": {"GET", "/-/erasures", "127.0.0.1:9", "x", "", Erasing{}, nil, false, 401, ""},
		"receipts before none":  {"GET", "/-/erasures?before=0", "127.0.0.1:9", "", "", Erasing{}, nil, false, 400, "before"},
		"receipts unread":       {"GET", "/-/erasures", "127.0.0.1:9", "", "", Erasing{}, errors.New("gone"), false, 503, "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			asked, fail, found, known = nil, c.fail, c.found, !c.stranger
			r := httptest.NewRequest(c.method, c.target, strings.NewReader(c.body))
			r.RemoteAddr = c.from
			if c.token != "" {
				r.Header.Set("Authorization", "Bearer "+c.token)
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != c.status || !strings.Contains(w.Body.String(), c.want) {
				t.Fatalf("%d %s, want %d with %q", w.Code, w.Body, c.status, c.want)
			}
			if want := c.method == "POST" && (c.status == 200 || c.status == 202 || c.fail != nil); (len(asked) == 1) != want {
				t.Fatalf("asked %v", asked)
			}
		})
	}
}
