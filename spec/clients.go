// Clients: which header fields of theirs reach the API, and the lines that point one at a
// drop-in port.

package spec

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// Headers are the header fields (RFC 9110, 5) of requests that mean something to the API.
// Those that it does not name are not passed on.
type Headers struct {
	// Write are those of a write that are passed on as its caller sent them:
	// Idempotency-Key, If-Match.
	Write []string `yaml:"write"`
	// Send are sent with every request, where the API demands them: Notion-Version.
	Send map[string]string `yaml:"send"`
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
	ourPrefixes = []string{"X-Forwarded-", "X-Http-Method", "X-Method-Override", "Proxy-", "Sec-"}
)

// check reads the names in their canonical form.
func (h *Headers) check() error {
	if len(h.Write)+len(h.Send) > maxHeaders {
		return fmt.Errorf("headers: more than %d", maxHeaders)
	}
	for i, name := range h.Write {
		if err := checkHeader("headers.write", name); err != nil {
			return err
		}
		h.Write[i] = http.CanonicalHeaderKey(name)
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
	return nil
}

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

// mostSnippets bounds the snippets of a spec.
const mostSnippets = 16

// Snippet is a program, or a command, that reads some records through a drop-in port.
// Connection.Fill says what it is filled with.
type Snippet struct {
	Title    string `yaml:"title"`    // the client: "Python"
	Language string `yaml:"language"` // of the code, as Markdown names it
	Code     string `yaml:"code"`
}

// Connection is what a client needs to know of a drop-in port.
type Connection struct {
	Address string // the port's origin: http://127.0.0.1:4115
	User    string // of the credential
	Secret  string
	Account string // the source's own user, which paths may name
}

// Fill puts the connection into a snippet: {address}, its {scheme} and {host}, {user},
// {secret} and {account}.
func (c Connection) Fill(s Snippet) string {
	scheme, host, _ := strings.Cut(c.Address, "://")
	return strings.NewReplacer("{address}", c.Address, "{scheme}", scheme, "{host}", host, "{user}", c.User, "{secret}", c.Secret,
		"{account}", c.Account).Replace(s.Code)
}

// checkSnippets makes sure that each snippet leads to the port and gives a credential.
func checkSnippets(all []Snippet) error {
	if len(all) > mostSnippets {
		return fmt.Errorf("connect: %d entries, want at most %d", len(all), mostSnippets)
	}
	seen := map[string]bool{}
	for i, s := range all {
		leads := strings.Contains(s.Code, "{address}") || strings.Contains(s.Code, "{host}")
		switch {
		case s.Title == "" || s.Language == "" || s.Code == "":
			return fmt.Errorf("connect[%d]: want title, language and code", i)
		case seen[s.Title]:
			return fmt.Errorf("connect[%d]: %s is there twice", i, s.Title)
		case !leads || !strings.Contains(s.Code, "{secret}"):
			return fmt.Errorf("connect[%d]: %s: the code wants {address} or {host}, and {secret}", i, s.Title)
		}
		seen[s.Title] = true
	}
	return nil
}
