package spec

import (
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"understudy/internal/checktest"
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
	if got := s.Headers.FilterWriteHeader(given); !reflect.DeepEqual(got, want) {
		t.Errorf("passed on %v", got)
	}
	if got := s.Headers.FilterWriteHeader(http.Header{"X-Other": {"x"}}); got != nil {
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
		{"GET", "X-Http-Method-Override: DELETE", "", "cannot replace the method"},
		{"GET", "X-Method-Override: DELETE", "", "cannot replace the method"},
		{"GET", "X-Sudo: root", "", "X-Sudo: its meaning is not known"},
		{"GET", "If-Match: x|If-Unmodified-Since: x|Idempotency-Key: x", "", ""},
		{"POST", "If-Match: x|Idempotency-Key: x", "", ""},
		{"POST", "If-Unmodified-Since: x", "If-Unmodified-Since=x", ""},
		{"GET", "Accept: */*", "", ""},
		{"GET", "Accept: application/json, text/plain, */*", "", ""},
		{"GET", "Accept: text/plain", "Accept=text%2Fplain", ""},
		{"GET", "Accept: text/csv, */*;q=0.1", "Accept=text%2Fcsv%2C+%2A%2F%2A%3Bq%3D0.1", ""},
	} {
		given := http.Header{}
		for field := range strings.SplitSeq(c.header, "|") {
			if name, value, ok := strings.Cut(field, ": "); ok {
				given.Add(name, value)
			}
		}
		key, _, err := s.Headers.ReadKey(c.method, given)
		{
			got := key.String()
			checktest.Equal(t, got, c.key, "%s %q: got; %v", c.method, c.header, err)
			checktest.Equal(t, (err == nil), (c.says == ""), "%s %q: (err == nil); got %q", c.method, c.header, got)
			checktest.True(t, !(err != nil && !strings.Contains(err.Error(), c.says)),
				"%s %q: err != nil && !strings.Contains(err.Error(), c.says); err is %v; got %q", c.method, c.header,
				err, got)
		}
	}
	if err := s.Headers.Add(map[string]string{"shop-version": "2025-01"}, []string{"X-Team"}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"2025-01": true, "2024-01": false} {
		if key, _, err := s.Headers.ReadKey("GET", http.Header{"Shop-Version": {name}, "X-Team": {"a"}}); err != nil || (len(key) == 0) != want {
			t.Errorf("a source that sends 2025-01, asked with %s: %v, %v", name, key, err)
		}
	}
}

// A field that the spec does not name is passed on, unless it could say who asks, whose data are meant, or which
// address or method, or the spec is strict.
func TestHeadersThatAreNotNamed(t *testing.T) {
	open, strict := one(Headers{}), one(Headers{Strict: true})
	for _, name := range []string{"X-Foo", "Api-Version", "X-Include-Deleted", "Idempotency-Key"} {
		key, unknown, err := open.Headers.ReadKey("POST", http.Header{name: {"a"}, "Zz": {"b"}})
		checktest.MustNoError(t, err, "%s", name)
		checktest.Equal(t, unknown, name, "%s: unknown", name)
		checktest.Equal(t, key.String(), name+"=a&Zz=b", "%s: key.String()", name)
		if _, _, err := strict.Headers.ReadKey("POST", http.Header{name: {"a"}}); err == nil {
			t.Errorf("%s passes a strict spec", name)
		}
	}
	for _, name := range []string{"X-Http-Method-Override", "X-Method-Override", "X-Original-Url", "X-Rewrite-Url", "X-Host", "Sudo",
		"X-Remote-User", "Impersonate-User", "X-Access-Token", "X-Api-Key", "Content_length", "Stripe-Account",
		"Openai-Organization", "X-Tenant-Id"} {
		if _, _, err := open.Headers.ReadKey("GET", http.Header{name: {"a"}}); err == nil {
			t.Errorf("%s is passed on", name)
		}
	}
	vendor := http.Header{"Accept": {"application/vnd.x.full+json"}}
	if _, unknown, err := open.Headers.ReadKey("GET", vendor); err != nil || unknown != "Accept" {
		t.Errorf("a vendor's media type that the spec says nothing of: unknown %q, %v", unknown, err)
	}
	demanding := one(Headers{Send: map[string]string{"Accept": "application/vnd.x+json;version=2"}})
	for _, accept := range []string{"application/vnd.x+json;version=2", "application/vnd.x+json;version=2, */*", "application/json", "*/*"} {
		if key, _, err := demanding.Headers.ReadKey("GET", http.Header{"Accept": {accept}}); err != nil || len(key) > 0 {
			t.Errorf("Accept: %s where the spec sends a vendor's: key %s, %v", accept, key, err)
		}
	}
}

// A vendor's media type that the spec names, to be sent or as meaning the same, asks for the usual form, so that
// records answer. Another version of it does not.
func TestVendorMediaTypeOfTheSpecIsTheUsualForm(t *testing.T) {
	const vendor = "application/vnd.pagerduty+json;version=2"
	for _, s := range []*Spec{one(Headers{Key: map[string][]string{"Accept": {"application/json", vendor}}}),
		one(Headers{Send: map[string]string{"Accept": vendor}})} {
		for accept, usual := range map[string]bool{vendor: true, "application/vnd.pagerduty+json; version=2; q=0.9": true,
			"application/json": true, vendor + ", application/json;q=0.5": true,
			"application/vnd.pagerduty+json;version=1": false, "application/vnd.pagerduty+json": false} {
			key, _, err := s.Headers.ReadKey("GET", http.Header{"Accept": {accept}})
			if err != nil {
				t.Errorf("%s: %v", accept, err)
			}
			if usual != (len(key) == 0) {
				t.Errorf("%s: key %q; the usual form is %v", accept, key, usual)
			}
		}
	}
}

// What SDKs, HTTP clients and tracers tell of themselves changes no answer.
func TestTelemetryMeansNothing(t *testing.T) {
	h := one(Headers{Strict: true}).Headers
	for _, name := range strings.Fields(`X-Ms-Client-Request-Id X-Ms-Return-Client-Request-Id X-Ms-Useragent Client-Request-Id Sdkversion
		X-Stainless-Lang X-Stainless-Retry-Count X-Goog-Api-Client Amz-Sdk-Invocation-Id Amz-Sdk-Request X-Amz-User-Agent X-Client-Version
		X-Retry-Count Traceparent Tracestate Baggage B3 X-B3-Traceid X-B3-Sampled Time-Zone Graphql-Features X-Contentful-User-Agent
		X-Stripe-Client-User-Agent X-Stripe-Client-Telemetry X-Asana-Client-Lib X-Octokit-User-Agent X-Csrf-Token Sentry-Trace X-Datadog-Trace-Id
		Uber-Trace-Id Sec-Ch-Ua X-Forwarded-For X-Request-Id Postman-Token X-Okta-User-Agent-Extended X-Fern-Language X-Fern-Sdk-Version
		Speakeasy-Sdk-Language`) {
		key, unknown, err := h.ReadKey("GET", http.Header{name: {"a"}})
		checktest.MustNoError(t, err, "%s", name)
		checktest.MustTrue(t, len(key) <= 0, "%s: len(key) is %v, want <= 0", name, len(key))
		checktest.Equal(t, unknown, "", "%s: unknown", name)
	}
	if passed := h.FilterWriteHeader(http.Header{"Time-Zone": {"Europe/Paris"}, "X-Client-Version": {"1"}}); len(passed) != 1 {
		t.Errorf("a write is sent with %v", passed)
	}
}

// FuzzHeaders: what is passed on is a field of the request with its value, and none of ours.
func FuzzHeaders(f *testing.F) {
	f.Add("X-Foo", "a", "text/csv")
	f.Add("Accept", "application/vnd.x+json", "*/*, text/plain")
	f.Fuzz(func(t *testing.T, name, value, accept string) {
		h := one(Headers{Key: map[string][]string{"Accept": {"application/json"}}}).Headers
		name = http.CanonicalHeaderKey(name)
		given := http.Header{"Accept": {accept}, name: {value}}
		key, _, err := h.ReadKey("GET", given)
		if err != nil {
			return
		}
		for _, p := range key {
			if p.Value != strings.Join(given[p.Name], ", ") {
				t.Fatalf("%s is passed on as %q", p.Name, p.Value)
			}
			if checkHeader("x", p.Name) != nil && p.Name == name && slices.Contains(ownFields, name) {
				t.Fatalf("%s is passed on", name)
			}
		}
	})
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
		{Headers{Write: []string{""}}, "is not the name of a header"},
		{Headers{Write: []string{"a b"}}, "is not the name of a header"},
		{Headers{Write: []string{"authorization"}}, "Headers.write"},
		{Headers{Write: []string{"x-http-method-override"}}, "this server sets"},
		{Headers{Write: []string{"X-Forwarded-Host"}}, "this server sets"},
		{Headers{Send: map[string]string{"Cookie": "a=b"}}, "this server sets"},
		{Headers{Send: map[string]string{"X-A": ""}}, "1 to 1000 printable"},
		{Headers{Send: map[string]string{"X-A": "a\r\nX-B: b"}}, "1 to 1000 printable"},
		{Headers{Write: many}, "more than 20"},
		{Headers{Key: map[string][]string{"Cookie": nil}}, "headers.key"},
		{Headers{Key: map[string][]string{"A": nil}, Write: []string{"A"}}, "in key and in write"},
		{Headers{Ignore: []string{"a b*"}}, "headers.ignore"},
		{Headers{Back: []string{"location"}}, "cannot be passed on: this server writes it"},
		{Headers{Back: []string{"content-location"}}, "would lead clients past this server"},
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
	got, err := s.ResolveLink("x", "https://x.example/a?b=1&api_key=sk-123")
	if err != nil || got.Key.URI != "/a?b=1" {
		t.Errorf("%v, %v", got, err)
	}
}

func TestHeadersOfCredentialsHaveNoOtherMeaning(t *testing.T) {
	for style, want := range map[string]string{"header X-Key": "has the credential", "header Cookie": "this server sets"} {
		s := &Spec{Name: "x", Hosts: []Host{{URL: "https://x.example"}}, Auth: Auth{Style: style}, Headers: Headers{Write: []string{"X-Key"}}}
		if err := s.Compile(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", style, err)
		}
	}
}

// A name with an underscore is read as one with a dash by CGI and its like.
func TestFieldsThatMisleadAreKnown(t *testing.T) {
	for _, name := range []string{"X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override", "X-Original-URL", "X-Rewrite-URL", "X-Host",
		"X-Forwarded-Host", "X-Forwarded-Prefix", "Forwarded", "X-Real-IP", "Destination", "X_Original_URL", "X_HTTP_METHOD_OVERRIDE",
		"Method-Override", "Http-Method-Override", "X-Request-Method", "Proxy", "X-Real-Host", "X-Backend-Host", "X-Request-URI", "X-Proxy-Url",
		"X-ProxyUser-Ip", "Proxy-Client-IP", "X-Originating-IP", "X-Custom-IP-Authorization", "Remote_User", "X-Remote-User", "X-Remote-Addr",
		"URL", "Uri", "Base-Url", "Http-Url", "X-URL", "X-URI", "X-Path", "X-Path-Info", "X-Base-URL", "X-Full-Url", "X-Matched-Path",
		"X-Invoke-Path", "X-Invoke-Query", "X-Replaced-Path", "X-Middleware-Rewrite", "X-Middleware-Subrequest", "X-Now-Route-Matches",
		"X-Script-Name", "Host-Override", "X-Proxy-Host", "X-Server-Name", "X-Server-Port", "X-Backend-Server", "X-Route-To", "Port",
		"X-Accel-Redirect", "X-Sendfile-Type", "X-Scheme", "X-Url-Scheme", "X-Proto", "X-Upstream-Host", "X-Request-Path",
		"Forwarded-For", "Remote-Addr", "X-Azure-ClientIP", "X-Azure-SocketIP", "X-Vercel-Forwarded-For", "X-ClientIP", "Client-IP",
		"True-Client-IP", "X-Client-Addr", "Remote-Groups", "Remote-Email", "Remote-Name", "X-Auth-Request-User",
		"X-Auth-Request-Email", "X-Authenticated-User", "X-Authenticated-Userid", "X-WEBAUTH-USER", "X-Auth-User", "X-Auth-Username",
		"X-MS-Client-Principal", "X-MS-Client-Principal-Name", "X-Goog-Authenticated-User-Email", "Cf-Access-Authenticated-User-Email",
		"Tailscale-User-Login", "SSL-Client-Verify", "SSL_CLIENT_S_DN", "X-SSL-Client-Cert", "X-SSL-Cert", "X-TLS-Client-Cn",
		"X-Client-Cert", "Client-Cert-Chain", "X-ARR-ClientCert", "X-Amzn-Mtls-Clientcert-Leaf", "X-Client-DN", "X-Amzn-Oidc-Identity",
		"X-Consumer-Username", "X-Apigateway-Api-Userinfo", "OIDC_CLAIM_email", "X-Tunneled-Method", "Method", "X-Rest-Method",
		"X-HttpMethod", "X.HTTP.Method.Override", "_method", "X-Verb", "Sudo", "Impersonate-User", "X-Impersonate-User", "On-Behalf-Of",
		"X-On-Behalf-Of", "X-Act-As", "X-Assume-User", "X-Account-Override", "X-Sudo", "X-As-User", "As-User", "X-Effective-User", "X-Runas",
		"X-Switch-User", "_switch_user", "Acting-User", "X-Arr-Url", "X-Target-URL", "X-Service-Url", "X-Target", "X-Upstream", "X-Tunnel-Method",
		"X-API-Method", "X-Sent-Method", "X-Use-Method", "X-Virtual-Host", "X-Authority", "X-Alt-Host", "X-TLS-Host", "X-Actual-Path",
		"X-PathInfo", "X-New-Url", "X-Ingress-Path", "X-Context-Path", "X-Vouch-User", "X-Credential-Identifier", "X-Anonymous-Consumer",
		"X-Amzn-Oidc-Data", "X-Pomerium-Jwt-Assertion", "X-Token-Subject", "X-Groups", "X-Roles", "Api-Username", "Shib-Session-Id",
		"X-Acme-Host", "X-Legacy-Url", "Acme-Method", "X-Hop-Authority", "X-Sso-User", "X-Portal-Groups", "X-Gate-Jwt-Assertion",
		"X-Pomerium-Claim-Email", "X-Shib-Mail", "X-Document-Root", "X-Query-String", "X-Rewrite", "X-Original", "X-Sendfile"} {
		if name := http.CanonicalHeaderKey(name); !IsMisleading(name) {
			t.Errorf("%s is taken for a field like others", name)
		}
	}
	for _, name := range []string{"Accept", "Cookie", "Content-Type", "User-Agent", "X-Request-Id", "X-Requested-With", "X-Api-Key", "Host",
		"Range", "Server", "Referer", "Origin", "Location", "Content-Location", "If-None-Match", "Via", "Prefer", "Depth", "Slug",
		"Access-Control-Request-Method", "Access-Control-Request-Headers", "Idempotency-Key", "X-GitHub-Api-Version", "X-User-Agent",
		"X-Amz-Target", "X-Amz-User-Agent", "X-RapidAPI-Host", "Dropbox-API-Path-Root", "HX-Current-URL", "X-Callback-Url",
		"X-Webhook-Url", "X-Payment-Method", "X-Auth-Token", "X-Auth-Key", "X-Auth-Email", "X-Auth-Client", "X-User-Id", "X-Username",
		"X-Client-Name", "X-Client-Id", "X-Client-Version", "X-Source", "X-Name", "X-Zip", "X-Membership", "X-Prefix",
		"X-Target-Language", "HX-Target", "X-Service-Name", "X-Arr-Log-Id", "X-Account-Id", "X-Verbose",
		"Mcp-Protocol-Version", "Sec-Websocket-Protocol", "Stripe-Account", "X-Csrf-Token", "X-Request-Source",
		"X-Remote", "Client-Request-Id", "X-Shopify-Access-Token", "Cf-Access-Client-Id", "Cf-Access-Client-Secret",
		"X-Amz-Meta-Path", "X-Archive-Meta-Subject", "Ce-Subject", "Mcp-Method", "Sec-Fetch-User", "X-Shipping-Method", "X-Return-Url"} {
		if name := http.CanonicalHeaderKey(name); IsMisleading(name) {
			t.Errorf("%s is taken out", name)
		}
	}
	for name, want := range map[string]bool{"X-Http-Method-Override": true, "X_http_method_override": true, "X-Method-Override": true,
		"Method-Override": true, "Http-Method-Override": true, "Http_method": false, "X-Tunneled-Method": true,
		"X-Rest-Method": true, "X-Httpmethod": true, "X.http.method.override": true, "X-Verb": true, "X-Http-Verb": true, "Verb-Override": true,
		"X-Verbose": false, "X-Request-Method": false, "Access-Control-Request-Method": false, "X-Payment-Method": false, "Method": false,
		"X-Original-Url": false, "X-Http-Host-Override": false} {
		if got := IsMethodOverride(name); got != want {
			t.Errorf("%s names another method: %t", name, got)
		}
	}
}
