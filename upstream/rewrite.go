// This file replaces absolute URLs of the upstream by URLs of this server.

package upstream

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"understudy/kit/jsonspan"
	"understudy/spec"
)

// origins finds the upstream's addresses at the beginning of URLs, and knows what replaces them. It does not change
// after newOrigins.
type origins struct {
	upstreamOrigins []origin
	publicURL       string // the source's public URL without a final slash, or "" if no URL is changed
	publicURLText   []byte // publicURL as it is written inside a JSON string
}

// origin is the beginning of a URL. Scheme, host and port are compared without letter case, the path exactly.
type origin struct{ host, path string }

// newOrigins returns the addresses of a source: base, if requests go there, and the hosts of its spec.
func newOrigins(s *spec.Source, base string) *origins {
	p := &origins{publicURL: strings.TrimSuffix(s.PublicURL, "/")}
	p.publicURLText = bytes.Trim(jsonText(p.publicURL), `"`)
	p.add(base)
	for _, h := range s.Spec.Hosts {
		p.add(h.URL)
	}
	return p
}

// jsonText returns a text as a JSON string.
func jsonText(text string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(text) != nil {
		return emptyString
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// homeLink converts a link to another host into a link to this server. It returns "" for other links. Clients follow
// the link to the next page with the credential that they have for this server. Like lenient clients, homeLink reads a
// backslash as a slash and ignores control characters.
func (p *origins) homeLink(link string) string {
	link = strings.Map(func(r rune) rune {
		switch {
		case r <= ' ':
			return -1
		case r == '\\':
			return '/'
		}
		return r
	}, link)
	scheme, rest, ok := strings.Cut(link, "//")
	if !ok || strings.ContainsAny(scheme, "/?#") || scheme != "" && !strings.HasSuffix(scheme, ":") || p.localPath(link) != link {
		return ""
	}
	path := strings.IndexAny(rest, "/?#")
	if path < 0 {
		return p.publicURL + "/"
	}
	return p.publicURL + "/" + strings.TrimPrefix(rest[path:], "/")
}

// add adds an address, with and without the port that its scheme implies. An API behind a TLS terminator may
// use the other scheme, with the same port or with that scheme's own.
func (p *origins) add(address string) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return
	}
	path, port := strings.TrimSuffix(u.EscapedPath(), "/"), u.Port()
	host := strings.ToLower(strings.TrimSuffix(u.Host, ":"+port))
	port = cmp.Or(port, ownPorts[u.Scheme])
	for scheme, own := range ownPorts {
		at := scheme + "://" + host
		if port != own {
			p.upstreamOrigins = append(p.upstreamOrigins, origin{at + ":" + port, path})
		}
		if port == own || scheme != u.Scheme {
			p.upstreamOrigins = append(p.upstreamOrigins, origin{at, path}, origin{at + ":" + own, path})
		}
	}
}

// matchLength returns the length of the upstream's origin at the beginning of raw, the content of a JSON string. It
// returns 0 if raw begins with no such origin.
func (p *origins) matchLength(raw []byte) int {
	if len(raw) == 0 || raw[0] != 'h' && raw[0] != 'H' && raw[0] != '\\' {
		return 0
	}
	for _, at := range p.upstreamOrigins {
		if n := at.prefixLength(raw); n > 0 {
			return n
		}
	}
	return 0
}

// prefixLength returns the length of the origin at the beginning of raw, followed by a slash or the end of the
// string. It returns 0 if raw begins otherwise.
func (at origin) prefixLength(raw []byte) int {
	i := 0
	for n := range len(at.host) + len(at.path) {
		c, size := decodeChar(raw[i:])
		if size == 0 {
			return 0
		}
		if n < len(at.host) {
			if c >= 'A' && c <= 'Z' {
				c |= 0x20
			}
			if c != at.host[n] {
				return 0
			}
		} else if c != at.path[n-len(at.host)] {
			return 0
		}
		i += size
	}
	if c, size := decodeChar(raw[i:]); size > 0 && c != '/' {
		return 0
	}
	return i
}

// decodeChar decodes the first character of the content of a JSON string. size is 0 at the end. c is 0 for characters
// that no URL contains (other escapes, characters beyond ASCII).
func decodeChar(raw []byte) (c byte, size int) {
	switch {
	case len(raw) == 0:
		return 0, 0
	case raw[0] != '\\' || len(raw) < 2:
		return raw[0], 1
	case raw[1] == '/':
		return '/', 2
	case raw[1] != 'u' || len(raw) < 6 || raw[2] != '0' || raw[3] != '0':
		return 0, 2
	}
	for _, h := range raw[4:6] {
		switch {
		case h >= '0' && h <= '9':
			c = c<<4 | (h - '0')
		default:
			c = c<<4 | (h | 0x20 - 'a' + 10)
		}
	}
	if c >= 0x80 {
		c = 0
	}
	return c, 6
}

// localPath returns a link without its origin, if the origin is the upstream's or this server's. The result is the path
// and the query of a request to the upstream.
func (p *origins) localPath(link string) string {
	if rest, ok := strings.CutPrefix(link, p.publicURL); ok && p.publicURL != "" && strings.HasPrefix(rest, "/") {
		return rest
	}
	for _, at := range p.upstreamOrigins {
		n := len(at.host) + len(at.path)
		if len(link) > n && strings.EqualFold(link[:len(at.host)], at.host) && link[len(at.host):n] == at.path && link[n] == '/' {
			return link[n:]
		}
	}
	return link
}

// fieldPath is the dotted name of a field. A dot leads into an object, or is part of a member's name
// ("@odata.nextLink"). Arrays are not part of the path.
type fieldPath string

// matchEnd reports whether the names of the open members, outermost first, end in the path. before is the number of
// members before the path.
func (f fieldPath) matchEnd(open [][]byte) (before int, ok bool) {
	rest := string(f)
	for i, raw := range slices.Backward(open) {
		name := string(raw)
		if strings.IndexByte(name, '\\') >= 0 {
			name = jsonspan.Name(raw)
		}
		if rest, ok = strings.CutSuffix(rest, name); !ok || rest == "" {
			return i, ok
		}
		if rest, ok = strings.CutSuffix(rest, "."); !ok {
			return i, false
		}
	}
	return 0, false
}

// absoluteIn returns the paths of the absolute URLs in an answer with an envelope, whose records are under key.
func absoluteIn(k *spec.Kind, key string, envelope []*spec.Field) (out []fieldPath) {
	add := func(under string, fields []*spec.Field) {
		for _, f := range fields {
			if f.AbsoluteURL {
				out = append(out, fieldPath(strings.TrimPrefix(under+"."+f.Name, ".")))
			}
		}
	}
	add(key, k.Fields)
	add("", envelope)
	return out
}
