// Rewriting: absolute URLs of upstream become URLs of ours.

package upstream

import (
	"bytes"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"understudy/kit/jsonspan"
	"understudy/spec"
)

// origins finds upstream's own addresses at the beginning of a URL and has the
// replacement. It never changes after newOrigins.
type origins struct {
	theirs []origin
	ours   string // the source's public URL, without a slash at its end; "" = nothing is rewritten
	text   []byte // ours as it stands inside a JSON string
}

// origin is the beginning of a URL: scheme, host and port, compared without regard to
// letter case, and a path, compared exactly.
type origin struct{ host, path string }

// newOrigins reads the addresses of a source: base, which is where it is asked
// when that is not empty, and the hosts of its spec.
func newOrigins(s *spec.Source, base string) *origins {
	p := &origins{ours: strings.TrimSuffix(s.PublicURL, "/")}
	p.text = bytes.Trim(jsonText(p.ours), `"`)
	p.add(base)
	for _, h := range s.Spec.Hosts {
		p.add(h.URL)
	}
	return p
}

// jsonText is a text as a JSON string.
func jsonText(text string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(text) != nil {
		return noText
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// home is a link to another host as a link to us, "" for any other: whoever follows the
// link to the next page does so with the credential it has for us. It is read as
// generously as a client may: a backslash is a slash, control characters do not count.
func (p *origins) home(link string) string {
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
	if !ok || strings.ContainsAny(scheme, "/?#") || scheme != "" && !strings.HasSuffix(scheme, ":") || p.local(link) != link {
		return ""
	}
	path := strings.IndexAny(rest, "/?#")
	if path < 0 {
		return p.ours + "/"
	}
	return p.ours + "/" + strings.TrimPrefix(rest[path:], "/")
}

// add notes an address, with and without the port its scheme implies. An API behind a TLS
// terminator may write the other scheme, at the same port or at that scheme's own.
func (p *origins) add(address string) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return
	}
	path, port := strings.TrimSuffix(u.EscapedPath(), "/"), u.Port()
	host := strings.ToLower(strings.TrimSuffix(u.Host, ":"+port))
	if port == "" {
		port = ownPorts[u.Scheme]
	}
	for scheme, own := range ownPorts {
		at := scheme + "://" + host
		if port != own {
			p.theirs = append(p.theirs, origin{at + ":" + port, path})
		}
		if port == own || scheme != u.Scheme {
			p.theirs = append(p.theirs, origin{at, path}, origin{at + ":" + own, path})
		}
	}
}

// away is how many bytes of a JSON string's content, raw, name an origin of
// upstream's; 0 when they name none.
func (p *origins) away(raw []byte) int {
	if len(raw) == 0 || raw[0] != 'h' && raw[0] != 'H' && raw[0] != '\\' {
		return 0
	}
	for _, at := range p.theirs {
		if n := at.begins(raw); n > 0 {
			return n
		}
	}
	return 0
}

// begins is how many raw bytes of a JSON string's content are the origin, with
// a slash or the end of the string behind them; 0 when it begins otherwise.
func (at origin) begins(raw []byte) int {
	i := 0
	for n := range len(at.host) + len(at.path) {
		c, size := char(raw[i:])
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
	if c, size := char(raw[i:]); size > 0 && c != '/' {
		return 0
	}
	return i
}

// char decodes the first byte of a JSON string's content. It has size 0 at the end.
// Characters that no URL holds (other escapes, characters beyond ASCII) are 0.
func char(raw []byte) (c byte, size int) {
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

// local is a link without its origin, when that is upstream's or ours: the path and
// query of a request upstream.
func (p *origins) local(link string) string {
	if rest, ok := strings.CutPrefix(link, p.ours); ok && p.ours != "" && strings.HasPrefix(rest, "/") {
		return rest
	}
	for _, at := range p.theirs {
		n := len(at.host) + len(at.path)
		if len(link) > n && strings.EqualFold(link[:len(at.host)], at.host) && link[len(at.host):n] == at.path && link[n] == '/' {
			return link[n:]
		}
	}
	return link
}

// fieldPath is the dotted name of a field. A dot leads into an object, or is part of a member's name
// ("@odata.nextLink"). Arrays are no part of it.
type fieldPath string

// ends reports whether the open members, outermost first, end in the path, and how many members
// stand before it.
func (f fieldPath) ends(open [][]byte) (before int, ok bool) {
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

// absoluteIn returns where the absolute URLs of an answer stand whose records are under key, beside
// an envelope.
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
