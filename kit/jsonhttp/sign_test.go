package jsonhttp

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestErrorsWithoutAnOriginAreSigned: what says already where it is from, and what is no error, stays as it is.
func TestErrorsWithoutAnOriginAreSigned(t *testing.T) {
	for want, answer := range map[string]http.HandlerFunc{
		"":          func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusFound) },
		"not found": http.NotFound,
		"why \"it\" is so": func(w http.ResponseWriter, r *http.Request) {
			Error(w, http.StatusBadRequest, "why “it” is\r\n\tso")
		},
	} {
		w := httptest.NewRecorder()
		answer(SignErrors(w), httptest.NewRequest(http.MethodGet, "/", nil))
		if got := strings.Join(w.Header()[ErrorHeader], "|"); got != want {
			t.Errorf("%d is signed %q, want %q", w.Code, got, want)
		}
	}
	w := httptest.NewRecorder()
	w.Header()["Cache-Status"] = []string{"understudy; fwd=miss"}
	SignErrors(w).WriteHeader(http.StatusNotFound)
	if got := w.Header()[ErrorHeader]; got != nil {
		t.Errorf("an answer of upstream is signed %q", got)
	}
}
