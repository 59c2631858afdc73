// Header link: the links to other pages stand in a Link header (RFC 8288).

package paging

import (
	"slices"
	"strings"
)

// headerLink is the paging style header: the link has the relation "next", and
// the last page has no such link. A list on one page that is not full needs no Link header.
type headerLink struct{}

func (headerLink) check(*Rules) error { return nil }

func (headerLink) checkTemplate(*Rules, any, any) error { return nil }

func (headerLink) next(r *Rules, a *Answer) (Step, error) {
	link := Related(a.Header["Link"], "next")
	full, known := r.isFull(a)
	if link == "" && a.Count > 0 && len(a.Header["Link"]) == 0 && (full || !known) {
		return unseen("a Link header"), nil
	}
	return Step{Link: link}, nil
}

func (headerLink) tokenParam(r *Rules) string { return r.firstToken() }

// Relations are those of links to other pages of a list than the next one.
var Relations = []string{"prev", "previous", "first", "last"}

// RelationField is the name under which a page keeps where a relation leads. No field of
// a header has such a name.
func RelationField(relation string) string { return "Link;" + relation }

// ParamsField is the name under which a page keeps the parameters of the link with a relation that
// clients go by (Linked).
func ParamsField(relation string) string { return "Link;" + relation + ";" }

// AppendLink appends a link to the value of a Link header.
func AppendLink(value, link, relation string) string {
	if value != "" {
		value += ", "
	}
	return value + "<" + link + `>; rel="` + relation + `"`
}

// maxLink bounds how much of a Link header is read, in bytes.
const maxLink = 16 << 10

// Related returns the target of the first link with a relation in Link header fields
// (RFC 8288, section 3); "": there is none. A link with results="false" leads to an empty
// page: it is none.
func Related(fields []string, relation string) string {
	link, _ := Linked(fields, relation)
	return link
}

// Linked returns the link of Related with its parameters results and cursor, which clients of
// Sentry's API go by.
func Linked(fields []string, relation string) (link, params string) {
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
			if related, empty, params, rest = hasRelation(rel, relation); related && empty {
				return "", params
			} else if related {
				return strings.TrimSpace(target), params
			}
		}
	}
	return "", ""
}

// hasRelation reads a link's parameters up to the comma that ends them. Of several
// "rel" the first counts (RFC 8288, section 3.3). empty tells that no row is behind the link.
func hasRelation(s, relation string) (has, empty bool, params, rest string) {
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
			params += "; results=" + quoted(value)
		case strings.EqualFold(name, "cursor"):
			params += "; cursor=" + quoted(value)
		case strings.EqualFold(name, "rel") && !seen:
			seen = true
			has = slices.ContainsFunc(strings.Fields(value), func(rel string) bool { return strings.EqualFold(rel, relation) })
		}
	}
}

// quoted writes a quoted string (RFC 9110, section 5.6.4).
func quoted(value string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value) + `"`
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
