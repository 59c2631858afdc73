// Headers: the header fields that mean something to an API, and those of its answers that
// a client would miss.

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

// plainHeaders are fields that change no answer, or that every server reads by itself.
var plainHeaders = []string{"Accept", "Accept-Language", "Cache-Control", "If-Modified-Since", "If-None-Match", "Traceparent",
	"X-Correlation-Id", "X-Request-Id"}

// bareSpec is a spec that compiles, to try a name in.
func bareSpec() *spec.Spec {
	return &spec.Spec{Name: "x", Hosts: []spec.Host{{URL: "http://x"}}, Auth: spec.Auth{Style: "none"}}
}

// compiles reports whether a spec may have the style and name the header fields.
func compiles(auth string, names []string) bool {
	sp := bareSpec()
	sp.Auth.Style, sp.Headers.Write = auth, names
	return sp.Compile() == nil
}

// The most fields of each sort; a spec may have 20.
const (
	maxKey   = 6
	maxWrite = 4
	maxSend  = 4
	maxBack  = 6
)

// asked are the header fields that operations take.
type asked struct {
	write []string            // passed on with writes
	key   map[string][]string // part of the question, with the value that means the same as none
	send  map[string]string   // always sent
}

// ofWrites reports whether a field means something to writes alone.
func ofWrites(name string) bool {
	return strings.Contains(foldName(name), "idempoten") || name == "If-Match" || name == "If-Unmodified-Since"
}

// headers sorts the header fields that operations take.
func (a *api) headers(auth string) (h asked) {
	h.key, h.send = map[string][]string{}, map[string]string{}
	for name, w := range sortedEntries(a.doc.Headers.Wanted) {
		vendor := name == "Accept" && slices.ContainsFunc(w.Values, func(v string) bool { return strings.Contains(v, "/vnd.") })
		if slices.Contains(plainHeaders, name) && !vendor || !compiles(auth, []string{name}) {
			continue
		}
		if value := a.sentValue(name, w); value != "" && sendable(name, value) && len(h.send) < maxSend {
			h.send[name] = value
			if len(w.Values) == 1 && !vendor {
				continue
			}
		}
		switch {
		case w.Reads > 0 && !ofWrites(name) && len(h.key) < maxKey:
			h.key[name] = nil
			if vendor {
				h.key[name] = []string{"application/json"}
			} else if w.Default != "" && w.Required == 0 && sendable(name, w.Default) && !strings.Contains(w.Default, "*") {
				h.key[name] = []string{w.Default}
			}
		case w.Writes > 0 && len(h.write) < maxWrite:
			h.write = append(h.write, name)
		case w.Writes == 0 && ofWrites(name): // it changes no read
		default:
			a.noteOnce("", "headers: "+name+" is not named, as there are too many: name it in place of another one if callers send it")
		}
	}
	if media := a.media(); strings.Contains(media, "/vnd.") && h.send["Accept"] == "" {
		h.send["Accept"], h.key["Accept"] = media, []string{"application/json"}
	}
	return h
}

// consents are words and values by which a caller confirms what a request does.
var (
	consents = []string{"dangerous", "danger", "confirm", "confirmed", "confirmation", "force", "acknowledge", "acknowledged", "accept", "ack",
		"consent", "agree", "agreed", "terms", "understand", "understood", "unlock", "delete", "destroy", "erase", "purge", "wipe", "drop"}
	consentValue = regexp.MustCompile(`(?i)^(true|yes|y|1|on|ok|confirm\w*|i[ _-].*)$`)
	consentText  = regexp.MustCompile(`(?i)\b(confirm|acknowledge|consent|agree|destroy|irreversibl|dangerous)`)
	versionValue = regexp.MustCompile(`(?i)^v?\d[\w.-]*$`)
)

// What a program says of itself with each request: clientName matches the words of a field's name, clientValue its value.
var (
	clientName  = regexp.MustCompile(`(?:^| )(?:api|client|app|application|platform|user agent)(?: (?:name|type))?$`)
	clientValue = regexp.MustCompile(`^[A-Za-z][\w./-]*$`)
	standIns    = []string{"your", "my", "example", "string", "admin", "demo", "test", "live", "sandbox", "production"}
)

// identifies reports whether a field plainly says which API is asked, and by which program, so that each request may
// have it: a version or its date, a media type, the name of a client.
func identifies(name, value string) bool {
	switch {
	case name == "Accept":
		return strings.Contains(value, "/")
	case hasWord(name, "version", "revision", "release") || hasWord(name, "api") && hasWord(name, "date"):
		return versionValue.MatchString(value)
	}
	return clientName.MatchString(strings.Join(splitWords(name), " ")) && clientValue.MatchString(value) && !consentValue.MatchString(value) &&
		!hasWord(value, standIns...) && !hasWord(value, consents...)
}

// sentValue returns the value of a field that every request is sent with: every operation demands it, and it plainly
// identifies the API or its client, or it was given by hand. Any other field is left to the callers, as it may change
// what a request does.
func (a *api) sentValue(name string, w *openapi.Header) string {
	if w.Required == 0 || ofWrites(name) {
		return ""
	}
	value, most := "", 0
	for one, n := range sortedEntries(w.Demanded) {
		if n > most {
			value, most = one, n
		}
	}
	all, version := a.doc.All, hasWord(name, "version") && w.Required == a.doc.All
	dated := !slices.ContainsFunc(w.Values, func(v string) bool { return v[0] < '0' || v[0] > '9' })
	plainly := identifies(name, value)
	switch left := "it goes upstream as a caller sends it, and is not added"; {
	case value != "" && consentValue.MatchString(value) && !plainly, hasWord(name, consents...) && name != "Accept",
		consentText.MatchString(w.Text):
		a.noteOnce("", "headers: "+name+" confirms what a request does: "+left)
		return ""
	case value != "" && w.Demanded[value] == all && (plainly || a.seen):
		return value
	case value != "" && w.Demanded[value] == all:
		a.noteOnce("", fmt.Sprintf("headers: %s: %s is demanded, and may change what a request does: %s; write send: {%s: %s} under headers "+
			"if each request is to have it", name, quoteJSON(value), left, name, quoteJSON(value)))
	case version && len(w.Values) > 1 && dated:
		value = slices.Max(w.Values)
		a.noteOnce("", "headers: "+name+" is demanded, and may have several values: "+quoteJSON(value)+" is sent")
		return value
	case version && len(w.Values) == 0 && versionValue.MatchString(w.Example):
		a.noteOnce("", "headers: "+name+" is demanded, and has a value in an example alone: "+quoteJSON(w.Example)+" is sent")
		return w.Example
	case w.Required == all:
		a.noteOnce("", "headers: "+name+" is demanded, and nothing says with which value: write it to headers.send, or requests are refused")
	case value != "":
		a.noteOnce("", fmt.Sprintf("headers: %s: %s is demanded by %d of %d operations: %s; write it to headers.send if the others take it, too",
			name, quoteJSON(value), w.Demanded[value], all, left))
	default:
		a.noteOnce("", fmt.Sprintf("headers: %s is demanded by %d of %d operations: %s", name, w.Required, all, left))
	}
	return ""
}

// sendable reports whether a spec may send a field with a value.
func sendable(name, value string) bool {
	sp := bareSpec()
	sp.Headers.Send = map[string]string{name: value}
	return sp.Compile() == nil
}

// media returns the media type, other than plain JSON, that all reads answer with; "" = none.
func (a *api) media() string {
	media := func(op *openapi.Operation) string { return strings.TrimSpace(strings.Split(op.Type, ";")[0]) }
	first := media(a.doc.Reads[0])
	if !strings.Contains(first, "/vnd.") && !strings.HasSuffix(first, "+json") || !sendable("Accept", first) ||
		slices.ContainsFunc(a.doc.Reads, func(op *openapi.Operation) bool { return media(op) != first }) {
		return ""
	}
	return first
}

// ofServers are the fields that servers and networks add to every answer, and what begins
// the names of others.
var (
	ofServers = []string{"Alt-Svc", "Authorization", "Expires", "Nel", "Origin-Agent-Cluster", "Pragma", "Referrer-Policy", "Report-To",
		"Reporting-Endpoints", "Server", "X-Powered-By", "X-Served-By", "X-Timer", "X-Runtime", "X-Frame-Options", "X-Xss-Protection",
		"X-Download-Options", "X-Permitted-Cross-Domain-Policies", "X-Dns-Prefetch-Control", "X-Robots-Tag", "X-Varnish", "X-Ua-Compatible",
		"Permissions-Policy", "Feature-Policy", "Timing-Allow-Origin", "P3p"}
	ofServersPrefixes = []string{"Access-Control-", "Content-", "Cf-", "X-Cache", "X-Amz-Cf-", "X-Envoy-", "X-Aspnet", "Cross-Origin-",
		"X-Content-", "Digest", "Ratelimit", "Fastly-", "X-Fastly-", "X-Azure-Ref", "X-Akamai-"}
)

// missed reports whether a client would miss a field of answers that is not passed on.
func missed(name string) bool {
	canonical := http.CanonicalHeaderKey(name)
	if slices.Contains(ofServers, canonical) || isLimitHeader(name) || hasWord(name, "cookie", "token", "secret", "session", "auth") ||
		slices.ContainsFunc(ofServersPrefixes, func(p string) bool { return strings.HasPrefix(canonical, p) }) {
		return false
	}
	sp := bareSpec()
	sp.Headers.Back = []string{name}
	return sp.Compile() == nil
}

// missedIfSeen reports the same of a field that an answer has and no document names: of a
// request's id, of a version, of what is beside the page, of what a caller is warned of.
func missedIfSeen(name string) bool {
	return missed(name) && (hasWord(name, "id") && hasWord(name, "request", "trace", "transaction", "correlation", "log") || hasWord(name,
		"requestid", "version", "total", "count", "pages", "page", "deprecation", "deprecated", "sunset", "warning", "scopes", "scope"))
}

// rare is among how many reads a field that one answer has means nothing to most clients.
const rare = 20

// back are the fields of good answers that are passed on, the frequent ones first.
func (a *api) back() (names []string) {
	leads := map[string]bool{} // to the next page: our own answers write them
	for _, l := range a.lists {
		if name, ok := strings.CutPrefix(l.cut.rules.Next, "header:"); ok {
			leads[http.CanonicalHeaderKey(name)] = true
		}
	}
	var all []*openapi.Told
	for key, t := range sortedEntries(a.doc.Headers.Told) {
		good := slices.ContainsFunc(t.Statuses, func(s string) bool { return strings.HasPrefix(s, "2") || s == "default" })
		if good && !leads[key] && missed(t.Name) && t.Answers*rare >= len(a.doc.Reads) {
			all = append(all, t)
		}
	}
	slices.SortStableFunc(all, func(x, y *openapi.Told) int { return y.Answers - x.Answers })
	for _, t := range all[:min(len(all), maxBack)] {
		names = append(names, t.Name)
	}
	return names
}

func (a *api) writeHeaders(w *writer, auth string) {
	h, back := a.headers(auth), a.back()
	if len(h.write)+len(h.key)+len(h.send) == 0 && a.doc.All > len(a.doc.Reads)+len(a.doc.Others) {
		a.noteOnce("", "headers: no field of a request is named: until one stands under headers, answers to reads with it are not stored, "+
			"and it is refused where its name may tell of an account or a key")
	}
	if len(h.write)+len(h.key)+len(h.send)+len(back) == 0 {
		return
	}
	w.writeLine(0, "headers:", "")
	key, send := &flowMapping{}, &flowMapping{}
	for name, same := range sortedEntries(h.key) {
		key.add(name, cmp.Or(yamlList(same), "[]"))
	}
	w.writeEntry(1, "key", key.String(), "lists or records are asked for with them")
	w.writeEntry(1, "write", yamlList(h.write), "writes take them")
	for name, value := range sortedEntries(h.send) {
		send.add(name, quoteJSON(value))
	}
	why := "demanded"
	if h.send["Accept"] != "" {
		why = "demanded, or the type of its answers"
	}
	w.writeEntry(1, "send", send.String(), why)
	w.writeEntry(1, "back", yamlList(back), "fields of answers, for callers that see everything")
}
