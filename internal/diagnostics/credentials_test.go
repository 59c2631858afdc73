// Tests of the commands about credentials.

package diagnostics

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"understudy/internal/credentials"
)

// madeScope keeps the scope of the credential that was made last.
type madeScope struct {
	Credentials
	scope credentials.Scope
}

func (m *madeScope) Make(_ context.Context, name string, s credentials.Scope, _ string) (credentials.Shown, error) {
	m.scope = s
	return credentials.Shown{Name: name}, nil
}

func TestCredentialEndsAtADateOrAfterADuration(t *testing.T) {
	now := time.Now()
	day := time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		expires string
		from    time.Time // zero: it is refused
	}{
		{"30d", now.Add(30 * 24 * time.Hour)}, {"2099-01-01", day}, {"2099-01-01T00:00:00Z", day}, {"soon", time.Time{}}, {"-3h", time.Time{}},
	} {
		book := &madeScope{}
		h := New(Options{Token: "token", Credentials: book, Now: time.Now}).Handler()
		body := strings.NewReader(`{"name":"a","expires":"` + c.expires + `"}`)
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/-/credentials", body)
		r.RemoteAddr = "127.0.0.1:1"
		r.Host = "127.0.0.1"
		r.Header.Set("Authorization", "Bearer token")
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if c.from.IsZero() {
			if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "or 30d") {
				t.Errorf("%s: %d %s, want 400 and what may be written", c.expires, w.Code, w.Body)
			}
			continue
		}
		if w.Code != http.StatusOK || book.scope.Expires == nil {
			t.Errorf("%s: %d %s", c.expires, w.Code, w.Body)
			continue
		}
		if late := book.scope.Expires.Sub(c.from); late < 0 || late > time.Minute {
			t.Errorf("%s: it ends at %v, want %v", c.expires, book.scope.Expires, c.from)
		}
	}
}
