// Tests of rotating tokens.
package slowapi_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"understudy/internal/slowapi"
)

func TestTokensAreReplaced(t *testing.T) {
	s, err := slowapi.New(slowapi.Options{Records: 10})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	set := func(body string) int {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/-/token", strings.NewReader(body)))
		return w.Code
	}
	asks := func(token string) int {
		r := httptest.NewRequest(http.MethodGet, "/2010-04-01/Accounts/"+mainSID+"/Calls.json", nil)
		r.SetBasicAuth(mainSID, token)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w.Code
	}
	for _, step := range []struct {
		set       string
		status    int
		old, next int
	}{
		{"", 0, 200, 401},
		{`{"tokens":[]}`, 400, 200, 401},
		{`{"tokens":["slowapitoken","next"]}`, 200, 200, 200},
		{`{"tokens":["next"]}`, 200, 401, 200},
		{`{"tokens":[""]}`, 400, 401, 200},
	} {
		if step.set != "" {
			if got := set(step.set); got != step.status {
				t.Errorf("%s: %d", step.set, got)
			}
		}
		if old, next := asks("slowapitoken"), asks("next"); old != step.old || next != step.next {
			t.Errorf("after %s: %d and %d, want %d and %d", step.set, old, next, step.old, step.next)
		}
	}
}
