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

// What a request's header asks for, and what is refused.
func TestHeadersOfAKey(t *testing.T) {
	s := one(Headers{
		Key:  map[string][]string{"shop-account": nil, "accept": {"application/json", "application/vnd.shop*json"}, "Shop-Version": nil},
		Send: map[string]string{"Shop-Version": "2026-01"}, Write: []string{"Idempotency-Key", "If-Match"}, Ignore: []string{"X-Shop-Client*"},
	})
	if err := s.Compile(); err != nil {
		t.Fatal(err)
	}
	if got := s.Headers.Vary(); got != ", Accept, Shop-Account, Shop-Version" {
		t.Errorf("Vary: %s", got)
	}
	for _, c := range []struct{ method, header, key, says string }{
		{"GET", "", "", ""},
		{"GET", "Shop-Account: ac_1", "Shop-Account=ac_1", ""},
		{"GET", "Shop-Account: ac_1|Accept: text/html|Shop-Version: 2026-01", "Accept=text%2Fhtml&Shop-Account=ac_1", ""},
		{"GET", "Shop-Account: ", "", ""},
		{"GET", "Shop-Version: 2025-01", "Shop-Version=2025-01", ""},
		{"GET", "Accept: application/vnd.shop.v3+json, application/json;q=0.9", "", ""},
		{"GET", "Accept: application/vnd.shop.v3+xml", "Accept=application%2Fvnd.shop.v3%2Bxml", ""},
		{"GET", "Accept: application/json|Accept: text/csv", "Accept=application%2Fjson%2C+text%2Fcsv", ""},
		{"GET", "Shop-Account: a\x01", "", "printable"},
		{"GET", "Shop-Account: " + strings.Repeat("a", 501), "", "at most 500"},
		{"GET", "X-Shop-Client-Telemetry: {}|Traceparent: 00-1|Sec-Fetch-Mode: cors|X-Forwarded-For: 1.2.3.4|User-Agent: x", "", ""},
		{"GET", "X-Http-Method-Override: DELETE", "", "use the method itself"},
		{"GET", "X-Method-Override: DELETE", "", "use the method itself"},
		{"GET", "X-Sudo: root", "", "X-Sudo: it is not known what it asks for"},
		{"GET", "If-Match: x|If-Unmodified-Since: x|Idempotency-Key: x", "", ""},
		{"POST", "If-Match: x|Idempotency-Key: x", "", ""},
		{"POST", "If-Unmodified-Since: x", "", "it is not known"},
	} {
		given := http.Header{}
		for field := range strings.SplitSeq(c.header, "|") {
			if name, value, ok := strings.Cut(field, ": "); ok {
				given.Add(name, value)
			}
		}
		key, err := s.Headers.Read(c.method, given)
		if got := key.String(); got != c.key || (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s %q: %q, %v; want %q, %q", c.method, c.header, got, err, c.key, c.says)
		}
	}
	if err := s.Headers.Add(map[string]string{"shop-version": "2025-01"}, []string{"X-Team"}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"2025-01": true, "2024-01": false} {
		if key, err := s.Headers.Read("GET", http.Header{"Shop-Version": {name}, "X-Team": {"a"}}); err != nil || (len(key) == 0) != want {
			t.Errorf("a source that sends 2025-01, asked with %s: %v, %v", name, key, err)
		}
	}
	// A fetch names a vendor's type that the spec says nothing of.
	if _, err := one(Headers{}).Headers.Read("GET", http.Header{"Accept": {"application/vnd.x.full+json"}}); err == nil {
		t.Error("a vendor's media type passed")
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
		{Headers{Key: map[string][]string{"Cookie": nil}}, "headers.key"},
		{Headers{Key: map[string][]string{"A": nil}, Write: []string{"A"}}, "in key and in write"},
		{Headers{Ignore: []string{"a b*"}}, "headers.ignore"},
	} {
		if err := one(c.h).Compile(); err == nil || !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(c.says)) {
			t.Errorf("%+v: %v, want %q", c.h, err, c.says)
		}
	}
}

func TestTargetsHaveNoKey(t *testing.T) {
	s := &Spec{Name: "x", Hosts: []Host{{URL: "https://x.example"}}, Auth: Auth{Style: "query api_key"}}
	if err := s.Compile(); err != nil {
		t.Fatal(err)
	}
	got, err := s.Follow("x", "https://x.example/a?b=1&api_key=sk-123")
	if err != nil || got.Key.URI != "/a?b=1" {
		t.Errorf("%v, %v", got, err)
	}
}

func TestHeadersOfCredentialsHaveNoOtherMeaning(t *testing.T) {
	for style, want := range map[string]string{"header X-Key": "carries a credential", "header Cookie": "is written by this server"} {
		s := &Spec{Name: "x", Hosts: []Host{{URL: "https://x.example"}}, Auth: Auth{Style: style}, Headers: Headers{Write: []string{"X-Key"}}}
		if err := s.Compile(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", style, err)
		}
	}
}
