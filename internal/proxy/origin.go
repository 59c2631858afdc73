// This file answers callers that send their requests to upstream's own addresses.

package proxy

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"understudy/internal/access"
	"understudy/spec"
)

// UpstreamFrontend returns a frontend of the same source for callers that use upstream's own addresses. URLs in its
// responses begin with the result of origin for their path, as upstream's do, and not with this port's address.
// Both frontends share counters, limits and caches. callers authenticates the requests. Understudy's own paths
// (/-/) do not exist in this frontend.
func (p *Proxy) UpstreamFrontend(origin func(path string) string, callers Callers) *Proxy {
	there := *p
	there.origin, there.o.Callers = origin, callers
	there.o.Admit, there.o.Ready, there.o.Open = nil, nil, false
	return &there
}

// restoreOrigins returns a view in which each URL of this port is the URL of upstream again. The mirror has
// replaced upstream's origin at the beginning of JSON strings.
func (p *Proxy) restoreOrigins(view *access.View) *access.View {
	if p.origin == nil || p.o.Source.PublicURL == "" {
		return view
	}
	ours := []byte(`"` + p.o.Source.PublicURL)
	if !bytes.Contains(view.Body, ours) {
		return view
	}
	out := *view
	// the stored compressed body has URLs of this port, so it cannot be sent
	out.Body, out.Unredacted = p.replaceOrigins(view.Body, ours), false
	sum := sha256.Sum256(out.Body)
	copy(out.Sum[:], sum[:])
	return &out
}

// addressFields are the header fields that contain one address, which clients follow with their credential.
var addressFields = []string{"Azure-Asyncoperation", "Content-Location", "Location", "Operation-Location"}

// refreshStart matches the text before the address in a Refresh header.
var refreshStart = regexp.MustCompile(`(?i)^[\s\d.;,]*(?:url\s*=)?`)

// rewriteLinks replaces addresses of upstream in addressFields, Refresh and Link with paths on the host that
// the client used, below the path of the source's public URL. A client that follows an upstream address would
// send its credential for this server to upstream.
func rewriteLinks(h http.Header, src *spec.Source) {
	u, ok := originOf(src, src.Spec.Hosts[0].URL)
	if !ok {
		return
	}
	for _, name := range addressFields {
		rewriteLines(h, name, u.rewriteAddress)
	}
	rewriteLines(h, "Refresh", func(line string) string {
		start := refreshStart.FindString(line)
		return start + u.rewriteAddress(line[len(start):])
	})
	rewriteLines(h, "Link", u.rewriteLink)
}

// rewriteLines applies rewrite to the lines of a header field. It copies them first, because they may belong to a
// stored response.
func rewriteLines(h http.Header, name string, rewrite func(string) string) {
	if len(h[name]) > 0 {
		h[name] = slices.Clone(h[name])
	}
	for i, line := range h[name] {
		h[name][i] = rewrite(line)
	}
}

// upstreamOrigin is an origin of a source's upstream, and the path that replaces it.
type upstreamOrigin struct {
	base     *url.URL
	basePath string
}

// originOf parses the address of one of a source's hosts.
func originOf(src *spec.Source, address string) (u upstreamOrigin, ok bool) {
	base, err := url.Parse(address)
	if err != nil {
		return u, false
	}
	u = upstreamOrigin{base: base, basePath: "/"}
	if public, err := url.Parse(src.PublicURL); err == nil {
		u.basePath = public.EscapedPath() + "/"
	}
	return u, true
}

// rewriteAddress returns an address with a path in place of upstream's origin. Spaces, quotes and angle
// brackets may precede the origin.
func (u *upstreamOrigin) rewriteAddress(address string) string {
	start := len(address) - len(strings.TrimLeft(address, " \t<>\"'"))
	if n := u.lengthIn(address[start:]); n > 0 {
		return address[:start] + u.basePath + address[start+n:]
	}
	return address
}

// rewriteLink rewrites the addresses in a line of a Link header. Many servers send lines that break the grammar,
// and many clients ignore the quotes. So an address may begin at the start of the line, after < or >, as an anchor,
// and after a space outside quotes. The URI of a relation is in quotes and is not rewritten.
func (u *upstreamOrigin) rewriteLink(line string) string {
	var out strings.Builder
	begins, quoted := true, false // begins is true where an address may begin: only spaces and quotes have followed the last start character
	for i := 0; i < len(line); i++ {
		if begins || !quoted && (line[i-1] == ' ' || line[i-1] == '\t') {
			if n := u.lengthIn(line[i:]); n > 0 {
				out.WriteString(u.basePath)
				i, begins = i+n-1, false
				continue
			}
		}
		switch c := line[i]; c {
		case '<', '>':
			begins = true
		case '=':
			begins = strings.EqualFold(line[max(0, i-len("anchor")):i], "anchor")
		case '"':
			quoted = !quoted && strings.IndexByte(line[i+1:], '"') >= 0 // a quote that is never closed is ignored
		case '\'', ' ', '\t':
		default:
			begins = false
		}
		out.WriteByte(line[i])
	}
	return out.String()
}

// lengthIn returns the length of upstream's origin at the beginning of a text, including the slashes after it. It
// returns 0 if the text begins differently. The slashes are included because two slashes at the beginning of a path
// would name another host. An API behind a TLS terminator may use the other scheme with that scheme's port.
func (u *upstreamOrigin) lengthIn(text string) int {
	rest, least, scheme := text, 2, strings.ToLower(u.base.Scheme)
	for _, given := range []string{"http", "https"} {
		if n := len(given); len(text) > n && strings.EqualFold(text[:n], given) && text[n] == ':' {
			rest, least, scheme = text[n+1:], 1, given
		}
	}
	host := strings.TrimLeft(rest, `/\`)
	if len(rest)-len(host) < least {
		return 0
	}
	end := strings.IndexAny(host, "/?#\\<>\" \t")
	if end < 0 {
		end = len(host)
	}
	start := strings.LastIndexByte(host[:end], '@') + 1
	if i := strings.IndexAny(host[start:end], ",;'"); i >= 0 {
		end = start + i
	}
	name, port := hostOf(&url.URL{Scheme: scheme, Host: host[start:end]})
	ours, ourPort := hostOf(u.base)
	turned := !strings.EqualFold(scheme, u.base.Scheme) && port == ownPorts[scheme]
	if !strings.EqualFold(name, ours) || port != ourPort && !turned {
		return 0
	}
	return len(text) - len(strings.TrimLeft(host[end:], `/\`))
}

// ownPorts are the default ports of the schemes.
var ownPorts = map[string]string{"http": "80", "https": "443"}

// hostOf returns the host of a URL as plainHost writes it, and the port.
func hostOf(u *url.URL) (name, port string) {
	if port = strings.TrimLeft(u.Port(), "0"); port == "" {
		port = ownPorts[strings.ToLower(u.Scheme)]
	}
	return plainHost(u.Hostname()), port
}

// plainHost returns a host without percent escapes and without a final dot. It returns an IP address in its
// shortest form: clients read 127.1, 0x7f.1, 2130706433 and ::ffff:127.0.0.1 as 127.0.0.1.
func plainHost(host string) string {
	if !strings.Contains(host, ":") { // not for an IPv6 address, whose zone begins with % and may end with a dot
		if plain, err := url.PathUnescape(host); err == nil {
			host = plain
		}
		host = strings.TrimSuffix(host, ".")
	}
	if at, ok := parseIPv4(host); ok {
		return at.String()
	}
	if at, err := netip.ParseAddr(host); err == nil {
		return at.Unmap().WithZone("").String()
	}
	return host
}

// parseIPv4 parses an IPv4 address as browsers do (WHATWG URL, 3.5). The address has one to four numbers, which may
// be octal or hexadecimal. The last number fills the remaining bytes.
func parseIPv4(host string) (at netip.Addr, ok bool) {
	parts := strings.Split(host, ".")
	if len(parts) > 4 {
		return at, false
	}
	var all uint64
	for i, part := range parts {
		base, digits := 10, part
		if hex, is := strings.CutPrefix(strings.ToLower(part), "0x"); is {
			base, digits = 16, "0"+hex
		} else if len(part) > 1 && part[0] == '0' {
			base = 8
		}
		bits := 8
		if i == len(parts)-1 {
			bits = 8 * (5 - len(parts))
		}
		n, err := strconv.ParseUint(digits, base, bits)
		if err != nil {
			return at, false
		}
		all = all<<bits | n
	}
	return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, uint32(all)))), true
}

// replaceOrigins replaces this port's address in a body with upstream's. ours is the address with a quote before it.
func (p *Proxy) replaceOrigins(body, ours []byte) []byte {
	out := make([]byte, 0, len(body)+len(body)/16)
	for {
		at := bytes.Index(body, ours)
		if at < 0 {
			return append(out, body...)
		}
		rest := body[at+len(ours):]
		out = append(out, body[:at]...)
		path, ok := pathOf(rest)
		if !ok || isEscaped(body[:at]) {
			out = append(out, ours...)
		} else {
			out = append(append(out, '"'), p.origin(path)...)
		}
		body = rest
	}
}

// pathOf returns the path of a URL. rest is the JSON string after the URL's origin. ok is false if the host name
// continues in rest.
func pathOf(rest []byte) (path string, ok bool) {
	end := bytes.IndexByte(rest, '"')
	if end < 0 {
		return "", false
	}
	path = strings.ReplaceAll(string(rest[:end]), `\/`, "/")
	path, _, _ = strings.Cut(path, "?")
	return path, path == "" || path[0] == '/'
}

// isEscaped reports whether the quote that follows a text is escaped and so belongs to a JSON string.
func isEscaped(text []byte) bool {
	n := len(text) - len(bytes.TrimRight(text, `\`))
	return n%2 == 1
}
