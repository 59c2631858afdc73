// This file chooses the name, the hosts and the port that a spec gives its API.

package infer

import (
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// writeHosts writes the hosts section of the spec. A public host of a document gets https in place of http.
func (a *api) writeHosts(w *writer) {
	w.writeLine(0, "hosts:", "")
	if len(a.doc.Servers) == 0 {
		a.noteOnce("", "hosts: the document names no server; write the API's URL")
		w.writeLine(1, `- {url: "https://api.example"}`, "an example; the document names no server")
	} else {
		why := "the document's first server"
		if a.observed {
			why = "the server that answered"
		}
		host, plainly := strings.CutPrefix(a.doc.Servers[0], "http://")
		switch {
		case !plainly || !isPublicHost(host):
			host = a.doc.Servers[0]
		case a.observed:
			host = a.doc.Servers[0]
			a.noteOnce("", "hosts: the requests were sent without TLS, so others can read the credential; write https if the API supports it")
		default:
			host, why = "https://"+host, "the document says http, by which others could read the credential"
			a.noteOnce("", "hosts: the document says http, by which others could read the credential; the spec has https")
		}
		w.writeLine(1, "- {url: "+quoteJSON(host)+"}", why)
	}
}

// isPublicHost reports whether a host may be on the public internet.
func isPublicHost(host string) bool {
	u, err := url.Parse("http://" + host)
	if err != nil {
		return true
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil {
		return !ip.IsLoopback() && !ip.IsPrivate() && !ip.IsLinkLocalUnicast()
	}
	name := strings.ToLower(u.Hostname())
	return strings.Contains(name, ".") && !slices.ContainsFunc([]string{".localhost", ".local", ".internal", ".lan", ".test"},
		func(end string) bool { return strings.HasSuffix(name, end) })
}

// name returns a short name for the API and the reason for the name. The name comes from the host, the title or the
// first list.
func (a *api) name() (name, why string) {
	labels := []string{}
	if len(a.doc.Servers) > 0 {
		if u, err := url.Parse(a.doc.Servers[0]); err == nil {
			labels = strings.Split(u.Hostname(), ".")
		}
	}
	tidy := func(text string) string {
		return strings.Trim(regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(text), "-"), "-")
	}
	if n := len(labels); n > 1 && tidy(labels[n-2]) != "" && strings.ContainsFunc(labels[n-1], unicode.IsLetter) {
		return tidy(labels[n-2]), "from its host"
	}
	if title := tidy(a.doc.Title); title != "" && (len(a.doc.Servers) == 0 || !strings.HasSuffix(a.doc.Servers[0], a.doc.Title)) {
		return strings.Trim(title[:min(30, len(title))], "-"), "from the document's title"
	}
	if last := tidy(lastWord(a.lists[0].op.Path)); last != "" {
		return last[:min(30, len(last))], "from its first list"
	}
	return "api", ""
}

// The range of the ports that a draft proposes. It lies above the ports of the built-in specs.
const (
	minPort   = 4200
	portCount = 700
)
