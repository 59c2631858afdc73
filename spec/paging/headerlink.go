// Header link: the link to the next page stands in a Link header (RFC 8288).

package paging

import (
	"slices"
	"strings"
)

// headerLink is the paging style header: the link has the relation "next", and
// the last page has no such link.
type headerLink struct{}

func (headerLink) check(*Rules) error { return nil }

func (headerLink) checkTemplate(*Rules, any, any) error { return nil }

func (headerLink) next(_ *Rules, a *Answer) (Step, error) {
	link, _ := nextLink(a.Header["Link"])
	return Step{Link: link}, nil
}

func (headerLink) tokenParam(r *Rules) string { return r.firstToken() }

// maxLink bounds how much of a Link header is read, in bytes.
const maxLink = 16 << 10

// nextLink is the target of the first link with the relation "next" in Link
// header fields (RFC 8288, section 3).
func nextLink(fields []string) (string, bool) {
	for _, rest := range fields {
		rest = rest[:min(len(rest), maxLink)]
		for {
			_, after, ok := strings.Cut(rest, "<")
			if !ok {
				break
			}
			target, params, ok := strings.Cut(after, ">")
			if !ok {
				break
			}
			var next bool
			if next, rest = relNext(params); next {
				return strings.TrimSpace(target), true
			}
		}
	}
	return "", false
}

// relNext reads a link's parameters up to the comma that ends them. Of several
// "rel" the first counts (RFC 8288, section 3.3).
func relNext(s string) (next bool, rest string) {
	seen := false
	for {
		s = strings.TrimLeft(s, " \t;")
		if s == "" || s[0] == ',' {
			return next, s
		}
		end := strings.IndexAny(s, "=;,")
		if end < 0 {
			return next, ""
		}
		name := strings.TrimSpace(s[:end])
		s = s[end:]
		if s[0] != '=' {
			continue
		}
		var value string
		value, s = paramValue(strings.TrimLeft(s[1:], " \t"))
		if strings.EqualFold(name, "rel") && !seen {
			seen = true
			next = slices.ContainsFunc(strings.Fields(value), func(rel string) bool { return strings.EqualFold(rel, "next") })
		}
	}
}

// paramValue reads a token or a quoted string.
func paramValue(s string) (value, rest string) {
	if !strings.HasPrefix(s, `"`) {
		end := strings.IndexAny(s, ";,")
		if end < 0 {
			end = len(s)
		}
		return strings.TrimSpace(s[:end]), s[end:]
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '"':
			return b.String(), s[i+1:]
		case '\\':
			if i++; i == len(s) {
				return b.String(), ""
			}
		}
		b.WriteByte(s[i])
	}
	return b.String(), ""
}
