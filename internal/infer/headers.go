// This file finds the request header fields that matter to an API, and the response header fields that clients need.

package infer

import (
	"cmp"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"understudy/internal/openapi"
	"understudy/spec"
)

// plainHeaders are request header fields that a spec need not name. They change no response or have built-in handling.
var plainHeaders = []string{"Accept", "Accept-Language", "Cache-Control", "If-Modified-Since", "If-None-Match", "Traceparent",
	"X-Correlation-Id", "X-Request-Id"}

// bareSpec returns a minimal spec that compiles. A caller adds a setting to test whether it is valid.
func bareSpec() *spec.Spec {
	return &spec.Spec{Name: "x", Hosts: []spec.Host{{URL: "http://x"}}, Auth: spec.Auth{Style: "none"}}
}

// canCompile reports whether a spec with this auth style and these write headers is valid.
func canCompile(auth string, names []string) bool {
	sp := bareSpec()
	sp.Auth.Style, sp.Headers.Write = auth, names
	return sp.Compile() == nil
}

// The maximum number of header fields that a draft names for each purpose. A spec may have 20.
const (
	maxKeyHeaders   = 6
	maxWriteHeaders = 4
	maxSendHeaders  = 4
	maxBackHeaders  = 6
)

// requestHeaders are the header fields that operations accept, by purpose.
type requestHeaders struct {
	write []string            // the fields that are sent upstream with writes
	key   map[string][]string // the fields that are part of the cache key, with the values that mean the same as a missing field
	send  map[string]string   // the fields that are added to every upstream request, with their values
}

// isWriteHeader reports whether a header field matters only to writes.
func isWriteHeader(name string) bool {
	return strings.Contains(foldName(name), "idempoten") || name == "If-Match" || name == "If-Unmodified-Since"
}

// headers returns the header fields that operations accept, sorted by purpose.
func (a *api) headers(auth string) (h requestHeaders) {
	h.key, h.send = map[string][]string{}, map[string]string{}
	for name, w := range sortedEntries(a.doc.Headers.Requests) {
		vendor := name == "Accept" && slices.ContainsFunc(w.Values, func(v string) bool { return strings.Contains(v, "/vnd.") })
		if slices.Contains(plainHeaders, name) && !vendor || !canCompile(auth, []string{name}) {
			continue
		}
		if value := a.sentValue(name, w); value != "" && canSend(name, value) && len(h.send) < maxSendHeaders {
			h.send[name] = value
			if len(w.Values) == 1 && !vendor {
				continue
			}
		}
		switch {
		case w.Reads > 0 && !isWriteHeader(name) && len(h.key) < maxKeyHeaders:
			h.key[name] = nil
			if vendor {
				h.key[name] = []string{"application/json"}
			} else if w.Default != "" && w.Required == 0 && canSend(name, w.Default) && !strings.Contains(w.Default, "*") {
				h.key[name] = []string{w.Default}
			}
		case w.Writes > 0 && len(h.write) < maxWriteHeaders:
			h.write = append(h.write, name)
		case w.Writes == 0 && isWriteHeader(name): // a write header that no write accepts does not change reads
		default:
			a.noteOnce("", "headers: "+name+" is left out, because there are too many header fields; if callers send it, write it in "+
				"place of another")
		}
	}
	if media := a.mediaType(); strings.Contains(media, "/vnd.") && h.send["Accept"] == "" {
		h.send["Accept"], h.key["Accept"] = media, []string{"application/json"}
	}
	return h
}

// Words and values by which a caller confirms a dangerous request, and the form of a version number.
var (
	consentWords = []string{"dangerous", "danger", "confirm", "confirmed", "confirmation", "force", "acknowledge", "acknowledged", "accept",
		"ack", "consent", "agree", "agreed", "terms", "understand", "understood", "unlock", "delete", "destroy", "erase", "purge", "wipe", "drop"}
	consentValue = regexp.MustCompile(`(?i)^(true|yes|y|1|on|ok|confirm\w*|i[ _-].*)$`)
	consentText  = regexp.MustCompile(`(?i)\b(confirm|acknowledge|consent|agree|destroy|irreversibl|dangerous)`)
	versionValue = regexp.MustCompile(`(?i)^v?\d[\w.-]*$`)
)

// Header fields that name the client program. clientName matches the field's name, and clientValue its value.
var (
	clientName       = regexp.MustCompile(`(?:^| )(?:api|client|app|application|platform|user agent)(?: (?:name|type))?$`)
	clientValue      = regexp.MustCompile(`^[A-Za-z][\w./-]*$`)
	placeholderWords = []string{"your", "my", "example", "string", "admin", "demo", "test", "live", "sandbox", "production"}
)

// isIdentifying reports whether a header field only identifies the API or the client, so that it is safe to add to each
// request. Such a field has a version or its date, a media type, or the name of a client.
func isIdentifying(name, value string) bool {
	switch {
	case name == "Accept":
		return strings.Contains(value, "/")
	case hasWord(name, "version", "revision", "release") || hasWord(name, "api") && hasWord(name, "date"):
		return versionValue.MatchString(value)
	}
	return clientName.MatchString(strings.Join(splitWords(name), " ")) && clientValue.MatchString(value) && !consentValue.MatchString(value) &&
		!hasWord(value, placeholderWords...) && !hasWord(value, consentWords...)
}

// sentValue returns the value of a header field to add to each upstream request, or "" if the field must not be
// added. Every operation must require the field, and the field must identify the API or its client or come from
// observed requests. Callers send other fields themselves, because these may change what a request does.
func (a *api) sentValue(name string, w *openapi.RequestHeader) string {
	if w.Required == 0 || isWriteHeader(name) {
		return ""
	}
	value, most := "", 0
	for one, n := range sortedEntries(w.RequiredValues) {
		if n > most {
			value, most = one, n
		}
	}
	all, version := a.doc.OperationCount, hasWord(name, "version") && w.Required == a.doc.OperationCount
	dated := !slices.ContainsFunc(w.Values, func(v string) bool { return v[0] < '0' || v[0] > '9' })
	plainly := isIdentifying(name, value)
	switch left := "it is forwarded if a caller sends it, and never added"; {
	case value != "" && consentValue.MatchString(value) && !plainly, hasWord(name, consentWords...) && name != "Accept",
		consentText.MatchString(w.Text):
		a.noteOnce("", "headers: "+name+" confirms what a request does; "+left)
		return ""
	case value != "" && w.RequiredValues[value] == all && (plainly || a.observed):
		return value
	case value != "" && w.RequiredValues[value] == all:
		a.noteOnce("", fmt.Sprintf("headers: %s: %s is required, and may change what a request does; %s; write send: {%s: %s} under headers "+
			"to send it with each request", name, quoteJSON(value), left, name, quoteJSON(value)))
	case version && len(w.Values) > 1 && dated:
		value = slices.Max(w.Values)
		a.noteOnce("", "headers: "+name+" is required and has several values; "+quoteJSON(value)+" is sent")
		return value
	case version && len(w.Values) == 0 && versionValue.MatchString(w.Example):
		a.noteOnce("", "headers: "+name+" is required, and only an example shows a value; "+quoteJSON(w.Example)+" is sent")
		return w.Example
	case w.Required == all:
		a.noteOnce("", "headers: "+name+" is required, but its value is not known; write it to headers.send, or the API refuses requests")
	case value != "":
		a.noteOnce("", fmt.Sprintf("headers: %s: %s is required by %d of %d operations; %s; write it to headers.send if the others "+
			"accept it, too",
			name, quoteJSON(value), w.RequiredValues[value], all, left))
	default:
		a.noteOnce("", fmt.Sprintf("headers: %s is required by %d of %d operations; %s", name, w.Required, all, left))
	}
	return ""
}

// canSend reports whether a spec that sends this header field and value is valid.
func canSend(name, value string) bool {
	sp := bareSpec()
	sp.Headers.Send = map[string]string{name: value}
	return sp.Compile() == nil
}

// mediaType returns the media type of the responses to all reads, or "" if it differs or is plain JSON.
func (a *api) mediaType() string {
	media := func(op *openapi.Operation) string { return strings.TrimSpace(strings.Split(op.Type, ";")[0]) }
	first := media(a.doc.Reads[0])
	if !strings.Contains(first, "/vnd.") && !strings.HasSuffix(first, "+json") || !canSend("Accept", first) ||
		slices.ContainsFunc(a.doc.Reads, func(op *openapi.Operation) bool { return media(op) != first }) {
		return ""
	}
	return first
}

// Names, and beginnings of names, of the response header fields that servers and networks add to every response.
var (
	serverHeaders = []string{"Alt-Svc", "Authorization", "Expires", "Nel", "Origin-Agent-Cluster", "Pragma", "Referrer-Policy", "Report-To",
		"Reporting-Endpoints", "Server", "X-Powered-By", "X-Served-By", "X-Timer", "X-Runtime", "X-Frame-Options", "X-Xss-Protection",
		"X-Download-Options", "X-Permitted-Cross-Domain-Policies", "X-Dns-Prefetch-Control", "X-Robots-Tag", "X-Varnish", "X-Ua-Compatible",
		"Permissions-Policy", "Feature-Policy", "Timing-Allow-Origin", "P3p"}
	serverHeaderPrefixes = []string{"Access-Control-", "Content-", "Cf-", "X-Cache", "X-Amz-Cf-", "X-Envoy-", "X-Aspnet", "Cross-Origin-",
		"X-Content-", "Digest", "Ratelimit", "Fastly-", "X-Fastly-", "X-Azure-Ref", "X-Akamai-"}
)

// isUsefulHeader reports whether clients may need a response header field.
func isUsefulHeader(name string) bool {
	canonical := http.CanonicalHeaderKey(name)
	if slices.Contains(serverHeaders, canonical) || isLimitHeader(name) || hasWord(name, "cookie", "token", "secret", "session", "auth") ||
		slices.ContainsFunc(serverHeaderPrefixes, func(p string) bool { return strings.HasPrefix(canonical, p) }) {
		return false
	}
	sp := bareSpec()
	sp.Headers.Back = []string{name}
	return sp.Compile() == nil
}

// isUsefulUndocumented reports whether clients may need a response header field that no document names:
// a request id, a version, the number of rows or pages, or a warning.
func isUsefulUndocumented(name string) bool {
	return isUsefulHeader(name) && (hasWord(name, "id") && hasWord(name, "request", "trace", "transaction", "correlation", "log") ||
		hasWord(name, "requestid", "version", "total", "count", "pages", "page", "deprecation", "deprecated", "sunset", "warning",
			"scopes", "scope"))
}

// rareRatio is the share of reads, one in this many, whose responses must have a header field. Rarer fields are left out.
const rareRatio = 20

// responseHeaders returns the header fields of successful answers that clients receive, the most frequent first.
func (a *api) responseHeaders() (names []string) {
	leads := map[string]bool{} // the fields that link to the next page, which are made for each response
	for _, l := range a.lists {
		if name, ok := strings.CutPrefix(l.paging.rules.Next, "header:"); ok {
			leads[http.CanonicalHeaderKey(name)] = true
		}
	}
	var all []*openapi.ResponseHeader
	for key, t := range sortedEntries(a.doc.Headers.Responses) {
		good := slices.ContainsFunc(t.Statuses, func(s string) bool { return strings.HasPrefix(s, "2") || s == "default" })
		if good && !leads[key] && isUsefulHeader(t.Name) && t.Answers*rareRatio >= len(a.doc.Reads) {
			all = append(all, t)
		}
	}
	slices.SortStableFunc(all, func(x, y *openapi.ResponseHeader) int { return y.Answers - x.Answers })
	for _, t := range all[:min(len(all), maxBackHeaders)] {
		names = append(names, t.Name)
	}
	return names
}

// writeHeaders writes the headers section of the spec. It notes if the document names no request header field.
func (a *api) writeHeaders(w *writer, auth string) {
	h, back := a.headers(auth), a.responseHeaders()
	if len(h.write)+len(h.key)+len(h.send) == 0 && a.doc.OperationCount > len(a.doc.Reads)+len(a.doc.NonJSONReads) {
		a.noteOnce("", "headers: no header field of requests is known; answers to reads with a field that is not listed under "+
			"headers are not stored, and the field is refused if its name suggests an account or a key")
	}
	if len(h.write)+len(h.key)+len(h.send)+len(back) == 0 {
		return
	}
	w.writeLine(0, "headers:", "")
	key, send := &flowMapping{}, &flowMapping{}
	for name, same := range sortedEntries(h.key) {
		key.add(name, cmp.Or(yamlList(same), "[]"))
	}
	w.writeEntry(1, "key", key.String(), "reads may have these header fields")
	w.writeEntry(1, "write", yamlList(h.write), "writes may have these header fields")
	for name, value := range sortedEntries(h.send) {
		send.add(name, quoteJSON(value))
	}
	why := "required"
	if h.send["Accept"] != "" {
		why = "required, or the type of its answers"
	}
	w.writeEntry(1, "send", send.String(), why)
	w.writeEntry(1, "back", yamlList(back), "header fields of answers, for callers that see everything")
}
