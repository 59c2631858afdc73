// Headers: which header fields of requests mean something to an API.

package spec

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"understudy"
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

	vary string
}

// maxHeaders bounds how many are named, maxHeader a value, in bytes.
const (
	maxHeaders = 20
	maxHeader  = 1000
)

// ours are the fields that this server writes itself, or that belong to one connection (RFC
// 9110, 7.6.1). Names that begin with one of ourPrefixes say where a request came from.
var (
	ours = []string{"Accept-Encoding", "Authorization", "Connection", "Content-Encoding", "Content-Length", "Content-Type", "Cookie", "Date",
		"Expect", "Forwarded", "Host", "Keep-Alive", "Proxy-Authorization", "Range", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
		"User-Agent", "Via"}
	ourPrefixes = append([]string{"X-Forwarded-", "Proxy-", "Sec-"}, overrides...)
	overrides   = []string{"X-Http-Method", "X-Method-Override"}
)

// meaningless are the fields of requests that change no answer of an API, beside ours:
// what is asked of a cache or is the same for JSON, where a request comes from, what
// traces it. So are names that begin with one of meaninglessPrefixes.
var (
	meaningless = names("Accept-Charset", "Accept-Language", "Cache-Control", "Content-Language", "Content-Md5", "Dnt", "From",
		"If-Modified-Since", "If-None-Match", "If-Range", "Last-Event-Id", "Max-Forwards", "Origin", "Pragma", "Prefer", "Priority",
		"Referer", "Save-Data", "Http2-Settings",
		"Upgrade-Insecure-Requests", "B3", "Baggage", "Cdn-Loop", "Client-Ip", "Correlation-Id", "Downlink",
		"Elastic-Apm-Traceparent", "Newrelic", "Request-Id", "Rtt", "Sentry-Trace", "Traceparent", "Tracestate", "True-Client-Ip",
		"Uber-Trace-Id", "X-Amzn-Trace-Id", "X-Client-Trace-Id", "X-Cloud-Trace-Context", "X-Correlation-Id", "X-Real-Ip",
		"X-Request-Id", "X-Request-Start", "X-Requested-With", "X-Trace-Id")
	meaninglessPrefixes = []string{"Access-Control-Request-", "Cf-", "Fastly-", "Fly-", "Proxy-", "Sec-", "X-Amz-Cf-", "X-B3-",
		"X-Datadog-", "X-Envoy-", "X-Forwarded-", "X-Ot-"}
)

// names is a set of ours and of others.
func names(others ...string) map[string]bool {
	all := map[string]bool{}
	for _, name := range append(others, ours...) {
		all[name] = true
	}
	return all
}

// check reads the names in their canonical form.
func (h *Headers) check() error {
	if len(h.Key)+len(h.Write)+len(h.Send)+len(h.Back)+len(h.Ignore) > maxHeaders {
		return fmt.Errorf("headers: more than %d", maxHeaders)
	}
	for i, name := range h.Write {
		if err := checkHeader("headers.write", name); err != nil {
			return err
		}
		h.Write[i] = http.CanonicalHeaderKey(name)
	}
	for i, name := range h.Back {
		if err := checkHeader("headers.back", name); err != nil {
			return err
		}
		if h.Back[i] = http.CanonicalHeaderKey(name); ofOurAnswers[h.Back[i]] {
			return fmt.Errorf("headers.back: %s is written by this server", name)
		}
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
	for i, name := range h.Ignore {
		if err := checkHeader("headers.ignore", strings.ReplaceAll(name, "*", "x")); err != nil {
			return err
		}
		h.Ignore[i] = http.CanonicalHeaderKey(name)
	}
	return h.checkKey()
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

// Read is the part of the key that a request's header gives, by name. The error is
// ErrInvalid: a field that nobody has said the meaning of, one that asks for another
// method, or a value that is none.
func (h *Headers) Read(method string, given http.Header) (key understudy.Query, err error) {
	for name, values := range given {
		same, keyed := h.Key[name]
		if !keyed {
			if err := h.refuse(method, name, values); err != nil {
				return nil, err
			}
			continue
		}
		value := strings.Join(values, ", ")
		switch {
		case matchesAll(same, value):
		case len(value) > mostKey || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }):
			return nil, fmt.Errorf("%w: header %s: want at most %d printable characters of ASCII", understudy.ErrInvalid, name, mostKey)
		default:
			key = append(key, understudy.Param{Name: name, Value: value})
		}
	}
	slices.SortFunc(key, func(a, b understudy.Param) int { return strings.Compare(a.Name, b.Name) })
	return key, nil
}

// matchesAll reports whether every element of a list is empty or one of some patterns.
func matchesAll(patterns []string, list string) bool {
	for one := range strings.SplitSeq(list, ",") {
		one, _, _ = strings.Cut(strings.TrimSpace(one), ";") // a weight or a charset (RFC 9110, 12.5.1)
		if one = strings.TrimSpace(one); one != "" && !slices.ContainsFunc(patterns, func(p string) bool { return Glob(p, one) }) {
			return false
		}
	}
	return true
}

// Glob reports whether a pattern, in which one * stands for any text, is the whole text.
func Glob(pattern, text string) bool {
	head, tail, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == text
	}
	return len(text) >= len(head)+len(tail) && strings.HasPrefix(text, head) && strings.HasSuffix(text, tail)
}

// refuse is the error for a field of a request that could mean something.
func (h *Headers) refuse(method, name string, values []string) error {
	switch {
	case name == "Accept":
		if !strings.Contains(strings.Join(values, ","), "/vnd.") {
			return nil // every answer is JSON
		}
	case meaningless[name], slices.Contains(h.Write, name), h.Send[name] != "" && slices.Equal(values, []string{h.Send[name]}):
		return nil
	case (name == "If-Match" || name == "If-Unmodified-Since") && (method == http.MethodGet || method == http.MethodHead):
		return nil // for writes, which upstream would refuse
	case slices.ContainsFunc(overrides, func(p string) bool { return strings.HasPrefix(name, p) }):
		return fmt.Errorf("%w: header %s: use the method itself", understudy.ErrInvalid, name)
	case slices.ContainsFunc(meaninglessPrefixes, func(p string) bool { return strings.HasPrefix(name, p) }),
		slices.ContainsFunc(h.Ignore, func(p string) bool { return Glob(p, name) }):
		return nil
	}
	return fmt.Errorf("%w: header %s: it is not known what it asks for; leave it out, or have the spec name it under headers",
		understudy.ErrInvalid, understudy.Clip(name))
}

// ofOurAnswers are the fields of answers that this server writes itself, beside ours.
var ofOurAnswers = names("Accept-Ranges", "Age", "Allow", "Cache-Control", "Cache-Status", "Content-Disposition", "Content-Range",
	"Content-Security-Policy", "Etag", "Last-Modified", "Link", "Location", "Retry-After", "Server-Timing", "Set-Cookie",
	"Strict-Transport-Security", "Vary", "Www-Authenticate", "X-Content-Type-Options", "X-Request-Id")

func checkHeader(where, name string) error {
	odd := func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_')
	}
	canonical := http.CanonicalHeaderKey(name)
	switch {
	case name == "" || len(name) > 100 || strings.ContainsFunc(name, odd):
		return fmt.Errorf("%s: %q: want the name of a header", where, name)
	case slices.Contains(ours, canonical),
		slices.ContainsFunc(ourPrefixes, func(p string) bool { return strings.HasPrefix(canonical, p) }):
		return fmt.Errorf("%s: %s is written by this server, and cannot be the API's", where, name)
	}
	return nil
}

// OfWrite are the fields of a write's header that are passed on; nil: none.
func (h *Headers) OfWrite(given http.Header) http.Header {
	var passed http.Header
	for _, name := range h.Write {
		if values := given[name]; len(values) > 0 {
			if passed == nil {
				passed = http.Header{}
			}
			passed[name] = slices.Clone(values)
		}
	}
	return passed
}
