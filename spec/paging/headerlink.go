// Header link: the links to other pages are in a Link header (RFC 8288).

package paging

import (
	"slices"
	"strings"
)

// headerLink is the paging style header: the next page is the link with the relation "next", and the last page
// has no such link. A single page that is not full needs no Link header.
type headerLink struct{}

func (headerLink) check(*Rules) error { return nil }

func (headerLink) checkTemplate(*Rules, any, any) error { return nil }

func (headerLink) findNext(r *Rules, a *Answer) (Step, error) {
	link := LinkTarget(a.Header["Link"], "next")
	full, known := r.isFull(a)
	if link == "" && a.Count > 0 && len(a.Header["Link"]) == 0 && (full || !known) {
		return openUnseen("a Link header"), nil
	}
	return Step{Link: link}, nil
}

func (headerLink) tokenParam(r *Rules) string { return r.firstToken() }

// Relations are the link relations to pages of a list other than the next page.
var Relations = []string{"prev", "previous", "first", "last"}

// RelationField returns the name under which a page stores the target of a link relation. It cannot be the name
// of a header field.
func RelationField(relation string) string { return "Link;" + relation }

// ParamsField returns the name under which a page stores the parameters of a link (see LinkAndParams).
func ParamsField(relation string) string { return "Link;" + relation + ";" }

// AppendLink appends a link to the value of a Link header.
func AppendLink(value, link, relation string) string {
	if value != "" {
		value += ", "
	}
	return value + "<" + link + `>; rel="` + relation + `"`
}

// maxLink is the maximum number of bytes of a Link header that are read.
const maxLink = 16 << 10

// LinkTarget returns the target of the first link with a relation in Link header fields (RFC 8288, section 3),
// or "". A link with results="false" leads to an empty page and is ignored.
func LinkTarget(fields []string, relation string) string {
	link, _ := LinkAndParams(fields, relation)
	return link
}

// LinkAndParams returns the target as LinkTarget does, and the link's parameters results and cursor, which
// clients of Sentry's API need.
func LinkAndParams(fields []string, relation string) (link, params string) {
	for _, rest := range fields {
		rest = rest[:min(len(rest), maxLink)]
		for {
			_, after, ok := strings.Cut(rest, "<")
			if !ok {
				break
			}
			target, rel, ok := strings.Cut(after, ">")
			if !ok {
				break
			}
			var related, empty bool
			if related, empty, params, rest = parseLinkParams(rel, relation); related && empty {
				return "", params
			} else if related {
				return strings.TrimSpace(target), params
			}
		}
	}
	return "", ""
}

// parseLinkParams parses a link's parameters up to the comma that ends them, and reports whether the link has the
// relation. Only the first "rel" counts (RFC 8288, section 3.3). empty reports that the linked page has no rows.
func parseLinkParams(s, relation string) (has, empty bool, params, rest string) {
	seen := false
	for {
		s = strings.TrimLeft(s, " \t;")
		if s == "" || s[0] == ',' {
			return has, empty, params, s
		}
		end := strings.IndexAny(s, "=;,")
		if end < 0 {
			return has, empty, params, ""
		}
		name := strings.TrimSpace(s[:end])
		s = s[end:]
		if s[0] != '=' {
			continue
		}
		var value string
		value, s = paramValue(strings.TrimLeft(s[1:], " \t"))
		switch {
		case strings.EqualFold(name, "results"):
			empty = strings.EqualFold(value, "false")
			params += "; results=" + quoteString(value)
		case strings.EqualFold(name, "cursor"):
			params += "; cursor=" + quoteString(value)
		case strings.EqualFold(name, "rel") && !seen:
			seen = true
			has = slices.ContainsFunc(strings.Fields(value), func(rel string) bool { return strings.EqualFold(rel, relation) })
		}
	}
}

// quoteString returns a quoted string (RFC 9110, section 5.6.4).
func quoteString(value string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value) + `"`
}

// paramValue parses a token or a quoted string.
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
