// Lies: which record another one lies under, read off the spec.

package access

import (
	"net/url"
	"slices"
	"strings"

	"understudy/spec"
)

// ancestorsOf are the fields of a kind that name a record it lies under: parts of
// its id that name others, the kind's parent, what a list's path says it is of,
// and a field that names what the record is about, whatever that is. The
// source's own account is above everything and counts as nothing.
func ancestorsOf(s *spec.Spec, k *spec.Kind) (all []ancestor) {
	paths := pathsAbove(s, k)
	for _, f := range k.Fields {
		if f.Link == spec.AnyKind {
			all = append(all, ancestor{field: f.Name})
			continue
		}
		p := s.Kind(f.Link)
		if p == nil || p == k || len(p.ID) != 1 {
			continue
		}
		if f.Name == k.Parent || slices.Contains(k.ID, f.Name) || slices.Contains(paths, p) {
			all = append(all, ancestor{field: f.Name, kind: p})
		}
	}
	return all
}

// pathsAbove are the kinds one of whose instance paths begins a list's path.
func pathsAbove(s *spec.Spec, k *spec.Kind) (all []*spec.Kind) {
	for _, l := range k.Lists {
		for _, p := range listAbove(s, l) {
			if p != k && !slices.Contains(all, p) {
				all = append(all, p)
			}
		}
	}
	return all
}

// listAbove are the kinds one list lies under.
func listAbove(s *spec.Spec, l *spec.List) (all []*spec.Kind) {
	for _, p := range s.Kinds {
		for _, in := range p.Instances {
			if len(p.ID) == 1 && !ownAccount(s, in) && beginsPath(in.Path, l.Path) {
				all = append(all, p)
				break
			}
		}
	}
	return all
}

// ownAccount reports whether an instance's id is what the source fills in
// paths.
func ownAccount(s *spec.Spec, in *spec.Instance) bool {
	i := strings.Index(in.Path, "{"+strings.Join(in.ID, "")+"}")
	if i < 0 {
		return false
	}
	// Another path of the spec begins the same way with the variable that is
	// filled: /Accounts/{Sid}.json and /Accounts/{AccountSid}/….
	head := in.Path[:i]
	for _, k := range s.Kinds {
		for _, l := range k.Lists {
			if rest, ok := strings.CutPrefix(l.Path, head+"{"); ok {
				name, _, _ := strings.Cut(rest, "}")
				if s.Vars[name] == "user" {
					return true
				}
			}
		}
	}
	return false
}

// beginsPath reports whether an instance's template names the record a longer
// template lies under.
func beginsPath(instance, longer string) bool {
	want, have := strings.Split(instance, "/"), strings.Split(longer, "/")
	if len(have) <= len(want) {
		return false
	}
	for i, seg := range want {
		if a, b := variable(seg), variable(have[i]); a != b || !a && seg != have[i] {
			return false
		}
	}
	return true
}

// variable reports whether a segment of a template is one, an extension left
// out.
func variable(segment string) bool { return strings.HasPrefix(segment, "{") }

// named is a record that a path names.
type named struct {
	f      *rowFilter
	target *spec.Target
}

// over are the records of ruled kinds a path lies under, the outermost first:
// of paths the spec does not name, too. Our own account, user, is none.
func (r *grants) over(s *spec.Spec, t *spec.Target, user string) (all []named) {
	have := strings.Split(t.Key.Path(), "/")
	for _, k := range s.Kinds {
		f := r.rows[k.Name]
		if f == nil {
			continue
		}
		for _, in := range k.Instances {
			path, ok := fillPath(in.Path, have)
			if !ok || len(have) <= strings.Count(in.Path, "/")+1 {
				continue
			}
			up, err := s.Target(t.Key.Source, path, "")
			if err != nil || up.Instance != in || up.ID == "" || ownAccount(s, in) && up.ID == user {
				continue
			}
			all = append(all, named{f, up})
			break
		}
	}
	slices.SortStableFunc(all, func(a, b named) int { return len(a.target.Key.URI) - len(b.target.Key.URI) })
	return all
}

// fillPath fills an instance's template from the beginning of a path; an
// extension of the template is not in a longer path.
func fillPath(template string, have []string) (path string, ok bool) {
	want := strings.Split(template, "/")
	if len(have) < len(want) {
		return "", false
	}
	for i, seg := range want {
		if !variable(seg) {
			text, err := url.PathUnescape(have[i])
			if err != nil || text != seg {
				return "", false
			}
			continue
		}
		_, tail, _ := strings.Cut(seg, "}")
		text := have[i]
		if i == len(want)-1 {
			text = strings.TrimSuffix(text, tail)
		}
		if text == "" {
			return "", false
		}
		want[i] = text + tail
	}
	return strings.Join(want, "/"), true
}

// expand puts values in a template; ok is false when one is missing.
func expand(template string, value func(name string) string) (path string, ok bool) {
	for {
		head, rest, more := strings.Cut(template, "{")
		path += head
		if !more {
			return path, true
		}
		name, tail, _ := strings.Cut(rest, "}")
		v := value(name)
		if v == "" {
			return "", false
		}
		path += url.PathEscape(v)
		template = tail
	}
}
