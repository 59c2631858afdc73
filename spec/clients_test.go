package spec

import (
	"net/http"
	"reflect"
	"strings"
	"testing"
)

// one is the smallest spec with these headers.
func one(h Headers) *Spec {
	return &Spec{Name: "x", Hosts: []Host{{URL: "http://x"}}, Auth: Auth{Style: "none"}, Headers: h}
}

func TestHeaders(t *testing.T) {
	s := one(Headers{Write: []string{"idempotency-key", "If-Match"}, Send: map[string]string{"notion-version": "2022-06-28"}})
	if err := s.Compile(); err != nil {
		t.Fatal(err)
	}
	if s.Headers.Send["Notion-Version"] != "2022-06-28" {
		t.Errorf("sent: %v", s.Headers.Send)
	}
	given := http.Header{"Idempotency-Key": {"k1"}, "If-Match": {`"a"`, `"b"`}, "X-Other": {"x"}, "Authorization": {"secret"}}
	want := http.Header{"Idempotency-Key": {"k1"}, "If-Match": {`"a"`, `"b"`}}
	if got := s.Headers.OfWrite(given); !reflect.DeepEqual(got, want) {
		t.Errorf("passed on %v", got)
	}
	if got := s.Headers.OfWrite(http.Header{"X-Other": {"x"}}); got != nil {
		t.Errorf("passed on %v", got)
	}
}

func TestHeadersThatCannotBeNamed(t *testing.T) {
	many := make([]string, 21)
	for i := range many {
		many[i] = "X-" + strings.Repeat("a", i+1)
	}
	for _, c := range []struct {
		h    Headers
		says string
	}{
		{Headers{Write: []string{""}}, "want the name of a header"},
		{Headers{Write: []string{"a b"}}, "want the name of a header"},
		{Headers{Write: []string{"authorization"}}, "Headers.write"},
		{Headers{Write: []string{"x-http-method-override"}}, "is written by this server"},
		{Headers{Write: []string{"X-Forwarded-Host"}}, "is written by this server"},
		{Headers{Send: map[string]string{"Cookie": "a=b"}}, "is written by this server"},
		{Headers{Send: map[string]string{"X-A": ""}}, "1 to 1000 printable"},
		{Headers{Send: map[string]string{"X-A": "a\r\nX-B: b"}}, "1 to 1000 printable"},
		{Headers{Write: many}, "more than 20"},
	} {
		if err := one(c.h).Compile(); err == nil || !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(c.says)) {
			t.Errorf("%+v: %v, want %q", c.h, err, c.says)
		}
	}
}
