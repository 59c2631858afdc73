// Origin: answers for callers that believe they ask upstream itself.

package proxy

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"understudy/internal/access"
	"understudy/spec"
)

// At is the same frontend for callers that ask at upstream's own addresses: URLs in answers
// begin with what origin says for their path, as upstream's do, in place of this port's.
// What is counted, limited and remembered is so for both together. callers finds who asks
// there. Nothing of our own is answered.
func (p *Proxy) At(origin func(path string) string, callers Callers) *Proxy {
	there := *p
	there.origin, there.o.Callers = origin, callers
	there.o.Admit, there.o.Ready, there.o.Open = nil, nil, false
	return &there
}

// atOrigin is a view whose URLs of this port are those of upstream again. They were made from
// such, and are the whole beginning of a JSON string.
func (p *Proxy) atOrigin(view *access.View) *access.View {
	if p.origin == nil || p.o.Source.PublicURL == "" {
		return view
	}
	ours := []byte(`"` + p.o.Source.PublicURL)
	if !bytes.Contains(view.Body, ours) {
		return view
	}
	out := *view
	out.Body, out.Whole = p.renamed(view.Body, ours), false // what the mirror compressed names us
	sum := sha256.Sum256(out.Body)
	copy(out.Sum[:], sum[:])
	return &out
}

// rewriteLinks makes addresses of upstream in Location, Content-Location and Link paths of the
// host that was asked, below the path of the source's public URL. A client that follows one
// would send its credential for this server to upstream.
func rewriteLinks(h http.Header, src *spec.Source) {
	under := ""
	if public, err := url.Parse(src.PublicURL); err == nil {
		under = public.EscapedPath()
	}
	here := func(address string) string {
		u, err := url.Parse(address)
		base, berr := url.Parse(src.Spec.Hosts[0].URL)
		if err != nil || berr != nil || u.Host == "" {
			return address
		}
		scheme := cmp.Or(u.Scheme, base.Scheme)
		if !strings.EqualFold(scheme, base.Scheme) || !strings.EqualFold(hostOf(scheme, u.Host), hostOf(base.Scheme, base.Host)) {
			return address
		}
		rest := address[strings.Index(address, "//")+2:]
		i := strings.IndexAny(rest, "/?#")
		if i < 0 {
			i = len(rest)
		}
		return under + "/" + strings.TrimLeft(rest[i:], "/\\") // two slashes would begin another host's name
	}
	for _, name := range []string{"Location", "Content-Location"} {
		if len(h[name]) == 1 {
			h[name] = []string{here(h[name][0])}
		}
	}
	for i, line := range h["Link"] { // <address>; rel="next", <address>; …
		var out strings.Builder
		for {
			before, rest, opened := strings.Cut(line, "<")
			address, after, closed := strings.Cut(rest, ">")
			if !opened || !closed {
				break
			}
			out.WriteString(before + "<" + here(address) + ">")
			line = after
		}
		if i == 0 {
			h["Link"] = slices.Clone(h["Link"]) // the lines may be those of a stored answer
		}
		h["Link"][i] = out.String() + line
	}
}

// hostOf returns the host without the port that the scheme means anyway.
func hostOf(scheme, host string) string {
	if strings.EqualFold(scheme, "https") {
		return strings.TrimSuffix(host, ":443")
	}
	return strings.TrimSuffix(host, ":80")
}

// renamed puts upstream's origins in place of ours, which begins with a quote.
func (p *Proxy) renamed(body, ours []byte) []byte {
	out := make([]byte, 0, len(body)+len(body)/16)
	for {
		at := bytes.Index(body, ours)
		if at < 0 {
			return append(out, body...)
		}
		rest := body[at+len(ours):]
		out = append(out, body[:at]...)
		path, ok := pathOf(rest)
		if !ok || escaped(body[:at]) {
			out = append(out, ours...)
		} else {
			out = append(append(out, '"'), p.origin(path)...)
		}
		body = rest
	}
}

// pathOf is the path at the beginning of what is left of a JSON string with a URL; ok is
// false when the host goes on.
func pathOf(rest []byte) (path string, ok bool) {
	end := bytes.IndexByte(rest, '"')
	if end < 0 {
		return "", false
	}
	path = strings.ReplaceAll(string(rest[:end]), `\/`, "/")
	path, _, _ = strings.Cut(path, "?")
	return path, path == "" || path[0] == '/'
}

// escaped reports whether the quote behind a text is part of a JSON string.
func escaped(text []byte) bool {
	n := len(text) - len(bytes.TrimRight(text, `\`))
	return n%2 == 1
}
