// Next: the list's next page, by the spec's paging style.

package upstream

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"understudy"
	"understudy/kit/jsonspan"
	"understudy/spec"
)

// nextKey is the key of the page after a list answer, zero when it is the
// last. The error says why a page that has a successor has none we can ask for.
func nextKey(t *spec.Target, body []byte, f *found, header http.Header, at *origins) (understudy.Key, error) {
	switch p := t.Spec.PagingOf(t.List); p.Style {
	case "body":
		if f.next.Kind != jsonspan.String || !filled(f.next) {
			return understudy.Key{}, nil
		}
		return follow(t, at.local(jsonspan.Text(body, f.next)))
	case "header":
		link, ok := nextLink(header["Link"])
		if !ok {
			return understudy.Key{}, nil
		}
		return follow(t, at.local(link))
	case "cursor":
		if string(f.next.Of(body)) != "true" {
			return understudy.Key{}, nil
		}
		return afterLast(t, f)
	}
	return understudy.Key{}, nil
}

// follow is the key a link leads to. Its host is never looked at, so a link
// cannot send us, or our credential, elsewhere. A link to the page itself ends
// the list.
func follow(t *spec.Target, link string) (understudy.Key, error) {
	switch {
	case strings.HasPrefix(link, "//"):
		link = "x:" + link
	case strings.HasPrefix(link, "?"):
		link = t.Key.Path() + link
	case !strings.HasPrefix(link, "/") && !strings.Contains(link, "://"):
		base, err := url.Parse(t.Key.URI)
		if err != nil {
			return understudy.Key{}, fmt.Errorf("link %q: %w", understudy.Clip(link), err)
		}
		to, err := base.Parse(link)
		if err != nil {
			return understudy.Key{}, fmt.Errorf("link %q cannot be read", understudy.Clip(link))
		}
		link = to.RequestURI()
	}
	next, err := t.Spec.Follow(t.Key.Source, link)
	if err != nil {
		return understudy.Key{}, fmt.Errorf("link %q: %w", understudy.Clip(link), err)
	}
	if next.List == nil || next.Kind != t.Kind {
		return understudy.Key{}, fmt.Errorf("link %q leads to no list of %s", understudy.Clip(link), t.Kind.Name)
	}
	if next.Key == t.Key {
		return understudy.Key{}, nil
	}
	return next.Key, nil
}

// afterLast asks for what comes after the last record of the page.
func afterLast(t *spec.Target, f *found) (understudy.Key, error) {
	if len(f.rows) == 0 {
		return understudy.Key{}, fmt.Errorf("there is more, but no record to go on from")
	}
	p := t.Spec.PagingOf(t.List)
	query := t.Query.Without(func(q understudy.Param) bool {
		return slices.Contains(p.Tokens, q.Name) || p.Page != "" && q.Name == p.Page
	})
	query = append(query, understudy.Param{Name: p.Cursor, Value: f.rows[len(f.rows)-1].ID})
	next, err := t.Spec.Target(t.Key.Source, t.Key.Path(), query.String())
	if err != nil {
		return understudy.Key{}, fmt.Errorf("the next page: %w", err)
	}
	if next.Key == t.Key {
		return understudy.Key{}, fmt.Errorf("the next page is this page again")
	}
	return next.Key, nil
}

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
