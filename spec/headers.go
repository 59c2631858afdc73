// Headers: which header fields of requests mean something to an API.

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

// Headers are the header fields (RFC 9110, 5) that mean something to the API.
type Headers struct {
	// Key are those of requests that say whose data are asked for, or in which form, with
	// the values that mean the same as none (patterns with *). With another value a request
	// has a key of its own, goes upstream with the field, and its answer stays in memory.
	Key map[string][]string `yaml:"key"`
	// Write are those of a write that are passed on as its caller sent them:
	// Idempotency-Key, If-Match.
	Write []string `yaml:"write"`
	// Send are sent with every request, where the API demands them: Notion-Version.
	Send map[string]string `yaml:"send"`
	// Back are those of answers that are kept, and passed on to who sees all of the answer.
	Back []string `yaml:"back"`
	// Ignore are those of requests that mean nothing to it (patterns with *).
	Ignore []string `yaml:"ignore"`
	// Strict refuses a request with a field that is not known. Otherwise it goes upstream with the
	// field, for callers that see everything.
	Strict bool `yaml:"strict"`
	// Pass are those that Misleads names and a generic source gets all the same. They come
	// from the settings.
	Pass []string

	vary string
}

// maxHeaders bounds how many are named, maxHeader a value, in bytes.
const (
	maxHeaders = 20
	maxHeader  = 1000
)

// ours are the fields that this server writes itself, or that belong to one connection (RFC
// 9110, 7.6.1). Names that fit one of ourPatterns say where a request came from.
var (
	ours = []string{"Accept-Encoding", "Authorization", "Connection", "Content-Encoding", "Content-Length", "Content-Type", "Cookie", "Date",
		"Expect", "Forwarded", "Host", "Keep-Alive", "Proxy-Authorization", "Range", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
		"User-Agent", "Via"}
	ourPatterns = []string{"X-Forwarded-*", "Proxy-*", "Sec-*"}
)

// misleading are patterns of the fields by which a request names another method, address, host or
// sender than its own. The sender is also what a server before an API adds once it knows who asks.
var misleading = []string{"Destination", "Front-End-Https", "Proxy", "*Auth-Groups", "*Auth-User", "*Auth-Username", "*Jwt-Assertion",
	"*Route-To", "*Script-Name", "Api-Username", "Cf-Connecting-*", "Iv-Groups", "Iv-User", "Oidc-Claim-*", "Remote-*", "Shib-*", "Sm-User",
	"Tailscale-*", "X-Accel-*", "X-Amzn-Oidc-*", "X-Anonymous-Consumer", "X-Authentik-*", "X-Consumer-*", "X-Credential-*", "X-Envoy-*",
	"X-Forward*", "X-Host*", "X-Http-*", "X-Invoke-*", "X-Middleware-*", "X-Ms-Original-*", "X-Ms-Token-*", "X-Now-*", "X-Oidc-*",
	"X-Original*", "X-Originating-*", "X-Override-*", "X-Remote-*", "X-Rewrite*", "X-Saml-*", "X-Sendfile*", "X-Vouch-*", "X-Waws-*",
	"X-Pomerium-*", "X-Shib-*", "*Document-Root", "*Query-String", "*Scriptname"}

// misleadingWords are words that no field has but one which misleads, and pairs of words.
var misleadingWords = set("Authenticated", "Clientcert", "Clientip", "Forwarded", "Ip", "Mtls", "Realip", "Remoteip", "Socketip",
	"Userinfo", "Webauth", "Auth Request", "Client Cert", "Client Certificate", "Client Dn", "Client Principal", "Client Verify",
	"Remote Addr", "Remote User", "Request Uri", "Ssl Cert", "Ssl Client", "Tls Client")

// A field misleads, too, whose last word is of requestWords or, behind X, of senderWords, unless a word of
// contentWords says that it is about something in the request: X-Base-Url does, and X-Callback-Url does not.
var (
	requestWords = set("Authority", "Host", "Hostname", "Httpmethod", "Method", "Path", "Pathinfo", "Uri", "Url", "Verb", "Vhost")
	senderWords  = set("Assertion", "Groups", "Principal", "Roles", "Subject", "User")
	contentWords = set("Access", "Audio", "Avatar", "Callback", "Cancel", "Contact", "Copy", "Current", "Delivery", "Document", "Download",
		"Error", "File", "Folder", "Hook", "Image", "Logo", "Mcp", "Media", "Meta", "Notification", "Notify", "Object", "Page", "Payment",
		"Rapidapi", "Redirect", "Referer", "Referrer", "Return", "Shipping", "Source", "Success", "Upload", "Video", "Webhook")
)

// A field misleads, too, all of whose words are of these, one at least of addressWords.
var (
	addressWords = set("Addr", "Backend", "Host", "Hostname", "Method", "Path", "Port", "Proto", "Scheme", "Server", "Target", "Tunneled",
		"Upstream", "Uri", "Url", "Verb")
	besideAddress = set("X", "Absolute", "Arr", "Base", "Client", "Effective", "Forward", "Full", "Http", "Info", "Internal", "Matched",
		"Name", "Orig", "Original", "Override", "Prefix", "Proxy", "Raw", "Real", "Replaced", "Request", "Requested", "Rewrite", "Rewritten",
		"Root", "Service")
)

// set is a set of words.
func set(words ...string) map[string]bool {
	all := map[string]bool{}
	for _, word := range words {
		all[word] = true
	}
	return all
}

// methodWords are words for a method, and besideMethod those between X and one in a field that overrides it.
var (
	methodWords  = set("Httpmethod", "Method", "Verb")
	besideMethod = set("Http", "Rest")
)

// Overrides reports whether a field of a request names another method: X-Http-Method and its like, and
// those with Method-Override or Tunneled-Method in their name.
func Overrides(name string) bool {
	before, leads := "", false // leads: only X and words of besideMethod came
	for word := range strings.SplitSeq(dashed(name), "-") {
		switch {
		case methodWords[word] && (leads || before == "Tunneled"), word == "Override" && methodWords[before], word == "Methodoverride":
			return true
		}
		leads = before == "" && word == "X" || leads && besideMethod[word]
		before = word
	}
	return false
}

// Misleads reports whether a field of a request names another method, address, host or sender
// than those of the request.
func Misleads(name string) bool {
	name = dashed(name)
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
	return ends && !content || named && !others || fitsAny(misleading, name) || Overrides(name) || header.IsImpersonating(name)
}

// dashed returns a name as CGI and its like read it: for them what is no letter and no digit is a dash.
func dashed(name string) string {
	return http.CanonicalHeaderKey(strings.TrimLeft(strings.Map(func(r rune) rune {
		if auth.IsOddInName(r) || r == '_' {
			return '-'
		}
		return r
	}, name), "-"))
}

// meaningless are the fields of requests that change no answer of an API, beside ours:
// what is asked of a cache or is the same for JSON, where a request comes from, what
// traces it, what an SDK tells of itself. So are names that fit one of meaninglessPatterns.
var (
	meaningless = names(append(traces, "Accept-Charset", "Accept-Language", "Cache-Control", "Content-Language", "Content-Md5", "Dnt", "From",
		"If-Modified-Since", "If-None-Match", "If-Range", "Last-Event-Id", "Max-Forwards", "Origin", "Pragma", "Prefer", "Priority", "Referer",
		"Save-Data", "Http2-Settings", "Early-Data", "Purpose", "Alt-Used", "Device-Memory", "Dpr", "Ect", "Viewport-Width",
		"Upgrade-Insecure-Requests", "Cdn-Loop", "Client-Ip", "Downlink", "Rtt", "True-Client-Ip", "X-Real-Ip", "X-Requested-With",
		"Return-Client-Request-Id", "Sdkversion", "X-Goog-Api-Client", "X-Ms-Return-Client-Request-Id", "X-Ms-Useragent", "X-Client-Info",
		"X-Client-Name", "X-Client-Version", "X-Csrf-Token", "X-Xsrf-Token", "X-Okta-User-Agent-Extended", "Graphql-Features", "Time-Zone")...)
	meaninglessPatterns = append([]string{"Access-Control-Request-*", "Cf-*", "Fastly-*", "Fly-*", "Proxy-*", "Sec-*", "X-Amz-Cf-*",
		"X-Azure-*", "X-Fern-*", "X-Forwarded-*", "X-Vercel-*", "*-Client-Lib", "*-Sdk-Language", "*-Sdk-Version",
		"*-User-Agent"}, tracePatterns...)
)

// traces are the meaningless fields that may differ each time a client sends the same request: what traces it, and
// how often it was tried. So are names that fit one of tracePatterns.
var (
	traces = []string{"B3", "Baggage", "Client-Request-Id", "Correlation-Id", "Elastic-Apm-Traceparent", "Grpc-Trace-Bin", "Newrelic",
		"Postman-Token", "Request-Id", "Sentry-Trace", "Traceparent", "Tracestate", "Uber-Trace-Id", "X-Amzn-Trace-Id", "X-Client-Request-Id",
		"X-Client-Trace-Id", "X-Cloud-Trace-Context", "X-Correlation-Id", "X-Honeycomb-Trace", "X-Ms-Correlation-Request-Id", "X-Request-Id",
		"X-Request-Start", "X-Retry-Attempt", "X-Retry-Count", "X-Trace-Id"}
	tracePatterns = []string{"Amz-Sdk-*", "Sw8*", "Uberctx-*", "X-B3-*", "X-Datadog-*", "X-Envoy-*", "X-Instana-*", "X-Ms-Client-*",
		"X-Newrelic-*", "X-Ot-*", "X-Sdk-*", "X-Stainless-*", "*-Client-Telemetry"}
)

// passedOfWrites are the meaningless fields of reads that can mean something to a write.
var passedOfWrites = []string{"Graphql-Features", "Time-Zone"}

// names is a set of ours and of others.
func names(others ...string) map[string]bool { return set(append(others, ours...)...) }

// check reads the names in their canonical form.
func (h *Headers) check() error {
	if len(h.Key)+len(h.Write)+len(h.Send)+len(h.Back)+len(h.Ignore) > maxHeaders {
		return fmt.Errorf("headers: more than %d", maxHeaders)
	}
	err := cmp.Or(canonize("headers.write", h.Write), canonize("headers.back", h.Back), canonize("headers.ignore", h.Ignore))
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(h.Back, func(name string) bool { return ofOurAnswers[name] }); i >= 0 {
		return fmt.Errorf("headers.back: %s is written by this server, or leads clients to upstream with a credential of ours", h.Back[i])
	}
	sent := make(map[string]string, len(h.Send))
	for _, name := range slices.Sorted(maps.Keys(h.Send)) {
		value := h.Send[name]
		if err := checkHeader("headers.send", name); err != nil {
			return err
		}
		if value == "" || len(value) > maxHeader || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }) {
			return fmt.Errorf("headers.send.%s: want 1 to %d printable characters of ASCII", name, maxHeader)
		}
		sent[http.CanonicalHeaderKey(name)] = value
	}
	h.Send = sent
	return h.checkKey()
}

// canonize checks names and writes them in their canonical form. Those to ignore may be patterns.
func canonize(where string, names []string) error {
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

// Add adds what a source sends in place of the spec's, and fields that mean nothing to it.
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

// checkKey reads Key: what is always sent means the same as nothing.
func (h *Headers) checkKey() error {
	key := make(map[string][]string, len(h.Key))
	for _, name := range slices.Sorted(maps.Keys(h.Key)) {
		if err := checkHeader("headers.key", name); err != nil {
			return err
		}
		canonical := http.CanonicalHeaderKey(name)
		if slices.Contains(h.Write, canonical) {
			return fmt.Errorf("headers: %s is in key and in write", name)
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

// Vary lists the names of Key, each behind a comma and a space.
func (h *Headers) Vary() string { return h.vary }

// mostKey bounds the value of one field of a key, in bytes.
const mostKey = 500

// Read returns the part of the key that a request's header gives, by name. unknown is the first
// field in it of which the spec does not say what it asks for; "" when it says so of all. The error
// is ErrInvalid: a field that may not be passed on, one that asks for another method, or a value
// that is none.
func (h *Headers) Read(method string, given http.Header) (key understudy.Query, unknown string, err error) {
	for name, values := range given {
		value := strings.Join(values, ", ")
		same, keyed := h.Key[name]
		switch {
		case keyed && matchesAll(same, value), name == "Accept" && h.acceptsDefault(value), !keyed && h.ignores(method, name, values):
			continue
		case !keyed:
			if err := h.refuse(name); err != nil {
				return nil, "", err
			}
			if unknown == "" || name < unknown {
				unknown = name
			}
		}
		if len(value) > mostKey || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }) {
			return nil, "", fmt.Errorf("%w: header %s: want at most %d printable characters of ASCII", understudy.ErrInvalid,
				understudy.Clip(name), mostKey)
		}
		key = append(key, understudy.Param{Name: name, Value: value})
	}
	slices.SortFunc(key, func(a, b understudy.Param) int { return strings.Compare(a.Name, b.Name) })
	return key, unknown, nil
}

// acceptsDefault reports whether an Accept asks for the form in which the API answers by itself:
// any type, or what the spec names. Text beside one of these is what HTTP clients write by default.
// Without types in Key every type but a vendor's is that form, as every answer is JSON.
func (h *Headers) acceptsDefault(value string) bool {
	same, keyed := h.Key["Accept"]
	if sent := h.Send["Accept"]; !keyed && sent != "" {
		same = []string{sent}
	}
	good, odd := false, false
	for whole := range strings.SplitSeq(value, ",") {
		one, _, _ := strings.Cut(whole, ";")
		switch one = strings.TrimSpace(one); {
		case one == "":
		case one == "*/*", one == "application/*", !keyed && !strings.Contains(one, "/vnd."), fitsType(same, whole):
			good = true
		case one != "text/plain":
			return false
		default:
			odd = true
		}
	}
	return good || !odd
}

// fitsType reports whether a media type is one of some. The version of one that has a version counts;
// no other parameter does.
func fitsType(same []string, one string) bool {
	name, version := typeOf(one)
	return slices.ContainsFunc(same, func(p string) bool {
		p, want := typeOf(p)
		return Glob(p, name) && (want == "" || want == version)
	})
}

// typeOf returns a media type without its parameters, and its version; "": it has none.
func typeOf(text string) (name, version string) {
	name, parameters, _ := strings.Cut(text, ";")
	for one := range strings.SplitSeq(parameters, ";") {
		if label, value, _ := strings.Cut(strings.TrimSpace(one), "="); strings.EqualFold(label, "version") {
			version = strings.Trim(value, `"`)
		}
	}
	return strings.TrimSpace(name), version
}

// matchesAll reports whether every element of a list is empty or one of some patterns.
func matchesAll(patterns []string, list string) bool {
	for one := range strings.SplitSeq(list, ",") {
		one, _, _ = strings.Cut(strings.TrimSpace(one), ";") // a weight or a charset (RFC 9110, 12.5.1)
		if one = strings.TrimSpace(one); one != "" && !fitsAny(patterns, one) {
			return false
		}
	}
	return true
}

// ignores reports whether a field of a request changes no answer.
func (h *Headers) ignores(method, name string, values []string) bool {
	switch {
	case meaningless[name], slices.Contains(h.Write, name), h.Send[name] != "" && slices.Equal(values, []string{h.Send[name]}):
		return true
	case Overrides(name):
		return false
	case name == "If-Match" || name == "If-Unmodified-Since" || name == "Idempotency-Key":
		return method == http.MethodGet || method == http.MethodHead // they are for writes
	}
	return fitsAny(meaninglessPatterns, name) || fitsAny(h.Ignore, name)
}

// Traces reports whether a field, named in canonical form, may differ each time a client sends the same request and
// changes no answer: one that traces a request, or that the source ignores and that means nothing to this server.
// A part of the key is none.
func (h *Headers) Traces(name string) bool {
	switch {
	case h.Key[name] != nil, Overrides(name):
		return false
	case slices.Contains(traces, name), fitsAny(tracePatterns, name):
		return true
	}
	return !meaningless[name] && !fitsAny(meaninglessPatterns, name) && fitsAny(h.Ignore, name)
}

// refuse returns the error for a field that is not passed on to the API.
func (h *Headers) refuse(name string) error {
	if Overrides(name) {
		return fmt.Errorf("%w: header %s: use the method itself", understudy.ErrInvalid, name)
	}
	odd := strings.ContainsFunc(name, auth.IsOddInName) || strings.Contains(name, "_") // CGI reads Content_Length as Content-Length
	if h.Strict || odd || Misleads(name) || header.IsSensitive(name) {
		return Unknown(name)
	}
	return nil
}

// Unknown returns the error for a field that is refused because it is not known what it asks for.
func Unknown(name string) error {
	return fmt.Errorf("%w: header %s: it is not known what it asks for; leave it out, or have the spec name it under headers",
		understudy.ErrInvalid, understudy.Clip(name))
}

// ofOurAnswers are the fields of answers that this server writes itself, beside ours, and those
// whose address clients would follow to upstream.
var ofOurAnswers = names("Accept-Ranges", "Age", "Allow", "Azure-Asyncoperation", "Cache-Control", "Cache-Status", "Content-Disposition",
	"Content-Location", "Content-Range", "Content-Security-Policy", "Etag", "Last-Modified", "Link", "Location", "Operation-Location",
	"Refresh", "Retry-After", "Server-Timing", "Set-Cookie", "Strict-Transport-Security", "Understudy-Error", "Vary", "Www-Authenticate",
	"X-Content-Type-Options", "X-Request-Id")

func checkHeader(where, name string) error {
	canonical := http.CanonicalHeaderKey(name)
	switch {
	case name == "" || len(name) > 100 || strings.ContainsFunc(name, auth.IsOddInName):
		return fmt.Errorf("%s: %q: want the name of a header", where, name)
	case slices.Contains(ours, canonical), fitsAny(ourPatterns, canonical), Overrides(name):
		return fmt.Errorf("%s: %s is written by this server, and cannot be the API's", where, name)
	}
	return nil
}

// OfWrite are the fields of a write's header that are passed on; nil: none.
func (h *Headers) OfWrite(given http.Header) http.Header {
	var passed http.Header
	for _, name := range slices.Concat(h.Write, passedOfWrites) {
		if values := given[name]; len(values) > 0 {
			if passed == nil {
				passed = http.Header{}
			}
			passed[name] = slices.Clone(values)
		}
	}
	return passed
}
