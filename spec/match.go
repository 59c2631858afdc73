// Match: from a request's path and query to its target and canonical key.

package spec

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"understudy"
)

// The bounds of a request, in bytes.
const (
	MaxURI = 8 << 10    // its target as it was sent, and its path in the canonical form
	MaxKey = 4 * MaxURI // its canonical form, in which three bytes may stand for one
)

// route is one path of the spec.
type route struct {
	template Template
	base     Template // of a posted read: the path itself
	kind     *Kind
	list     *List
	instance *Instance
	media    *Media
}

// routes are the paths of a spec. The first that matches counts.
type routes []route

// ids are the path variables that name the record.
func (r *route) ids() []string {
	switch {
	case r.instance != nil:
		return r.instance.ID
	case r.media != nil:
		return r.media.ID
	}
	return nil
}

// Target says what a request to this source means: the kind, list or instance of the
// decoded path, and the canonical key. A path that the spec does not name gives a
// target without a kind. Malformed paths and queries are ErrInvalid. A path that could
// be read as another one (dots) is ErrNotFound too, because upstream has nothing under such
// a name. So is one with an encoded slash, unless that is data: in a variable of a list or an
// instance, and with a plain slash it would be no path of the spec.
func (s *Spec) Target(source, path, rawQuery string) (*Target, error) {
	if s.generic {
		if rawQuery != "" {
			path += "?" + rawQuery
		}
		return s.Passed(source, path)
	}
	segments, err := understudy.SplitPathData(path)
	if err != nil {
		return nil, err
	}
	q, err := understudy.ParseQuery(rawQuery)
	if err != nil {
		return nil, err
	}
	q = s.withoutKeys(q)
	t := &Target{Spec: s}
	if slices.ContainsFunc(q, isOwn) {
		t.Own = q.Without(func(p understudy.Param) bool { return !isOwn(p) })
		q = q.Without(isOwn)
	}
	segments, q = s.routes.move(segments, q)
	if s.routes.fill(t, segments); t.Kind == nil {
		t.NearMiss = s.routes.nearMiss(segments)
	}
	if t.Slashed = slices.ContainsFunc(segments, func(text string) bool { return strings.Contains(text, "/") }); t.Slashed {
		plain := strings.Split(strings.Join(segments, "/"), "/")
		if t.Kind == nil || t.Media != nil || s.routes.names(plain) || s.routes.nearMiss(plain) {
			_, err := understudy.SplitPath(path)
			return nil, err
		}
	}
	t.Query = s.canonical(t, q)
	uri := make([]byte, 0, len(path)+len(rawQuery)+16)
	for _, text := range segments {
		uri = append(uri, '/')
		uri = understudy.AppendPathSegment(uri, text)
	}
	if len(uri) > MaxURI {
		return nil, fmt.Errorf("%w: path longer than %d bytes", understudy.ErrTooLong, MaxURI)
	}
	if len(t.Query) > 0 {
		uri = append(uri, '?')
		uri = t.Query.AppendTo(uri)
	}
	if len(uri) > MaxKey {
		return nil, fmt.Errorf("%w: path and parameters longer than %d bytes in their canonical form", understudy.ErrTooLong, MaxKey)
	}
	t.Key = understudy.Key{Source: source, URI: string(uri)}
	return t, nil
}

// Passed is the target of a request to a generic source: its key is the request target as
// it came. The error is ErrInvalid.
func (s *Spec) Passed(source, uri string) (*Target, error) {
	odd := func(r rune) bool { return r <= ' ' || r > '~' || r == '#' }
	switch {
	case !strings.HasPrefix(uri, "/") || strings.HasPrefix(uri, "//") || strings.ContainsFunc(uri, odd):
		return nil, fmt.Errorf("%w: %s: want a path that begins with one slash", understudy.ErrInvalid, understudy.Clip(uri))
	case len(uri) > MaxURI:
		return nil, fmt.Errorf("%w: request target longer than %d bytes", understudy.ErrTooLong, MaxURI)
	}
	return &Target{Spec: s, Key: understudy.Key{Source: source, URI: uri}}, nil
}

// withoutKeys is a query without the parameters that carry credentials: a link may repeat
// what it was asked with.
func (s *Spec) withoutKeys(q understudy.Query) understudy.Query {
	if len(s.keys) == 0 {
		return q
	}
	return q.Without(func(p understudy.Param) bool { return slices.Contains(s.keys, p.Name) })
}

// TargetOf is the target of a key.
func (s *Spec) TargetOf(k understudy.Key) (*Target, error) {
	t, err := s.Target(k.Source, k.Path(), k.Query())
	if err != nil {
		return nil, err
	}
	header, err := understudy.ParseQuery(k.Header())
	if err != nil {
		return nil, err
	}
	return t.With(header)
}

// Follow is the target of a link found in an answer: a URI reference with a path of its
// own. Its host, if any, does not count.
func (s *Spec) Follow(source, link string) (*Target, error) {
	if _, rest, ok := strings.Cut(link, "://"); ok && !strings.HasPrefix(link, "/") {
		slash := strings.IndexByte(rest, '/')
		if slash < 0 {
			return nil, fmt.Errorf("%w: link %q has no path", understudy.ErrInvalid, understudy.Clip(link))
		}
		link = rest[slash:]
	}
	path, query, _ := strings.Cut(link, "?")
	query, _, _ = strings.Cut(query, "#")
	return s.Target(source, path, query)
}

func isOwn(p understudy.Param) bool { return strings.HasPrefix(p.Name, understudy.OwnPrefix) }

// fill sets a target's kind, list or instance, variables and id.
func (all routes) fill(t *Target, segments []string) {
	for i := range all {
		r := &all[i]
		vars, ok := r.template.match(segments)
		if !ok || r.ambiguous(vars) {
			continue
		}
		t.Kind, t.List, t.Instance, t.Media, t.Vars = r.kind, r.list, r.instance, r.media, vars
		if ids := r.ids(); len(ids) > 0 {
			parts := make([]string, len(ids))
			for i, name := range ids {
				parts[i] = t.Var(name)
			}
			t.ID = t.Kind.IDOf(parts)
		}
		return
	}
}

// names reports whether the spec has a path.
func (all routes) names(segments []string) bool {
	return slices.ContainsFunc(all, func(r route) bool {
		_, ok := r.template.match(segments)
		return ok
	})
}

// ambiguous reports whether a path could mean another record. A part of a composite id
// then holds the separator, or a part of a media path holds a dot and may name another
// rendition.
func (r *route) ambiguous(vars []understudy.Param) bool {
	ids := r.ids()
	return slices.ContainsFunc(vars, func(v understudy.Param) bool {
		return r.media != nil && strings.Contains(v.Value, ".") ||
			len(ids) > 1 && slices.Contains(ids, v.Name) && strings.Contains(v.Value, IDSeparator)
	})
}

// nearMiss reports whether a path that no route has differs from one in case,
// in empty segments or in ;parameters alone.
func (all routes) nearMiss(segments []string) bool {
	folded := make([]string, len(segments))
	for i, text := range segments {
		folded[i] = strings.ToLower(withoutParameters(text))
	}
	full := slices.DeleteFunc(slices.Clone(folded), func(text string) bool { return text == "" })
	for i := range all {
		if t := all[i].template; t.resembles(folded) || t.resembles(full) {
			return true
		}
	}
	return false
}

// withoutParameters takes ";v=1" out of "Calls;v=1.json" and "Calls.json;v=1".
func withoutParameters(segment string) string {
	head, rest, found := strings.Cut(segment, ";")
	if !found {
		return segment
	}
	if dot := strings.LastIndexByte(rest, '.'); dot >= 0 && !strings.Contains(head, ".") {
		return head + rest[dot:]
	}
	return head
}

// canonical orders a query: the list's filters as in the spec, then unknown parameters
// by name, then size, page and tokens. The default size is written out. The first
// page's number is left out, unless another number is given too. Parameters of one name
// keep their order.
func (s *Spec) canonical(t *Target, q understudy.Query) understudy.Query {
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
	q = q.Without(func(x understudy.Param) bool {
		if f := t.List.Filter(x.Name); f != nil && f.Plain(x.Value) && q.Count(x.Name) == 1 {
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
		case p.Position(param.Name):
			t.First = false
		}
	}
	return q
}

// rank orders parameter names: filters, unnamed, size, page, tokens.
func (l *List) rank(p *Paging, name string) int {
	for i, f := range l.Filters {
		if f.Name == name {
			return i
		}
	}
	switch {
	case name == p.Size:
		return unnamed + 1
	case name == p.Page:
		return unnamed + 2
	case slices.Contains(p.Tokens, name):
		return unnamed + 3
	}
	return unnamed
}

// unnamed is the rank of a parameter that the spec does not name, behind more
// filters than a list has.
const unnamed = 1000

// fitsAny reports whether a text fits one of some patterns.
func fitsAny(patterns []string, text string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return Glob(p, text) })
}

// Glob reports whether a pattern, in which one * stands for any text, is the whole text.
func Glob(pattern, text string) bool {
	head, tail, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == text
	}
	return len(text) >= len(head)+len(tail) && strings.HasPrefix(text, head) && strings.HasSuffix(text, tail)
}
