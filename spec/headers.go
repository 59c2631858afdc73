// Headers: the request and response header fields that have a meaning for an API.

package spec

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"understudy"
	"understudy/kit/header"
	"understudy/spec/auth"
)

// Headers are the header fields (RFC 9110, 5) that have a meaning for the API.
type Headers struct {
	// Key are request fields that select whose data are returned or in which form. Each has a list of values
	// that mean the same as no field (patterns with *). With another value, the request has a key of its own
	// and goes upstream with the field, and its answer stays in memory.
	Key map[string][]string `yaml:"key"`
	// Write are request fields of a write that are forwarded as the caller sent them, such as Idempotency-Key and
	// If-Match.
	Write []string `yaml:"write"`
	// Send are request fields that are sent with every request because the API demands them, such as Notion-Version.
	Send map[string]string `yaml:"send"`
	// Back are response fields that are stored, and sent to callers that may see the whole answer.
	Back []string `yaml:"back"`
	// Ignore are request fields that mean nothing to the API (patterns with *).
	Ignore []string `yaml:"ignore"`
	// Strict refuses a request with an unknown field. Otherwise the request goes upstream with the field, for
	// callers that may see everything.
	Strict bool `yaml:"strict"`
	// Pass are fields that a generic source receives although IsMisleading is true for them. They come from the settings.
	Pass []string

	vary string
}

// maxHeaders is the maximum number of named fields. maxHeader is the maximum length of a value in bytes.
const (
	maxHeaders = 20
	maxHeader  = 1000
)

// ownFields are the fields that this server writes itself or that belong to one connection (RFC 9110, 7.6.1).
// Names that match ownPatterns describe the origin of a request.
var (
	ownFields = []string{"Accept-Encoding", "Authorization", "Connection", "Content-Encoding", "Content-Length",
		"Content-Type", "Cookie", "Date",
		"Expect", "Forwarded", "Host", "Keep-Alive", "Proxy-Authorization", "Range", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
		"User-Agent", "Via"}
	ownPatterns = []string{"X-Forwarded-*", "Proxy-*", "Sec-*"}
)

// misleading are patterns of fields that name another method, address, host or sender than the request's own.
// Sender fields are also what a proxy in front of an API adds after it has identified the caller.
var misleading = []string{"Destination", "Front-End-Https", "Proxy", "*Auth-Groups", "*Auth-User", "*Auth-Username", "*Jwt-Assertion",
	"*Route-To", "*Script-Name", "Api-Username", "Cf-Connecting-*", "Iv-Groups", "Iv-User", "Oidc-Claim-*", "Remote-*", "Shib-*", "Sm-User",
	"Tailscale-*", "X-Accel-*", "X-Amzn-Oidc-*", "X-Anonymous-Consumer", "X-Authentik-*", "X-Consumer-*", "X-Credential-*", "X-Envoy-*",
	"X-Forward*", "X-Host*", "X-Http-*", "X-Invoke-*", "X-Middleware-*", "X-Ms-Original-*", "X-Ms-Token-*", "X-Now-*", "X-Oidc-*",
	"X-Original*", "X-Originating-*", "X-Override-*", "X-Remote-*", "X-Rewrite*", "X-Saml-*", "X-Sendfile*", "X-Vouch-*", "X-Waws-*",
	"X-Pomerium-*", "X-Shib-*", "*Document-Root", "*Query-String", "*Scriptname"}

// misleadingWords are words, and pairs of words, that occur only in misleading fields.
var misleadingWords = newSet("Authenticated", "Clientcert", "Clientip", "Forwarded", "Ip", "Mtls", "Realip", "Remoteip", "Socketip",
	"Userinfo", "Webauth", "Auth Request", "Client Cert", "Client Certificate", "Client Dn", "Client Principal", "Client Verify",
	"Remote Addr", "Remote User", "Request Uri", "Ssl Cert", "Ssl Client", "Tls Client")

// A field is also misleading if its last word is in requestWords, or, for an X- field, in senderWords. A word
// of contentWords makes an exception, because the field then describes content: X-Base-Url is misleading,
// X-Callback-Url is not.
var (
	requestWords = newSet("Authority", "Host", "Hostname", "Httpmethod", "Method", "Path", "Pathinfo", "Uri", "Url", "Verb", "Vhost")
	senderWords  = newSet("Assertion", "Groups", "Principal", "Roles", "Subject", "User")
	contentWords = newSet("Access", "Audio", "Avatar", "Callback", "Cancel", "Contact", "Copy", "Current", "Delivery", "Document", "Download",
		"Error", "File", "Folder", "Hook", "Image", "Logo", "Mcp", "Media", "Meta", "Notification", "Notify", "Object", "Page", "Payment",
		"Rapidapi", "Redirect", "Referer", "Referrer", "Return", "Shipping", "Source", "Success", "Upload", "Video", "Webhook")
)

// A field is also misleading if all its words are in these two sets and at least one is in addressWords.
var (
	addressWords = newSet("Addr", "Backend", "Host", "Hostname", "Method", "Path", "Port", "Proto", "Scheme", "Server", "Target", "Tunneled",
		"Upstream", "Uri", "Url", "Verb")
	besideAddress = newSet("X", "Absolute", "Arr", "Base", "Client", "Effective", "Forward", "Full", "Http", "Info", "Internal", "Matched",
		"Name", "Orig", "Original", "Override", "Prefix", "Proxy", "Raw", "Real", "Replaced", "Request", "Requested", "Rewrite", "Rewritten",
		"Root", "Service")
)

// newSet returns a set of words.
func newSet(words ...string) map[string]bool {
	all := map[string]bool{}
	for _, word := range words {
		all[word] = true
	}
	return all
}

// methodWords are words that mean a method. besideMethod are words that may be between X and such a word in a field
// that overrides the method.
var (
	methodWords  = newSet("Httpmethod", "Method", "Verb")
	besideMethod = newSet("Http", "Rest")
)

// IsMethodOverride reports whether a request field names another method. Such fields are X-Http-Method and its
// variants, and those with Method-Override or Tunneled-Method in their name.
func IsMethodOverride(name string) bool {
	before, leads := "", false // leads is true while all words so far are X or words of besideMethod
	for word := range strings.SplitSeq(canonicalName(name), "-") {
		switch {
		case methodWords[word] && (leads || before == "Tunneled"), word == "Override" && methodWords[before], word == "Methodoverride":
			return true
		}
		leads = before == "" && word == "X" || leads && besideMethod[word]
		before = word
	}
	return false
}

// IsMisleading reports whether a request field names another method, address, host or sender than those of the request.
func IsMisleading(name string) bool {
	name = canonicalName(name)
	if name == "Host" || name == "Server" {
		return false
	}
	named, others, content, before := false, false, false, ""
	for word := range strings.SplitSeq(name, "-") {
		if misleadingWords[word] || misleadingWords[before+" "+word] {
			return true
		}
		named = named || addressWords[word]
		others = others || !addressWords[word] && !besideAddress[word]
		content = content || contentWords[word]
		before = word
	}
	ends := requestWords[before] || senderWords[before] && strings.HasPrefix(name, "X-")
	return ends && !content || named && !others || matchAny(misleading, name) || IsMethodOverride(name) || header.IsImpersonating(name)
}

// canonicalName returns a field name as CGI and similar servers read it: every character that is no letter or
// digit becomes a dash.
func canonicalName(name string) string {
	return http.CanonicalHeaderKey(strings.TrimLeft(strings.Map(func(r rune) rune {
		if auth.IsOddInName(r) || r == '_' {
			return '-'
		}
		return r
	}, name), "-"))
}

// meaningless are request fields, in addition to ownFields, that change no answer of an API. They address caches, do
// not matter for JSON, describe the origin, trace the request, or identify the SDK. Names that match
// meaninglessPatterns are meaningless too.
var (
	meaningless = newFieldSet(append(traceFields, "Accept-Charset", "Accept-Language", "Cache-Control", "Content-Language",
		"Content-Md5", "Dnt", "From",
		"If-Modified-Since", "If-None-Match", "If-Range", "Last-Event-Id", "Max-Forwards", "Origin", "Pragma", "Prefer", "Priority", "Referer",
		"Save-Data", "Http2-Settings", "Early-Data", "Purpose", "Alt-Used", "Device-Memory", "Dpr", "Ect", "Viewport-Width",
		"Upgrade-Insecure-Requests", "Cdn-Loop", "Client-Ip", "Downlink", "Rtt", "True-Client-Ip", "X-Real-Ip", "X-Requested-With",
		"Return-Client-Request-Id", "Sdkversion", "X-Goog-Api-Client", "X-Ms-Return-Client-Request-Id", "X-Ms-Useragent", "X-Client-Info",
		"X-Client-Name", "X-Client-Version", "X-Csrf-Token", "X-Xsrf-Token", "X-Okta-User-Agent-Extended", "Graphql-Features", "Time-Zone")...)
	meaninglessPatterns = append([]string{"Access-Control-Request-*", "Cf-*", "Fastly-*", "Fly-*", "Proxy-*", "Sec-*", "X-Amz-Cf-*",
		"X-Azure-*", "X-Fern-*", "X-Forwarded-*", "X-Vercel-*", "*-Client-Lib", "*-Sdk-Language", "*-Sdk-Version",
		"*-User-Agent"}, tracePatterns...)
)

// traceFields are meaningless fields that may differ each time a client sends the same request, such as trace ids and
// retry counts. Names that match tracePatterns are trace fields too.
var (
	traceFields = []string{"B3", "Baggage", "Client-Request-Id", "Correlation-Id", "Elastic-Apm-Traceparent", "Grpc-Trace-Bin", "Newrelic",
		"Postman-Token", "Request-Id", "Sentry-Trace", "Traceparent", "Tracestate", "Uber-Trace-Id", "X-Amzn-Trace-Id", "X-Client-Request-Id",
		"X-Client-Trace-Id", "X-Cloud-Trace-Context", "X-Correlation-Id", "X-Honeycomb-Trace", "X-Ms-Correlation-Request-Id", "X-Request-Id",
		"X-Request-Start", "X-Retry-Attempt", "X-Retry-Count", "X-Trace-Id"}
	tracePatterns = []string{"Amz-Sdk-*", "Sw8*", "Uberctx-*", "X-B3-*", "X-Datadog-*", "X-Envoy-*", "X-Instana-*", "X-Ms-Client-*",
		"X-Newrelic-*", "X-Ot-*", "X-Sdk-*", "X-Stainless-*", "*-Client-Telemetry"}
)

// forwardedToWrites are fields that are meaningless for reads but can matter for a write.
var forwardedToWrites = []string{"Graphql-Features", "Time-Zone"}

// newFieldSet returns a set of ownFields and other names.
func newFieldSet(others ...string) map[string]bool { return newSet(append(others, ownFields...)...) }

// check converts the names to canonical form and checks them.
func (h *Headers) check() error {
	if len(h.Key)+len(h.Write)+len(h.Send)+len(h.Back)+len(h.Ignore) > maxHeaders {
		return fmt.Errorf("headers has more than %d names; remove some", maxHeaders)
	}
	err := cmp.Or(normalizeNames("headers.write", h.Write), normalizeNames("headers.back", h.Back), normalizeNames("headers.ignore", h.Ignore))
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(h.Back, func(name string) bool { return ownAnswerFields[name] }); i >= 0 {
		return fmt.Errorf("headers.back: %s cannot be passed on: this server writes it, or its URL would lead clients past this server",
			h.Back[i])
	}
	sent := make(map[string]string, len(h.Send))
	for _, name := range slices.Sorted(maps.Keys(h.Send)) {
		value := h.Send[name]
		if err := checkHeader("headers.send", name); err != nil {
			return err
		}
		if value == "" || len(value) > maxHeader || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }) {
			return fmt.Errorf("headers.send.%s: the value is empty, too long or not plain; write 1 to %d printable ASCII characters", name,
				maxHeader)
		}
		sent[http.CanonicalHeaderKey(name)] = value
	}
	h.Send = sent
	return h.checkKey()
}

// normalizeNames checks names and converts them to canonical form. Names to ignore may be patterns.
func normalizeNames(where string, names []string) error {
	for i, name := range names {
		plain := name
		if where == "headers.ignore" {
			plain = strings.ReplaceAll(name, "*", "x")
		}
		if err := checkHeader(where, plain); err != nil {
			return err
		}
		names[i] = http.CanonicalHeaderKey(name)
	}
	return nil
}

// Add adds a source's own Send fields, which replace those of the spec, and more fields to ignore.
func (h *Headers) Add(send map[string]string, ignore []string) error {
	for name, value := range send {
		if h.Send == nil {
			h.Send = map[string]string{}
		}
		h.Send[http.CanonicalHeaderKey(name)] = value
	}
	h.Ignore = append(h.Ignore, ignore...)
	return h.check()
}

// checkKey normalizes Key. A value that is always sent means the same as no field.
func (h *Headers) checkKey() error {
	key := make(map[string][]string, len(h.Key))
	for _, name := range slices.Sorted(maps.Keys(h.Key)) {
		if err := checkHeader("headers.key", name); err != nil {
			return err
		}
		canonical := http.CanonicalHeaderKey(name)
		if slices.Contains(h.Write, canonical) {
			return fmt.Errorf("headers: %s is in key and in write; remove it from one of them", name)
		}
		same := h.Key[name]
		if sent, ok := h.Send[canonical]; ok && !slices.Contains(same, sent) {
			same = append(same, sent)
		}
		key[canonical] = same
	}
	h.Key, h.vary = key, ""
	for _, name := range slices.Sorted(maps.Keys(key)) {
		h.vary += ", " + name
	}
	return nil
}

// Vary returns the names of Key, each after a comma and a space.
func (h *Headers) Vary() string { return h.vary }

// maxKeyValue is the maximum length in bytes of the value of a field that is part of the key.
const maxKeyValue = 500

// ReadKey returns the header fields of a request that are part of the key, sorted by name. unknown is the first
// field whose meaning is not known, or "". The error is ErrInvalid: a field that must not be forwarded, a
// method override, or an invalid value.
func (h *Headers) ReadKey(method string, given http.Header) (key understudy.Query, unknown string, err error) {
	for name, values := range given {
		value := strings.Join(values, ", ")
		same, keyed := h.Key[name]
		switch {
		case keyed && matchAll(same, value), name == "Accept" && h.isDefaultAccept(value), !keyed && h.canIgnore(method, name, values):
			continue
		case !keyed:
			if err := h.refuse(name); err != nil {
				return nil, "", err
			}
			if unknown == "" || name < unknown {
				unknown = name
			}
		}
		if len(value) > maxKeyValue || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }) {
			return nil, "", fmt.Errorf("%w: header %s: the value is too long or not plain; send at most %d printable ASCII characters",
				understudy.ErrInvalid, understudy.Clip(name), maxKeyValue)
		}
		key = append(key, understudy.Param{Name: name, Value: value})
	}
	slices.SortFunc(key, func(a, b understudy.Param) int { return strings.Compare(a.Name, b.Name) })
	return key, unknown, nil
}

// isDefaultAccept reports whether an Accept field asks for the form in which the API answers by default: any type, or a
// type that the spec names. text/plain beside such a type is accepted, because HTTP clients add it by default. If Key
// has no types, every type except a vendor's is the default form, because every answer is JSON.
func (h *Headers) isDefaultAccept(value string) bool {
	same, keyed := h.Key["Accept"]
	if sent := h.Send["Accept"]; !keyed && sent != "" {
		same = []string{sent}
	}
	good, odd := false, false
	for whole := range strings.SplitSeq(value, ",") {
		one, _, _ := strings.Cut(whole, ";")
		switch one = strings.TrimSpace(one); {
		case one == "":
		case one == "*/*", one == "application/*", !keyed && !strings.Contains(one, "/vnd."), matchType(same, whole):
			good = true
		case one != "text/plain":
			return false
		default:
			odd = true
		}
	}
	return good || !odd
}

// matchType reports whether a media type matches one of the patterns. If a pattern has a version, the version
// must be the same. Other parameters are ignored.
func matchType(same []string, one string) bool {
	name, version := splitMediaType(one)
	return slices.ContainsFunc(same, func(p string) bool {
		p, want := splitMediaType(p)
		return MatchGlob(p, name) && (want == "" || want == version)
	})
}

// splitMediaType returns a media type without its parameters, and its version or "".
func splitMediaType(text string) (name, version string) {
	name, parameters, _ := strings.Cut(text, ";")
	for one := range strings.SplitSeq(parameters, ";") {
		if label, value, _ := strings.Cut(strings.TrimSpace(one), "="); strings.EqualFold(label, "version") {
			version = strings.Trim(value, `"`)
		}
	}
	return strings.TrimSpace(name), version
}

// matchAll reports whether every element of a list is empty or matches one of the patterns.
func matchAll(patterns []string, list string) bool {
	for one := range strings.SplitSeq(list, ",") {
		one, _, _ = strings.Cut(strings.TrimSpace(one), ";") // removes a weight or a charset (RFC 9110, 12.5.1)
		if one = strings.TrimSpace(one); one != "" && !matchAny(patterns, one) {
			return false
		}
	}
	return true
}

// canIgnore reports whether a request field changes no answer.
func (h *Headers) canIgnore(method, name string, values []string) bool {
	switch {
	case meaningless[name], slices.Contains(h.Write, name), h.Send[name] != "" && slices.Equal(values, []string{h.Send[name]}):
		return true
	case IsMethodOverride(name):
		return false
	case name == "If-Match" || name == "If-Unmodified-Since" || name == "Idempotency-Key":
		return method == http.MethodGet || method == http.MethodHead // these fields matter only for writes
	}
	return matchAny(meaninglessPatterns, name) || matchAny(h.Ignore, name)
}

// IsTrace reports whether a field, in canonical form, may differ each time a client sends the same request
// although it changes no answer. That is a trace field, or one that the source ignores and that means nothing
// to this server. A field of Key is never a trace.
func (h *Headers) IsTrace(name string) bool {
	switch {
	case h.Key[name] != nil, IsMethodOverride(name):
		return false
	case slices.Contains(traceFields, name), matchAny(tracePatterns, name):
		return true
	}
	return !meaningless[name] && !matchAny(meaninglessPatterns, name) && matchAny(h.Ignore, name)
}

// refuse returns the error for a field that must not be forwarded to the API, or nil.
func (h *Headers) refuse(name string) error {
	if IsMethodOverride(name) {
		return fmt.Errorf("%w: header %s cannot replace the method; send the request with that method", understudy.ErrInvalid, name)
	}
	// CGI cannot distinguish Content_Length from Content-Length
	odd := strings.ContainsFunc(name, auth.IsOddInName) || strings.Contains(name, "_")
	if h.Strict || odd || IsMisleading(name) || header.IsSensitive(name) {
		return RefuseField(name)
	}
	return nil
}

// RefuseField returns the error for a field that is refused because its meaning is not known.
func RefuseField(name string) error {
	return fmt.Errorf("%w: header %s: its meaning is not known; do not send it, or name it under headers in the spec file",
		understudy.ErrInvalid, understudy.Clip(name))
}

// ownAnswerFields are the response fields, besides ownFields, that this server writes itself, and those whose
// URL would lead clients directly to the upstream.
var ownAnswerFields = newFieldSet("Accept-Ranges", "Age", "Allow", "Azure-Asyncoperation", "Cache-Control",
	"Cache-Status", "Content-Disposition",
	"Content-Location", "Content-Range", "Content-Security-Policy", "Etag", "Last-Modified", "Link", "Location", "Operation-Location",
	"Refresh", "Retry-After", "Server-Timing", "Set-Cookie", "Strict-Transport-Security", "Understudy-Error", "Vary", "Www-Authenticate",
	"X-Content-Type-Options", "X-Request-Id")

// checkHeader checks that a name is a valid header field that may belong to the API. where is its place in the spec.
func checkHeader(where, name string) error {
	canonical := http.CanonicalHeaderKey(name)
	switch {
	case name == "" || len(name) > 100 || strings.ContainsFunc(name, auth.IsOddInName):
		return fmt.Errorf("%s: %q is not the name of a header", where, name)
	case slices.Contains(ownFields, canonical), matchAny(ownPatterns, canonical), IsMethodOverride(name):
		return fmt.Errorf("%s: this server sets %s itself; remove it", where, name)
	}
	return nil
}

// FilterWriteHeader returns the fields of a write's header that are forwarded, or nil.
func (h *Headers) FilterWriteHeader(given http.Header) http.Header {
	var passed http.Header
	for _, name := range slices.Concat(h.Write, forwardedToWrites) {
		if values := given[name]; len(values) > 0 {
			if passed == nil {
				passed = http.Header{}
			}
			passed[name] = slices.Clone(values)
		}
	}
	return passed
}
