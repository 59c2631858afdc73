// Ancestry: which record another one lies under, read off the spec.

package access

import (
	"slices"
	"strings"

	"understudy/spec"
)

// ancestorsOf are the fields of a kind that name a record it lies under: parts of
// its id that name others, the kind's parent, what a list's path says it is of,
// a field that names what the record is about, whatever that is, and the root. The
// source's own account is above everything and counts as nothing.
func ancestorsOf(s *spec.Spec, k *spec.Kind) (all []ancestor) {
	paths := pathsAbove(s, k)
	for _, f := range k.Fields {
		if f.Link == spec.AnyKind {
			all = append(all, ancestor{field: f.Name})
			continue
		}
		p := s.Kind(f.Link)
		if p != nil && p != k && f.RootPath() != "" {
			all = append(all, ancestor{field: f.Name, kind: p, root: true})
			for _, o := range paths { // comments of an issue, which they name by nothing that is an id
				if o != p && o.Root != "" && !slices.ContainsFunc(k.Fields, func(f *spec.Field) bool { return f.Link == o.Name }) {
					all = append(all, ancestor{field: f.Name, kind: o, root: true, only: true})
				}
			}
			continue
		}
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
			one := len(p.ID) == 1 || p.Name == s.Roots.Kind && len(in.ID) == len(p.ID)
			if one && !ownAccount(s, in) && in.Template().IsPrefixOf(l.Template()) {
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
	want := in.Template().Segments()
	at := slices.IndexFunc(want, func(seg spec.Segment) bool { return len(in.ID) == 1 && seg.Name == in.ID[0] })
	if at < 0 {
		return false
	}
	// Another path of the spec begins the same way with the variable that is
	// filled: /Accounts/{Sid}.json and /Accounts/{AccountSid}/….
	for _, k := range s.Kinds {
		for _, l := range k.Lists {
			have := l.Template().Segments()
			if len(have) > at && slices.Equal(have[:at], want[:at]) && have[at].Head == want[at].Head && s.Vars[have[at].Name] == "user" {
				return true
			}
		}
	}
	return false
}

// named is a record that a path names.
type named struct {
	f      *rowFilter
	target *spec.Target
}

// over are the records of ruled kinds a path lies under, the outermost first:
// of paths the spec does not name, too. Our own account, user, is none.
func (r *grants) over(s *spec.Spec, t *spec.Target, user string) (all []named) {
	have := strings.Split(t.Key.Path(), "/")[1:]
	for _, k := range s.Kinds {
		f := r.rows[k.Name]
		if f == nil {
			continue
		}
		for _, in := range k.Instances {
			path, ok := in.Template().FillFromPath(have)
			if !ok || len(have) <= len(in.Template().Segments()) {
				continue
			}
			up, err := s.Resolve(t.Key.Source, path, "")
			if err != nil || up.Instance != in || up.ID == "" && in.Address == "" || ownAccount(s, in) && up.ID == user {
				continue
			}
			all = append(all, named{f, up})
			break
		}
	}
	slices.SortStableFunc(all, func(a, b named) int { return len(a.target.Key.URI) - len(b.target.Key.URI) })
	return all
}
