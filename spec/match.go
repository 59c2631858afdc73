// Match: resolves a request's path and query to a target with a canonical key.

package spec

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"understudy"
)

// The limits of a request, in bytes.
const (
	MaxURI = 8 << 10    // maximum length of the request target as it was sent, and of the path in canonical form
	MaxKey = 4 * MaxURI // maximum length of the canonical form, in which three bytes may stand for one
)

// route is one path of the spec.
type route struct {
	template Template
	base     Template // for a posted read, the path without the segments that only its key has
	kind     *Kind
	list     *List
	instance *Instance
	media    *Media
}

// routes are the paths of a spec. The first match wins.
type routes []route

// ids returns the path variables that form the record's id.
func (r *route) ids() []string {
	switch {
	case r.instance != nil:
		return r.instance.ID
	case r.media != nil:
		return r.media.ID
	}
	return nil
}

// replaceAlias returns a path with what the longest alias at its beginning stands for.
func (s *Spec) replaceAlias(path string) string {
	longest := ""
	for alias := range s.Aliases {
		rest, ok := strings.CutPrefix(path, alias)
		if ok && (rest == "" || rest[0] == '/') && len(alias) > len(longest) {
			longest = alias
		}
	}
	if longest == "" {
		return path
	}
	return cmp.Or(s.Aliases[longest]+path[len(longest):], "/")
}

// checkAliases checks that aliases are beginnings of paths.
func (s *Spec) checkAliases() error {
	for alias, path := range s.Aliases {
		for _, text := range []string{alias, path} {
			if text != "" && (text[0] != '/' || strings.HasSuffix(text, "/") || strings.ContainsAny(text, "{}?#%")) || alias == "" {
				return fmt.Errorf("aliases: %q: %q is no beginning of paths; write one such as /api/v3", alias, text)
			}
		}
	}
	return nil
}

// IsRatePath reports whether a path is that of the limits of requests (Limits.Path).
func (s *Spec) IsRatePath(path string) bool {
	return s.Limits.Path != "" && strings.HasSuffix(path, s.Limits.Path) && s.replaceAlias(path) == s.Limits.Path
}

// Resolve returns what a request to this source means: kind, list or instance of the decoded path, and the
// canonical key. A path that the spec does not name gives a target without a kind. Malformed paths and queries
// are ErrInvalid. A path with dot segments is also ErrNotFound: other servers could read it as another path,
// and the upstream has nothing under such a name. The same holds for an encoded slash. It is allowed only as
// data in a variable of a list or an instance, if the same path with a plain slash belongs to no route.
func (s *Spec) Resolve(source, path, rawQuery string) (*Target, error) {
	if s.generic {
		if rawQuery != "" {
			path += "?" + rawQuery
		}
		return s.ResolveVerbatim(source, path)
	}
	path = s.replaceAlias(path)
	segments, err := understudy.SplitPathData(path)
	if err != nil {
		return nil, err
	}
	q, err := understudy.ParseQuery(rawQuery)
	if err != nil {
		return nil, err
	}
	q = s.removeCredentials(q)
	t := &Target{Spec: s}
	if slices.ContainsFunc(q, isOwnParam) {
		t.OwnParams = q.Remove(func(p understudy.Param) bool { return !isOwnParam(p) })
		q = q.Remove(isOwnParam)
	}
	segments, q = s.routes.movePosted(segments, q)
	if s.routes.fill(t, segments); t.Kind == nil {
		t.NearMiss = s.routes.hasNearMiss(segments)
	}
	if t.Slashed = slices.ContainsFunc(segments, func(text string) bool { return strings.Contains(text, "/") }); t.Slashed {
		plain := strings.Split(strings.Join(segments, "/"), "/")
		if t.Kind == nil || t.Media != nil || s.routes.hasPath(plain) || s.routes.hasNearMiss(plain) {
			_, err := understudy.SplitPath(path)
			return nil, err
		}
	}
	t.Query = s.canonicalQuery(t, q)
	uri := make([]byte, 0, len(path)+len(rawQuery)+16)
	for _, text := range segments {
		uri = append(uri, '/')
		uri = understudy.AppendPathSegment(uri, text)
	}
	if len(uri) > MaxURI {
		return nil, fmt.Errorf("%w: the path is longer than %d bytes", understudy.ErrTooLong, MaxURI)
	}
	if len(t.Query) > 0 {
		uri = append(uri, '?')
		uri = t.Query.AppendTo(uri)
	}
	if len(uri) > MaxKey {
		return nil, fmt.Errorf("%w: path and parameters are longer than %d bytes in their canonical form", understudy.ErrTooLong, MaxKey)
	}
	t.Key = understudy.Key{Source: source, URI: string(uri)}
	return t, nil
}

// ResolveVerbatim returns the target of a request to a generic source. Its key is the request target,
// unchanged. The error is ErrInvalid.
func (s *Spec) ResolveVerbatim(source, uri string) (*Target, error) {
	odd := func(r rune) bool { return r <= ' ' || r > '~' || r == '#' }
	switch {
	case !strings.HasPrefix(uri, "/") || strings.HasPrefix(uri, "//") || strings.ContainsFunc(uri, odd):
		return nil, fmt.Errorf("%w: %s is not a path that begins with exactly one slash", understudy.ErrInvalid, understudy.Clip(uri))
	case len(uri) > MaxURI:
		return nil, fmt.Errorf("%w: the request target is longer than %d bytes", understudy.ErrTooLong, MaxURI)
	}
	return &Target{Spec: s, Key: understudy.Key{Source: source, URI: uri}}, nil
}

// removeCredentials removes the parameters that carry credentials. A link may repeat those of its request.
func (s *Spec) removeCredentials(q understudy.Query) understudy.Query {
	if len(s.credentialParams) == 0 {
		return q
	}
	return q.Remove(func(p understudy.Param) bool { return slices.Contains(s.credentialParams, p.Name) })
}

// ResolveKey returns the target of a key.
func (s *Spec) ResolveKey(k understudy.Key) (*Target, error) {
	t, err := s.Resolve(k.Source, k.Path(), k.Query())
	if err != nil {
		return nil, err
	}
	header, err := understudy.ParseQuery(k.Header())
	if err != nil {
		return nil, err
	}
	return t.WithHeader(header)
}

// ResolveLink returns the target of a link found in an answer. The link is a URI reference with an absolute
// path. Its host, if any, is ignored.
func (s *Spec) ResolveLink(source, link string) (*Target, error) {
	if _, rest, ok := strings.Cut(link, "://"); ok && !strings.HasPrefix(link, "/") {
		slash := strings.IndexByte(rest, '/')
		if slash < 0 {
			return nil, fmt.Errorf("%w: link %q has no path", understudy.ErrInvalid, understudy.Clip(link))
		}
		link = rest[slash:]
	}
	path, query, _ := strings.Cut(link, "?")
	query, _, _ = strings.Cut(query, "#")
	return s.Resolve(source, path, query)
}

func isOwnParam(p understudy.Param) bool { return strings.HasPrefix(p.Name, understudy.OwnPrefix) }

// fill sets the target's kind, list or instance, variables and id.
func (all routes) fill(t *Target, segments []string) {
	for i := range all {
		r := &all[i]
		vars, ok := r.template.match(segments)
		if !ok || r.isAmbiguous(vars) {
			continue
		}
		t.Kind, t.List, t.Instance, t.Media, t.Vars = r.kind, r.list, r.instance, r.media, vars
		if ids := r.ids(); len(ids) > 0 {
			parts := make([]string, len(ids))
			for i, name := range ids {
				parts[i] = t.Var(name)
			}
			t.ID = t.Kind.JoinID(parts)
		}
		return
	}
}

// hasPath reports whether the spec has a route for the path.
func (all routes) hasPath(segments []string) bool {
	return slices.ContainsFunc(all, func(r route) bool {
		_, ok := r.template.match(segments)
		return ok
	})
}

// isAmbiguous reports whether a path could mean another record. That is so if a part of a composite id contains
// the separator. It is also so if a part of a media path contains a dot, which may name another rendition.
func (r *route) isAmbiguous(vars []understudy.Param) bool {
	ids := r.ids()
	return slices.ContainsFunc(vars, func(v understudy.Param) bool {
		return r.media != nil && strings.Contains(v.Value, ".") ||
			len(ids) > 1 && slices.Contains(ids, v.Name) && strings.Contains(v.Value, IDSeparator)
	})
}

// hasNearMiss reports whether a path without a route differs from a route only in letter case, empty segments
// or ;parameters.
func (all routes) hasNearMiss(segments []string) bool {
	folded := make([]string, len(segments))
	for i, text := range segments {
		folded[i] = strings.ToLower(stripParameters(text))
	}
	full := slices.DeleteFunc(slices.Clone(folded), func(text string) bool { return text == "" })
	for i := range all {
		if t := all[i].template; t.matchFolded(folded) || t.matchFolded(full) {
			return true
		}
	}
	return false
}

// stripParameters removes ";v=1" from "Calls;v=1.json" and "Calls.json;v=1".
func stripParameters(segment string) string {
	head, rest, found := strings.Cut(segment, ";")
	if !found {
		return segment
	}
	if dot := strings.LastIndexByte(rest, '.'); dot >= 0 && !strings.Contains(head, ".") {
		return head + rest[dot:]
	}
	return head
}

// canonicalQuery sorts a query: the list's filters as in the spec, then unknown parameters by name, then size,
// page and tokens. The default size is added. The first page's number is removed, unless the query has another
// page number too. Parameters with the same name keep their order.
func (s *Spec) canonicalQuery(t *Target, q understudy.Query) understudy.Query {
	if t.List == nil {
		slices.SortStableFunc(q, func(a, b understudy.Param) int { return strings.Compare(a.Name, b.Name) })
		return q
	}
	p := s.PagingOf(t.List)
	t.First = true
	hasSize, moved, pages := p.Size == "" || p.Default == 0, false, 0
	for _, param := range q {
		if param.Name == p.Page {
			pages++
		}
		hasSize = hasSize || param.Name == p.Size
		moved = moved || slices.Contains(p.Tokens, param.Name)
	}
	first := strconv.Itoa(p.First)
	q = q.Remove(func(x understudy.Param) bool {
		if f := t.List.Filter(x.Name); f != nil && f.CanOmit(x.Value) && q.Count(x.Name) == 1 {
			return true
		}
		return p.Page != "" && !moved && pages == 1 && x.Name == p.Page && x.Value == first
	})
	if !hasSize {
		q = append(q, understudy.Param{Name: p.Size, Value: strconv.Itoa(p.Default)})
	}
	slices.SortStableFunc(q, func(a, b understudy.Param) int {
		ra, rb := t.List.rank(p, a.Name), t.List.rank(p, b.Name)
		if ra != rb {
			return ra - rb
		}
		return strings.Compare(a.Name, b.Name)
	})
	for _, param := range q {
		switch {
		case param.Name == p.Size:
			t.PageSize, _ = strconv.Atoi(param.Value)
		case p.IsPosition(param.Name):
			t.First = false
		}
	}
	return q
}

// rank returns the sort position of a parameter name: filters, unknown parameters, size, page, tokens.
func (l *List) rank(p *Paging, name string) int {
	for i, f := range l.Filters {
		if f.Name == name {
			return i
		}
	}
	switch {
	case name == p.Size:
		return unnamedRank + 1
	case name == p.Page:
		return unnamedRank + 2
	case slices.Contains(p.Tokens, name):
		return unnamedRank + 3
	}
	return unnamedRank
}

// unnamedRank is the rank of a parameter that the spec does not name. It is greater than the number of filters of any
// list.
const unnamedRank = 1000

// matchAny reports whether a text matches one of the patterns.
func matchAny(patterns []string, text string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return MatchGlob(p, text) })
}

// MatchGlob reports whether the whole text matches a pattern, in which one * stands for any text.
func MatchGlob(pattern, text string) bool {
	head, tail, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == text
	}
	return len(text) >= len(head)+len(tail) && strings.HasPrefix(text, head) && strings.HasSuffix(text, tail)
}
